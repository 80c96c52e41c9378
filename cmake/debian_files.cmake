# SPDX-License-Identifier: Apache-2.0
# Files that a Debian package has in addition to an installed tree: the copyright, a changelog,
# compressed manual pages, and zsh's completion in the folder of Debian's zsh. CPack runs this on
# the staged files.
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
if(CPACK_MX_MPI)
  message("mx: this build uses MPI (${CPACK_MX_MPI}), so the package depends on it; configure with -DMX_MPI=OFF to leave it out")
endif()
set(root ${CPACK_TEMPORARY_DIRECTORY})
file(GLOB_RECURSE man ${root}/*.1)
list(GET man 0 man)
string(REGEX REPLACE "/man/man1/.*" "" share ${man})
execute_process(COMMAND gzip -9n ${man} COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${share}/zsh/vendor-completions ${share}/doc/mx)
file(RENAME ${share}/zsh/site-functions/_mx ${share}/zsh/vendor-completions/_mx)
file(REMOVE_RECURSE ${share}/zsh/site-functions)
file(WRITE ${share}/doc/mx/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: mx

Files: *
Copyright: 2026 The mx developers
License: Apache-2.0
 On Debian systems, the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
")
string(TIMESTAMP time "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${share}/doc/mx/changelog "mx (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * CHANGELOG.md beside this file says what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${time}
")
configure_file(${CPACK_MX_SOURCE}/CHANGELOG.md ${share}/doc/mx/CHANGELOG.md COPYONLY)
execute_process(COMMAND gzip -9n ${share}/doc/mx/changelog ${share}/doc/mx/CHANGELOG.md
  COMMAND_ERROR_IS_FATAL ANY)

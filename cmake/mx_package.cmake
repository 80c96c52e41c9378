# SPDX-License-Identifier: Apache-2.0
# `cpack -G DEB` in the build folder: the command, its man page and completions as a package of this
# machine's distribution. The same sources, options and compiler give the same bytes in any folder:
# the time in it is SOURCE_DATE_EPOCH, or else that of the commit.
if(NOT PROJECT_IS_TOP_LEVEL OR NOT TARGET mx)
  return()
endif()
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%ct OUTPUT_VARIABLE mx_time
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
else()
  set(mx_time $ENV{SOURCE_DATE_EPOCH})
endif()
set(CPACK_PACKAGE_NAME mx)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The mx developers <mx-developers@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "block-scaled low-precision formats, bit for bit")
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "mx emulates OCP Microscaling (MX), NVFP4 and related block-scaled
formats and says what they do to the tensors of a checkpoint: error,
overflow, underflow and clamp rates, saturated blocks; scale rules and
implementations compared, matrix products as matrix units add them, and
small trainings.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL command)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME mx)
set(CPACK_DEBIAN_COMMAND_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/mx_package_time.cmake)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/mx_package_time.cmake CONTENT
  "set(ENV{SOURCE_DATE_EPOCH} \"${mx_time}\")
set(CPACK_MX_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(CPACK_MX_MPI \"${mpi_MODULE_NAME}\")
")
include(CPack)

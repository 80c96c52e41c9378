# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: the command, its man pages, the JSON Schemas of its outputs, the library, its
# headers and a CMake package, with which another project uses find_package(mx) and links mx::mx
# or mx::core. The oracle is not installed: it is for the tests.
include(CMakePackageConfigHelpers)

get_property(mx_rooms GLOBAL PROPERTY MX_ROOMS)
set(mx_more mx_files mx_zip mx_policy mx_cluster mx_compare mx_diff mx_fit mx_gate mx_plan mx_project
  mx_rosetta mx_show mx_conformance mx_experiments mx_eval mx_lab mx_optimize mx_pages mx_documents mx_bench
  mx_lint)
if(TARGET mx_remote)
  list(APPEND mx_more mx_remote)
endif()
list(REMOVE_ITEM mx_rooms mx_oracle ${mx_more})
# Two sets of targets: find_package(mx COMPONENTS core) needs no library of the other one.
install(TARGETS ${mx_rooms} mx_core EXPORT mx-core ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT mx-core NAMESPACE mx:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mx)
install(TARGETS ${mx_more} mx_mx EXPORT mx-files ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT mx-files NAMESPACE mx:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mx)
install(FILES ${MX_SINGLE_HEADER} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/libmx/api/mx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/libmx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" REGEX ${MX_PRIVATE_HEADERS} EXCLUDE)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/mx-config.cmake.in
  ${PROJECT_BINARY_DIR}/mx-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mx NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break compatibility.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mx-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mx-config.cmake ${PROJECT_BINARY_DIR}/mx-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mx)

if(TARGET mx)
  install(TARGETS mx RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  set(share ${PROJECT_BINARY_DIR}/share)
  install(CODE "file(REMOVE_RECURSE \"${share}\")
    execute_process(COMMAND \"$<TARGET_FILE:mx>\" help --write-share \"${share}\"
      COMMAND_ERROR_IS_FATAL ANY)" COMPONENT command)
  install(FILES ${share}/man/mx.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
  install(DIRECTORY ${share}/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/mx COMPONENT command)
  set(completions ${PROJECT_SOURCE_DIR}/apps/mx/completions)
  install(FILES ${completions}/mx.bash RENAME mx COMPONENT command
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completions}/_mx COMPONENT command
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completions}/mx.fish COMPONENT command
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/reference/schemas
  DESTINATION ${CMAKE_INSTALL_DATADIR}/mx COMPONENT command)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})

# SPDX-License-Identifier: Apache-2.0
# mx_embed(TARGET NAMESPACE HEADER FILE...): the text of each FILE (a path from here) as a function
# of NAMESPACE that HEADER declares: page.css as `asset page_css()`. The bytes become a string
# literal of a generated source when CMake runs, which it does again when a FILE changes; nothing
# else is needed to build, to install or to use the library from another project.
function(mx_embed target namespace header)
  set(text "// Generated from the files it holds by cmake/mx_embed.cmake.\n")
  string(APPEND text "#include \"${header}\"\n\nnamespace ${namespace} {\n")
  foreach(path IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(name ${path} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    file(READ ${path} bytes)
    # Compilers have to take literals of 65536 bytes, not longer ones.
    string(LENGTH "${bytes}" length)
    string(FIND "${bytes}" ")embedded\"" clash)
    if(length GREATER 65535 OR NOT clash EQUAL -1)
      message(FATAL_ERROR "${path}: too long for a string literal, or ends one")
    endif()
    file(SHA256 ${path} sha256)
    string(APPEND text "\nasset ${name}() {\n    return {R\"embedded(${bytes})embedded\",\n"
      "            \"${sha256}\"};\n}\n")
  endforeach()
  string(APPEND text "\n}  // namespace ${namespace}\n")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_embedded.cpp)
  # Written only when it differs, so that configuring again compiles nothing.
  file(CONFIGURE OUTPUT ${source} CONTENT "@text@" @ONLY)
  target_sources(${target} PRIVATE ${source})
endfunction()

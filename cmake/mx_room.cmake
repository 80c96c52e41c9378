# SPDX-License-Identifier: Apache-2.0
# One target per room, all compiled alike.

function(mx_compile_options target)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # Sums have a stated shape: the compiler may not fuse a product into an addition.
  target_compile_options(${target} PRIVATE -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion
    -Wshadow $<$<BOOL:${MX_WERROR}>:-Werror>)
  # g++ 12 at -O3 sees overlapping copies in "text" + string (GCC bug 105651) and uninitialized
  # characters in strings that are members of an aggregate, where there are none.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
  endif()
endfunction()

# mx_room(NAME DEPS... [FOLDER FOLDER] [ONLY REGEX] [EXCLUDE REGEX] [PRIVATE LIBRARIES...]): the
# folder libmx/NAME (or FOLDER) as target mx_NAME (alias mx::NAME). DEPS reach whoever uses the room;
# LIBRARIES are used by its sources only. The sources are the .cpp files of the folder whose paths
# match ONLY and not EXCLUDE, found at build time, so that adding a file needs no second edit; those
# in folders named cuda are chosen where the room is declared.
function(mx_room name)
  cmake_parse_arguments(room "" "FOLDER;ONLY;EXCLUDE" "PRIVATE" ${ARGN})
  if(NOT room_FOLDER)
    set(room_FOLDER ${name})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room_FOLDER}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/cuda/")
  if(room_ONLY)
    list(FILTER sources INCLUDE REGEX ${room_ONLY})
  endif()
  if(room_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${room_EXCLUDE})
  endif()
  set(target mx_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    mx_compile_options(${target})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${room_PRIVATE})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(mx::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} ${scope} ${room_UNPARSED_ARGUMENTS})
  set_property(GLOBAL APPEND PROPERTY MX_ROOMS ${target})
endfunction()

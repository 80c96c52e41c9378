# SPDX-License-Identifier: Apache-2.0
# One target per room, all compiled alike.

# The preset release compiles several sources of a target at a time, which halves the work: templates
# and inline functions are compiled once for all of them. A changed source then takes longer, so
# builds with ccache compile each source alone.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(CMAKE_UNITY_BUILD OFF)
endif()

function(mx_compile_options target)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # Sums have a stated shape: the compiler may not fuse a product into an addition.
  target_compile_options(${target} PRIVATE -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion
    -Wshadow $<$<BOOL:${MX_WERROR}>:-Werror>)
  # g++ 12 at -O3 wrongly reports overlapping copies in "text" + string (GCC bug 105651) and
  # uninitialized characters in strings that are members of an aggregate.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
  endif()
  # g++ collects garbage whenever its heap has grown beyond 128 MiB; with a limit of half a GiB, a
  # file takes a tenth less time and at most 270 MiB more memory.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
  endif()
endfunction()

# mx_inline_less(TARGET...): for targets without loops over elements. At -O3, inlining may enlarge a
# source by 40 %; 10 % takes a sixth less time.
function(mx_inline_less)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:--param=inline-unit-growth=10>)
    endforeach()
  endif()
endfunction()

# mx_optimize_less(TARGET...): for targets that decide, write text, or call other libraries. -Og takes
# about half the time of -O3.
function(mx_optimize_less)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE
      $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>)
  endforeach()
endfunction()

# mx_compile_alone(FILE...): neither together with other files nor with precompiled headers.
function(mx_compile_alone)
  set_property(SOURCE ${ARGN} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  set_property(SOURCE ${ARGN} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# mx_precompile(TARGET [HEADER LIBRARY]): the headers that nearly every source includes, parsed once
# for libraries and the program; with HEADER, which needs LIBRARY, once for the tests. A source must
# include what it needs anyway: CMAKE_DISABLE_PRECOMPILE_HEADERS, which the presets other than release
# set, builds without them. Excluded are vector kernels, whose headers are compiled once per
# instruction set, sources with special options, and builds with ccache, which by default does not
# record the contents of a precompiled header.
function(mx_precompile target)
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
    return()
  endif()
  set(headers mx_headers)
  if(ARGC GREATER 1)
    set(headers mx_test_headers)
  endif()
  if(NOT TARGET ${headers})
    set(source ${PROJECT_BINARY_DIR}/${headers}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    if(ARGC GREATER 1)
      add_executable(${headers} EXCLUDE_FROM_ALL ${source})
    else()
      add_library(${headers} STATIC EXCLUDE_FROM_ALL ${source})
    endif()
    mx_compile_options(${headers})
    target_link_libraries(${headers} PRIVATE fmt::fmt ${mx_threads})
    target_precompile_headers(${headers} PRIVATE <fmt/format.h> <algorithm> <array> <atomic>
      <charconv> <chrono> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <mutex>
      <numeric> <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant>
      <vector>)
    if(ARGC GREATER 1)
      target_precompile_headers(${headers} PRIVATE ${ARGV1})
      target_link_libraries(${headers} PRIVATE ${ARGV2})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  # g++ reports warnings inside std::string for precompiled headers that it would otherwise suppress.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread
      -Wno-array-bounds)
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "/simd/.*\\.cpp$")
  mx_compile_alone(${sources})
endfunction()

# mx_room(NAME DEPS... [FOLDER FOLDER] [ONLY REGEX] [WITHOUT REGEX] [PRIVATE LIBRARIES...]): the
# folder libmx/NAME (or FOLDER) as target mx_NAME (alias mx::NAME), or those of its sources that match
# ONLY and not WITHOUT. DEPS reach whoever uses the room;
# LIBRARIES are used by its sources only. The sources are the .cpp files of the folder, found at build
# time, so that adding a file needs no second edit; those in folders named cuda are chosen where the
# room is declared.
function(mx_room name)
  cmake_parse_arguments(room "" "FOLDER;ONLY;WITHOUT" "PRIVATE" ${ARGN})
  if(NOT room_FOLDER)
    set(room_FOLDER ${name})
  endif()
  # Relative: the path of the checkout may contain a folder named cuda.
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
    ${CMAKE_CURRENT_SOURCE_DIR}/${room_FOLDER}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/cuda/")
  if(room_ONLY)
    list(FILTER sources INCLUDE REGEX "${room_ONLY}")
  elseif(room_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${room_WITHOUT}")
  endif()
  set(target mx_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    mx_compile_options(${target})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${room_PRIVATE})
    mx_precompile(${target})
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

# mx_split_targets(TARGET FILE...): compiles slow vector kernels once for each instruction set instead
# of once for all, so that no file of a build takes much longer than the others.
function(mx_split_targets target)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    return()  # elsewhere there is one
  endif()
  foreach(path IN LISTS ARGN)
    set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/${path} PROPERTY HEADER_FILE_ONLY ON)
    file(RELATIVE_PATH include ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    get_filename_component(name ${path} NAME_WE)
    foreach(set SSE4 AVX2 AVX3)
      set(source ${CMAKE_CURRENT_BINARY_DIR}/simd/${target}_${name}_${set}.cpp)
      file(CONFIGURE OUTPUT ${source} @ONLY
        CONTENT "#define MX_ONLY_TARGET HWY_${set}\n#include \"${include}\"\n")
      mx_compile_alone(${source})
      target_sources(${target} PRIVATE ${source})
    endforeach()
  endforeach()
endfunction()

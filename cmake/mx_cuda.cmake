# SPDX-License-Identifier: Apache-2.0
# CUDA, for the GPUs of this machine. A build without it is complete: commands that need a GPU report
# it at run time.
#   MX_CUDA=auto  where there are nvcc and a card (the default at top level)
#   MX_CUDA=on    also without a card; stops when there is no nvcc
#   MX_CUDA=off   does not look (the default elsewhere)
# MX_CUDA_ARCHITECTURES names the GPUs to build for, by compute capability without the dot (90;100),
# or all: every one with kernels. Empty, the default: the GPUs of this machine, or all if MX_CUDA=on
# finds none. If named, MX_CUDA=auto needs no GPU.
# MX_CUDA_FAST_COMPILE=ON optimizes kernels little, which takes nvcc 13 a sixth of the time: for builds
# that compile them for every GPU and run none.
# Sets MX_HAS_CUDA, and MX_CUDA_MISSING to the reason if it is false.

# A project that adds this one as a subdirectory gets no language that it did not request.
set(mx_cuda_default "off")
if(PROJECT_IS_TOP_LEVEL)
  set(mx_cuda_default "auto")
endif()
set(MX_CUDA "${mx_cuda_default}" CACHE STRING "CUDA: auto, on or off")
set_property(CACHE MX_CUDA PROPERTY STRINGS auto on off)
string(TOLOWER "${MX_CUDA}" mx_cuda_wanted)
if(NOT mx_cuda_wanted MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "MX_CUDA is '${MX_CUDA}': say auto, on or off")
endif()

set(MX_CUDA_ARCHITECTURES "" CACHE STRING
  "Cards to build for: compute capabilities without the dot (90;100), or all; empty: those here")
foreach(wanted IN LISTS MX_CUDA_ARCHITECTURES)
  if(NOT wanted STREQUAL "all" AND NOT (wanted MATCHES "^[0-9]+$" AND wanted GREATER_EQUAL 80))
    message(FATAL_ERROR "MX_CUDA_ARCHITECTURES has '${wanted}': say all, or compute capabilities "
      "from 8.0 on without the dot, such as 90;100")
  endif()
endforeach()

option(MX_CUDA_FAST_COMPILE "Kernels: compile fast, optimize little" OFF)

# The compute capabilities of the cards of this machine, as MX_CUDA_ARCHITECTURES spells them.
function(mx_find_cards variable)
  find_program(MX_NVIDIA_SMI nvidia-smi)
  mark_as_advanced(MX_NVIDIA_SMI)
  set(cards)
  if(MX_NVIDIA_SMI)
    execute_process(COMMAND ${MX_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_QUIET)
    if(code EQUAL 0)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]" cards "${output}")
      string(REPLACE "." "" cards "${cards}")
      list(REMOVE_DUPLICATES cards)
      list(FILTER cards INCLUDE REGEX "^([89]|[0-9][0-9])[0-9]$")  # 8.0 and later
    endif()
  endif()
  set(${variable} "${cards}" PARENT_SCOPE)
endfunction()

set(MX_HAS_CUDA FALSE)
set(MX_CUDA_MISSING "MX_CUDA=off")
set(mx_cuda_cards ${MX_CUDA_ARCHITECTURES})
if(NOT mx_cuda_cards AND NOT mx_cuda_wanted STREQUAL "off")
  mx_find_cards(mx_cuda_cards)
  if(NOT mx_cuda_cards AND mx_cuda_wanted STREQUAL "on")
    set(mx_cuda_cards all)
  endif()
endif()
if(NOT mx_cuda_wanted STREQUAL "off")
  set(MX_CUDA_MISSING "no nvcc. Install CUDA 12.8 or later, or set CUDA_PATH to where it is")
  if("$ENV{CUDACXX}" STREQUAL "")
    # The toolkit's usual place is on few people's PATH.
    find_program(MX_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  else()
    find_program(MX_NVCC "$ENV{CUDACXX}")
    set(MX_CUDA_MISSING "no nvcc: CUDACXX is '$ENV{CUDACXX}', which is not a program")
  endif()
  mark_as_advanced(MX_NVCC)
  if(MX_NVCC AND NOT mx_cuda_cards)
    set(MX_CUDA_MISSING "nvcc is there, but no card of compute capability 8.0 or later. For a card \
elsewhere: -DMX_CUDA_ARCHITECTURES=90 (its compute capability without the dot), or all")
  elseif(MX_NVCC)
    # Every source states its architectures; this one is for CMake's trial compilation, which would
    # otherwise use one that the toolkit may no longer support.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80)
    endif()
    # nvcc does not support every C++ compiler; if the build uses clang, nvcc uses g++.
    if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX}
       AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
    endif()
    # Tested in a separate project, configured through the environment: in this one a compiler that
    # does not work is an error, even if CUDA is optional.
    if(NOT DEFINED CMAKE_CUDA_COMPILER)
      set(ENV{CUDACXX} ${MX_NVCC})
      set(ENV{CUDAARCHS} ${CMAKE_CUDA_ARCHITECTURES})
      if(CMAKE_CUDA_HOST_COMPILER)
        set(ENV{CUDAHOSTCXX} ${CMAKE_CUDA_HOST_COMPILER})
      endif()
    endif()
    include(CheckLanguage)
    check_language(CUDA)
    set(MX_CUDA_MISSING "${MX_NVCC} does not work with this host compiler")
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
      set(MX_CUDA_MISSING "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is older than 12.8")
      if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
        find_package(CUDAToolkit QUIET)
        set(MX_CUDA_MISSING "nvcc is there, but not the toolkit's libraries")
        if(MX_STATIC)
          set(MX_CUDA_MISSING "a program of MX_STATIC loads no driver. For a machine without the \
libraries of mx: scripts/gpu-kit.sh")
        elseif(CUDAToolkit_FOUND AND TARGET CUDA::cudart_static)
          set(MX_HAS_CUDA TRUE)
        endif()
      endif()
    endif()
  endif()
  if(mx_cuda_wanted STREQUAL "on" AND NOT MX_HAS_CUDA)
    message(FATAL_ERROR "MX_CUDA=on: ${MX_CUDA_MISSING}")
  endif()
endif()

# mx_cuda_serving(VARIABLE CARD ARCH...): the architectures that run on a GPU of compute capability
# CARD: machine code of its major version, the latest that is not later than the GPU; PTX if there is
# none.
function(mx_cuda_serving variable card)
  set(serving)
  string(REGEX REPLACE ".$" "" major ${card})
  foreach(architecture IN LISTS ARGN)
    string(REGEX MATCH "^[0-9]+" number ${architecture})
    string(REGEX REPLACE ".$" "" its_major ${number})
    if(number GREATER card OR (architecture MATCHES "a$" AND NOT number EQUAL card))
      continue()
    elseif(architecture MATCHES "-virtual$")
      if(NOT serving)
        set(serving ${architecture})
      endif()
    elseif(its_major EQUAL major)
      set(serving ${architecture})
    endif()
  endforeach()
  set(${variable} ${serving} PARENT_SCOPE)
endfunction()

# mx_cuda_known(VARIABLE VERSION ARCH...): those of the architectures that nvcc of this version
# compiles for. CUDA 12.8 has no families of chips, and each but the first chip of a family came with
# them; 12.x has another number for sm_110. Chips left out take the code of `serving` above, or
# arithmetic in place of instructions.
function(mx_cuda_known variable version)
  set(known)
  foreach(architecture IN LISTS ARGN)
    if(version VERSION_LESS 13.0 AND architecture MATCHES "^110")
      continue()
    endif()
    if(version VERSION_LESS 12.9)
      if(architecture MATCHES "^(103|121)")
        continue()
      endif()
      string(REGEX REPLACE "f$" "a" architecture ${architecture})
    endif()
    list(APPEND known ${architecture})
  endforeach()
  set(${variable} ${known} PARENT_SCOPE)
endfunction()

# mx_cuda_sources(TARGET ARCHITECTURES ARCH... FILES FILE...): adds CUDA sources to a target, each
# compiled for those of the named architectures that MX_CUDA_ARCHITECTURES requests, in ascending
# order: "90a" machine code for sm_90a, "120f" for its family, "100-virtual" PTX for compute_100.
function(mx_cuda_sources target)
  cmake_parse_arguments(cuda "" "" "ARCHITECTURES;FILES" ${ARGN})
  mx_cuda_known(cuda_ARCHITECTURES ${CMAKE_CUDA_COMPILER_VERSION} ${cuda_ARCHITECTURES})
  set(architectures)
  foreach(card IN LISTS mx_cuda_cards)
    if(card STREQUAL "all")
      set(architectures ${cuda_ARCHITECTURES})
      break()
    endif()
    mx_cuda_serving(serving ${card} ${cuda_ARCHITECTURES})
    list(APPEND architectures ${serving})
  endforeach()
  list(REMOVE_DUPLICATES architectures)
  if(NOT architectures)
    # Defines the symbols: no GPU of this build has these instructions, which is checked at run time.
    list(GET cuda_ARCHITECTURES 0 architectures)
  endif()
  set(options)
  foreach(architecture IN LISTS architectures)
    if(architecture MATCHES "^([0-9]+[af]?)-virtual$")
      list(APPEND options
        "-gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1}")
    else()
      list(APPEND options "-gencode=arch=compute_${architecture},code=sm_${architecture}")
    endif()
  endforeach()
  target_sources(${target} PRIVATE ${cuda_FILES})
  set_property(SOURCE ${cuda_FILES} APPEND PROPERTY COMPILE_OPTIONS ${options})
  set_target_properties(${target} PROPERTIES
    CUDA_ARCHITECTURES OFF CUDA_SEPARABLE_COMPILATION OFF CUDA_RUNTIME_LIBRARY Static
    # No device link step: whoever links the host objects needs nothing of nvcc's.
    CUDA_RESOLVE_DEVICE_SYMBOLS OFF POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX)
endfunction()

# mx_cuda_library(TARGET ARCHITECTURES ARCH... FILES FILE...): a static library of CUDA sources; more
# of them, for other architectures, by mx_cuda_sources. A product is not fused into an addition.
function(mx_cuda_library target)
  add_library(${target} STATIC)
  # The standard as an option: CMake 3.25 does not know nvcc's C++20 support.
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-fmad=false;-Xcompiler=-Wall,-Wextra,-ffp-contract=off>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${MX_WERROR}>>:-Werror=all-warnings>")
  if(MX_CUDA_FAST_COMPILE AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Ofc=max>)
  endif()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${target} PUBLIC CUDA::cudart_static)
  mx_cuda_sources(${target} ${ARGN})
endfunction()

# mx_kernels(ROOM FILE...): the kernels of a room, for every GPU. PTX is for devices between those
# named and later ones: Thor, and future ones.
function(mx_kernels room)
  mx_cuda_library(mx_${room}_kernels ARCHITECTURES 80 90 100 120 100-virtual FILES ${ARGN})
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS --expt-relaxed-constexpr)
  set_property(GLOBAL APPEND PROPERTY MX_ROOMS mx_${room}_kernels)
  target_link_libraries(mx_${room} PRIVATE mx_${room}_kernels)
endfunction()

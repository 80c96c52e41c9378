# SPDX-License-Identifier: Apache-2.0
# What this build consists of, in a few lines at the end of configuring.
function(mx_on_off variable value)
  set(${variable} "no" PARENT_SCOPE)
  if(value)
    set(${variable} "yes" PARENT_SCOPE)
  endif()
endfunction()

if(PROJECT_IS_TOP_LEVEL)
  mx_on_off(mx_apps "${MX_BUILD_APPS}")
  mx_on_off(mx_tests "${MX_BUILD_TESTS}")
  message(STATUS "mx ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} "
    "${CMAKE_CXX_COMPILER_VERSION}, threads of ${MX_THREADS}")
  message(STATUS "  libraries: fmt ${fmt_VERSION}, Highway ${HWY_VERSION}, HDF5 ${hdf5_VERSION}, libzip ${libzip_VERSION}, "
    "zlib ${ZLIB_VERSION_STRING}, OpenSSL ${OPENSSL_VERSION}, nlohmann_json ${nlohmann_json_VERSION}")
  if(protobuf_lite_FOUND)
    message(STATUS "  ONNX files: yes (Protobuf ${protobuf_lite_VERSION})")
  else()
    message(STATUS "  ONNX files: no. On Debian or Ubuntu: apt-get install libprotobuf-dev")
  endif()
  if(MX_HAS_CUDA)
    list(JOIN mx_cuda_cards ", " mx_cuda_names)
    message(STATUS "  CUDA: yes (nvcc ${CMAKE_CUDA_COMPILER_VERSION}, for ${mx_cuda_names})")
  else()
    message(STATUS "  CUDA: no: ${MX_CUDA_MISSING}")
  endif()
  mx_on_off(mx_benchmarks "${benchmark_FOUND}")
  message(STATUS "  mx command: ${mx_apps}   tests and oracle: ${mx_tests}   "
    "micro-benchmarks (Google Benchmark): ${mx_benchmarks}")
endif()

# SPDX-License-Identifier: Apache-2.0
# Libraries come from the system; the error for a missing one contains the command that installs it.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/debian-packages.txt mx_debian_packages REGEX "^build ")
list(TRANSFORM mx_debian_packages REPLACE "^build " "")

# mx_need(FOUND LIBRARY DEBIAN_PACKAGE): stops with one line when FOUND is false. The package has
# to be in the list, so that the install script and this message cannot disagree.
function(mx_need found library debian_package)
  if(NOT debian_package IN_LIST mx_debian_packages)
    message(FATAL_ERROR "${debian_package} is not in cmake/debian-packages.txt: add it there")
  endif()
  if(NOT found)
    message(FATAL_ERROR "mx needs ${library}. On Debian or Ubuntu: apt-get install ${debian_package}")
  endif()
endfunction()

# A project that adds this one as a subdirectory links the libraries found here.
if(NOT PROJECT_IS_TOP_LEVEL)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)
endif()

find_package(fmt CONFIG QUIET)
mx_need("${fmt_FOUND}" "fmt" libfmt-dev)

# The source of threads: OpenMP, or std::thread for programs that fork or have their own OpenMP.
set(MX_THREADS openmp CACHE STRING "Threads: openmp or std")
set_property(CACHE MX_THREADS PROPERTY STRINGS openmp std)
if(MX_THREADS STREQUAL "std")
  find_package(Threads REQUIRED)
  set(mx_threads Threads::Threads)
elseif(MX_THREADS STREQUAL "openmp")
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND NOT OpenMP_CXX_FOUND)
    message(FATAL_ERROR "mx needs OpenMP for clang. On Debian or Ubuntu: apt-get install libomp-dev")
  endif()
  mx_need("${OpenMP_CXX_FOUND}" "a C++ compiler with OpenMP" g++)
  set(mx_threads OpenMP::OpenMP_CXX)
else()
  message(FATAL_ERROR "MX_THREADS is '${MX_THREADS}': say openmp or std")
endif()

find_package(nlohmann_json CONFIG QUIET)
mx_need("${nlohmann_json_FOUND}" "nlohmann_json" nlohmann-json3-dev)

find_package(HWY CONFIG QUIET NAMES hwy HWY)
mx_need("${HWY_FOUND}" "Highway" libhwy-dev)

# By pkg-config: CMake's own HDF5 module wants a C compiler, and libzip's CMake package of Debian 12
# wants libzip's command line tools.
if(MX_FILES OR MX_ZIP)
  find_package(ZLIB QUIET)
  mx_need("${ZLIB_FOUND}" "zlib" zlib1g-dev)
  find_package(PkgConfig QUIET)
  mx_need("${PkgConfig_FOUND}" "pkg-config" pkg-config)
  pkg_check_modules(libzip QUIET IMPORTED_TARGET GLOBAL libzip)
  mx_need("${libzip_FOUND}" "libzip" libzip-dev)
endif()

if(MX_FILES)
  find_package(OpenSSL QUIET COMPONENTS Crypto)
  mx_need("${OpenSSL_FOUND}" "OpenSSL's libcrypto" libssl-dev)
  pkg_search_module(hdf5 QUIET IMPORTED_TARGET GLOBAL hdf5-serial hdf5)
  mx_need("${hdf5_FOUND}" "the HDF5 C library" libhdf5-dev)

  # For ONNX files only: without it, mx says what to install.
  pkg_check_modules(protobuf_lite QUIET IMPORTED_TARGET GLOBAL protobuf-lite)
endif()

# For files at addresses only: without it, mx says what to install.
if(MX_REMOTE AND MX_FILES)
  find_package(CURL 7.85 QUIET)
endif()

# For mx study scaling-law and mx study speedups --solve only: without it, mx says what to install.
find_package(NLopt CONFIG QUIET)

# For texts of models with byte-level BPE only: without them, mx says what to install.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(pcre2 QUIET IMPORTED_TARGET GLOBAL libpcre2-8)
  pkg_check_modules(utf8proc QUIET IMPORTED_TARGET GLOBAL libutf8proc)
endif()

if(MX_BUILD_APPS)
  find_package(CLI11 CONFIG QUIET)
  mx_need("${CLI11_FOUND}" "CLI11 (or -DMX_BUILD_APPS=OFF)" libcli11-dev)
  # For runs under mpirun only: without it, mx says what to install.
  if(MX_MPI)
    find_package(PkgConfig QUIET)
    pkg_search_module(mpi QUIET IMPORTED_TARGET GLOBAL ompi-c mpich)
  endif()
endif()
if(MX_BUILD_TESTS)
  find_package(Boost QUIET)
  mx_need("${Boost_FOUND}" "Boost.Multiprecision (or -DMX_BUILD_TESTS=OFF)" libboost-dev)
  find_package(Catch2 CONFIG QUIET)
  mx_need("${Catch2_FOUND}" "Catch2 (or -DMX_BUILD_TESTS=OFF)" catch2)
  # For micro-benchmarks only: built if found.
  find_package(benchmark CONFIG QUIET)
endif()

# SPDX-License-Identifier: Apache-2.0
# The extension module, for the package and for the tests: Python and nanobind have been found.
# One wheel serves CPython 3.10 and later: the runtime of nanobind is the package nanobind-backend.
nanobind_add_module(_libmx STABLE_ABI BACKEND_MODULE nanobind_backend
  BACKEND_PYPI nanobind-backend ${CMAKE_CURRENT_LIST_DIR}/src/libmx/_libmx.cpp)
set_target_properties(_libmx PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON UNITY_BUILD OFF)
target_link_libraries(_libmx PRIVATE mx::core mx::documents mx::eval)
# Wheels for other machines do without libcurl.
option(MX_PYTHON_REMOTE "Files at addresses in Python, with MX_FILES and libcurl" OFF)
if(MX_PYTHON_REMOTE AND TARGET mx_remote)
  target_link_libraries(_libmx PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,mx::remote>)
endif()
if(TARGET mx_zip)
  target_link_libraries(_libmx PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,mx::zip>)
endif()
# Threads are those of std::thread, also over libraries that were built with OpenMP: a child made by
# fork can go on, and PyTorch's OpenMP stays alone. The linker takes this object, not the library's.
target_compile_definitions(_libmx PRIVATE MX_THREADS_STD MX_THREADS="std")
if(MX_THREADS STREQUAL "openmp")
  find_package(Threads REQUIRED)
  target_sources(_libmx PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../libmx/base/parallel.cpp)
  target_link_libraries(_libmx PRIVATE Threads::Threads)
  target_link_options(_libmx PRIVATE -Wl,--as-needed)
endif()

# SPDX-License-Identifier: Apache-2.0
# The extension module, for the package and for the tests: Python and nanobind have been found.
# One wheel serves CPython 3.10 and later: the runtime of nanobind is the package nanobind-backend.
nanobind_add_module(_libmx STABLE_ABI BACKEND_MODULE nanobind_backend
  BACKEND_PYPI nanobind-backend ${CMAKE_CURRENT_LIST_DIR}/src/libmx/_libmx.cpp)
set_target_properties(_libmx PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
target_compile_definitions(_libmx PRIVATE MX_THREADS="${MX_THREADS}")
target_link_libraries(_libmx PRIVATE mx::core mx::documents)

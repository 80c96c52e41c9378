# SPDX-License-Identifier: Apache-2.0
# mx_formats.hpp: element and scale formats, roundings, scale rules and blocks under E8M0 scales as one header in C++17
# without dependencies, assembled from the headers of the library when CMake runs. Its namespace is
# mx_formats, so that a program may use the library as well.
set(parts base/macros base/bits base/named format/roundings format/element_formats
  format/element_params format/scale_formats format/encode format/cast format/decode
  scale/rule_step scale/scale_rules scale/power_block)
set(text "")
set(standard "")
foreach(part IN LISTS parts)
  set(path ${PROJECT_SOURCE_DIR}/libmx/${part}.hpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} bytes)
  string(REGEX MATCHALL "#include <[a-z_]+>" headers "${bytes}")
  list(APPEND standard ${headers})
  string(REGEX REPLACE "#(include [^\n]*|pragma once)\n" "" bytes "${bytes}")
  string(REPLACE "// SPDX-License-Identifier: Apache-2.0\n" "" bytes "${bytes}")
  # What C++17 lacks: defaulted comparisons, and initializers by name, which rule_step alone has.
  string(REGEX REPLACE "    friend bool operator==[^\n]* = default;\n" "" bytes "${bytes}")
  string(REGEX REPLACE "[.](emax|from) = " "" bytes "${bytes}")
  string(REPLACE ".drawn_bits = " "one_binade, base::f32_infinity, " bytes "${bytes}")
  string(APPEND text "\n${bytes}")
endforeach()
string(REGEX REPLACE "\n\n\n+" "\n\n" text "${text}")
string(REPLACE "namespace mx::" "namespace mx_formats::" text "${text}")
string(REPLACE "MX_HD" "MX_FORMATS_HD" text "${text}")
list(SORT standard)
list(REMOVE_DUPLICATES standard)
list(JOIN standard "\n" standard)
set(text "// SPDX-License-Identifier: Apache-2.0
// Made from the headers of mx ${PROJECT_VERSION} by cmake/mx_single_header.cmake. C++17, for host and device.
#pragma once

${standard}
${text}")
set(MX_SINGLE_HEADER ${PROJECT_BINARY_DIR}/single/mx_formats.hpp)
file(CONFIGURE OUTPUT ${MX_SINGLE_HEADER} CONTENT "@text@" @ONLY)

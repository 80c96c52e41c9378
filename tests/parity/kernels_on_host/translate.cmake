# SPDX-License-Identifier: Apache-2.0
# Translates a CUDA source to C++: cmake -DFROM=FILE -DTO=FILE -P translate.cmake. Rewrites what a
# macro cannot express: starts of kernels, variables in shared memory.
file(READ "${FROM}" text)
set(name "[A-Za-z_0-9:]+")
string(REGEX REPLACE "(${name}(<[A-Za-z_0-9:, ]+>)?)[ \n]*<<<([^;]*)>>>\\(([^;]*)\\);"
  "::card::start(::card::grid(\\3), [=] { \\1(\\4); });" text "${text}")
string(REGEX REPLACE "extern __shared__ unsigned char (${name})\\[\\];"
  "unsigned char* const \\1 = ::card::dynamic_shared();" text "${text}")
string(REGEX REPLACE "__shared__ (${name}) (${name})([^;]*);"
  "auto& \\2 = ::card::shared<\\1\\3>(__LINE__);" text "${text}")
string(REGEX MATCH "<<<|__shared__|asm *(volatile)? *\\(" left "${text}")
if(left)
  message(FATAL_ERROR "${FROM}: tests/parity/kernels_on_host/translate.cmake does not know this "
    "use of ${left}")
endif()
file(WRITE "${TO}" "#line 1 \"${FROM}\"\n${text}")

// SPDX-License-Identifier: Apache-2.0
// pytorch/FBGEMM@71d6f8b triton/quantize_ref.py, py_quantize_mx4: integer operations on the bits of
// float32 in tensors of int32 and int8, where eight bits wrap and x86 shifts count modulo 32.
#pragma once

#include "libmx/oracle/dialects.hpp"

namespace mx::oracle::fbgemm {

block_scale scale(const recipe& r, const value_list& list, const block_maximum& m,
                  std::uint32_t draw);

element convert(const recipe& r, const value_list& list, float x, const block_scale& s,
                std::uint32_t draw);

}  // namespace mx::oracle::fbgemm

// SPDX-License-Identifier: Apache-2.0
// The models that are definitions: exact, chains of float32 multiply-adds, trees.
#pragma once

#include <memory>

#include "libmx/gemm/engine.hpp"

namespace mx::gemm {

/// The engine of a model whose algorithm is exact, fma_chain or pairwise.
std::unique_ptr<engine> make_software_engine(const operand& a, const operand& b,
                                             const accumulator& m);

}  // namespace mx::gemm

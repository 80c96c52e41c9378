// SPDX-License-Identifier: Apache-2.0
// How much the bytes of recipes differ: compares every pair of a list of recipes on the blocks of a
// tensor, and measures the error of decoding the codes of one with the scales of the other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/analysis/scale_pairs.hpp"
#include "libmx/base/exact_sum.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::rosetta {

/// Errors of the codes of one recipe of a pair decoded with the scales of the other.
struct crossed_errors {
    base::exact_sum own;      ///< sum of (S_a q_a - x)^2
    base::exact_sum crossed;  ///< sum of (S_b q_a - x)^2 over the same elements
};

/// One pair a < b of recipes over some blocks. Errors are over `compared` elements: the finite ones
/// of blocks to which both recipes give a finite scale.
struct rosetta_pair {
    std::uint64_t scales_differ = 0;  ///< blocks with different scales (NaN equals NaN)
    std::uint64_t codes_differ = 0;   ///< elements with different codes
    std::uint64_t values_differ = 0;  ///< elements with different S q: -0 is 0, and NaN is NaN
    std::uint64_t compared = 0;
    crossed_errors a_read_by_b, b_read_by_a;

    void merge(const rosetta_pair& other);
};

/// All pairs of n recipes, (0,1), (0,2), .., (n-2,n-1).
struct rosetta_counts {
    std::uint64_t blocks = 0;
    std::uint64_t elements = 0;
    std::vector<rosetta_pair> pairs;

    explicit rosetta_counts(std::size_t recipes) : pairs(recipes * (recipes - 1) / 2) {}
    void merge(const rosetta_counts& other);
};

struct rosetta_result {
    report::record_list results;  ///< one record per tensor and pair
    rosetta_counts total;         ///< over all tensors
    std::vector<engine::skipped_tensor> skipped;
};

/// The record of a pair: shares, R-MSEs and their ratios (null where undefined).
report::record pair_record(const rosetta_counts& c, std::size_t a, std::size_t b,
                           const std::vector<std::string>& names);
/// Of what could not be compared.
extern const std::array<report::declared<engine::skipped_tensor>, 3> skipped_members;
/// The schema mx.rosetta/1.
report::document_schema rosetta_schema();

/// The recipes that `mx rosetta` compares by default: every scale rule and every dialect that
/// applies to blocks of `element` under scales of `scale_format`, except those that draw random
/// numbers and systems-scaling's floor-bump, whose scales differ within a block. Under UE4M3 and
/// UE5M3 also each kind of four-over-six. ocp rounds with rtne, the others with their default.
/// Throws base::error (usage) for an unknown element, block or scale format, and for float32
/// scales.
std::vector<codec::recipe> recipes_of_element(const std::string& element, const std::string& block,
                                              const std::string& scale_format = "e8m0");

/// Compares two or more recipes with the same element format and block shape and without offset on
/// every tensor, in one pass (two if a recipe needs the maximum of a large tensor). The result does
/// not depend on threads. Throws base::error.
rosetta_result compare_bytes(const std::vector<engine::tensor_ref>& tensors,
                             const std::vector<codec::recipe>& recipes,
                             const engine::run_control& control);

}  // namespace mx::rosetta

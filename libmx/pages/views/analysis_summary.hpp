// SPDX-License-Identifier: Apache-2.0
// All tensors under one recipe, taken together.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/record_list.hpp"

namespace mx::pages {

/// The real number `name` of `r`; `otherwise` where it is missing or null.
double number(const report::record& r, std::string_view name, double otherwise = 0);

/// The text `name` of `r`, "" where it is missing.
std::string words(const report::record& r, std::string_view name);

/// Finite elements of unpoisoned blocks: what rates and sums are over.
double counted(const report::record& r);

/// One record per recipe, in the order of their first appearance: recipe, tensors, elements,
/// bits_per_element, nrmse and sqnr_db over all elements together (and, where the records have
/// them, the parts' shares of all squared error), mean_sqnr_db (the geometric mean
/// of the tensors' nrmse, in dB, tensors without an error left out), rates over all elements or
/// blocks together, and the tensor with the largest nrmse.
std::vector<report::record> summarize(const report::record_list& results);

}  // namespace mx::pages

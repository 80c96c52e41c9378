// SPDX-License-Identifier: Apache-2.0
// THE LIST of figures that a policy can set limits for: the effect of a recipe on one tensor, some
// of them relative to its effect on normal data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/analysis/result_list.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/metrics/row.hpp"

namespace mx::policy {

/// A tensor under a recipe: one of many results, of which only its place is kept.
class measurement {
  public:
    measurement(analysis::result_list in, std::size_t index)
        : in_(std::move(in)), index_(index), under_(&in_.recipe_of(index)) {}

    const codec::recipe& recipe() const { return under_->recipe; }
    const std::string& text() const { return under_->name; }  ///< canonical spelling
    analysis::result result() const { return in_[index_]; }

  private:
    analysis::result_list in_;
    std::size_t index_;
    const analysis::named_recipe* under_;  // in the list
};

/// A tensor as results describe it.
struct measured_tensor {
    std::string file;
    std::string name;
    std::string role;   ///< of engine::roles()
    std::string dtype;  ///< safetensors' spelling
    std::vector<std::uint64_t> shape;
    engine::summed_axes sums_over{};  ///< none: not known, the last axis
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;  ///< as stored
    std::string left_out;     ///< why a run left it out; else empty
    std::vector<measurement> measured;
};

/// The input of a figure.
struct figure_input {
    const measured_tensor& of;
    const analysis::result& under;
    const metrics::row& normal;  ///< the recipe on normal data
    /// The share of a tensor's squares in its largest element above which SQNR and gain describe
    /// that element and not the tensor.
    double dominated = 0.1;
};

enum class figure_unit : std::uint8_t { share, decibels, count };

struct figure {
    std::string_view name;
    figure_unit unit;
    std::string_view definition;
    std::string_view words;  ///< "loses {} of its elements": what follows a tensor's name
    /// None if it is undefined or meaningless.
    std::optional<double> (*value)(const figure_input&);
};

std::span<const figure> figures();

/// The figure named `name`, or nullptr.
const figure* find_figure(std::string_view name);

/// "12.3 %", "1.20 dB", "64 elements".
std::string value_text(const figure& f, double value);

/// figure::words with the value.
std::string words_of(const figure& f, double value);

/// What happens to a tensor or a part of it: rates as in metrics::row, 0 if they are undefined, and
/// the share of the finite elements that become NaN with their block.
struct loss_rates {
    double underflow = 0, clamp = 0, saturated_blocks = 0, poisoned = 0;
};

/// The share of the finite elements that are lost: those that become NaN, those that become zero,
/// and those that are clamped or in blocks whose elements all are; at most 1. With stochastic
/// rounding an element that becomes zero is not lost: its mean is preserved.
double lost_share(const loss_rates& of, bool at_random);
double lost_share(const analysis::result& r);

/// The share of the finite elements that become NaN with their block; 0 if there are none.
double poisoned_share(const analysis::result& r);

}  // namespace mx::policy

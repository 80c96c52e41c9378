// SPDX-License-Identifier: Apache-2.0
// THE LIST of figures that a policy can set limits for: the effect of a recipe on one tensor, some
// of them relative to its effect on normal data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/result.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/report/command_line.hpp"

namespace mx::policy {

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
    std::string tied_to;      ///< the tensor of the same file that has this storage; else empty
    std::optional<std::size_t> counted_with = {};  ///< index of the tensor that counts the bytes
    /// The command that measured it; null: not known.
    std::shared_ptr<const report::given_command> by = {};

    /// How its model was named on that command line; else its file.
    const std::string& named() const { return by ? by->argument_of(file) : file; }

    /// What it adds to sums over tensors.
    std::uint64_t counted_bytes() const { return counted_with ? 0 : bytes; }
    std::uint64_t counted_elements() const { return counted_with ? 0 : elements; }
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

/// The share of the tensor's squares in its largest element; NaN for zeros.
double largest_share(const figure_input& in);

enum class figure_unit : std::uint8_t { share, decibels, count };

struct figure {
    std::string_view name;
    figure_unit unit;
    std::string_view definition;
    std::string_view words;  ///< "has {} of its elements clamped": what follows a tensor's name
    /// None if it is undefined or meaningless.
    std::optional<double> (*value)(const figure_input&);
};

std::span<const figure> figures();

/// The figure named `name`, or nullptr.
const figure* find_figure(std::string_view name);

/// "12.3 %", "1.20 dB", "64 elements".
std::string value_text(const figure& f, double value);

/// figure::words with the value.
std::string describe(const figure& f, double value);

/// Whether every element keeps its value: no limit applies, and nothing is lost.
inline bool lossless(const analysis::result& r) {
    return (r.exact == 1 || r.rmse == 0) && r.poisoned == 0;
}

/// By how many dB an SQNR is above another; 0 of equal ones, which can both be infinite.
inline double gain_db(double sqnr_db, double over) { return sqnr_db == over ? 0 : sqnr_db - over; }

/// A tensor's squared error over that of the recipe on normal data with as much energy; 0 if
/// nothing is lost, infinite if normal data lose nothing.
double error_over_normal(const analysis::result& r, const metrics::row& normal);

}  // namespace mx::policy

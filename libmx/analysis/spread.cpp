// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/spread.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "libmx/base/status.hpp"
#include "libmx/io/widen.hpp"

namespace mx::analysis {
namespace {

constexpr std::uint64_t piece = std::uint64_t{1} << 20;  // elements in memory at a time

// Calls f of every finite value, in order: sums have one order whatever the threads.
template <typename F>
void each_value(const engine::tensor_ref& t, float bias, const engine::run_control& control, F f) {
    const io::tensor_info& info = t.info();
    const auto source = t.file->open(t.index);
    std::vector<float> values;
    std::vector<std::byte> scratch;
    for (std::uint64_t first = 0; first < info.elements; first += piece) {
        if (control.cancel != nullptr && control.cancel->load()) {
            throw base::error(base::error_kind::cancelled, "interrupted");
        }
        values.resize(static_cast<std::size_t>(std::min(piece, info.elements - first)));
        io::read_f32(*source, info.type, first, values, scratch);
        for (const float v : values) {
            const float x = v + bias;
            if (std::isfinite(x)) f(double{x});
        }
    }
}

double spread_of(const engine::tensor_ref& t, float bias, const engine::run_control& control) {
    double sum = 0, squares = 0, count = 0;
    each_value(t, bias, control, [&](double x) {
        sum += x;
        ++count;
    });
    const double mean = sum / count;  // NaN where there is nothing
    bool differ = false;
    double first = std::numeric_limits<double>::quiet_NaN();
    each_value(t, bias, control, [&](double x) {
        if (std::isnan(first)) first = x;
        differ = differ || x != first;
        squares += (x - mean) * (x - mean);
    });
    // Rounding must not give equal values a spread.
    return differ ? std::sqrt(squares / count) : 0 * mean;
}

}  // namespace

std::vector<double> spreads_of(std::span<const engine::tensor_ref> tensors,
                               const engine::run_request& request,
                               const engine::run_control& control) {
    std::vector<double> spreads;
    std::vector<bool> looked_at(tensors.size(), true);
    if (request.share) looked_at = request.share->looks_at({tensors.begin(), tensors.end()});
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const engine::tensor_ref& t = tensors[i];
        const bool norm = looked_at[i] && request.roles.role_of(t.info()) == "norm";
        spreads.push_back(norm ? spread_of(t, request.norm_bias, control)
                               : std::numeric_limits<double>::quiet_NaN());
    }
    return spreads;
}

}  // namespace mx::analysis

// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/spread.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>

#include "libmx/base/status.hpp"
#include "libmx/io/widen.hpp"

namespace mx::analysis {
namespace {

constexpr std::uint64_t piece = std::uint64_t{1} << 20;  // elements in memory at a time
// Norms are small and scattered: of a remote file, each would cost a journey of its own.
constexpr std::size_t opened_ahead = 64;

// Calls f of every finite value, in order: sums have one order whatever the threads.
template <typename F>
void each_value(const io::tensor_info& info, const io::byte_source& source, float bias,
                const engine::run_control& control, F f) {
    std::vector<float> values;
    std::vector<std::byte> scratch;
    for (std::uint64_t first = 0; first < info.elements; first += piece) {
        if (control.cancel != nullptr && control.cancel->load()) {
            throw base::error(base::error_kind::cancelled, "interrupted");
        }
        values.resize(static_cast<std::size_t>(std::min(piece, info.elements - first)));
        io::read_f32(source, info.type, first, values, scratch);
        for (const float v : values) {
            const float x = v + bias;
            if (std::isfinite(x)) f(double{x});
        }
    }
}

double spread_of(const io::tensor_info& info, const io::byte_source& source, float bias,
                 const engine::run_control& control) {
    double sum = 0, squares = 0, count = 0;
    each_value(info, source, bias, control, [&](double x) {
        sum += x;
        ++count;
    });
    const double mean = sum / count;  // NaN where there is nothing
    bool differ = false;
    double first = std::numeric_limits<double>::quiet_NaN();
    each_value(info, source, bias, control, [&](double x) {
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
    std::vector<double> spreads(tensors.size(), std::numeric_limits<double>::quiet_NaN());
    std::vector<bool> looked_at(tensors.size(), true);
    if (request.partial) looked_at = request.partial->looks_at({tensors.begin(), tensors.end()});
    std::vector<std::size_t> norms;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (looked_at[i] && request.roles.role_of(tensors[i].info()) == "norm") norms.push_back(i);
    }
    std::deque<std::unique_ptr<io::byte_source>> opened;
    std::size_t next = 0;
    for (std::size_t k = 0; k < norms.size(); ++k) {
        for (; next < norms.size() && opened.size() < opened_ahead; ++next) {
            const engine::tensor_ref& t = tensors[norms[next]];
            opened.push_back(t.file->open(t.index));
            opened.back()->expect(0, std::min(t.info().bytes, piece));
        }
        spreads[norms[k]] =
            spread_of(tensors[norms[k]].info(), *opened.front(), request.norm_bias, control);
        opened.pop_front();
    }
    return spreads;
}

}  // namespace mx::analysis

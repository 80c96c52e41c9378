// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/products.hpp"

#include <fmt/format.h>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/status.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/backends.hpp"
#include "libmx/studies/products/conversions.hpp"

namespace mx::products {

std::vector<float> product_runner::multiply(const gemm::operand& a, const gemm::operand& b,
                                            std::span<const float> c,
                                            const gemm::accumulator& model,
                                            const gemm::arrangement& how) {
    if (a.rows > largest_product / b.rows) {
        base::refuse(
            "a product of {}x{} elements is more than memory should hold ({}); take fewer rows",
            a.rows, b.rows, largest_product);
    }
    const bool halves = gemm::gives_f16(model);
    std::vector<std::uint32_t> start(c.size());
    for (std::size_t i = 0; i < c.size(); ++i) {
        start[i] = halves ? format::half_bits(c[i]) : base::bits_of(c[i]);
    }
    const std::uint64_t work = std::uint64_t{a.rows} * b.rows * a.depth;
    gemm::multiply_control control;
    control.threads = control_.threads;
    control.backend = backend_;
    control.cancel = control_.cancel;
    control.notices = control_.notices.get();
    if (control_.on_progress) {
        control.on_progress = [&](std::uint64_t done, std::uint64_t all) {
            const double share =
                all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
            const double units = share * static_cast<double>(work);
            control_.on_progress({done_ + static_cast<std::uint64_t>(units), total_});
        };
    }
    const gemm::backend& by = gemm::backend_named(backend_);
    if (control_.notices && !by.computes(model, a, b)) {
        control_.notices->detail(
            fmt::format("accumulator {}: by the plain loop of backend scalar, as backend {} has no "
                        "kernels for it",
                        gemm::to_string(model), by.name));
    }
    const std::vector<std::uint32_t> bits = gemm::multiply(a, b, start, model, how, control);
    done_ += work;
    std::vector<float> values(bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
        values[i] = halves ? base::float_from_half(static_cast<std::uint16_t>(bits[i]))
                           : base::float_from_bits(bits[i]);
    }
    return values;
}

std::vector<float> product_runner::exact(const gemm::operand& a, const gemm::operand& b,
                                         std::span<const float> c, const gemm::arrangement& how) {
    gemm::arrangement plain = how;
    plain.order = gemm::k_order::ascending;
    plain.slices = 1;
    return multiply(a, b, c, model_with(gemm::algorithm::exact), plain);
}

}  // namespace mx::products

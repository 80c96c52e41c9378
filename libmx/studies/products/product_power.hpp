// SPDX-License-Identifier: Apache-2.0
// What a test of a product finds: faults of kernels are planted in A, and the products with them
// are compared under tolerances and with the intervals of a class.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libmx/studies/products/product_check.hpp"

namespace mx::products {

/// A passes for equal to B if |a - b| <= absolute + relative * |b|, as in allclose.
struct tolerances {
    double absolute = 1e-2, relative = 1e-2;
};

/// One kind of fault.
struct fault_power {
    std::string_view fault;
    std::uint64_t planted = 0;  ///< variants that changed an output
    std::uint64_t close = 0;    ///< of these: every output passes the tolerances
    std::uint64_t inside = 0;   ///< of these: every output lies in its interval
    double cosine = 1;  ///< the least cosine similarity of a faulty product to the right one
};

struct power_study {
    std::size_t m = 0, n = 0, k = 0;
    std::vector<fault_power> faults;  ///< in the order of the list of faults; only those that apply
};

/// The largest number of outputs, whose intervals are held in memory.
inline constexpr std::uint64_t largest_power_study = std::uint64_t{1} << 22;

/// Plants every fault that A's format allows; of those of single blocks, up to 64 blocks spread
/// over A. A faulty product is otherwise exact and rounded once. `request.of` must not name a unit.
/// Throws base::error (usage) if shapes do not fit or there are too many outputs.
power_study study_power(const matrix& a, const matrix& b, const check_request& request,
                        const tolerances& close, const engine::run_control& control);

/// Values of A (M x K) and B (K x N) on which tolerances find what usual inputs hide: each row of A
/// has one block, so that nothing hides the block's fault. Every second row has a maximum and
/// otherwise subnormals under its scale, and every second column of B is zero where the maximum is.
struct power_inputs {
    std::size_t m = 0, n = 0, k = 0;
    std::vector<float> a, b;
};

/// The same bytes for the same recipe and seed. Throws base::error (usage) for blocks of several
/// rows.
power_inputs make_power_inputs(const codec::recipe& r, std::uint64_t seed);

/// The schema mx.product-power/1, and its records.
report::document_schema power_schema();
report::record power_record(const fault_power& f);

}  // namespace mx::products

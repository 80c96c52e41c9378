// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/product_power.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "libmx/base/exact_sum.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/gemm/unpacked_operand.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/products/gemm_study.hpp"
#include "libmx/studies/products/operand_terms.hpp"

namespace mx::products {
namespace {

constexpr std::size_t blocks_planted = 64;

// Rows [first, first + count) of A with a fault.
struct faulty_rows {
    std::size_t first = 0, count = 0;
    std::vector<double> x;
};

class power_bench {
  public:
    power_bench(const matrix& a, const matrix& b, const check_request& request,
                const tolerances& close, const engine::run_control& control)
        : matrix_(a),
          request_(request),
          close_(close),
          control_(control),
          of_(a, b, request, control) {
        if (std::uint64_t{of_.a.rows} * of_.b.rows > largest_power_study) {
            base::refuse("a product of {}x{} has more than {} outputs; take fewer rows", of_.a.rows,
                         of_.b.rows, largest_power_study);
        }
        const std::optional<codec::recipe>& blocks = request.recipe_a.blocks;
        length_ = blocks && blocks->block.rows == 1 ? static_cast<std::size_t>(blocks->block.cols)
                                                    : std::min<std::size_t>(of_.a.depth, 32);
        intervals_.resize(of_.a.rows * of_.b.rows);
        base::parallel_for(of_.a.rows, control.threads, control.cancel, [&](std::uint64_t r, int) {
            const auto row = static_cast<std::size_t>(r);
            std::vector<double> terms(of_.a.depth);
            for (std::size_t col = 0; col < of_.b.rows; ++col) {
                of_.terms(of_.x.data() + row * of_.a.depth, row, col, terms);
                intervals_[row * of_.b.rows + col] = interval_of_sum(terms, of_.how);
            }
        });
    }

    power_study run() {
        find_blocks();
        for (const gemm::sum_interval& r : intervals_) {
            if (std::isfinite(r.exact)) squares_ += r.exact * r.exact;
        }
        power_study s{of_.a.rows, of_.b.rows, of_.a.depth, {}};
        const bool coded = of_.a.coded.format != nullptr;
        const auto take = [&](fault_power f) {
            if (f.planted != 0) s.faults.push_back(f);
        };
        take(of_blocks("scale of one block doubled", [](std::span<double> x, std::size_t) {
            for (double& v : x) v *= 2;
        }));
        take(of_blocks("pairs of one block swapped", [](std::span<double> x, std::size_t) {
            for (std::size_t i = 0; i + 1 < x.size(); i += 2) std::swap(x[i], x[i + 1]);
        }));
        take(of_blocks("one block left out",
                       [](std::span<double> x, std::size_t) { std::ranges::fill(x, 0.0); }));
        if (coded) {
            take(of_blocks("subnormals of one block flushed",
                           [&](std::span<double> x, std::size_t at) { flush(x, at); }));
            std::vector<double> x = of_.x;
            flush(x, 0);
            take(of_all("subnormals flushed", std::move(x)));
        }
        take(of_all("tail of K left out", without_tail()));
        if (coded && of_.a.coded.scaling != 0) take(of_all("scales transposed", transposed()));
        take(other_rule());
        return s;
    }

  private:
    // The blocks that are not zero.
    void find_blocks() {
        for (std::size_t row = 0; row < of_.a.rows; ++row) {
            for (std::size_t k = 0; k < of_.a.depth; k += length_) {
                const std::size_t size = std::min(length_, of_.a.depth - k);
                const auto block = std::span(of_.x).subspan(row * of_.a.depth + k, size);
                if (std::ranges::any_of(block, [](double v) { return v != 0; })) {
                    blocks_.emplace_back(row, k);
                }
            }
        }
    }

    // Counts one variant: rows with a fault.
    void plant(const faulty_rows& fault, fault_power& to) const {
        struct outcome {
            bool changed = false, far = false, outside = false;
            double right2 = 0, faulty2 = 0, both = 0;
        };
        std::vector<outcome> by_row(fault.count);
        base::parallel_for(
            fault.count, control_.threads, control_.cancel, [&](std::uint64_t i, int) {
                std::vector<double> terms(of_.a.depth);
                outcome& o = by_row[i];
                const std::size_t row = fault.first + static_cast<std::size_t>(i);
                for (std::size_t col = 0; col < of_.b.rows; ++col) {
                    of_.terms(fault.x.data() + i * of_.a.depth, row, col, terms);
                    const gemm::sum_interval& right = intervals_[row * of_.b.rows + col];
                    if (!std::isfinite(right.exact)) continue;
                    base::exact_sum sum;
                    for (const double t : terms) sum.add(t);
                    const auto got = static_cast<double>(static_cast<float>(sum.value()));
                    const double rounded = static_cast<double>(static_cast<float>(right.exact));
                    o.changed = o.changed || got != rounded;
                    o.far = o.far || !(std::abs(got - rounded) <=
                                       close_.absolute + close_.relative * std::abs(rounded));
                    o.outside = o.outside || !right.contains(got);
                    o.right2 += rounded * rounded;
                    o.faulty2 += got * got;
                    o.both += got * rounded;
                }
            });
        const auto any = [&](bool outcome::*which) {
            return std::ranges::any_of(by_row, [&](const outcome& o) { return o.*which; });
        };
        if (!any(&outcome::changed)) return;
        ++to.planted;
        to.close += any(&outcome::far) ? 0 : 1;
        to.inside += any(&outcome::outside) ? 0 : 1;
        double faulty2 = squares_, both = squares_;
        for (const outcome& o : by_row) {
            faulty2 += o.faulty2 - o.right2;
            both += o.both - o.right2;
        }
        const double lengths = std::sqrt(squares_ * faulty2);
        to.cosine = std::min(to.cosine, lengths > 0 ? both / lengths : 0.0);
    }

    // `change` gets the values of a block and the place of its first element in A.
    template <typename Change>
    fault_power of_blocks(std::string_view name, Change change) const {
        fault_power f{name};
        const std::size_t count = std::min(blocks_.size(), blocks_planted);
        for (std::size_t i = 0; i < count; ++i) {
            const auto [row, k] = blocks_[i * blocks_.size() / count];
            faulty_rows one{row, 1, {}};
            const std::size_t begin = row * of_.a.depth;
            const std::size_t size = std::min(length_, of_.a.depth - k);
            one.x.assign(of_.x.begin() + static_cast<std::ptrdiff_t>(begin),
                         of_.x.begin() + static_cast<std::ptrdiff_t>(begin + of_.a.depth));
            change(std::span(one.x).subspan(k, size), begin + k);
            plant(one, f);
        }
        return f;
    }

    fault_power of_all(std::string_view name, std::vector<double> x) const {
        fault_power f{name};
        plant({0, of_.a.rows, std::move(x)}, f);
        return f;
    }

    // Zeroes subnormal elements; `x` begins at element `at` of A.
    void flush(std::span<double> x, std::size_t at) const {
        const gemm::operand_format& f = *of_.a.coded.format;
        const std::uint32_t exponents = (1u << f.exponent_bits) - 1;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const std::uint32_t code = of_.a.coded.codes[at + i] >> f.dropped_bits;
            if ((code >> f.mantissa_bits & exponents) == 0) x[i] = 0;
        }
    }

    std::vector<double> without_tail() const {
        std::vector<double> x = of_.x;
        const std::size_t from = (of_.a.depth - 1) / length_ * length_;
        for (std::size_t r = 0; r < of_.a.rows; ++r) {
            for (std::size_t k = from; k < of_.a.depth; ++k) x[r * of_.a.depth + k] = 0;
        }
        return x;
    }

    // The scales read as if they were stored by columns.
    std::vector<double> transposed() const {
        gemm::operand wrong = of_.a.coded;
        const std::size_t per_row = wrong.scales.size() / wrong.rows;
        for (std::size_t r = 0; r < wrong.rows; ++r) {
            for (std::size_t j = 0; j < per_row; ++j) {
                wrong.scales[r * per_row + j] = of_.a.coded.scales[(j * wrong.rows + r)];
            }
        }
        return gemm::exact_values(wrong);
    }

    // A quantized by another rule of powers of two.
    fault_power other_rule() const {
        operand_recipe r = request_.recipe_a;
        if (!r.blocks || !r.blocks->scale_format->power_of_two()) return {};
        const bool floor = r.blocks->rule->name == "floor";
        r.blocks->rule = scale::find_scale_rule(floor ? "rceil" : "floor");
        return of_all(
            floor ? "scale rule rceil for floor" : "scale rule floor for the recipe's",
            exact_values(quantize_operand(matrix_, request_.over_a, r, of_.rotate, control_)));
    }

    const matrix& matrix_;
    const check_request& request_;
    const tolerances& close_;
    const engine::run_control& control_;
    operand_terms of_;
    std::size_t length_ = 0;
    std::vector<std::pair<std::size_t, std::size_t>> blocks_;  // row and first k
    std::vector<gemm::sum_interval> intervals_;
    double squares_ = 0;  // of the right product
};

constexpr std::array power_members = std::to_array<report::declared<fault_power>>({
    {"fault", "string", "", [](auto& f) { return f.fault; }},
    {"planted", "count", "variants that changed an output", [](auto& f) { return f.planted; }},
    {"passed_tolerances", "count", "of these: every output passes the tolerances",
     [](auto& f) { return f.close; }},
    {"passed_interval", "count", "of these: every output lies in its interval",
     [](auto& f) { return f.inside; }},
    {"least_cosine", "number", "the least cosine similarity of a faulty product to the right one",
     [](auto& f) { return f.cosine; }},
});

}  // namespace

power_study study_power(const matrix& a, const matrix& b, const check_request& request,
                        const tolerances& close, const engine::run_control& control) {
    require_shapes(a, b, nullptr, request.over_a, request.over_b);
    return power_bench(a, b, request, close, control).run();
}

power_inputs make_power_inputs(const codec::recipe& r, std::uint64_t seed) {
    if (r.block.rows != 1) {
        base::refuse("--power: recipe '{}' has blocks of {} rows; give one with blocks along k",
                     codec::to_string(r), r.block.rows);
    }
    constexpr std::size_t blocks = 32;
    const auto length = static_cast<std::size_t>(r.block.cols);
    power_inputs made{2 * blocks, 64, blocks * length, {}, {}};
    made.a.resize(made.m * made.k);
    made.b.resize(made.k * made.n);
    const format::element_format& f = *r.element;
    // The steps of one scale: the largest value, and the least above zero.
    const auto largest =
        std::ldexp(static_cast<float>(f.max_significand()), f.emax() - f.mantissa_bits);
    const float least = std::ldexp(1.0F, f.quantum());
    constexpr float unit = 0x1p12F;  // large enough for any absolute tolerance
    for (std::size_t row = 0; row < made.m; ++row) {
        const std::size_t first = row / 2 * length;
        for (std::size_t i = 0; i < length; ++i) {
            const std::size_t at = row * made.k + first + i;
            const std::uint32_t word = base::random_u32({seed, 0}, at);
            // From half the largest value to just below, over four scales.
            const float fraction = 0.5F + static_cast<float>(word >> 9 & 0x7fff) * 0x1p-16F;
            float x = largest * fraction * std::ldexp(unit, -static_cast<int>(row / 2 % 4));
            if (row % 2 != 0) x = i == 0 ? largest * unit : least * unit;
            // Rules that round a maximum up and down differ just below a power of two.
            if (row % 2 == 0 && i == 0) {
                x = std::ldexp(1.984375F * unit, f.emax() - static_cast<int>(row / 2 % 4));
            }
            made.a[at] = (word & 1u) != 0 && i != 0 ? -x : x;
        }
    }
    for (std::size_t at = 0; at < made.b.size(); ++at) {
        const std::uint32_t word = base::random_u32({seed, 1}, at);
        const bool hidden = at % made.n % 2 != 0 && at / made.n % length == 0;
        const float x = 0.5F + static_cast<float>(word >> 9) * 0x1p-24F;
        made.b[at] = hidden ? 0.0F : (word & 1u) != 0 ? -x : x;
    }
    return made;
}

report::record power_record(const fault_power& f) { return report::written(power_members, f); }

report::document_schema power_schema() {
    return report::document_schema("mx.product-power/1", "mx verify --power",
                                   "Faults planted in A, and which tests find them.")
        .member({"inputs", "[@common#input]", "files that were read: A and B"})
        .member({"class", "string", "any-order-f32 or any-order-f32-faithful"})
        .member({"recipe_a", "string", ""})
        .member({"recipe_b", "string", ""})
        .member({"atol", "amount", "the absolute tolerance"})
        .member({"rtol", "amount", "the tolerance relative to the output"})
        .member({"results", "[#result]", "a fault each"})
        .define("result", power_members);
}

}  // namespace mx::products

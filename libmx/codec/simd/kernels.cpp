// SPDX-License-Identifier: Apache-2.0
// The kernel tables of this build's instruction sets.
#include "libmx/codec/simd/kernels.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/codec/dialect_block.hpp"
#include "libmx/codec/segment_kernel.hpp"
#include "libmx/scale/rule_step.hpp"

#define MX_KERNELS(space)                                                                          \
    namespace space {                                                                              \
    int lanes();                                                                                   \
    void load(const stored_values&, const segment_place&, block_run&);                             \
    void draw(block_run&, std::uint64_t);                                                          \
    void centre(const block_run&, range_kind, centred_blocks&);                                    \
    void scale(const element_grid&, const block_extremes&, std::size_t, block_scales&);            \
    void elements(const element_grid&, const block_run&, const block_scales&,                      \
                  const element_outputs&, grid_counts&);                                           \
    void centred_elements(const element_grid&, const block_run&, const centred_blocks&,            \
                          const block_scales&, const element_outputs&, grid_counts&);              \
    void dialect_elements(const element_grid&, quotient_kind, const block_run&,                    \
                          const dialect_scales&, const block_scales&, const element_outputs&,      \
                          grid_counts&);                                                           \
    void codes(const element_grid&, const block_run&, const float*, const block_scales&,           \
               std::uint8_t*);                                                                     \
    void dialect_codes(const element_grid&, quotient_kind, const block_run&,                       \
                       const dialect_scales&, const block_scales&, std::uint8_t*);                 \
    std::size_t cast(const element_grid&, bool, const stored_values&, std::size_t, std::uint8_t*,  \
                     float*);                                                                      \
    void compare_trials(const element_grid&, four_over_six, const block_run&, trial_scales&);      \
    void search(const element_grid&, const search_plan&, const block_run&, block_trials&);         \
    void choose_as_te(const element_grid&, const te_plan&, const block_run&, block_trials&);       \
    void judge(const element_grid&, const block_extremes&, std::size_t, const block_scales&,       \
               block_verdicts&, std::uint8_t*);                                                    \
    void judge_dialect(const element_grid&, quotient_kind, const block_extremes&, std::size_t,     \
                       const dialect_scales&, const block_scales&, block_verdicts&,                \
                       std::uint8_t*);                                                             \
    bool sum_run(block_run&);                                                                      \
    bool multiply_run(const product_plan&, const block_run&, product_sums&, block::exact_totals&,  \
                      double&);                                                                    \
    void sum_values(block_run&);                                                                   \
    double multiply_elements(const product_plan&, const block_run&, product_sums&);                \
    void add_products(const product_plan&, const block_run&, product_sums&, block::exact_totals&); \
    void round_sums(const product_plan&, const block_run&, const product_sums&,                    \
                    block::block_sums*, std::uint8_t*);                                            \
    constexpr kernels table{lanes,                                                                 \
                            load,                                                                  \
                            draw,                                                                  \
                            centre,                                                                \
                            scale,                                                                 \
                            elements,                                                              \
                            centred_elements,                                                      \
                            dialect_elements,                                                      \
                            codes,                                                                 \
                            dialect_codes,                                                         \
                            cast,                                                                  \
                            compare_trials,                                                        \
                            search,                                                                \
                            choose_as_te,                                                          \
                            judge,                                                                 \
                            judge_dialect,                                                         \
                            sum_run,                                                               \
                            multiply_run,                                                          \
                            sum_values,                                                            \
                            multiply_elements,                                                     \
                            add_products,                                                          \
                            round_sums};                                                           \
    }

namespace mx::codec::simd {
namespace {

bool is_rounding(format::rounding how) {
    using format::rounding;
    switch (how) {
        case rounding::rtne:
        case rounding::away:
        case rounding::ties_to_zero:
        case rounding::zero:
        case rounding::up:
        case rounding::down:
        case rounding::stochastic:
            return true;
        default:
            return false;
    }
}

constexpr std::size_t batch = 16;
constexpr float target_four = 4.0f;

// Per-thread scratch memory.
struct workspace {
    block_scales scales;
    product_sums sums;
    centred_blocks centred;
    dialect_scales of_dialect;
    trial_scales trials;
    block_trials tried;
    base::aligned_buffer<std::uint8_t> doubtful;
    base::aligned_buffer<float> q;
    base::aligned_buffer<double> scale;
    base::aligned_buffer<block::error_part> parts;
    base::aligned_buffer<grid_counts> counts;
    base::aligned_buffer<std::uint32_t> gone;
    base::aligned_buffer<block::block_sums> rounded;

    void fit(const block_run& run, bool with_parts, bool with_stats) {
        const auto fit_all = [](std::size_t count, auto&... buffers) {
            (buffers.reserve(count), ...);
        };
        const std::size_t blocks = (run.blocks + batch - 1) / batch * batch + batch;
        fit_all(blocks, scales.code, scales.reciprocal, scales.scale, scales.slow, doubtful,
                centred.offset, centred.offset_bits, centred.ruled, centred.amax, centred.amin,
                centred.nonzero, of_dialect.scale, of_dialect.inverse, of_dialect.factor,
                of_dialect.overflow, of_dialect.clamp, scale);
        const std::size_t pieces = pieces_of(run) + batch;
        fit_all(pieces, sums.q, sums.q2, sums.q2_low, sums.xq, sums.xq_low);
        fit_all(blocks, trials.six, trials.four, trials.inverse_six, trials.inverse_four,
                trials.own_six, trials.own_four, trials.taken, tried.code, tried.doubtful,
                tried.six.scale, tried.six.factor, tried.four.scale, tried.four.factor);
        fit_all(pieces, trials.error_six, trials.error_four);
        fit_all(run.blocks * run.stride, q);
        if (with_parts) fit_all(run.blocks * run.stride, parts);
        if (with_stats) fit_all(blocks, counts, rounded);
    }
};

void keep_details(const block_run& run, const block_extremes& e, const centred_blocks* centred,
                  const block_scales& scales, const block_results& to) {
    const std::uint32_t* const code = scales.code.data();
    for (std::size_t b = 0; b < run.blocks; ++b) {
        to.scale_code[b] = static_cast<std::uint8_t>(code[b]);
    }
    if (centred != nullptr) {
        std::copy_n(centred->offset_bits.data(), run.blocks, to.offset);
    } else {
        std::fill_n(to.offset, run.blocks, std::uint16_t{0});
    }
    std::copy_n(e.ruled, run.blocks, to.amax);
    std::copy_n(run.amax.data(), run.blocks, to.x_max);
    std::copy_n(run.amin.data(), run.blocks, to.x_min);
}

// The destination of the scalings of dialect blocks.
class scaling_rows {
  public:
    scaling_rows(dialect_scales& to, block_scales& scales)
        : scale_(to.scale.data()),
          inverse_(to.inverse.data()),
          factor_(to.factor.data()),
          overflow_(to.overflow.data()),
          clamp_(to.clamp.data()),
          code_(scales.code.data()),
          slow_(scales.slow.data()) {}

    void put(std::size_t b, const block_scaling& s, bool fast) const {
        const block_scaling& use = fast ? s : left_to_reference;
        scale_[b] = use.scale;
        inverse_[b] = use.inverse;
        factor_[b] = use.factor;
        overflow_[b] = use.overflow;
        clamp_[b] = use.clamp;
        code_[b] = use.code;
        slow_[b] = fast ? 0 : 1;
    }

  private:
    double *scale_, *inverse_;
    float *factor_, *overflow_, *clamp_;
    std::uint32_t* code_;
    std::uint8_t* slow_;
};

bool is_fast(const block_scaling& s, std::uint32_t amax) {
    return base::float_from_bits(amax) <= s.largest;
}

// The largest error of a block under a scale, exact: an element becomes the nearest value.
double largest_error(const block_params& p, std::span<const float> x, double scale) {
    constexpr std::size_t together = 16;
    double most = 0;
    for (std::size_t first = 0; first < x.size(); first += together) {
        const std::size_t count = std::min(together, x.size() - first);
        double magnitude[together] = {}, least[together];
        for (std::size_t i = 0; i < count; ++i) {
            magnitude[i] = std::abs(static_cast<double>(x[first + i]));
        }
        std::copy(std::begin(magnitude), std::end(magnitude), least);
        for (std::uint32_t c = 1; c <= p.element.max_positive; ++c) {
            const double value = static_cast<double>(p.value[c]) * scale;
            for (std::size_t i = 0; i < together; ++i) {
                least[i] = std::min(least[i], std::abs(value - magnitude[i]));
            }
        }
        most = std::max(most, *std::max_element(std::begin(least), std::end(least)));
    }
    return most;
}

bool takes_four(const block_params& p, const block_run& run, std::size_t block,
                const block_scaling& by_six, const block_scaling& by_four) {
    const block_extent e = extent_of(run.place, block);
    const std::span<const float> x(run.x + block * run.stride, e.size());
    // Largest errors are often equal: of elements that become the same number under both scales.
    constexpr std::uint32_t few = 8;
    if (p.select == four_over_six::abs_max && p.element.max_positive <= few &&
        quotient_of(p) == quotient_kind::exact) {
        return largest_error(p, x, by_four.scale) < largest_error(p, x, by_six.scale);
    }
    const std::uint32_t amax = run.amax.data()[block];
    const float_scale six = choose_scale(p, amax, p.largest);
    const float_scale four = choose_scale(p, amax, target_four);
    return select_scale(p, x, place_of(run.place, e), six, four).code == four.code;
}

// The two scalings of every block for four-over-six.
class both_scalings {
  public:
    // Calls each(b, six, four) for every block.
    template <typename Each>
    both_scalings(const block_params& p, const block_run& run, trial_scales& room, Each&& each)
        : run_(run), six_(room.six.data()), four_(room.four.data()) {
        room.lone.clear();
        scaling_table& of_six = table_of(p, p.largest);
        scaling_table& of_four = table_of(p, target_four);
        const std::uint32_t* const amax = run.amax.data();
        for (std::size_t b = 0; b < run.blocks; ++b) {
            six_[b] = of_six.lasting(amax[b], room.lone);
            four_[b] = of_four.lasting(amax[b], room.lone);
            each(b, *six_[b], *four_[b]);
        }
    }

    const block_scaling& six(std::size_t b) const { return *six_[b]; }
    const block_scaling& four(std::size_t b) const { return *four_[b]; }

    // Returns the number of blocks left to the reference, like the functions below.
    template <typename TakesFour>
    std::size_t choose(scaling_rows rows, TakesFour&& takes) const {
        std::size_t slow = 0;
        const std::uint32_t* const all = run_.amax.data();
        for (std::size_t b = 0; b < run_.blocks; ++b) {
            const std::uint32_t amax = all[b];
            const bool fast = is_fast(six(b), amax) && is_fast(four(b), amax);
            // Without a branch that nothing predicts.
            const block_scaling* const either[] = {six_[b], four_[b]};
            rows.put(b, *either[takes(b, fast) ? 1 : 0], fast);
            slow += fast ? 0u : 1u;
        }
        return slow;
    }

  private:
    const block_run& run_;
    const block_scaling **six_, **four_;
};

// Four-over-six in exact arithmetic.
std::size_t find_four_over_six(const kernels& k, const element_grid& grid, const block_params& p,
                               const block_run& run, const scaling_rows& rows,
                               trial_scales& trials) {
    float *const to_six = trials.inverse_six.data(), *const to_four = trials.inverse_four.data();
    float *const own_six = trials.own_six.data(), *const own_four = trials.own_four.data();
    const both_scalings of(p, run, trials,
                           [&](std::size_t b, const block_scaling& six, const block_scaling& four) {
                               to_six[b] = static_cast<float>(six.inverse);
                               to_four[b] = static_cast<float>(four.inverse);
                               own_six[b] = six.own;
                               own_four[b] = four.own;
                           });
    k.compare_trials(grid, p.select, run, trials);
    const std::uint8_t* const taken = trials.taken.data();
    return of.choose(rows, [&](std::size_t b, bool fast) {
        return taken[b] == 2 ? fast && takes_four(p, run, b, of.six(b), of.four(b)) : taken[b] != 0;
    });
}

// Four-over-six of dialect te: the kernel's sums are those of the reference.
std::size_t find_te_choice(const kernels& k, const element_grid& grid, const block_params& p,
                           const block_run& run, const scaling_rows& rows, workspace& space) {
    block_trials& trials = space.tried;
    float *const six_scale = trials.six.scale.data(), *const six_factor = trials.six.factor.data();
    float *const four_scale = trials.four.scale.data(), *const four_factor =
                                                            trials.four.factor.data();
    const both_scalings of(p, run, space.trials,
                           [&](std::size_t b, const block_scaling& six, const block_scaling& four) {
                               six_scale[b] = six.own;
                               six_factor[b] = six.factor;
                               four_scale[b] = four.own;
                               four_factor[b] = four.factor;
                           });
    const std::size_t size = run.place.block_size();
    std::size_t cols = static_cast<std::size_t>(run.place.block_cols);
    if (size > cols * te_rows) cols = size;
    const bool tried = run.stride <= largest_tried;
    if (tried) {
        k.choose_as_te(grid,
                       {p.select == four_over_six::mse, p.candidates == candidate_kind::fp16,
                        p.tensor.amax, p.outer.range, p.tensor.stored, cols},
                       run, trials);
    }
    return of.choose(rows, [&](std::size_t b, bool fast) {
        // The last rows of a tile may be shorter.
        const bool whole = run.place.block_rows == 1 || extent_of(run.place, b).size() == size;
        return tried && whole ? trials.code.data()[b] != 0
                              : fast && takes_four(p, run, b, of.six(b), of.four(b));
    });
}

// Searched scales: by the kernel where float32 arithmetic can determine the best one.
std::size_t find_best(const kernels& k, const element_grid& grid, const block_params& p,
                      const block_run& run, scaling_rows rows, workspace& space) {
    scaling_table& table = table_of(p, p.largest);
    const std::uint32_t* const amax = run.amax.data();
    block_trials& trials = space.tried;
    const bool power = p.scale_format->power_of_two();
    const int highest = power ? format::e8m0_max : static_cast<int>(p.scale_number.max_positive);
    const int lowest = power ? 0 : 1;
    std::int32_t* const code = trials.code.data();
    for (std::size_t b = 0; b < run.blocks; ++b) {
        code[b] = std::clamp<std::int32_t>(table.of(amax[b]).code, lowest, highest);
    }
    const scaling_table::float32_scales& scales = table.in_float();
    const bool tried = run.stride <= largest_tried && scales.least <= scales.most;
    if (tried) {
        k.search(
            grid,
            {p.measure == search_measure::mse, scales.scale.data(), scales.inverse.data(), lowest,
             highest, scales.least, scales.most, p.reach, 1 << p.scale_number.mantissa_bits},
            run, trials);
    }
    const std::uint8_t* const doubtful = trials.doubtful.data();
    std::size_t slow = 0;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        const bool found = tried && doubtful[b] == 0;
        const block_scaling* s = found ? &table.of_code(code[b]) : &table.of(amax[b]);
        if (!found && is_fast(*s, amax[b]) && amax[b] != 0 && p.tensor.decode > 0) {
            const std::size_t size = extent_of(run.place, b).size();
            const int best = searched_code(p, {run.x + b * run.stride, size}, s->code);
            s = &table.of_code(best);
        }
        const bool fast = is_fast(*s, amax[b]);
        rows.put(b, *s, fast);
        slow += fast ? 0u : 1u;
    }
    return slow;
}

std::size_t find_by_maximum(const block_params& p, const block_run& run, scaling_rows rows) {
    scaling_table& table = table_of(p, p.largest);
    std::size_t slow = 0;
    const std::uint32_t* const all = run.amax.data();
    for (std::size_t b = 0, blocks = run.blocks; b < blocks; ++b) {
        const std::uint32_t amax = all[b];
        const block_scaling& s = table.of(amax);
        const bool fast = is_fast(s, amax);
        rows.put(b, s, fast);
        slow += fast ? 0u : 1u;
    }
    return slow;
}

// The scales of dialect blocks, from the reference or equal to it.
void find_scales(const kernels& k, const element_grid& grid, const block_params& p,
                 const block_run& run, workspace& space) {
    const scaling_rows rows(space.of_dialect, space.scales);
    std::size_t& slow = space.scales.slow_blocks;
    if (p.searches) {
        slow = find_best(k, grid, p, run, rows, space);
    } else if (p.select == four_over_six::none) {
        slow = find_by_maximum(p, run, rows);
    } else if (p.by->two_level.value == two_level_kind::te) {
        slow = find_te_choice(k, grid, p, run, rows, space);
    } else {
        slow = find_four_over_six(k, grid, p, run, rows, space.trials);
    }
    // Padding in the last vector is not a block.
    for (std::size_t b = 0; b < batch; ++b) rows.put(run.blocks + b, left_to_reference, false);
}

// Leaves blocks with numbers below element_grid::least to the reference.
void leave_small_numbers(const element_grid& grid, const block_run& run, workspace& space) {
    if (grid.least == 0) return;
    const scaling_rows rows(space.of_dialect, space.scales);
    for (std::size_t b = 0; b < run.blocks; ++b) {
        const auto least = static_cast<double>(base::float_from_bits(run.amin.data()[b]));
        const double bound = static_cast<double>(grid.least) * space.of_dialect.scale.data()[b];
        if (space.scales.slow.data()[b] != 0 || least == 0 || least >= bound) continue;
        rows.put(b, left_to_reference, false);
        ++space.scales.slow_blocks;
    }
}

// Integers under the power-of-two scales of a dialect: the kernels for OCP blocks do these.
void scale_as_ocp(const block_run& run, workspace& space) {
    for (std::size_t b = 0; b < run.blocks + batch; ++b) {
        space.scales.reciprocal.data()[b] = static_cast<float>(space.of_dialect.inverse.data()[b]);
        space.scales.scale.data()[b] = static_cast<float>(space.of_dialect.scale.data()[b]);
    }
}

// Dequantized values of dialect blocks as their dialect returns them, if codes do not determine
// them.
void put_values(const block_params& p, const block_run& run, const dialect_scales& of_dialect,
                const block_scales& scales, const block_results& to) {
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (scales.slow.data()[b] != 0) continue;
        const std::size_t size = extent_of(run.place, b).size();
        const std::size_t first = b * run.stride;
        if (!p.scale_format->power_of_two()) {
            const auto code = static_cast<std::uint8_t>(scales.code.data()[b]);
            const float scale = p.scale_format->is_number()
                                    ? float_scale_steps::coded(p, code).value
                                    : choose_scale(p, run.amax.data()[b], p.largest).value;
            const float_scale_decoder decoder(p, scale);
            for (std::size_t i = first; i < first + size; ++i) {
                to.values[i] = decoder.decode(to.codes[i]);
            }
            continue;
        }
        const auto s = static_cast<float>(of_dialect.scale.data()[b]);
        const bool keeps_minus = !p.element.floating && p.by->sign_of_zero.value != zero_sign::plus;
        for (std::size_t i = first; i < first + size; ++i) {
            const float value = s * p.value[to.codes[i]];
            // Codes of integers have no -0.
            to.values[i] = value == 0 && keeps_minus && run.x[i] < 0 ? -0.0f : value;
        }
    }
}

// Blocks that contain only zeros, without slow ones.
std::uint64_t zero_blocks(const block_run& run, const block_scales& scales) {
    std::uint64_t count = 0;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        count += run.amax.data()[b] == 0 && scales.slow.data()[b] == 0 ? 1u : 0u;
    }
    return count;
}

// max |x| over the blocks, without slow ones.
std::uint32_t largest(const block_run& run, const block_scales& scales) {
    std::uint32_t most = 0;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (scales.slow.data()[b] == 0) most = std::max(most, run.amax.data()[b]);
    }
    return most;
}

// Without mantissa bits (E3M0), ties to even are decided by codes, not by numbers. The last bit of
// a code is then that of the float32 exponent field, and that of zero's, because emin is even.
bool rounds_by_code(const format::element_params& f, const format::rounding_mode& mode) {
    return f.floating && f.mantissa_bits == 0 && mode.how == format::rounding::rtne &&
           mode.ties == format::tie_rule::even;
}

// The grid of a format, with its values by code.
element_grid grid_of(const format::element_params& f, const format::rounding_mode& mode,
                     const float* value) {
    element_grid g{};
    g.fixed = !f.floating;
    g.least_exponent = static_cast<std::uint32_t>(f.emin + 127) << 23;
    g.magic_step = static_cast<std::uint32_t>(23 - f.mantissa_bits) << 23;
    g.max_positive = value[f.max_positive];
    g.smallest_normal = f.smallest_normal != 0 ? value[f.smallest_normal] : 0.0f;
    g.max_negative = g.fixed ? static_cast<float>(f.max_negative) * base::exact_pow2f(f.quantum)
                             : g.max_positive;
    g.bits = f.bits;
    g.code_shift = 23 - f.mantissa_bits;
    g.code_base = static_cast<std::uint32_t>(f.emin + 126) << f.mantissa_bits;
    g.inverse_quantum = base::exact_pow2f(-f.quantum);

    constexpr float never = 2.0f;
    g.threshold_positive = g.threshold_negative = never;
    using format::rounding;
    switch (mode.how) {
        case rounding::rtne:
            g.by_code = rounds_by_code(f, mode);
            g.rounding = g.by_code ? rounding_kind::threshold : rounding_kind::nearest;
            if (g.by_code) {
                g.threshold_positive = 0.5f;
                g.threshold_negative = half_or_more;
            }
            break;
        case rounding::away:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = g.threshold_negative = half_or_more;
            break;
        case rounding::ties_to_zero:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = g.threshold_negative = 0.5f;
            break;
        case rounding::zero:
            g.rounding = rounding_kind::threshold;
            break;
        case rounding::up:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = 0.0f;
            break;
        case rounding::down:
            g.rounding = rounding_kind::threshold;
            g.threshold_negative = 0.0f;
            break;
        case rounding::stochastic:
            g.rounding = rounding_kind::stochastic;
            g.random_mask = ~0u << (32 - mode.random_bits);
            break;
        default:  // rejected by takes() and takes_cast()
            break;
    }
    return g;
}

// The facts of scales and nothing else.
void write_scales(const block_params& p, const block_run& run, const block_extremes& extremes,
                  workspace& space, block_details& details) {
    keep_details(run, extremes, p.has_offset ? &space.centred : nullptr, space.scales,
                 details.results);
    if (space.scales.slow_blocks == 0) return;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (space.scales.slow.data()[b] == 0) continue;
        if (!p.ocp || p.has_offset) {
            scalar::quantize_one(p, run, b, details, nullptr);
            continue;
        }
        const int code = scale::scale_code(p.step, run.amax.data()[b]);
        details.results.scale_code[b] = static_cast<std::uint8_t>(code);
    }
}

// Whether kernels of dialect blocks take the recipe: on a fixed grid, under powers of two, a
// dialect's arithmetic is that of OCP blocks.
bool is_dialect(const block_params& p, const element_grid& grid) {
    return !p.ocp && !(grid.fixed && p.scale_format->power_of_two());
}

// The output of conversions: codes and the facts of scales.
void write_codes(const kernels& k, const block_params& p, const element_grid& grid, block_run& run,
                 const block_extremes& extremes, workspace& space, block_details& details) {
    std::uint8_t* const codes = details.results.codes;
    const centred_blocks* const centred = p.has_offset ? &space.centred : nullptr;
    if (grid.rounding == rounding_kind::stochastic) k.draw(run, p.seed);
    if (!is_dialect(p, grid)) {
        k.codes(grid, run, centred != nullptr ? centred->offset.data() : nullptr, space.scales,
                codes);
    } else {
        k.dialect_codes(grid, quotient_of(p), run, space.of_dialect, space.scales, codes);
    }
    keep_details(run, extremes, centred, space.scales, details.results);
    if (details.results.values != nullptr) {
        put_values(p, run, space.of_dialect, space.scales, details.results);
    }
    if (space.scales.slow_blocks == 0) return;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (space.scales.slow.data()[b] != 0) scalar::quantize_one(p, run, b, details, nullptr);
    }
}

// Bits of a sum of x q over 32 elements: x has at least about half a unit of q, and at most four
// times the largest number.
int bits_of_products(const grid_range& r, int precision) {
    return 2 * (r.most - r.least) + 9 + precision;
}

// Roundings that can take a non-zero x of any size to a non-zero number.
bool leaves_zero(const element_grid& g) {
    return g.rounding == rounding_kind::stochastic ||
           (g.rounding == rounding_kind::threshold &&
            (g.threshold_positive == 0 || g.threshold_negative == 0));
}

// The limit, in units of the scale, below which results must be zero: products with q would need
// more bits than two doubles have.
float least_of(const element_grid& g, const grid_range& r, int precision) {
    constexpr int usual = -60;  // y and its neighbours are far from float32's smallest numbers
    if (!leaves_zero(g)) return 0;
    return base::exact_pow2f(std::max(usual, 2 * r.most - 92 + precision - r.least));
}

// The same for power-of-two scales of dialects: where shifts of fbgemm wrap around, and where
// quotients in float32 would be subnormal.
float least_quotient(const block_params& p) {
    if (p.ocp || !p.scale_format->power_of_two()) return 0;
    if (p.by->arithmetic.value == element_kind::fbgemm) return 0x1p-9f;
    return quotient_of(p) == quotient_kind::exact ? 0x1p-126f : 0.0f;
}

// With an offset, x can have any size: the range of the block decides whether two doubles are
// enough.
void leave_wide_blocks(const block_params& p, const block_run& run, block_scales& scales) {
    const grid_range r = range_of(p);
    const auto exponent = [](std::uint32_t bits) {
        return std::max(static_cast<int>(bits >> 23), 1);
    };
    for (std::size_t b = 0; b < run.blocks; ++b) {
        const std::uint32_t amax = run.amax.data()[b];
        const int span = amax == 0 ? 0 : exponent(amax) - exponent(run.amin.data()[b]);
        const bool fits = span + run.precision + r.most - r.least <= 96;
        if (scales.slow.data()[b] != 0 || fits) continue;
        scales.slow.data()[b] = 1;
        ++scales.slow_blocks;
    }
}

product_plan plan_of(const block_params& p, const element_grid& grid, const block_run& run,
                     workspace& space) {
    // Those of dialect blocks are 0 for slow ones already.
    double* const scale = p.ocp ? space.scale.data() : space.of_dialect.scale.data();
    for (std::size_t b = 0; b < run.blocks && p.ocp; ++b) {
        const bool slow = space.scales.slow.data()[b] != 0;
        scale[b] = slow ? 0 : static_cast<double>(space.scales.scale.data()[b]);
    }
    std::fill_n(scale + run.blocks, batch, 0.0);
    return {range_of(p),
            p.scale_format->power_of_two(),
            space.scales.slow.data(),
            !leaves_zero(grid),
            scale,
            p.scale_format->is_number() ? double{p.tensor.decode} : 1.0,
            p.has_offset ? space.centred.offset.data() : nullptr,
            space.q.data()};
}

// The exact sums and the largest error of the blocks that are not slow, piece by piece.
void add_pieces(const kernels& k, const product_plan& plan, const element_grid& grid,
                block_run& run, product_sums& sums, block::segment_stats& out) {
    if (!run.has_sums) k.sum_values(run);
    run.has_sums = true;
    const grid_range& range = plan.range;
    sums.split_q2 = 2 * (range.most - range.least) + 5 > 53;
    sums.split_xq = sums.split_q2 || plan.offset != nullptr || leaves_zero(grid) ||
                    bits_of_products(range, run.precision) > 53;
    out.max_error = k.multiply_elements(plan, run, sums);
    k.add_products(plan, run, sums, out.sum);
    for (std::size_t i = 0; i < run.smalls; ++i) {
        const std::size_t b = run.small[i].block;
        if (plan.slow[b] != 0) continue;
        const auto x = static_cast<double>(run.small[i].x);
        out.sum.x.add(x);
        out.sum.x2.add(x * x);
        if (plan.offset != nullptr) out.sum.xd.add(x * static_cast<double>(plan.offset[b]));
    }
}

// The exact sums, the parts and the largest error of the blocks that are not slow. The statistics
// of single blocks are made of the sums of pieces.
void add_sums(const kernels& k, const product_plan& plan, const element_grid& grid, block_run& run,
              workspace& space, bool with_parts, bool with_stats, block::segment_stats& out) {
    const bool few_slow = space.scales.slow_blocks * 8 <= run.blocks;
    const bool whole = !with_stats && few_slow && plan.offset == nullptr && k.sum_run(run) &&
                       k.multiply_run(plan, run, space.sums, out.sum, out.max_error);
    if (!whole) add_pieces(k, plan, grid, run, space.sums, out);
    const auto offset_of = [&](std::size_t b) {
        return plan.offset != nullptr ? static_cast<double>(plan.offset[b]) : 0.0;
    };
    for (std::size_t b = 0; b < run.blocks && with_parts; ++b) {
        if (plan.slow[b] != 0) continue;
        for (std::size_t i = b * run.stride; i < (b + 1) * run.stride; ++i) {
            const double product = plan.scale[b] * static_cast<double>(space.q.data()[i]);
            out.sum.add_part(run.x[i], {offset_of(b), product}, space.parts.data()[i]);
        }
    }
}

// Counts the elements of each block that become zero, and corrects their parts: with an offset O
// those with O + S q = 0, not those with q = 0. Returns their number.
std::uint64_t find_gone(const product_plan& plan, const block_run& run, workspace& space,
                        bool with_parts) {
    std::uint64_t all = 0;
    space.gone.reserve(run.blocks);
    for (std::size_t b = 0; b < run.blocks; ++b) {
        const auto offset = static_cast<double>(plan.offset[b]);
        std::uint32_t count = 0;
        for (std::size_t i = b * run.stride; i < (b + 1) * run.stride && plan.slow[b] == 0; ++i) {
            const double product = plan.scale[b] * static_cast<double>(space.q.data()[i]);
            const bool gone = offset + product == 0 && run.x[i] != 0;
            count += gone ? 1u : 0u;
            if (!with_parts || space.parts.data()[i] == block::error_part::clamp) continue;
            space.parts.data()[i] = gone ? block::error_part::underflow : block::error_part::grid;
        }
        space.gone.data()[b] = count;
        all += count;
    }
    return all;
}

// Whether all numbers but zeros are one magnitude.
bool is_one_magnitude(const float* q, std::size_t count) {
    float one = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const float magnitude = std::abs(q[i]);
        if (one == 0) one = magnitude;
        if (magnitude != 0 && magnitude != one) return false;
    }
    return true;
}

block::block_stats stats_of(const block_params& p, const element_grid& grid, const block_run& run,
                            std::uint32_t nonzero, const workspace& space, const block_results& of,
                            std::size_t b) {
    const grid_counts& counts = space.counts.data()[b];
    block::block_stats s{};
    block::block_counts& c = s.count;
    const auto number = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
    c.elements = number(extent_of(run.place, b).size());
    c.nonzero = nonzero;
    c.overflow = number(counts.overflow);
    c.clamp = number(counts.clamp);
    c.top_code = number(counts.top_code);
    const std::uint32_t zeros = number(counts.zero - (run.stride - nonzero));
    c.underflow = p.has_offset ? space.gone.data()[b] : zeros;
    if (grid.smallest_normal != 0) c.subnormal = number(counts.subnormal - counts.zero);
    s.sum = space.rounded.data()[b];
    s.is.zero = of.x_max[b] == 0;
    s.is.eligible = nonzero >= 2;
    if (s.is.eligible) {
        s.is.saturated = c.top_code == nonzero;
        s.is.dead = zeros == nonzero;
        s.is.collapsed =
            zeros == 0 && is_one_magnitude(space.q.data() + b * run.stride, c.elements);
    }
    s.scale_code = of.scale_code[b];
    s.scale = scale_of_block(p, of, b);
    s.offset = of.offset[b];
    s.amax = of.amax[b];
    s.x_max = s.counted_max = of.x_max[b];
    s.x_min = of.x_min[b];
    return s;
}

// The statistics of the blocks that are not slow; after keep_details.
void put_stats(const kernels& k, const block_params& p, const element_grid& grid,
               const product_plan& plan, const block_run& run, const block_extremes& e,
               workspace& space, block_details& details) {
    std::uint8_t* const unsure = space.doubtful.data();
    k.round_sums(plan, run, space.sums, space.rounded.data(), unsure);
    for (std::size_t i = 0; i < run.smalls; ++i) unsure[run.small[i].block] = 1;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (plan.slow[b] != 0) continue;
        if (unsure[b] != 0) {
            scalar::quantize_one(p, run, b, details, nullptr);
        } else {
            details.results.stats[b] =
                stats_of(p, grid, run, e.nonzero[b], space, details.results, b);
        }
    }
}

}  // namespace

bool takes(const block_params& p) {
    if (!p.ocp) return takes_dialect(p);
    const format::element_params& f = p.element;
    return p.step.drawn_bits == 0 && is_rounding(p.mode.how) && !p.mode.round_fraction &&
           f.has_sign;
}

bool takes_cast(const element_cast& to) {
    const conversion& c = to.number;
    const format::element_params& f = c.element;
    return !to.power_of_two && c.by->id == dialect_id::ocp && f.has_sign &&
           is_rounding(c.mode.how) && c.mode.how != format::rounding::stochastic &&
           !c.mode.round_fraction;
}

grid_range range_of(const block_params& p) {
    const auto exponent = [](float v) {
        return static_cast<int>(base::bits_of(std::abs(v)) >> 23) - 127;
    };
    // Code 1 is the smallest number.
    return {exponent(p.value[1]), exponent(p.value[p.element.max_positive]) + 1};
}

element_grid grid_of(const block_params& p) {
    element_grid g = grid_of(p.element, p.mode, p.value);
    g.rule_step = scale::one_binade - p.step.from;
    g.rule_base = p.step.emax;
    g.rule_finite = static_cast<int>(p.step.nan_from - 1u);
    g.most = 4.0f * std::max(g.max_positive, g.max_negative);
    // microxcaling adds one half in float32, where its sum with the float below one half is 1.
    if (!p.ocp && p.by->arithmetic.value == element_kind::microxcaling) {
        g.threshold_positive = g.threshold_negative = 0x1.fffffcp-2f;
    }
    g.sign_of_zero = zero_sign::kept;
    if (p.scale_format->power_of_two()) g.sign_of_zero = p.by->sign_of_zero.value;
    if (!p.scale_format->power_of_two()) g.sign_of_zero = sign_of_zero(p.by->two_level.value);
    return g;
}

vector_cast cast_by(const kernels& k, const element_cast& to) {
    if (!takes_cast(to)) return {};
    const element_grid grid = grid_of(to.number.element, to.number.mode, to.number.value);
    return [&k, grid, saturate = to.number.saturate](const element_run& from,
                                                     const element_results& results) {
        return k.cast(grid, saturate, from.values, from.count, results.codes, results.values);
    };
}

block::segment_stats quantize(const kernels& k, const block_params& p, block_run& run,
                              block_details& details) {
    if (!takes(p)) return scalar::quantize(p, run, details);
    static thread_local workspace space;
    details.fit(run);
    const bool with_parts = details.asked.parts;
    const bool with_stats = details.results.stats != nullptr;
    space.fit(run, with_parts, with_stats);
    std::uint8_t* const codes = details.results.codes;
    element_grid grid = grid_of(p);
    grid.least = std::max(least_of(grid, range_of(p), run.precision), least_quotient(p));
    const bool by_dialect = is_dialect(p, grid);
    block_extremes extremes{run.amax.data(), run.amax.data(), run.amin.data(), run.nonzero.data()};
    if (p.has_offset) {
        const centred_blocks& c = space.centred;
        k.centre(run, p.range, space.centred);
        extremes = {c.ruled.data(), c.amax.data(), c.amin.data(), c.nonzero.data()};
    }
    if (!p.ocp) {
        find_scales(k, grid, p, run, space);
        leave_small_numbers(grid, run, space);
        if (!by_dialect) scale_as_ocp(run, space);
    } else {
        k.scale(grid, extremes, run.blocks, space.scales);
    }
    if (!details.asked.sums && details.asked.wanted == detail::scales) {
        write_scales(p, run, extremes, space, details);
        return {};
    }
    if (!details.asked.sums && codes != nullptr && !with_stats) {
        write_codes(k, p, grid, run, extremes, space, details);
        return {};
    }
    if (p.has_offset) leave_wide_blocks(p, run, space.scales);
    if (grid.rounding == rounding_kind::stochastic) k.draw(run, p.seed);
    const element_outputs to{space.q.data(), codes, with_parts ? space.parts.data() : nullptr,
                             with_stats ? space.counts.data() : nullptr};
    grid_counts counts;
    block_verdicts verdicts;
    if (by_dialect) {
        const quotient_kind kind = quotient_of(p);
        k.dialect_elements(grid, kind, run, space.of_dialect, space.scales, to, counts);
        k.judge_dialect(grid, kind, extremes, run.blocks, space.of_dialect, space.scales, verdicts,
                        space.doubtful.data());
    } else if (p.has_offset) {
        k.centred_elements(grid, run, space.centred, space.scales, to, counts);
    } else {
        k.elements(grid, run, space.scales, to, counts);
    }
    if (!by_dialect) {
        k.judge(grid, extremes, run.blocks, space.scales, verdicts, space.doubtful.data());
    }
    if (details.asked.wanted != detail::none) {
        keep_details(run, extremes, p.has_offset ? &space.centred : nullptr, space.scales,
                     details.results);
    }
    if (details.results.values != nullptr) {
        put_values(p, run, space.of_dialect, space.scales, details.results);
    }

    block::segment_stats out{};
    const product_plan plan = plan_of(p, grid, run, space);
    // Padding counts as zeros that stay zero.
    out.count.underflow = p.has_offset ? find_gone(plan, run, space, with_parts)
                                       : counts.zero - (counts.slots - verdicts.nonzero);
    add_sums(k, plan, grid, run, space, with_parts, with_stats, out);
    for (std::size_t b = 0; b < run.blocks && space.scales.slow_blocks != 0; ++b) {
        if (space.scales.slow.data()[b] == 0) continue;
        block::add_counts(out, scalar::quantize_one(p, run, b, details, &out.sum));
    }
    if (verdicts.doubtful != 0) {
        block_details none;
        for (std::size_t b = 0; b < run.blocks; ++b) {
            if (space.doubtful.data()[b] == 0) continue;
            const block::block_flags is = scalar::quantize_one(p, run, b, none, nullptr).is;
            out.block.collapsed += is.collapsed ? 1u : 0u;
            out.block.saturated += is.saturated ? 1u : 0u;
            out.block.dead += is.dead ? 1u : 0u;
        }
    }
    if (with_stats) put_stats(k, p, grid, plan, run, extremes, space, details);

    // With offsets the verdicts are about x - O.
    const std::uint32_t most = p.has_offset ? largest(run, space.scales) : verdicts.amax;
    out.counted_max = std::max(out.counted_max, most);
    out.count.elements = run.place.elements();
    out.count.nonzero += verdicts.nonzero;
    out.count.overflow += counts.overflow;
    out.count.clamp += counts.clamp;
    out.count.top_code += counts.top_code;
    if (grid.smallest_normal != 0) out.count.subnormal += counts.subnormal - counts.zero;
    out.block.blocks = run.blocks;
    out.block.zero += p.has_offset ? zero_blocks(run, space.scales) : verdicts.zero;
    out.block.eligible += verdicts.eligible;
    out.block.collapsed += verdicts.collapsed;
    out.block.saturated += verdicts.saturated;
    out.block.dead += verdicts.dead;
    return out;
}

#include "libmx/base/simd/kernel_tables.inc"

}  // namespace mx::codec::simd

// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/word_counts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>

#include "libmx/base/parallel.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/dialect_block.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/float_scale.hpp"

namespace mx::codec {
namespace {

constexpr std::size_t most_recorded = std::size_t{1} << 14;
// The limit of 32-bit counters, less the elements of a rectangle.
constexpr std::uint64_t most_elements = std::uint64_t{3} << 30;

// Everything besides its word that determines an element's code.
struct scale_facts {
    int code = 0;
    std::uint32_t value = 0, factor = 0;
    bool zeroed = false;    // blocks of subnormals become zeros in this dialect
    bool nan = false;       // the maximum becomes NaN
    bool referred = false;  // words do not determine results
    friend bool operator==(const scale_facts&, const scale_facts&) = default;
};

// The magnitude from which on codes follow magnitudes: fbgemm's shifts wrap around for quotients
// below 2^-10 or less (fbgemm_code).
float unordered_below(const block_params& p, float scale) {
    return p.by->arithmetic.value == element_kind::fbgemm ? 0x1p-9f * scale : 0.0f;
}

scale_facts facts_of_power(const block_params& p, std::uint32_t amax) {
    if (p.ocp) {
        return {.code = scale::scale_code(p.step, amax)};
    }
    const std::uint32_t held =
        dialect_steps::magnitude_of(dialect_steps::as_held(p, base::float_from_bits(amax)));
    const chosen_scale s = dialect_scale(p, held);
    // Wrapped shifts give up to 2: if the maximum gets no more, it may share its code with them.
    const bool wraps = p.by->arithmetic.value == element_kind::fbgemm;
    const bool small = wraps && base::float_from_bits(amax) < 2.5f * s.value;
    const bool raised_too_far = p.bumps && !base::is_finite(2.0f * s.value);
    const float largest = base::float_from_bits(amax);
    const bool nan = overflows_to_nan(p) && word_outcomes(p, largest).becomes_nan();
    return {s.code, base::bits_of(s.value),
            0,      dialect_steps::flushed(p, held),
            nan,    s.nan_quotients || small || raised_too_far};
}

scale_facts facts_of_number(const block_params& p, std::uint32_t amax) {
    const float_scale s = choose_scale(p, amax, p.largest);
    // ggml takes the nearest value by float32 distance; far beyond the largest value all distances
    // are equal.
    const bool far = p.by->two_level.value == two_level_kind::ggml && s.value > 0 &&
                     base::float_from_bits(amax) > 0x1p16f * s.value;
    return {s.code, base::bits_of(s.value), base::bits_of(s.factor), false, false, far};
}

scale_facts facts_of(const block_params& p, float largest) {
    const std::uint32_t amax = base::bits_of(largest);
    return p.scale_format->power_of_two() ? facts_of_power(p, amax) : facts_of_number(p, amax);
}

// S as in float_scale_encoder.
double exact_scale_of(const block_params& p, float scale) {
    if (p.scale_format->power_of_two()) return static_cast<double>(scale);
    const scale_product s = product_of(p, scale);
    const bool positive =
        s.block > 0 && s.tensor > 0 && base::is_finite(s.block) && base::is_finite(s.tensor);
    return positive ? static_cast<double>(s.block) * static_cast<double>(s.tensor) : 0;
}

bool has_even_signs(const block_params& p) {
    const format::element_params& f = p.element;
    return f.has_sign && f.max_positive == f.max_negative;
}

// Copies `count` runs of `wide` words to places that are `apart` words apart.
template <std::size_t Wide>
void spread_by(const std::uint16_t* from, std::size_t wide, std::size_t count, std::uint16_t* to,
               std::size_t apart) {
    const std::size_t each = Wide != 0 ? Wide : wide;  // a constant: without a call for each run
    for (std::size_t i = 0; i < count; ++i) std::copy_n(from + i * each, each, to + i * apart);
}

void spread(const std::uint16_t* from, std::size_t wide, std::size_t count, std::uint16_t* to,
            std::size_t apart) {
    switch (wide) {
        case 1:
            return spread_by<1>(from, wide, count, to, apart);
        case 2:
            return spread_by<2>(from, wide, count, to, apart);
        case 4:
            return spread_by<4>(from, wide, count, to, apart);
        case 8:
            return spread_by<8>(from, wide, count, to, apart);
        case 16:
            return spread_by<16>(from, wide, count, to, apart);
        default:
            return spread_by<0>(from, wide, count, to, apart);
    }
}

}  // namespace

bool counts_words(const block_params& p, tensor::dtype stored) {
    using format::rounding;
    if (stored != tensor::dtype::bf16 && stored != tensor::dtype::f16) return false;
    if (!p.has_blocks || p.has_offset || p.outer_areas || p.select != four_over_six::none)
        return false;
    if (p.searches || p.step.drawn_bits != 0) return false;
    const rounding how = p.mode.how;
    if (how != rounding::rtne && how != rounding::away && how != rounding::ties_to_zero &&
        how != rounding::zero) {
        return false;
    }
    const dialect& by = *p.by;
    if (by.id == dialect_id::ocp || !p.scale_format->power_of_two()) return true;
    // In bfloat16, larger elements can get smaller codes: under truncation by a log2 that is
    // rounded up, under rtne because 0.498 + 0.5 is rounded to 1, while the tie 0.5 becomes 0.
    return by.arithmetic.value != element_kind::bfloat16 ||
           (how != rounding::zero && how != rounding::rtne);
}

void count_words(const std::uint16_t* words, std::size_t size, std::size_t blocks,
                 word_tables& to) {
    for (std::size_t b = 0; b < blocks; ++b, words += size) {
        const word_range r = range_of(words, size);
        word_table& t = to.tables[to.table_of[r.largest]];
        if (r.least >= t.near) {
            to.attend(words, size);
            continue;
        }
        t.add_block(r.largest, r.least);
        for (std::size_t i = 0; i < size; ++i) ++t.count[word_counters::of(words[i], i)];
    }
}

word_range range_of(const std::uint16_t* words, std::size_t size) {
    std::uint32_t largest = 0, least = 0xffff;
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint32_t magnitude = words[i] & 0x7fffu;
        largest = std::max(largest, magnitude);
        least = std::min(least, (magnitude - 1u) & 0xffffu);  // zero never wins
    }
    return {static_cast<std::uint16_t>(largest), static_cast<std::uint16_t>(least + 1u)};
}

counter_buffer::~counter_buffer() { std::free(counters_); }

std::uint32_t* counter_buffer::table(std::size_t i) {
    if (counters_ == nullptr) {
        counters_ = static_cast<std::uint32_t*>(
            std::calloc(tables_ * word_counters::stride, sizeof(std::uint32_t)));
        if (counters_ == nullptr) throw std::bad_alloc();
    }
    return counters_ + i * word_counters::stride;
}

std::size_t hash_of_extremes::operator()(const word_extremes& e) const {
    return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(e) * 0x9e3779b97f4a7c15u >> 16);
}

word_counts::word_counts(tensor::dtype type, std::span<const recipe_request> recipes,
                         word_pass pass)
    : type_(type),
      recipes_(recipes.begin(), recipes.end()),
      pass_(pass),
      signs_matter_(!std::ranges::all_of(
          recipes, [](const recipe_request& r) { return has_even_signs(*r.params); })),
      raises_(
          std::ranges::any_of(recipes, [](const recipe_request& r) { return r.params->bumps; })),
      infinity_(type == tensor::dtype::bf16 ? 0x7f80 : 0x7c00),
      binade_bits_(type == tensor::dtype::bf16 ? 7 : 10),
      known_(std::size_t{infinity_} >> binade_bits_),
      begins_(infinity_),
      numbers_(0x8000),
      counters_(raises_ ? 2 * most : most),
      by_reference_(recipes.size()) {
    tables_.reserve(most + 1);
    tables_.push_back({});
    table_of = numbers_.data();
    tables = tables_.data();
}

bool word_counts::full() const {
    return tables_.size() > most || recorded_.size() > most_recorded || elements_ > most_elements;
}

void word_counts::clear() {
    for (word_table& t : std::span(tables_).subspan(1)) {
        for (std::uint32_t* count = t.count; count != nullptr;
             count = raises_ && count == t.count ? count + word_counters::stride : nullptr) {
            if (t.least <= t.largest) {
                std::fill(count + 2 * std::size_t{t.least}, count + 2 * std::size_t{t.largest} + 2,
                          0u);
            }
            std::fill(count + word_counters::zeros, count + word_counters::all, 0u);
        }
        t.least = 0xffff;
        t.largest = 0;
        t.blocks = t.single = 0;
    }
    // Other values may need others.
    if (tables_.size() > most / 2) {
        tables_.erase(tables_.begin() + 1, tables_.end());
        std::ranges::fill(numbers_, std::uint16_t{0});
    }
    zero_blocks_ = zero_elements_ = elements_ = 0;
    recorded_.clear();
    std::ranges::fill(by_reference_, block::segment_stats{});
}

void word_counts::add(const value_rectangle& values, std::span<const placed_segment> segments,
                      const std::atomic<bool>* cancel) {
    for (const placed_segment& s : segments) {
        base::stop_if(cancel);
        const stored_values from = values.values.from(s.row * values.values.stride + s.col);
        const auto* const words = reinterpret_cast<const std::uint16_t*>(from.data);
        if (s.place.block_rows == 1) {
            add_rows(words, from.stride, s.place);
        } else {
            add_tiles(words, from.stride, s.place);
        }
        elements_ += s.place.elements();
    }
}

void word_counts::add_rows(const std::uint16_t* at, std::uint64_t stride,
                           const segment_place& place) {
    const auto size = static_cast<std::size_t>(place.block_cols);
    const auto cols = static_cast<std::size_t>(place.cols);
    const auto rows = static_cast<std::size_t>(place.rows);
    if (raises_) {
        for (std::size_t row = 0; row < rows; ++row, at += stride) add_raised_row(at, cols, size);
        return;
    }
    if (cols % size == 0 && place.cols == stride) return add_row(at, rows * cols, size);
    for (std::size_t row = 0; row < rows; ++row, at += stride) add_row(at, cols, size);
}

// The last block may be smaller.
void word_counts::add_row(const std::uint16_t* at, std::size_t words, std::size_t size) {
    const std::size_t whole = words / size, rest = words % size;
    if (whole != 0) add_blocks(at, size, whole);
    if (rest != 0) add_blocks(at + whole * size, rest, 1);
}

void word_counts::add_blocks(const std::uint16_t* words, std::size_t size, std::size_t blocks) {
    pass_(words, size, blocks, *this);
}

void word_counts::add_raised_row(const std::uint16_t* at, std::size_t words, std::size_t size) {
    largest_at_.assign(size, 0);
    for (std::size_t first = 0; first < words; first += size) {
        const std::size_t count = std::min(size, words - first);
        for (std::size_t i = 0; i < count; ++i) {
            const auto magnitude = static_cast<std::int16_t>(at[first + i] & 0x7fff);
            largest_at_[i] = std::max(largest_at_[i], magnitude);
        }
    }
    bump_.resize(size);
    raised_by_.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
        const float largest = value_of(static_cast<std::uint16_t>(largest_at_[i]));
        bump_[i] = raises_exponent(base::bits_of(largest)) ? 1 : 0;
        raised_by_[i] = bump_[i] * word_counters::stride;
    }
    for (std::size_t first = 0; first < words; first += size) {
        const std::uint16_t* const block = at + first;
        const std::size_t count = std::min(size, words - first);
        const word_range r = range_of(block, count);
        word_table& t = tables_[numbers_[r.largest]];
        if (r.least >= t.near) {
            attend(block, count);
            continue;
        }
        t.add_block(r.largest, r.least);
        count_block(block, count, t.count);
    }
}

void word_counts::count_block(const std::uint16_t* words, std::size_t size,
                              std::uint32_t* to) const {
    for (std::size_t i = 0; i < size; ++i) {
        ++to[word_counters::of(words[i], i) + (raises_ ? raised_by_[i] : 0u)];
    }
}

// Blocks of several rows are laid out consecutively.
void word_counts::add_tiles(const std::uint16_t* at, std::uint64_t stride,
                            const segment_place& place) {
    const auto wide = static_cast<std::size_t>(place.block_cols);
    const auto whole = static_cast<std::size_t>(place.cols / place.block_cols);
    const auto rest = static_cast<std::size_t>(place.cols % place.block_cols);
    tiles_.resize(static_cast<std::size_t>(place.block_rows * place.cols));
    for (std::uint64_t row = 0; row < place.rows; row += place.block_rows) {
        const auto tall = static_cast<std::size_t>(std::min(place.block_rows, place.rows - row));
        const std::size_t size = tall * wide;
        for (std::size_t r = 0; r < tall; ++r) {
            const std::uint16_t* const from = at + (row + r) * stride;
            spread(from, wide, whole, tiles_.data() + r * wide, size);
            std::copy_n(from + whole * wide, rest, tiles_.data() + whole * size + r * rest);
        }
        if (whole != 0) add_blocks(tiles_.data(), size, whole);
        if (rest != 0) add_blocks(tiles_.data() + whole * size, tall * rest, 1);
    }
}

// Of the magnitudes below a limit; one number alone has no smallest magnitude.
word_extremes word_counts::extremes_of(const std::uint16_t* words, std::size_t size,
                                       std::uint16_t below) const {
    word_extremes e;
    std::size_t nonzero = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const auto magnitude = static_cast<std::uint16_t>(words[i] & 0x7fffu);
        if (magnitude == 0 || magnitude >= below) continue;
        ++nonzero;
        const std::size_t sign = signs_matter_ ? words[i] >> 15 : 0;
        e.largest[sign] = std::max(e.largest[sign], magnitude);
        e.least[sign] = e.least[sign] == 0 ? magnitude : std::min(e.least[sign], magnitude);
    }
    if (nonzero == 1) e.least[0] = e.least[1] = 0;
    return e;
}

block::block_stats word_counts::judge(const block_params& p, const word_extremes& of,
                                      std::uint16_t larger) const {
    std::array<float, 5> x{};
    std::size_t count = 0;
    const auto add = [&](std::uint16_t magnitude, float sign) {
        if (magnitude != 0) x[count++] = sign * value_of(magnitude);
    };
    for (const std::size_t i : {0u, 1u}) {
        const float sign = i == 0 ? 1.0f : -1.0f;
        add(of.largest[i], sign);
        add(of.least[i], sign);
    }
    add(larger, 1.0f);
    std::array<std::uint8_t, 5> codes{};
    return quantize_block(p, std::span(x).first(count), {.cols = static_cast<int>(count)},
                          std::span(codes).first(count));
}

// The blocks of a table with elements that become NaN, without their counts of elements.
void word_counts::judge_each(const std::uint16_t* words, std::size_t size, std::uint16_t largest,
                             std::uint16_t nan_from) {
    const word_extremes of_all = extremes_of(words, size, infinity_);
    const word_extremes of_rest = extremes_of(words, size, nan_from);
    for (std::size_t r = 0; r < recipes_.size(); ++r) {
        const block_params& p = *recipes_[r].params;
        const block::block_stats s =
            overflows_to_nan(p) ? judge(p, of_rest, largest) : judge(p, of_all);
        block::segment_stats& to = by_reference_[r];
        ++to.block.blocks;
        block::each_flag(block::plus{}, to.block, s.is);
        to.counted_max = std::max(to.counted_max, s.counted_max);
    }
}

void word_counts::attend(const std::uint16_t* words, std::size_t size) {
    const auto [largest, least] = range_of(words, size);
    if (largest == 0) {
        ++zero_blocks_;
        zero_elements_ += size;
        return;
    }
    const std::uint16_t number = largest < infinity_ ? find_table(largest) : std::uint16_t{0};
    if (number == 0) return refer(words, size);
    word_table& t = tables_[number];
    // Extremes do not tell which of them are raised.
    const word_extremes e = extremes_of(words, size, infinity_);
    const bool alone = e.least[0] == 0 && e.least[1] == 0;
    if (raises_ && !alone && least >= t.near) return refer(words, size);
    count_block(words, size, t.count);
    t.largest = std::max(t.largest, largest);
    t.least = std::min(t.least, least);
    if (t.nan_from != 0) {
        judge_each(words, size, largest, t.nan_from);
    } else if (alone) {
        ++t.single;
    } else if (least >= t.near) {
        ++recorded_[e];
    } else {
        ++t.blocks;
    }
}

void word_counts::refer(const std::uint16_t* words, std::size_t size) {
    std::vector<float> x(size);
    for (std::size_t i = 0; i < size; ++i) x[i] = value_of(words[i]);
    std::vector<std::uint8_t> codes(size);
    for (std::size_t r = 0; r < recipes_.size(); ++r) {
        const recipe_request& asked = recipes_[r];
        block::segment_stats& to = by_reference_[r];
        const block_place place{.cols = static_cast<int>(size),
                                .bump = asked.params->bumps ? bump_.data() : nullptr};
        block::add_counts(to,
                          quantize_block(*asked.params, x, place, codes, {}, &to.sum, asked.parts));
    }
}

// The index of the table for blocks with this largest magnitude; 0: left to the reference.
std::uint16_t word_counts::find_table(std::uint16_t largest) {
    if (numbers_[largest] != 0) return numbers_[largest];
    if (tables_.size() > most) return 0;
    if (!known_[std::size_t{largest} >> binade_bits_]) find_classes(largest);
    std::uint16_t first = largest, last = largest;
    while (!begins_[first]) --first;
    while (last + 1 < infinity_ && !begins_[last + 1u]) ++last;
    std::uint16_t nan = 0;
    for (const recipe_request& r : recipes_) {
        const scale_facts facts = facts_of(*r.params, value_of(first));
        if (facts.referred) return 0;
        if (!facts.nan) continue;
        const std::uint16_t from = nan_from(*r.params, first);
        if (nan != 0 && nan != from) return 0;
        nan = from;
    }
    const auto number = static_cast<std::uint16_t>(tables_.size());
    tables_.push_back({.count = counters_.table(std::size_t{number - 1u} * (raises_ ? 2 : 1)),
                       .near = nan != 0 ? std::uint16_t{0} : near_of(first, last),
                       .least = 0xffff,
                       .largest = 0,
                       .first = first,
                       .last = last,
                       .blocks = 0,
                       .single = 0,
                       .nan_from = nan});
    std::fill(numbers_.begin() + first, numbers_.begin() + last + 1, number);
    return number;
}

// Marks the first largest magnitude of each class in a binade. Scales are monotone in maxima, so if
// two maxima have the same scale, all between them have it.
void word_counts::find_classes(std::uint16_t largest) {
    const std::uint32_t binade = static_cast<std::uint32_t>(largest) >> binade_bits_;
    const std::uint32_t from = std::max(1u, binade << binade_bits_);
    const std::uint32_t to = ((binade + 1) << binade_bits_) - 1u;
    known_[binade] = true;
    begins_[from] = true;
    if (to + 1 < infinity_) begins_[to + 1] = true;
    for (const recipe_request& r : recipes_) {
        const auto facts_at = [&](std::uint32_t magnitude) {
            return facts_of(*r.params, value_of(static_cast<std::uint16_t>(magnitude)));
        };
        const scale_facts at_end = facts_at(to);
        std::uint32_t at = from;
        scale_facts here = facts_at(at);
        while (here != at_end) {
            std::uint32_t low = at, high = to;  // low has these facts, high does not
            scale_facts above = at_end;
            while (high - low > 1) {
                const std::uint32_t middle = low + (high - low) / 2;
                const scale_facts facts = facts_at(middle);
                if (facts == here) {
                    low = middle;
                } else {
                    high = middle;
                    above = facts;
                }
            }
            begins_[high] = true;
            at = high;
            here = above;
        }
    }
}

// The smallest magnitude that can have the same code as a largest magnitude of the class.
std::uint16_t word_counts::near_of(std::uint16_t first, std::uint16_t last) const {
    std::uint16_t near = first;
    for (const recipe_request& r : recipes_) {
        const word_outcomes outcomes(*r.params, value_of(first));
        if (outcomes.poisoned()) continue;
        const auto size = [&](std::uint32_t magnitude, bool negative) {
            const float x = value_of(static_cast<std::uint16_t>(magnitude));
            return std::abs(outcomes.of(negative ? -x : x).q);
        };
        // A largest magnitude may be raised, and then has a smaller code.
        const float x = value_of(first);
        const double least = std::abs(word_outcomes(*r.params, x, raises_).of(x).q);
        if (least == 0) {
            // Some blocks of the class become zeros, others do not.
            if (size(last, false) != 0 || size(last, true) != 0) return 0;
            continue;
        }
        std::uint32_t low = 0, high = near;  // high is sufficient
        while (high - low > 1) {
            const std::uint32_t middle = low + (high - low) / 2;
            if (std::max(size(middle, false), size(middle, true)) >= least) {
                high = middle;
            } else {
                low = middle;
            }
        }
        near = static_cast<std::uint16_t>(high);
    }
    return near;
}

// The smallest magnitude that becomes NaN in blocks with this largest one, which does.
std::uint16_t word_counts::nan_from(const block_params& p, std::uint16_t first) const {
    const word_outcomes outcomes(p, value_of(first));
    std::uint32_t low = 0, high = first;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        const float x = value_of(static_cast<std::uint16_t>(middle));
        (outcomes.of(x).count.poisoned != 0 ? high : low) = middle;
    }
    return static_cast<std::uint16_t>(high);
}

bool operator==(const word_outcome& a, const word_outcome& b) {
    bool equal = a.q == b.q && a.product == b.product &&
                 a.count.dequant_overflow == b.count.dequant_overflow;
    block::each_count([&](std::uint32_t m, std::uint32_t n) { equal = equal && m == n; }, a.count,
                      b.count);
    return equal;
}

word_outcomes::word_outcomes(const block_params& p, float largest, bool raised)
    : p_(p), largest_(largest), raised_(raised && p.bumps) {
    std::uint8_t code = 0;
    alone_ = quantize_block(p, std::span(&largest, 1), {}, std::span(&code, 1));
}

float word_outcomes::unordered_below() const { return codec::unordered_below(p_, alone_.scale); }

word_outcome word_outcomes::of(float x) const {
    const std::array<float, 2> both{largest_, x};
    std::array<std::uint8_t, 2> codes{};
    const std::array<std::uint8_t, 2> bump{0, 1};
    const block_place place{.cols = 2, .bump = raised_ ? bump.data() : nullptr};
    const block::block_stats s = quantize_block(p_, both, place, codes);
    word_outcome out{s.count, 0, 0};
    block::each_count([](std::uint32_t& to, std::uint32_t n) { to -= n; }, out.count, alone_.count);
    out.count.dequant_overflow -= alone_.count.dequant_overflow;
    if (out.count.poisoned != 0) return out;
    out.q = static_cast<double>(p_.value[codes[1]]);
    out.product = exact_scale_of(p_, s.scale) * (raised_ ? 2.0 : 1.0) * out.q;
    return out;
}

}  // namespace mx::codec

// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/counted_totals.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "libmx/codec/block_kernel.hpp"

namespace mx::engine {
namespace {

namespace word_counters = codec::word_counters;
using codec::recipe_request;
using codec::word_counts;
using codec::word_extremes;
using codec::word_outcome;
using codec::word_outcomes;
using codec::word_table;

// The numbers of a table, of one or both signs, in order of increasing magnitude, with the
// cumulative sums before each.
class word_list {
  public:
    /// `sign`: the sign of the numbers; if the list has both signs, results differ in sign only.
    explicit word_list(double sign) : sign_(sign) {}

    void add(float magnitude, std::uint64_t plus, std::uint64_t minus) {
        const base::decomposed d = base::decompose(base::bits_of(magnitude));
        if (magnitudes_.empty() || d.exponent != binades_.back().exponent) {
            binades_.push_back({d.exponent, magnitudes_.size(), 0});
        }
        magnitudes_.push_back(magnitude);
        const before& last = before_.back();
        const std::uint64_t n = plus + minus, m = d.significand >> unused_bits;
        before_.push_back({last.count + n, last.balance + plus - minus, last.x + n * m,
                           last.balanced_x + (plus - minus) * m, last.x2 + n * m * m});
        binades_.back().end = magnitudes_.size();
    }

    std::size_t size() const { return magnitudes_.size(); }
    double sign() const { return sign_; }
    /// The number with its sign.
    float number(std::size_t i) const { return static_cast<float>(sign_) * magnitudes_[i]; }
    std::uint64_t count(std::size_t first, std::size_t end) const {
        return before_[end].count - before_[first].count;
    }
    /// The count of positive numbers minus that of negative ones.
    std::int64_t balance(std::size_t first, std::size_t end) const {
        return static_cast<std::int64_t>(before_[end].balance - before_[first].balance);
    }

    /// Calls f(unit, x, balanced x, x^2) for each binade of [first, end): sums of magnitudes and of
    /// numbers in units of a power of two, sums of squares in units of its square.
    template <typename F>
    void each_binade(std::size_t first, std::size_t end, F&& f) const {
        auto b = std::ranges::upper_bound(binades_, first, {}, &binade::end);
        for (; first < end; ++b) {
            const std::size_t stop = std::min(end, b->end);
            const before &from = before_[first], &to = before_[stop];
            f(base::exact_pow2(b->exponent + unused_bits), to.x - from.x,
              static_cast<std::int64_t>(to.balanced_x - from.balanced_x), to.x2 - from.x2);
            first = stop;
        }
    }

  private:
    // Significands of 16-bit numbers have at most 11 bits. Sums of 2^41 numbers fit.
    static constexpr int unused_bits = 13;
    struct before {
        std::uint64_t count = 0, balance = 0, x = 0, balanced_x = 0, x2 = 0;
    };
    struct binade {
        int exponent;
        std::size_t begin, end;
    };
    double sign_;
    std::vector<float> magnitudes_;
    std::vector<before> before_ = std::vector<before>(1);
    std::vector<binade> binades_;
};

void add_signed(base::exact_sum& to, double value, std::int64_t times) {
    if (times < 0) {
        to.add(-value, static_cast<std::uint64_t>(-times));
    } else {
        to.add(value, static_cast<std::uint64_t>(times));
    }
}

// to += times * value^2.
void add_square(base::exact_sum& to, double value, std::uint64_t times) {
    const double square = value * value;
    to.add(square, times);
    const double rest = std::fma(value, value, -square);
    if (rest != 0) to.add(rest, times);
}

void add_counts(block::element_counts& to, const block::block_counts& of_each, std::uint64_t n) {
    block::each_count([&](std::uint64_t& sum, std::uint32_t c) { sum += c * n; }, to, of_each);
    to.dequant_overflow += of_each.dequant_overflow * n;
}

// Adds the elements [first, end) of a list, which have the same outcome.
void add_run(const word_list& list, std::size_t first, std::size_t end, const word_outcome& each,
             bool parts, block::segment_stats& to) {
    const std::uint64_t n = list.count(first, end);
    add_counts(to.count, each.count, n);
    // The error is largest at one end.
    for (const std::size_t i : {first, end - 1}) {
        const double error = std::abs(each.product - static_cast<double>(list.number(i)));
        to.max_error = std::max(to.max_error, error);
    }
    const block::error_part part = each.part();
    const double product = list.sign() * each.product;  // for a positive number
    if (product != 0) {
        add_signed(to.sum.d, product, list.balance(first, end));
        add_square(to.sum.d2, product, n);
        list.each_binade(first, end,
                         [&](double unit, std::uint64_t x, std::int64_t, std::uint64_t) {
                             to.sum.xd.add(product * unit, x);
                         });
    }
    if (!parts || part == block::error_part::grid) return;
    base::exact_sum& sum = part == block::error_part::clamp ? to.sum.clamp : to.sum.underflow;
    add_square(sum, product, n);
    list.each_binade(first, end, [&](double unit, std::uint64_t x, std::int64_t, std::uint64_t x2) {
        sum.add(unit * unit, x2);
        sum.add(-2 * product * unit, x);
    });
}

// Finds runs of elements with the same outcome, which is monotone in the magnitude.
class run_finder {
  public:
    /// Among the first `size` elements.
    run_finder(const word_list& list, std::size_t size, const word_outcomes& outcomes, bool parts,
               block::segment_stats& to)
        : list_(list), size_(size), outcomes_(outcomes), parts_(parts), to_(to) {}

    void run() {
        const float unordered = outcomes_.unordered_below();
        for (; first_ < size_ && std::abs(list_.number(first_)) < unordered; ++first_) {
            add_run(list_, first_, first_ + 1, at(first_), parts_, to_);
        }
        if (first_ == size_) return;
        run_ = at(first_);
        split(first_, run_, size_ - 1, at(size_ - 1));
        add_run(list_, first_, size_, run_, parts_, to_);
    }

  private:
    word_outcome at(std::size_t i) const { return outcomes_.of(list_.number(i)); }

    void split(std::size_t low, const word_outcome& at_low, std::size_t high,
               const word_outcome& at_high) {
        if (at_low == at_high) return;
        if (high - low == 1) {
            add_run(list_, first_, high, run_, parts_, to_);
            first_ = high;
            run_ = at_high;
            return;
        }
        const std::size_t middle = low + (high - low) / 2;
        const word_outcome at_middle = at(middle);
        split(low, at_low, middle, at_middle);
        split(middle, at_middle, high, at_high);
    }

    const word_list& list_;
    std::size_t size_;
    const word_outcomes& outcomes_;
    bool parts_;
    block::segment_stats& to_;
    std::size_t first_ = 0;
    word_outcome run_;
};

// How many elements of a list remain numbers; the others, the largest ones, become NaN.
std::size_t numbers_in(const word_list& list, const word_outcomes& outcomes) {
    std::size_t low = 0, high = list.size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (outcomes.of(list.number(middle)).count.poisoned == 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// The sums of the first `size` elements of a list.
void add_numbers(const word_list& list, std::size_t size, block::exact_totals& to) {
    list.each_binade(
        0, size, [&](double unit, std::uint64_t, std::int64_t balanced_x, std::uint64_t squares) {
            add_signed(to.x, unit, balanced_x);
            to.x2.add(unit * unit, squares);
        });
}

// The same table of all threads.
struct joint_table {
    std::vector<const word_table*> of;
    std::uint64_t blocks = 0, single = 0, zeros = 0, elements = 0;
    std::uint16_t least = 0xffff, largest = 0;

    void add(const word_table& t, bool raises) {
        of.push_back(&t);
        blocks += t.blocks;
        single += t.single;
        least = std::min(least, t.least);
        largest = std::max(largest, t.largest);
        for (std::uint32_t i = 0; i < word_counters::zero_count; ++i) {
            zeros += t.count[word_counters::zeros + i];
            if (raises) zeros += t.count[word_counters::stride + word_counters::zeros + i];
        }
    }
    std::uint64_t count(std::uint32_t counter) const {
        std::uint64_t n = 0;
        for (const word_table* t : of) n += t->count[counter];
        return n;
    }
};

class evaluation {
  public:
    explicit evaluation(std::span<const word_counts* const> parts)
        : parts_(parts),
          recipes_(parts.front()->recipes()),
          even_signs_(!parts.front()->signs_matter()),
          raises_(parts.front()->raises()),
          out_(recipes_.size()) {}

    std::vector<block::segment_stats> run() {
        std::map<std::uint16_t, joint_table> tables;  // by the smallest maximum of the class
        std::map<word_extremes, std::uint64_t> recorded;
        std::uint64_t zero_blocks = 0, zero_elements = 0;
        for (const word_counts* const p : parts_) {
            for (const word_table& t : p->counted()) {
                if (t.largest != 0) tables[t.first].add(t, raises_);
            }
            for (const auto& [e, n] : p->recorded()) recorded[e] += n;
            zero_blocks += p->zero_blocks();
            zero_elements += p->zero_elements();
            for (std::size_t r = 0; r < out_.size(); ++r) {
                merge(out_[r], p->by_reference()[r]);
            }
        }
        for (const auto& [first, t] : tables) add_table(first, t);
        for (const auto& [e, n] : recorded) add_recorded(e, n);
        if (zero_blocks != 0) add_zero_blocks(zero_blocks, zero_elements);
        return std::move(out_);
    }

  private:
    float value_of(std::uint32_t word) const {
        return parts_.front()->value_of(static_cast<std::uint16_t>(word));
    }

    static void merge(block::segment_stats& to, const block::segment_stats& from) {
        to.count += from.count;
        to.block += from.block;
        to.sum.merge(from.sum);
        to.max_error = std::max(to.max_error, from.max_error);
        to.counted_max = std::max(to.counted_max, from.counted_max);
    }

    // Of the positions whose exponent is raised, or of the others.
    std::vector<word_list> lists_of(const joint_table& t, bool raised) const {
        const std::uint32_t from = raised ? word_counters::stride : 0;
        std::vector<word_list> lists;
        lists.emplace_back(1.0);
        if (!even_signs_) lists.emplace_back(-1.0);
        for (std::uint32_t w = t.least; w <= t.largest; ++w) {
            const std::uint64_t plus = t.count(from + 2 * w), minus = t.count(from + 2 * w + 1);
            if (plus + minus == 0) continue;
            if (even_signs_) {
                lists[0].add(value_of(w), plus, minus);
            } else {
                if (plus != 0) lists[0].add(value_of(w), plus, 0);
                if (minus != 0) lists[1].add(value_of(w), 0, minus);
            }
        }
        return lists;
    }

    void add_elements(std::uint16_t first, const joint_table& t, bool raised) {
        const std::vector<word_list> lists = lists_of(t, raised);
        block::exact_totals all{};
        std::uint64_t elements = 0;
        for (const word_list& list : lists) {
            elements += list.count(0, list.size());
            add_numbers(list, list.size(), all);
        }
        for (std::size_t r = 0; r < recipes_.size(); ++r) {
            block::segment_stats& to = out_[r];
            const word_outcomes outcomes(*recipes_[r].params, value_of(first), raised);
            if (outcomes.poisoned()) {
                to.count.elements += elements;
                to.count.poisoned += elements;
                continue;
            }
            const bool some_nan = outcomes.becomes_nan();
            if (!some_nan) {
                to.sum.x.merge(all.x);
                to.sum.x2.merge(all.x2);
            }
            for (const word_list& list : lists) {
                const std::size_t size = some_nan ? numbers_in(list, outcomes) : list.size();
                if (some_nan) add_numbers(list, size, to.sum);
                run_finder(list, size, outcomes, recipes_[r].parts, to).run();
                const std::uint64_t nan = list.count(size, list.size());
                to.count.elements += nan;
                to.count.poisoned += nan;
            }
        }
    }

    void add_table(std::uint16_t first, const joint_table& t) {
        add_elements(first, t, false);
        if (raises_) add_elements(first, t, true);
        for (std::size_t r = 0; r < recipes_.size(); ++r) {
            block::segment_stats& to = out_[r];
            to.block.blocks += t.blocks + t.single;
            const word_outcomes outcomes(*recipes_[r].params, value_of(first));
            if (outcomes.poisoned()) {
                to.count.elements += t.zeros;
                to.count.poisoned += t.zeros;
                continue;
            }
            if (!outcomes.becomes_nan()) {
                to.counted_max = std::max(to.counted_max, base::bits_of(value_of(t.largest)));
            }
            add_zeros(outcomes, t.zeros, to);
            to.block.eligible += t.blocks;
            // Blocks that become zeros under some of the maxima are recorded.
            if (outcomes.of(value_of(first)).q == 0) to.block.dead += t.blocks;
        }
    }

    void add_recorded(const word_extremes& e, std::uint64_t n) {
        for (std::size_t r = 0; r < recipes_.size(); ++r) {
            const block::block_stats s = parts_.front()->judge(*recipes_[r].params, e);
            out_[r].block.blocks += n;
            block::each_flag([&](std::uint64_t& to, bool is) { to += is ? n : 0; }, out_[r].block,
                             s.is);
        }
    }

    // In some dialects, zeros times an infinite factor are not zeros.
    static void add_zeros(const word_outcomes& outcomes, std::uint64_t n,
                          block::segment_stats& to) {
        const word_outcome each = outcomes.of(0);
        add_counts(to.count, each.count, n);
        if (n == 0 || each.product == 0) return;
        to.sum.d.add(each.product, n);
        add_square(to.sum.d2, each.product, n);
        to.max_error = std::max(to.max_error, std::abs(each.product));
    }

    void add_zero_blocks(std::uint64_t blocks, std::uint64_t elements) {
        for (std::size_t r = 0; r < recipes_.size(); ++r) {
            out_[r].block.blocks += blocks;
            out_[r].block.zero += blocks;
            const word_outcomes outcomes(*recipes_[r].params, 0);
            add_zeros(outcomes, elements, out_[r]);
        }
    }

    std::span<const word_counts* const> parts_;
    std::span<const recipe_request> recipes_;
    bool even_signs_, raises_;
    std::vector<block::segment_stats> out_;
};

}  // namespace

std::vector<block::segment_stats> counted_totals(std::span<const word_counts* const> parts) {
    return evaluation(parts).run();
}

}  // namespace mx::engine

// SPDX-License-Identifier: Apache-2.0
// How often the words of 16-bit values occur in blocks, by what the largest magnitude of the block
// makes of the scale: one pass over the values, from which every recipe with such blocks is
// evaluated (engine/counted_totals.hpp). Why that is enough: docs/design/counting.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "libmx/base/half.hpp"
#include "libmx/block/segment_stats.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec {

/// Whether the results for blocks of such values under a recipe can be computed from counts: the
/// largest magnitude determines the scale, and an element's word its result, monotonically in
/// magnitude. Not for prepared values (rotations, factors), which are float32.
bool counts_words(const block_params& p, tensor::dtype stored);

/// A counter is 2 * magnitude + sign of a word. Zeros, which may be many, are spread over counters
/// that belong to no number, and what fills a vector up is counted there, too.
namespace word_counters {

inline constexpr std::uint32_t all = 1u << 16;
inline constexpr std::uint32_t zeros = 0xff80, zero_count = 64;
inline constexpr std::uint32_t padding = zeros + zero_count;  ///< as many
/// From one table to the next, so that the counters of large numbers lie in different cache sets.
/// If exponents are raised by position (block_params::bumps), the raised positions of a table have
/// their counters this far from the others.
inline constexpr std::uint32_t stride = all + 197 * 16;

/// Of a word that is no NaN; `position`: any.
constexpr std::uint32_t of(std::uint16_t word, std::size_t position) {
    const std::uint32_t magnitude = word & 0x7fffu;
    if (magnitude == 0) return zeros + static_cast<std::uint32_t>(position) % zero_count;
    return magnitude << 1 | word >> 15;
}

}  // namespace word_counters

/// Counts of blocks whose largest magnitudes have the same scale under every recipe. Magnitudes are
/// words without their sign.
struct word_table {
    std::uint32_t* count;  ///< by counter
    /// Blocks from this smallest magnitude (not zero) on are attended to; 0: all. At most `first`.
    std::uint16_t near;
    std::uint16_t least, largest;  ///< of the magnitudes that were counted, without zeros
    std::uint16_t first, last;     ///< the largest magnitudes of a block that the table is for
    std::uint64_t blocks;          ///< with two magnitudes at least, that were not attended to
    std::uint64_t single;          ///< with one element that is not zero
    /// Not 0: magnitudes from here on become NaN under some recipe, all `first` to `last` included;
    /// all blocks are attended to, and none is in `blocks`.
    std::uint16_t nan_from;

    /// Counts a block with these extremes that is not attended to.
    void add_block(std::uint16_t block_largest, std::uint16_t block_least) {
        ++blocks;
        largest = std::max(largest, block_largest);
        least = std::min(least, block_least);
    }
};

/// The output of a pass.
class word_tables {
  public:
    /// Normal data need some twenty tables, or under float32 scales one for each of some two
    /// hundred maxima; with more, counting is no faster than quantizing.
    static constexpr std::size_t most = 256;

    virtual ~word_tables() = default;

    /// Counts a block that the pass leaves out: one with table number 0, or near its maximum.
    virtual void attend(const std::uint16_t* words, std::size_t size) = 0;

    const std::uint16_t* table_of = nullptr;  ///< number of the table by largest magnitude
    word_table* tables = nullptr;             ///< number 0 has near = 0
};

/// Counts `blocks` consecutive blocks of `size` words.
using word_pass = void (*)(const std::uint16_t* words, std::size_t size, std::size_t blocks,
                           word_tables& to);

/// The portable implementation.
void count_words(const std::uint16_t* words, std::size_t size, std::size_t blocks, word_tables& to);

/// The largest magnitude of words, and the smallest one that is not zero; both 0: none is.
struct word_range {
    std::uint16_t largest, least;
};
word_range range_of(const std::uint16_t* words, std::size_t size);

/// Memory for tables of counters, all of them zero; it costs nothing until something is counted.
class counter_buffer {
  public:
    explicit counter_buffer(std::size_t tables) : tables_(tables) {}
    ~counter_buffer();
    counter_buffer(const counter_buffer&) = delete;
    counter_buffer& operator=(const counter_buffer&) = delete;
    std::uint32_t* table(std::size_t i);

  private:
    std::size_t tables_;
    std::uint32_t* counters_ = nullptr;
};

/// The extremes of a block, by sign: magnitudes of words, 0 where there is none. Where signs make
/// no difference, all are counted as positive.
struct word_extremes {
    std::uint16_t largest[2] = {}, least[2] = {};  ///< of positive and of negative numbers
    friend auto operator<=>(const word_extremes&, const word_extremes&) = default;
};
struct hash_of_extremes {
    std::size_t operator()(const word_extremes& e) const;
};

/// The counts of one thread under recipes with the same block shape.
class word_counts final : private word_tables {
  public:
    /// counts_words must be true for all recipes, and their params must outlive the object.
    word_counts(tensor::dtype type, std::span<const recipe_request> recipes, word_pass pass);
    word_counts(const word_counts&) = delete;
    word_counts& operator=(const word_counts&) = delete;

    /// Counts the segments, values of the type. Throws base::error (cancelled) when `cancel`, which
    /// may be null, is raised.
    void add(const value_rectangle& values, std::span<const placed_segment> segments,
             const std::atomic<bool>* cancel);

    /// Whether further values should be quantized instead: there are too many tables, or too many
    /// elements were counted. Adding more is allowed, but slow.
    bool full() const;

    /// Resets the counts for other values under the same recipes; keeps the
    /// facts of scales.
    void clear();

    tensor::dtype type() const { return type_; }
    /// Whether positive and negative numbers may become codes of other magnitudes.
    bool signs_matter() const { return signs_matter_; }
    /// Whether a recipe raises exponents by position.
    bool raises() const { return raises_; }
    std::span<const recipe_request> recipes() const { return recipes_; }
    /// Tables that have counts, in no order.
    std::span<const word_table> counted() const { return std::span(tables_).subspan(1); }
    /// Blocks of zeros, and their elements.
    std::uint64_t zero_blocks() const { return zero_blocks_; }
    std::uint64_t zero_elements() const { return zero_elements_; }
    /// Blocks that were attended to, all with two elements at least that are not zero, and are not
    /// among those of the tables: their elements are.
    const std::unordered_map<word_extremes, std::uint64_t, hash_of_extremes>& recorded() const {
        return recorded_;
    }
    /// The results of the reference, by recipe.
    std::span<const block::segment_stats> by_reference() const { return by_reference_; }

    float value_of(std::uint16_t word) const {
        return type_ == tensor::dtype::bf16 ? base::float_from_bf16(word)
                                            : base::float_from_half(word);
    }
    /// The figures of a block with these numbers, except sums.
    block::block_stats judge(const block_params& p, const word_extremes& of,
                             std::uint16_t larger = 0) const;

  private:
    friend class joint_counts;

    void attend(const std::uint16_t* words, std::size_t size) override;
    void judge_each(const std::uint16_t* words, std::size_t size, std::uint16_t largest,
                    std::uint16_t nan_from);
    word_extremes extremes_of(const std::uint16_t* words, std::size_t size,
                              std::uint16_t below) const;
    void refer(const std::uint16_t* words, std::size_t size);
    std::uint16_t find_table(std::uint16_t largest);
    std::uint16_t near_of(std::uint16_t first, std::uint16_t last) const;
    std::uint16_t nan_from(const block_params& p, std::uint16_t first) const;
    void find_classes(std::uint16_t largest);
    void add_row(const std::uint16_t* at, std::size_t words, std::size_t size);
    void add_blocks(const std::uint16_t* words, std::size_t size, std::size_t blocks);
    void add_rows(const std::uint16_t* at, std::uint64_t stride, const segment_place& place);
    void add_raised_row(const std::uint16_t* at, std::size_t words, std::size_t size);
    void count_block(const std::uint16_t* words, std::size_t size, std::uint32_t* to) const;
    void add_tiles(const std::uint16_t* at, std::uint64_t stride, const segment_place& place);

    tensor::dtype type_;
    std::vector<recipe_request> recipes_;
    word_pass pass_;
    bool signs_matter_, raises_;
    std::uint16_t infinity_;      // magnitude of Inf
    int binade_bits_;             // words of a binade
    std::vector<bool> known_;     // by binade: classes are found
    std::vector<bool> begins_;    // by magnitude: begins a class
    std::vector<bool> referred_;  // by magnitude: the reference does such blocks
    std::vector<std::uint16_t> numbers_;
    std::vector<word_table> tables_;
    counter_buffer counters_;
    std::uint64_t zero_blocks_ = 0, zero_elements_ = 0, elements_ = 0;
    std::unordered_map<word_extremes, std::uint64_t, hash_of_extremes> recorded_;
    std::vector<block::segment_stats> by_reference_;
    std::vector<std::uint16_t> tiles_;
    // Of the row being counted, by position: the largest magnitude, whether the exponent is raised,
    // and what that adds to the index of a counter.
    std::vector<std::int16_t> largest_at_;
    std::vector<std::uint8_t> bump_;
    std::vector<std::uint32_t> raised_by_;
};

/// The reference's result for an element.
struct word_outcome {
    block::block_counts count{};  ///< of this element
    double q = 0;                 ///< the value of its code
    double product = 0;           ///< its dequantized value, S * q
    friend bool operator==(const word_outcome& a, const word_outcome& b);
    block::error_part part() const {
        if (count.clamp != 0) return block::error_part::clamp;
        return count.underflow != 0 ? block::error_part::underflow : block::error_part::grid;
    }
};

/// The results for elements in blocks with a certain largest magnitude.
class word_outcomes {
  public:
    /// `raised`: at positions whose exponent the recipe raises, if it raises any.
    word_outcomes(const block_params& p, float largest, bool raised = false);
    /// Whether such blocks have no scale.
    bool poisoned() const { return alone_.count.poisoned != 0 && !base::is_finite(alone_.scale); }
    /// Whether this magnitude itself becomes NaN under their scale.
    bool becomes_nan() const { return alone_.count.poisoned != 0 && !poisoned(); }
    /// Of x, no larger.
    word_outcome of(float x) const;
    /// Outcomes follow magnitudes in one direction from this one on.
    float unordered_below() const;

  private:
    const block_params& p_;
    float largest_;
    bool raised_;
    block::block_stats alone_;
};

}  // namespace mx::codec

// SPDX-License-Identifier: Apache-2.0
// Counts of a comparison of dumps, and their records. Counts are exact, and sums are added by
// segment, so that results do not depend on how a tensor was divided among threads. In records,
// undefined figures are null: a share of nothing, a relative error of zeros, a missing clamp zone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "libmx/base/archive.hpp"
#include "libmx/base/exact_sum.hpp"
#include "libmx/report/declared.hpp"

namespace mx::diff {

/// Values of a dump a compared with those of the next one, b.
struct value_figures {
    std::uint64_t elements = 0;
    std::uint64_t compared = 0;    ///< finite in both: what the sums are over
    std::uint64_t changed = 0;     ///< another value; two NaNs are the same, and so are -0 and 0
    std::uint64_t zero_signs = 0;  ///< -0 in one, 0 in the other
    double max_difference = 0;
    base::exact_sum a2, b2, ab, difference2, difference;  ///< differences are b - a

    void merge(const value_figures& other);
    void serialize(base::archive& with);  ///< what merge() adds
};

/// The RMS of the differences divided by that of a; nullopt if a is zero.
std::optional<double> nrmse_of(const value_figures& v);

/// The number of further falls, each as large as the last, within which a block's arrival is
/// predicted.
inline constexpr double falls_ahead = 3;

/// Codes of a dump compared with those of the next one, under one recipe.
struct move_figures {
    std::uint64_t blocks = 0;
    std::uint64_t scales_moved = 0;  ///< blocks with another scale (or offset)
    std::uint64_t elements = 0;
    std::uint64_t codes_moved = 0;  ///< to another value of q: the codes of -0 and 0 are the same
    std::uint64_t elements_at_equal_scale = 0;
    std::uint64_t moved_at_equal_scale = 0;
    std::uint64_t followed = 0;      ///< elements for which there is a dump after these two
    std::uint64_t flipped_back = 0;  ///< of these: moved, and in that dump what they were
    /// If dump_figures has maxima: the blocks with a maximum in both dumps, and those whose maximum
    /// fell and reaches the clamp zone of the binade below after at most falls_ahead more falls of
    /// the same size.
    std::uint64_t maxima = 0;
    std::uint64_t falling_blocks = 0;
    /// Over these blocks, the maximum of octaves fallen / (octaves fallen + octaves left), 0
    /// without blocks. A block with this pace arrives after (1 - pace) / pace more such falls.
    double fastest_fall = 0;

    void merge(const move_figures& other);
    void serialize(base::archive& with);
};

/// The number of falls as large as the last one after which the first block arrives; nullopt
/// without such a block.
std::optional<double> falls_left(const move_figures& m);

/// One dump under one recipe.
struct dump_figures {
    std::uint64_t counted = 0;  ///< finite elements of blocks that have a scale
    std::uint64_t overflow = 0, clamp = 0;
    std::uint64_t eligible_blocks = 0, saturated_blocks = 0;
    /// If the recipe has a clamp zone and it was requested: blocks with a maximum, those whose
    /// maximum is in the zone, and the sum of log2(mantissa / lower edge).
    std::uint64_t maxima = 0;
    std::uint64_t in_clamp_zone = 0;
    base::exact_sum distance;
    base::exact_sum level;  ///< of log2(maximum)
    /// The same from above, with log2(upper edge / mantissa): a maximum below the zone falls toward
    /// the zone one binade down. Negative above that edge, positive in the zone.
    base::exact_sum falling;

    void merge(const dump_figures& other);
    void serialize(base::archive& with);
};

/// A tensor under one recipe, through all dumps.
struct code_figures {
    std::vector<move_figures> moves;  ///< one fewer than dumps
    std::vector<dump_figures> dumps;

    explicit code_figures(std::size_t count = 0)
        : moves(count == 0 ? 0 : count - 1), dumps(count) {}
    void merge(const code_figures& other);
    void serialize(base::archive& with);
};

/// A tensor (or several together) under one recipe.
struct compared_tensor {
    std::vector<value_figures> values;  ///< one fewer than dumps
    code_figures codes;

    compared_tensor() = default;
    explicit compared_tensor(std::size_t dumps)
        : values(dumps == 0 ? 0 : dumps - 1), codes(dumps) {}
    void merge(const compared_tensor& other);
};

/// Adds the figures of dump `pair` compared with the next: of values, of scales and codes, and of
/// each dump alone (members ending in _a and _b).
void add_pair(report::record& r, const compared_tensor& t, std::size_t pair);

/// Adds one list per figure with a value per dump. Comparisons with the previous dump are null for
/// the first dump; `oscillation` is null at both ends.
void add_series(report::record& r, const compared_tensor& t);

// What they add.
void declare_pair(report::member_list& to);
void declare_series(report::member_list& to);

}  // namespace mx::diff

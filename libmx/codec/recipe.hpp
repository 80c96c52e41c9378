// SPDX-License-Identifier: Apache-2.0
// A recipe: everything that determines a quantized block. Every figure is printed with its recipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/dialects.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::codec {

enum class offset_kind : std::uint8_t { none, fp16 };
/// The input of the scale rule if there is an offset O.
enum class range_kind : std::uint8_t {
    max,   ///< max over the block of |x - O| in float32: nothing escapes when O was rounded
    half,  ///< float32 (max - min) * 0.5
};
enum class int_min : std::uint8_t { full, symmetric };

/// The default of `int_min`: the dialect's, or full for int8 (OCP MX 1.0) and symmetric for other
/// integers. Has no meaning for floating-point formats, which get symmetric.
int_min default_int_min(const format::element_format& f, const dialect& by);

struct recipe;

/// Whether the scales of `r` are bytes (E8M0 or UE4M3 codes); otherwise they are float32.
bool scales_have_codes(const recipe& r);

/// Whether the scale of `r` is raised per position (systems-scaling's exponent bump as in its
/// code), which requires whole rows of blocks.
bool bumps_positions(const recipe& r);

/// The default width of the random numbers of the dialect's stochastic rounding.
int default_random_bits(const dialect& by, const format::element_format& f);

/// Four-over-six: the block scale is tried so that the largest element becomes 6 and so that it
/// becomes 4; 4 wins when its error is strictly smaller (mit-han-lab/fouroversix@dadfad6).
enum class four_over_six : std::uint8_t {
    none,
    mse,      ///< sum of squared errors
    mae,      ///< sum of absolute errors
    abs_max,  ///< largest absolute error
};

/// The largest block scale that the outer scale of four-over-six leaves room for.
enum class scale_bound : std::uint8_t {
    power_of_two,  ///< 256 (UE5M3: 65536): 1.5 times the scale still fits
    largest,       ///< 448 (UE5M3: 114688): it may not
};

/// How dialect te computes the error of a candidate of four-over-six.
enum class candidate_kind : std::uint8_t {
    exact,  ///< of the dequantized float32
    fp16,   ///< of the FP16 product of element and block scale, before the outer scale
};

/// The part of a tensor that shares the outer scale of scale=two-level.
struct outer_choice {
    enum class kind : std::uint8_t {
        by_rule,  ///< the tensor under scale=two-level, nothing else
        tensor,   ///< the tensor; normalized to by_rule
        none,     ///< no outer scale; normalized to scale=single-level
        row,      ///< every row, along which the blocks lie
        column,   ///< every column, along which the blocks lie
        tile,     ///< every rows x cols elements of a matrix, whole blocks
        given,    ///< the tensor, under a scale that is known beforehand
    };
    kind what = kind::by_rule;
    int rows = 0, cols = 0;  ///< of a tile
    float value = 1;         ///< given by a number: as files of the dialect hold it
    std::string file;        ///< given by a file; empty where it is a number
    friend bool operator==(const outer_choice&, const outer_choice&) = default;
};

/// The objective of scale=search: the sum over a block of squared or of absolute errors.
enum class search_measure : std::uint8_t { mse, mae };

/// The number of codes that scale=search tries on either side of its starting code.
inline constexpr int all_codes = 256;

/// Block extents; `cols` along the axis that products sum over, `rows` across it, unless `axis`
/// says otherwise.
struct block_shape {
    int rows = 1;
    int cols = 32;
    friend bool operator==(const block_shape&, const block_shape&) = default;
};

/// Which axes the block lies along.
struct axis_choice {
    enum class kind : std::uint8_t {
        last,   ///< 1xN runs along the axis that products sum over: the last, unless the file or
                ///< the user states another
        index,  ///< a 1-D block runs along axis `value`; negative counts from the end
        flat,   ///< the tensor is one row of all its elements
    };
    kind what = kind::last;
    int value = 0;
    friend bool operator==(const axis_choice&, const axis_choice&) = default;
};

/// What shares a scale.
enum class scale_scope : std::uint8_t {
    block,
    tensor,  ///< a float32, amax / largest value (tensor_scale.hpp), by which elements are divided
    none,    ///< elements are rounded as they are
};

/// Largest number of elements in a block.
inline constexpr int max_block_elements = 1 << 20;

/// Members without effect (a seed without randomness, ...) hold their defaults, so that equal
/// behaviour compares equal; see `normalize`.
struct recipe {
    std::string_view preset = "mxfp8";  ///< name of the block-format row
    const format::element_format* element = format::find_element_format("e4m3");
    const format::scale_format* scale_format = format::find_scale_format("e8m0");
    const scale::scale_rule* rule = scale::find_scale_rule("floor");
    format::rounding round = format::rounding::rtne;
    format::tie_rule ties = format::tie_rule::up;
    int random_bits = 32;
    std::uint64_t seed = 0;
    block_shape block{};
    axis_choice axis{};
    offset_kind offset = offset_kind::none;
    range_kind range = range_kind::max;
    int_min minimum = int_min::symmetric;
    scale::int_emax emax = scale::int_emax::zero;
    four_over_six select = four_over_six::none;
    scale_bound bound = scale_bound::power_of_two;
    candidate_kind candidates = candidate_kind::exact;
    outer_choice outer;
    search_measure measure = search_measure::mse;  ///< of scale=search
    int reach = all_codes;                         ///< of scale=search
    transform::rotation rotate;
    bool flush_subnormals = false;  ///< blocks of float32 subnormals become zero (microxcaling)
    const dialect* by = &row_of(dialect_id::ocp);
    /// Under another than `block` there are no blocks: `block` says only in which order elements
    /// are read, and `element` may be a wide format.
    scale_scope scope = scale_scope::block;

    friend bool operator==(const recipe&, const recipe&) = default;
};

inline bool has_blocks(const recipe& r) { return r.scope == scale_scope::block; }

/// Whether `r` is FORMAT:scale=channel: its blocks are rows.
bool is_channel_scaled(const recipe& r);

/// Bits of the scale and the offset of a block; 0 without blocks.
int bits_per_block(const recipe& r);

/// Bits of an element and its share of those of a whole block.
double bits_per_element(const recipe& r);

/// Parses one of (design: "Recipe strings")
/// - `PRESET[:key=value,...]`: blocks;
/// - `FORMAT:scale=channel[,...]`: an element format with a float32 scale, amax / max, for each row
///   of at most max_block_elements;
/// - `FORMAT:scale=tensor[,...]`: without blocks, under one such scale;
/// - `FORMAT[:key=value,...]`: an element or a wide format without a scale.
/// Throws base::error (usage) with the wrong part and the nearest valid spelling.
recipe parse_recipe(std::string_view text);

/// Throws base::error (usage), with what to take instead, for a recipe without blocks.
void require_blocks(const recipe& r);

/// parse_recipe and require_blocks.
recipe parse_block_recipe(std::string_view text);

/// Refuses (base::error, usage) a recipe that names files other than below this folder. For recipes
/// that a file holds: it may come from others (base::stays_inside).
void require_files_inside(const recipe& r);

/// Parses several recipes without duplicates: two spellings of one recipe are one. Throws as
/// parse_recipe does.
std::vector<recipe> parse_recipes(const std::vector<std::string>& texts);

/// The same with parse_block_recipe.
std::vector<recipe> parse_block_recipes(const std::vector<std::string>& texts);

/// The canonical spelling: keys in one order, defaults of the preset and keys without effect left
/// out, except the key `stated`. parse_recipe(to_string(r)) == r.
std::string to_string(const recipe& r, std::string_view stated = {});

}  // namespace mx::codec

// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantized/pairings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "libmx/block/scale_swizzle.hpp"
#include "libmx/quantized/candidate.hpp"
#include "libmx/quantized/checkpoint_format.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

constexpr std::uint64_t fp4_block_bytes = 16;

bool holds_codes(code_array kind, const tensor_info& t) {
    static constexpr std::pair<code_array, dtype> known[] = {
        {code_array::fp4_blocks, dtype::u8},   {code_array::fp4, dtype::u8},
        {code_array::fp4, dtype::i8},          {code_array::fp4, dtype::f4},
        {code_array::fp4, dtype::u32},         {code_array::fp6, dtype::f6_e2m3},
        {code_array::fp6, dtype::f6_e3m2},     {code_array::fp8, dtype::f8_e4m3},
        {code_array::fp8, dtype::f8_e5m2},     {code_array::fp8, dtype::f8_e4m3fnuz},
        {code_array::fp8, dtype::f8_e5m2fnuz}, {code_array::fp8, dtype::u32},
        {code_array::int8, dtype::i8},         {code_array::int_words, dtype::i32},
        {code_array::gptq_words, dtype::i32},  {code_array::awq_words, dtype::i32},
        {code_array::table4, dtype::u8},       {code_array::table4, dtype::bf16},
        {code_array::table4, dtype::f16},      {code_array::table4, dtype::f32}};
    if (kind == code_array::ggml_nvfp4) return t.layout == "NVFP4";
    // Arrays that a reader decodes are already values.
    return t.layout.empty() && std::ranges::find(known, std::pair(kind, t.type)) != std::end(known);
}

bool holds_scales(const quantized_layout& l, dtype t, dtype codes) {
    if (l.codes == code_array::table4) return t == dtype::f32 || t == dtype::u8;
    const bool bytes = t == dtype::u8;
    // MLX has one scale byte for 16 or 32 codes; words with other scales are its integers.
    const bool runs = l.block_rows == 1 && l.block_cols <= 32;
    if (codes == dtype::u32 && !(bytes && runs)) return false;
    if (l.scales == scale_array::e8m0) return bytes || t == dtype::f8_e8m0;
    if (l.scales == scale_array::e4m3) return t == dtype::f8_e4m3 || (bytes && codes == dtype::u32);
    return t == dtype::f32 || t == dtype::bf16 || t == dtype::f16;
}

// Integers next to scales are codes, of an unknown layout at least.
bool may_hold_codes(const quantized_naming& naming, const tensor_info& t) {
    if (naming.family.empty() && t.layout.empty() && is_integer(t.type)) return true;
    return std::ranges::any_of(quantized_layouts, [&](const quantized_layout& l) {
        return l.family == naming.family && holds_codes(l.codes, t);
    });
}

bool has_dtypes(const quantized_layout& l, const candidate& of) {
    const tensor_info& codes = of.code_info();
    // Signed bytes under numbers are integers.
    if (codes.type == dtype::i8 && l.codes == code_array::fp4 && l.scales == scale_array::real) {
        return false;
    }
    return l.family == of.naming.family && holds_codes(l.codes, codes) &&
           holds_scales(l, of.scale_info().type, codes.type);
}

const format::element_format* element_of(code_array kind, dtype t) {
    const bool fp4 = kind == code_array::fp4 || kind == code_array::fp4_blocks;
    const bool fp8_words = kind == code_array::fp8 && t == dtype::u32;
    const std::string_view stored = fp4 ? "F4" : fp8_words ? "F8_E4M3" : tensor::row_of(t).name;
    for (const format::element_format& f : format::element_formats) {
        if (f.safetensors == stored) return &f;
    }
    return nullptr;
}

// Codes in an element of the array.
std::uint64_t codes_in(code_array kind, dtype t) {
    const std::uint64_t bytes = t == dtype::u32 ? 4 : 1;
    if (kind == code_array::fp4) return t == dtype::f4 ? 1 : 2 * bytes;
    return kind == code_array::fp8 ? bytes : 1;
}

// The shape of the tensor with these codes, packed along the last axis or `down` the columns, or
// none with `reason`.
std::optional<tensor::shape> logical_shape(const quantized_layout& l, const tensor_info& codes,
                                           bool down, std::string& reason) {
    tensor::shape shape = codes.shape;
    if (l.codes == code_array::fp4_blocks) {
        if (shape.size() < 2 || shape.back() != fp4_block_bytes) {
            reason = fmt::format("{} in blocks keeps {} bytes per block in the last axis", l.title,
                                 fp4_block_bytes);
            return std::nullopt;
        }
        shape.pop_back();
        shape.back() *= 2 * fp4_block_bytes;
    } else if (const std::uint64_t held = codes_in(l.codes, codes.type); held != 1) {
        if (shape.empty()) {
            reason = fmt::format("{} has an axis of codes", l.title);
            return std::nullopt;
        }
        (down ? shape[shape.size() - 2] : shape.back()) *= held;
    }
    if (!fits_memory(shape)) {
        reason = codes.elements == 0 ? "it has no elements" : "it is too large";
        return std::nullopt;
    }
    return shape;
}

std::uint64_t blocks_along(std::uint64_t extent, std::uint64_t block) {
    if (block == whole_axis) return 1;
    return extent / block + (extent % block != 0 ? 1 : 0);
}

bool is_run(std::uint64_t cols) { return cols > 1 && cols <= 32; }

// Whether blocks of a row may run down the columns instead; words hold neighbours of a row.
bool may_run_down(const quantized_layout& l, const tensor_info& codes) {
    return l.block_rows == 1 && is_run(l.block_cols) && l.codes != code_array::fp4_blocks &&
           codes.type != dtype::u32 && codes.shape.size() > 1;
}

bool one_for_each_matrix(const tensor::shape& shape, const tensor_info& scales) {
    if (scales.elements == 1) return true;
    if (shape.size() < 3) return false;
    tensor::shape expected = shape;
    expected[shape.size() - 2] = expected.back() = 1;
    return shapes_agree(expected, scales.shape);
}

// Rows and columns of a block.
struct block_extents {
    std::uint64_t rows = 1, cols = 1;
    std::string_view because{};  // words on a side that the layout does not state
};

block::grid grid_of(const tensor::shape& shape, const block_extents& b) {
    block::view v = matrices(shape);
    if (b.rows == 1) v = {1, v.batch * v.rows, v.cols};
    return {v, b.rows, b.cols};
}

// The shape of the scales of such blocks.
tensor::shape scale_shape(const tensor::shape& shape, const block_extents& b) {
    tensor::shape s = shape;
    if (!s.empty()) s.back() = blocks_along(s.back(), b.cols);
    if (s.size() > 1) s[s.size() - 2] = blocks_along(s[s.size() - 2], b.rows);
    return s;
}

// The tile that the configuration states, or the only square of a power of two that fits.
std::optional<block_extents> tile_extents(const tensor::shape& shape, const tensor_info& scales,
                                          const checkpoint_config& config) {
    const auto fits = [&](std::uint64_t rows, std::uint64_t cols) {
        return shape.size() > 1 && scales.elements > 1 &&
               shapes_agree(scale_shape(shape, {rows, cols}), scales.shape);
    };
    for (const auto& [rows, cols] : config.tiles) {
        if (fits(rows, cols)) return block_extents{rows, cols, ", as the configuration states"};
    }
    if (!config.tiles.empty()) return std::nullopt;
    constexpr std::uint64_t least = 8, most = 4096;
    for (std::uint64_t side = least; side <= most; side *= 2) {
        if (fits(side, side)) {
            return block_extents{side, side, ", the only power of two that gives this grid"};
        }
    }
    return std::nullopt;
}

// Parts of equal length, as many as a row has scales.
std::optional<block_extents> equal_extents(const tensor::shape& shape, const tensor_info& scales) {
    const block::view v = matrices(shape);
    const std::uint64_t count = scales.elements / std::max<std::uint64_t>(1, v.batch * v.rows);
    if (shape.empty() || count < 2 || v.cols % count != 0 || v.cols == count) return std::nullopt;
    const block_extents b{1, v.cols / count};
    if (!shapes_agree(scale_shape(shape, b), scales.shape)) return std::nullopt;
    return b;
}

bool can_be_swizzled(const quantized_layout& l) {
    return l.scales != scale_array::real && l.block_rows == 1 && l.codes != code_array::fp4_blocks;
}

std::uint64_t swizzled_size(const tensor::shape& shape, const tensor::shape& scales) {
    const block::view v = matrices(shape);
    // No overflow: there are more codes than scales, and both are in the file.
    return v.batch * block::swizzled_bytes(v.rows, scales.back());
}

std::string per_scale(const pairing& p) {
    const quantized_layout& l = *p.layout;
    if (l.block_cols == whole_matrix) {
        const std::string_view more = l.codes == code_array::ggml_nvfp4 ? " more" : "";
        const bool single = p.grid.blocks() == 1;
        return fmt::format(
            "one scale{} {}", more,
            single ? more.empty() ? "for all codes" : "for all values" : "per matrix");
    }
    if (l.block_cols == equal_parts) {
        const std::string bits = fmt::format("{} bits per code, ", p.code_bits);
        if (p.groups) return bits + "a scale for the columns of each group";
        return bits + fmt::format("{} codes per scale", p.grid.block_cols);
    }
    if (l.block_rows == whole_axis) {
        return p.grid.block_cols == 1 ? "a scale per column" : "a scale per row";
    }
    if (l.block_cols == whole_axis) return "a scale per row";
    if (p.down) return fmt::format("{} codes down a column per scale", p.grid.block_rows);
    if (p.grid.block_rows != 1) {
        return fmt::format("{}x{} codes per scale", p.grid.block_rows, p.grid.block_cols);
    }
    return fmt::format("{} codes per scale{}", l.block_cols,
                       l.scales == scale_array::e8m0 ? " byte" : "");
}

// The axis that the blocks of a layout run along, which is that of the sum of a product: quantizers
// choose it so. None for tiles and scales of the whole.
contraction contraction_of(const pairing& p) {
    const int axes = static_cast<int>(p.shape.size());
    const quantized_layout& l = *p.layout;
    if (axes == 0 || l.block_cols == whole_matrix || l.codes == code_array::table4) return {};
    if (p.down || l.block_rows == whole_axis) {
        if (axes < 2) return {};
        return {axes - 2, axes - 1,
                p.down ? fmt::format("{} codes in a column share a scale", p.grid.block_rows)
                       : "each column has a scale"};
    }
    if (l.block_rows != 1) return {};
    return {axes - 1, axes,
            l.block_cols == whole_axis ? std::string("each row has a scale")
            : p.groups                 ? std::string("the columns of a group share a scale")
                       : fmt::format("{} codes in a row share a scale", p.grid.block_cols)};
}

class search {
  public:
    search(std::span<const tensor_ref> arrays, bool swizzled, const std::vector<bool>& skip)
        : index_(arrays, skip), swizzled_(swizzled), taken_(skip) {
        taken_.resize(arrays.size());
    }

    pairings run() {
        for (std::size_t i = 0; i < index_.size(); ++i) {
            if (!taken_[i]) look_at(i);
        }
        for (const unread_packing& u : unread_packings) {
            for (std::size_t i = 0; i < index_.size(); ++i) leave_out(u, i);
        }
        std::vector<bool> known = taken_;
        const auto mark = [&known](const refused_pairing& r) {
            known[r.codes] = true;
            if (r.scales) known[*r.scales] = true;
            for (const std::size_t other : r.others) known[other] = true;
        };
        for (const refused_pairing& r : result_.refused) mark(r);
        result_.missing = find_missing(index_, result_.found, known);
        // Codes without their scale are no numbers. FP8 may be.
        for (const missing_partner& m : result_.missing) {
            if (known[m.codes] || !is_integer(info(m.codes).type)) continue;
            result_.refused.push_back(
                {m.codes, std::nullopt,
                 fmt::format("{} has no {}, {}", described(info(m.codes)), m.array, m.why)});
            mark(result_.refused.back());
        }
        for (refused_pairing& r : codes_and_scales_by_name(index_, known)) {
            result_.refused.push_back(std::move(r));
        }
        note_harmless_lacks();
        return std::move(result_);
    }

  private:
    const tensor_info& info(std::size_t i) const { return index_.info(i); }

    // No value depends on it, so it is a remark.
    void note_harmless_lacks() {
        std::map<std::size_t, const missing_partner*> lacks;
        for (const missing_partner& m : result_.missing) {
            if (m.harmless) lacks[m.codes] = &m;
        }
        for (pairing& p : result_.found) {
            const auto at = lacks.find(p.codes);
            if (at == lacks.end()) continue;
            p.why += fmt::format("; there is no {}, {}", at->second->array, at->second->why);
        }
        std::erase_if(result_.missing, [](const missing_partner& m) { return m.harmless; });
    }

    void look_at(std::size_t codes) {
        const std::string& name = info(codes).name;
        refused_pairing refusal{codes, std::nullopt, {}};
        for (const quantized_naming& naming : quantized_namings) {
            if (!name.ends_with(naming.codes) || name.size() == naming.codes.size()) continue;
            if (!may_hold_codes(naming, info(codes))) continue;
            const std::string stem = name.substr(0, name.size() - naming.codes.size());
            std::string reason;
            const auto scales = index_.beside(codes, stem + std::string(naming.scales), reason);
            if (scales && *scales != codes) {
                const candidate c{index_, naming, stem, stem + std::string(naming.tensor),
                                  codes,  *scales};
                if (confirm(c, reason)) return;
                const auto known = [&](const quantized_layout& l) { return has_dtypes(l, c); };
                if (std::ranges::none_of(quantized_layouts, known) && is_unread(codes)) return;
            }
            if (reason.empty() || !refusal.why.empty()) continue;
            refusal = {codes, scales, reason};
            refusal.others = companions(codes, naming, stem);
        }
        if (refusal.why.empty()) {
            if (is_unread(codes)) return;
            refusal.why = why_packed(info(codes));
        }
        if (refusal.why.empty()) return;
        refused_.insert(codes);
        result_.refused.push_back(std::move(refusal));
    }

    // Of integers whose name alone says that they are packed: as in one shard of a model, with the
    // scales in another.
    static std::string why_packed(const tensor_info& t) {
        if (!is_integer(t.type) || t.shape.size() < 2) return {};
        for (const quantized_naming& n : quantized_namings) {
            if (n.codes == n.tensor || !t.name.ends_with(n.codes)) continue;
            const std::string stem = t.name.substr(0, t.name.size() - n.codes.size());
            return fmt::format("{} has the name of packed codes, but no file has {}{}",
                               described(t), stem, n.scales);
        }
        return {};
    }

    // Arrays that mean nothing without the codes.
    std::vector<std::size_t> companions(std::size_t codes, const quantized_naming& naming,
                                        const std::string& stem) const {
        std::vector<std::size_t> all;
        std::vector<std::string_view> endings{
            naming.zeros,        naming.groups,          packed_shape_ending,
            table_ending,        table_state_endings[0], table_state_endings[1],
            outer_scales_ending, outer_table_ending,     row_order_ending};
        for (const tensor_scale_name& t : tensor_scale_names) endings.push_back(t.ending);
        endings.insert(endings.end(), input_channel_endings.begin(), input_channel_endings.end());
        endings.insert(endings.end(), input_scale_endings.begin(), input_scale_endings.end());
        std::string ignored;
        for (const std::string& of : owners_of(stem + std::string(naming.tensor), stem)) {
            for (const std::string_view ending : endings) {
                const auto other = index_.beside(codes, of + std::string(ending), ignored);
                if (other && !taken_[*other] && std::ranges::find(all, *other) == all.end()) {
                    all.push_back(*other);
                }
            }
        }
        return all;
    }

    bool is_unread(std::size_t codes) {
        return std::ranges::any_of(unread_packings,
                                   [&](const unread_packing& u) { return leave_out(u, codes); });
    }

    // Integers whose names show how they are packed, though mx does not decode it.
    bool leave_out(const unread_packing& u, std::size_t codes) {
        const std::string& name = info(codes).name;
        if (taken_[codes] || refused_.contains(codes) || !is_integer(info(codes).type) ||
            !name.ends_with(u.codes)) {
            return false;
        }
        const std::string stem = name.substr(0, name.size() - u.codes.size());
        std::string ignored;
        const auto mark = index_.beside(codes, stem + std::string(u.mark), ignored);
        if (!mark || taken_[*mark]) return false;
        refused_pairing r{codes, std::nullopt,
                          fmt::format("{} next to {}: {}, which mx does not decode",
                                      described(info(codes)), described(info(*mark)), u.name)};
        const auto free = [&](std::string_view ending) {
            const auto at = index_.beside(codes, stem + std::string(ending), ignored);
            return at && !taken_[*at] ? at : std::nullopt;
        };
        if (!u.scales.empty()) r.scales = free(u.scales);
        if (r.scales != mark) r.others.push_back(*mark);
        for (std::string_view rest = u.others; !rest.empty();) {
            const std::string_view ending = rest.substr(0, rest.find(' '));
            rest.remove_prefix(std::min(rest.size(), ending.size() + 1));
            if (const auto other = free(ending)) r.others.push_back(*other);
        }
        refused_.insert(codes);
        result_.refused.push_back(std::move(r));
        return true;
    }

    bool confirm(const candidate& of, std::string& reason) {
        const tensor_info& c = of.code_info();
        const tensor_info& s = of.scale_info();
        std::string misfits;
        const auto add_misfit = [&misfits](const std::string& text) {
            misfits += (misfits.empty() ? "" : "; ") + text;
        };
        if (taken_[of.scales]) add_misfit(fmt::format("{} belongs to another tensor", s.name));
        for (const quantized_layout& l : quantized_layouts) {
            if (taken_[of.scales]) break;
            if (!has_dtypes(l, of)) continue;
            std::string misfit;
            if (std::optional<pairing> p = confirm(of, l, misfit)) {
                return accept(std::move(*p), of, reason);
            }
            add_misfit(misfit);
        }
        if (misfits.empty()) misfits = "no layout has these dtypes";
        reason = fmt::format("{} and {} are not decoded as one tensor: {}", described(c),
                             described(s), misfits);
        return false;
    }

    std::optional<pairing> confirm(const candidate& of, const quantized_layout& l,
                                   std::string& misfit) {
        if (l.family == "keras") return confirm_keras(of, l, misfit);
        switch (l.codes) {
            case code_array::int_words:
            case code_array::gptq_words:
            case code_array::awq_words:
                return confirm_words(of, l, misfit);
            case code_array::table4:
                return confirm_table(of, l, misfit);
            case code_array::ggml_nvfp4:
                return confirm_ggml(of, l, misfit);
            default:
                return confirm_blocks(of, l, misfit);
        }
    }

    // Scales in the shape of the grid of blocks, which run along the rows or down the columns.
    std::optional<pairing> confirm_blocks(const candidate& of, const quantized_layout& l,
                                          std::string& misfit) {
        std::optional<pairing> p = confirm_blocks(of, l, false, misfit);
        std::string ignored;
        if (!p && may_run_down(l, of.code_info())) p = confirm_blocks(of, l, true, ignored);
        return p;
    }

    std::optional<pairing> confirm_blocks(const candidate& of, const quantized_layout& l, bool down,
                                          std::string& misfit) {
        const tensor_info& c = of.code_info();
        const tensor_info& s = of.scale_info();
        const auto shape = logical_shape(l, c, down, misfit);
        if (!shape) return std::nullopt;
        const bool matrix =
            (l.block_rows != 1 && l.block_cols != whole_matrix) || l.block_cols == whole_axis;
        if (shape->size() < (matrix ? 2u : l.block_cols == whole_matrix ? 0u : 1u)) {
            misfit = fmt::format("{} requires two axes", l.title);
            return std::nullopt;
        }
        const auto b = extents_of(of, l, *shape, down, misfit);
        if (!b) return std::nullopt;
        const tensor::shape want = scale_shape(*shape, *b);
        const bool may_swizzle = !down && can_be_swizzled(l);
        const bool swizzle = swizzled_ && may_swizzle;
        const std::uint64_t padded = may_swizzle ? swizzled_size(*shape, want) : 0;
        // Only scales of whole rows may lack the last axis.
        const bool all_axes = l.block_cols == whole_axis || s.shape.size() >= want.size();
        const bool agree =
            l.block_cols == whole_matrix ||
            (l.codes == code_array::fp4_blocks ? s.shape == want
                                               : all_axes && shapes_agree(want, s.shape));
        if (!(swizzle ? s.elements == padded : agree)) {
            misfit = swizzle
                         ? fmt::format("{} in the 128x4 order requires {} scales", l.title, padded)
                         : fmt::format("{} calls for scales {}", l.title, tensor::to_string(want));
            if (!swizzle && s.elements == padded && padded != 0) {
                misfit += "; they may be in the 128x4 order (--swizzled)";
            }
            return std::nullopt;
        }
        // Of a square matrix they may be of its columns, as ONNX has them: its graph says which.
        if (l.block_cols == whole_axis && s.shape.size() < want.size() && shape->size() == 2 &&
            (*shape)[0] == (*shape)[1] && c.sums_over.known() && c.sums_over.first == 0) {
            misfit =
                fmt::format("{} has a scale for each row, along which no product sums", l.title);
            return std::nullopt;
        }
        pairing p = of.begin(l);
        p.swizzled = swizzle;
        p.down = down;
        p.shape = *shape;
        p.element = element_of(l.codes, c.type);
        p.code_bits = p.element != nullptr ? p.element->bits() : 8;
        p.grid = l.block_cols == whole_matrix
                     ? block::grid{{1, matrices(*shape).elements() / b->cols, b->cols}, 1, b->cols}
                     : grid_of(*shape, *b);
        p.why = b->because;
        if (!swizzle && s.elements == padded) {
            p.fits_swizzled = true;
            p.why += "; read row by row, though the scales fit the 128x4 order, too (--swizzled)";
        }
        return zeros_and_order_fit(p, of, misfit) ? std::optional(p) : std::nullopt;
    }

    // The blocks of a layout over a shape; none, with the reason, if the scales do not show them.
    std::optional<block_extents> extents_of(const candidate& of, const quantized_layout& l,
                                            const tensor::shape& shape, bool down,
                                            std::string& misfit) {
        const tensor_info& s = of.scale_info();
        const block::view v = matrices(shape);
        if (down) return block_extents{l.block_cols, 1};
        if (l.block_cols == whole_matrix) {
            if (s.elements == 1) return block_extents{1, v.elements()};
            if (one_for_each_matrix(shape, s)) return block_extents{1, v.rows * v.cols};
            misfit = fmt::format("{} calls for scales {}", l.title,
                                 shape.size() < 3 ? "1" : "1, or one for each matrix");
            return std::nullopt;
        }
        if (l.block_cols == equal_parts) {
            const auto b = equal_extents(shape, s);
            if (!b) misfit = fmt::format("{} calls for as many scales in each row", l.title);
            return b;
        }
        if (l.block_rows == stated_tile) {
            const auto b = tile_extents(shape, s, config_of(of.code_info().file));
            if (!b) misfit = fmt::format("{} calls for the grid of tiles", l.title);
            return b;
        }
        const block_extents b{l.block_rows == whole_axis ? v.rows : l.block_rows,
                              l.block_cols == whole_axis ? v.cols : l.block_cols};
        // Where the configuration states other tiles that fit, these are not meant.
        if (b.rows > 1 && l.block_rows != whole_axis) {
            const checkpoint_config& config = config_of(of.code_info().file);
            const auto stated = tile_extents(shape, s, config);
            if (!config.tiles.empty() && stated &&
                (stated->rows != b.rows || stated->cols != b.cols)) {
                misfit = fmt::format("the configuration states tiles of {}x{}", stated->rows,
                                     stated->cols);
                return std::nullopt;
            }
        }
        return b;
    }

    // Of integers the zero points of rows are read; other orders are not.
    static bool zeros_and_order_fit(pairing& p, const candidate& of, std::string& misfit) {
        p.zeros = of.zeros(misfit);
        const auto groups = misfit.empty() ? of.groups(misfit) : std::nullopt;
        if (!misfit.empty()) return false;
        const tensor_info* const unread =
            groups ? &of.arrays.info(*groups)
            : p.zeros && (p.layout->codes != code_array::int8 ||
                          of.arrays.info(*p.zeros).type != dtype::i8 ||
                          of.arrays.info(*p.zeros).elements != of.scale_info().elements)
                ? &of.arrays.info(*p.zeros)
                : nullptr;
        if (unread != nullptr) {
            misfit = fmt::format("{} with {} is not read", p.layout->title, described(*unread));
            return false;
        }
        if (p.layout->divisor == 1) return true;
        const auto order = of.beside(of.name + std::string(row_order_ending), misfit);
        if (!misfit.empty()) return false;
        if (order) {
            const tensor_info& t = of.arrays.info(*order);
            if (t.bytes != 1 || of.arrays.content(*order).front() != 0) {
                misfit = fmt::format("{} in another order of rows ({}) is not read",
                                     p.layout->title, described(t));
                return false;
            }
            p.said.push_back(*order);
        }
        return true;
    }

    // Tensors of a file share a configuration.
    const checkpoint_config& config_of(const std::string& file) {
        const auto known = configs_.find(file);
        if (known != configs_.end()) return known->second;
        return configs_.emplace(file, config_beside(file)).first->second;
    }

    // The tensor scale, if there is one, and the words.
    bool accept(pairing p, const candidate& of, std::string& reason) {
        const tensor_info& c = info(p.codes);
        const tensor_info& s = info(p.scales);
        const std::string more = std::move(p.why);
        p.why = fmt::format("{} from {} and {}", p.layout->title, described(c), described(s));
        if (s.file != c.file) p.why += fmt::format(" of {}", s.file);
        p.why += ": " + per_scale(p) + more;
        if (!p.sums_over.known()) p.sums_over = contraction_of(p);
        if (p.zeros) p.why += fmt::format(", zero points of {}", info(*p.zeros).name);
        if (p.layout->codes == code_array::gptq_words) {
            // GPTQModel has 5 to 7 bits in planes only.
            const std::string& format = config_of(c.file).format;
            p.planes = format == "gptq_p" || (p.code_bits > 4 && p.code_bits < 8);
            p.zeros_less_one = !p.planes && format != "gptq_v2";
            p.why += p.planes ? " stored as they are, bits in planes (checkpoint_format gptq_p)"
                     : p.zeros_less_one ? " stored less one (checkpoint_format gptq)"
                                        : " stored as they are (checkpoint_format gptq_v2)";
        }
        if (p.groups) p.why += fmt::format(", groups of {}", info(*p.groups).name);
        if (p.outer_scales) p.why += fmt::format(", scaled by {}", info(*p.outer_scales).name);
        if (p.swizzled) p.why += ", scales in the 128x4 order";
        for (const tensor_scale_name& t : tensor_scale_names) {
            auto at = of.beside(of.name + std::string(t.ending), reason);
            if (!at && reason.empty()) at = of.beside(of.stem + std::string(t.ending), reason);
            if (!at) {
                if (!reason.empty()) return false;
                continue;
            }
            const tensor_info& g = info(*at);
            const char* wrong = !p.layout->tensor_scale ? "has no place in this layout"
                                : g.type != dtype::f32 || !one_for_each_matrix(p.shape, g)
                                    ? p.shape.size() < 3 ? "is not one F32"
                                                         : "is not one F32, or one for each matrix"
                                : p.tensor_scale && p.tensor_scale != at
                                    ? "is a second tensor scale"
                                    : nullptr;
            if (wrong != nullptr) {
                reason = fmt::format("{}; not decoded, because {} {}", p.why, described(g), wrong);
                return false;
            }
            p.tensor_scale = *at;
            p.divides = t.divides;
            p.why += fmt::format(", {} by {} ({})", t.divides ? "divided" : "multiplied", g.name,
                                 t.writer);
        }
        if (!take_inputs(p, of, reason)) return false;
        const std::vector<std::size_t> parts = p.parts();
        for (const std::size_t part : parts) {
            if (!taken_[part] && std::ranges::count(parts, part) == 1) continue;
            reason = fmt::format("{}; not decoded, because {} belongs to another tensor, too",
                                 p.why, described(info(part)));
            return false;
        }
        for (const std::size_t part : parts) taken_[part] = true;
        result_.found.push_back(std::move(p));
        return true;
    }

    // Arrays about the input of the layer: factors of its channels, and the scale of activations.
    bool take_inputs(pairing& p, const candidate& of, std::string& reason) {
        p.input_channels = of.beside_any(input_channel_endings, reason);
        if (!reason.empty()) return false;
        if (p.input_channels) {
            const tensor_info& f = info(*p.input_channels);
            const bool numbers =
                f.type == dtype::f32 || f.type == dtype::bf16 || f.type == dtype::f16;
            if (!numbers || p.shape.empty() || f.elements != p.shape[p.input_axis()]) {
                reason = fmt::format(
                    "{}; not decoded, because {} is not a number for each input "
                    "channel",
                    p.why, described(f));
                return false;
            }
            p.why += fmt::format(", times {} for each input channel", f.name);
        }
        std::string ignored;
        p.input_scale = of.beside_any(input_scale_endings, ignored);
        if (p.input_scale && taken_[*p.input_scale]) p.input_scale.reset();
        return true;
    }

    array_index index_;
    bool swizzled_;
    std::vector<bool> taken_;
    std::set<std::size_t> refused_;                     // codes
    std::map<std::string, checkpoint_config> configs_;  // of checkpoints, by file
    pairings result_;
};

}  // namespace

std::size_t pairing::input_axis() const {
    return sums_over.known() ? static_cast<std::size_t>(sums_over.first) : shape.size() - 1;
}

std::vector<std::size_t> pairing::parts() const {
    std::vector<std::size_t> all{codes, scales};
    for (const auto& more : {tensor_scale, zeros, groups, table, outer_table, outer_scales,
                             input_channels, input_scale}) {
        if (more) all.push_back(*more);
    }
    all.insert(all.end(), said.begin(), said.end());
    return all;
}

pairing pairing::alone() const {
    pairing p = *this;
    p.codes = 0;
    p.scales = 1;
    std::size_t next = 2;
    for (auto* more : {&p.tensor_scale, &p.zeros, &p.groups, &p.table, &p.outer_table,
                       &p.outer_scales, &p.input_channels, &p.input_scale}) {
        if (*more) *more = next++;
    }
    for (std::size_t& each : p.said) each = next++;
    return p;
}

pairings find_pairings(std::span<const tensor_ref> arrays, bool swizzled,
                       const std::vector<bool>& skip) {
    return search(arrays, swizzled, skip).run();
}

}  // namespace mx::io

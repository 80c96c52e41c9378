// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/quantized/pairings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "libmx/block/scale_swizzle.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

constexpr std::uint64_t fp4_block_bytes = 16;

// "w (U8 90x16)"
std::string described(const tensor_info& t) {
    return fmt::format("{} ({} {})", t.name, tensor::row_of(t.type).name,
                       tensor::to_string(t.shape));
}

bool holds_codes(code_array kind, dtype t) {
    static constexpr std::pair<code_array, dtype> known[] = {
        {code_array::fp4_blocks, dtype::u8},   {code_array::fp4, dtype::u8},
        {code_array::fp4, dtype::i8},          {code_array::fp4, dtype::f4},
        {code_array::fp6, dtype::f6_e2m3},     {code_array::fp6, dtype::f6_e3m2},
        {code_array::fp8, dtype::f8_e4m3},     {code_array::fp8, dtype::f8_e5m2},
        {code_array::fp8, dtype::f8_e4m3fnuz}, {code_array::fp8, dtype::f8_e5m2fnuz},
        {code_array::int8, dtype::i8},         {code_array::int_words, dtype::i32}};
    return std::ranges::find(known, std::pair(kind, t)) != std::end(known);
}

bool holds_scales(scale_array kind, dtype t) {
    if (kind == scale_array::e8m0) return t == dtype::u8 || t == dtype::f8_e8m0;
    if (kind == scale_array::e4m3) return t == dtype::f8_e4m3;
    return t == dtype::f32 || t == dtype::bf16 || t == dtype::f16;
}

bool may_hold_codes(dtype t) {
    return std::ranges::any_of(quantized_layouts,
                               [t](const quantized_layout& l) { return holds_codes(l.codes, t); });
}

const format::element_format* element_of(code_array kind, dtype t) {
    const bool fp4 = kind == code_array::fp4 || kind == code_array::fp4_blocks;
    const std::string_view stored = fp4 ? "F4" : tensor::row_of(t).name;
    for (const format::element_format& f : format::element_formats) {
        if (f.safetensors == stored) return &f;
    }
    return nullptr;
}

// The shape of the tensor whose codes these are, or none with `reason`.
std::optional<tensor::shape> logical_shape(const quantized_layout& l, const tensor_info& codes,
                                           std::string& reason) {
    tensor::shape shape = codes.shape;
    if (l.codes == code_array::fp4_blocks) {
        if (shape.size() < 2 || shape.back() != fp4_block_bytes) {
            reason = fmt::format("{} in blocks keeps {} bytes per block in the last axis", l.title,
                                 fp4_block_bytes);
            return std::nullopt;
        }
        shape.pop_back();
        shape.back() *= 2 * fp4_block_bytes;
    } else if (l.codes == code_array::fp4 && codes.type != dtype::f4) {
        if (shape.empty()) {
            reason = fmt::format("{} has an axis of codes", l.title);
            return std::nullopt;
        }
        shape.back() *= 2;
    }
    const auto elements = tensor::element_count(shape);
    const auto bytes = elements ? tensor::byte_count(dtype::f64, *elements) : std::nullopt;
    if (!bytes || *elements == 0) {
        reason = bytes ? "it has no elements" : "it is too large";
        return std::nullopt;
    }
    return shape;
}

std::uint64_t blocks_along(std::uint64_t extent, std::uint64_t block) {
    if (block == whole_axis) return 1;
    return extent / block + (extent % block != 0 ? 1 : 0);
}

// The matrices of a shape.
block::view matrices(const tensor::shape& shape) {
    block::view v{1, 1, 1};
    const std::size_t axes = shape.size();
    for (std::size_t k = 0; k + 2 < axes; ++k) v.batch *= shape[k];
    if (axes > 1) v.rows = shape[axes - 2];
    if (axes > 0) v.cols = shape[axes - 1];
    return v;
}

block::grid grid_of(const quantized_layout& l, const tensor::shape& shape) {
    block::view v = matrices(shape);
    if (l.block_rows == 1) v = {1, v.batch * v.rows, v.cols};
    if (l.block_rows == whole_axis) v = {1, 1, v.elements()};
    return {v, l.block_rows == whole_axis ? 1 : l.block_rows,
            l.block_cols == whole_axis ? v.cols : l.block_cols};
}

// The shape that the scales must have, in the words of the reason too.
tensor::shape scale_shape(const quantized_layout& l, const tensor::shape& shape) {
    if (l.block_rows == whole_axis) return {1};
    tensor::shape s = shape;
    s.back() = blocks_along(s.back(), l.block_cols);
    if (s.size() > 1) s[s.size() - 2] = blocks_along(s[s.size() - 2], l.block_rows);
    return s;
}

bool enough_axes(const quantized_layout& l, const tensor::shape& shape) {
    return shape.size() >= (l.block_rows == 1 && l.block_cols != whole_axis ? 1u
                            : l.block_rows == whole_axis                    ? 0u
                                                                            : 2u);
}

bool can_be_swizzled(const quantized_layout& l) {
    return l.scales != scale_array::real && l.block_rows == 1 && l.codes != code_array::fp4_blocks;
}

std::uint64_t swizzled_size(const tensor::shape& shape, const tensor::shape& scales) {
    const block::view v = matrices(shape);
    // Far from overflow: there are more codes than scales, and both are in the file.
    return v.batch * block::swizzled_bytes(v.rows, scales.back());
}

bool shapes_agree(const quantized_layout& l, const tensor::shape& wanted,
                  const tensor::shape& have) {
    if (l.block_rows == whole_axis) return *tensor::element_count(have) == 1;
    if (have == wanted) return true;
    // A scale per row may come without the last axis of one.
    return l.block_cols == whole_axis && have.size() + 1 == wanted.size() &&
           std::equal(have.begin(), have.end(), wanted.begin());
}

std::string per_scale(const pairing& p) {
    const quantized_layout& l = *p.layout;
    if (l.block_cols == equal_parts) {
        return fmt::format("{} bits per code, {} codes per scale", p.code_bits, p.grid.block_cols);
    }
    if (l.block_rows == whole_axis) return "one scale for all codes";
    if (l.block_cols == whole_axis) return "a scale per row";
    if (l.block_rows != 1) return fmt::format("{}x{} codes per scale", l.block_rows, l.block_cols);
    return fmt::format("{} codes per scale{}", l.block_cols,
                       l.scales == scale_array::e8m0 ? " byte" : "");
}

pairing begun(const std::string& name, const quantized_layout& l, std::size_t codes,
              std::size_t scales) {
    pairing p;
    p.name = name;
    p.layout = &l;
    p.codes = codes;
    p.scales = scales;
    return p;
}

// Names to arrays, those of the same name in the order of the files.
using name_index = std::unordered_map<std::string_view, std::vector<std::size_t>>;

class search {
  public:
    search(std::span<const tensor_ref> arrays, bool swizzled, const std::vector<bool>& skip)
        : arrays_(arrays), swizzled_(swizzled), taken_(skip) {
        taken_.resize(arrays.size());
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            if (!taken_[i]) names_[arrays[i].info().name].push_back(i);
        }
    }

    pairings run() {
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            if (!taken_[i] && may_hold_codes(info(i).type)) look_at(i);
        }
        return std::move(result_);
    }

  private:
    const tensor_info& info(std::size_t i) const { return arrays_[i].info(); }

    // The array of that name which belongs to `codes`: in the same file, or the only one. Several
    // give a reason.
    std::optional<std::size_t> beside(std::size_t codes, const std::string& name,
                                      std::string& reason) const {
        const auto at = names_.find(name);
        if (at == names_.end()) return std::nullopt;
        std::vector<std::size_t> here;
        for (const std::size_t i : at->second) {
            if (info(i).file == info(codes).file) here.push_back(i);
        }
        const std::vector<std::size_t>& all = here.empty() ? at->second : here;
        if (all.size() == 1) return all.front();
        reason = fmt::format("{} files hold an array {}", all.size(), name);
        return std::nullopt;
    }

    void look_at(std::size_t codes) {
        const std::string& name = info(codes).name;
        refused_pairing refusal{codes, std::nullopt, {}};
        for (const quantized_naming& naming : quantized_namings) {
            if (!name.ends_with(naming.codes) || name.size() == naming.codes.size()) continue;
            const std::string stem = name.substr(0, name.size() - naming.codes.size());
            std::string reason;
            const auto scales = beside(codes, stem + std::string(naming.scales), reason);
            const std::string tensor = stem + std::string(naming.tensor);
            if (scales && *scales != codes && confirm(tensor, codes, *scales, reason)) return;
            if (!reason.empty() && refusal.why.empty()) refusal = {codes, scales, reason};
        }
        if (!refusal.why.empty()) result_.refused.push_back(std::move(refusal));
    }

    bool confirm(const std::string& name, std::size_t codes, std::size_t scales,
                 std::string& reason) {
        const tensor_info& c = info(codes);
        const tensor_info& s = info(scales);
        std::string wants;
        const auto wanted = [&wants](const std::string& text) {
            wants += (wants.empty() ? "" : "; ") + text;
        };
        if (taken_[scales]) wanted(fmt::format("{} belongs to another tensor", s.name));
        for (const quantized_layout& l : quantized_layouts) {
            if (taken_[scales]) break;
            if (!holds_codes(l.codes, c.type) || !holds_scales(l.scales, s.type)) continue;
            std::string misfit;
            if (l.codes == code_array::int_words) {
                if (auto p = words(name, codes, scales, l, misfit)) {
                    return accept(std::move(*p), reason);
                }
                wanted(misfit);
                continue;
            }
            const auto shape = logical_shape(l, c, misfit);
            if (!shape || !enough_axes(l, *shape)) {
                wanted(shape ? fmt::format("{} calls for two axes", l.title) : misfit);
                continue;
            }
            const tensor::shape want = scale_shape(l, *shape);
            const bool swizzle = swizzled_ && can_be_swizzled(l);
            const std::uint64_t padded = can_be_swizzled(l) ? swizzled_size(*shape, want) : 0;
            if (swizzle ? s.elements == padded : shapes_agree(l, want, s.shape)) {
                pairing p = begun(name, l, codes, scales);
                p.swizzled = swizzle;
                p.shape = *shape;
                p.element = element_of(l.codes, c.type);
                p.code_bits = p.element != nullptr ? p.element->bits() : 8;
                p.grid = grid_of(l, *shape);
                return accept(std::move(p), reason);
            }
            wanted(swizzle
                       ? fmt::format("{} in the 128x4 order calls for {} scales", l.title, padded)
                       : fmt::format("{} calls for scales {}", l.title, tensor::to_string(want)));
            if (!swizzle && s.elements == padded && padded != 0) {
                wanted("they may be in the 128x4 order (--swizzled)");
            }
        }
        if (wants.empty()) wants = "no layout has these dtypes";
        reason = fmt::format("{} and {} are not decoded as one tensor: {}", described(c),
                             described(s), wants);
        return false;
    }

    // Integers in words, whose number another array says.
    std::optional<pairing> words(const std::string& name, std::size_t codes, std::size_t scales,
                                 const quantized_layout& l, std::string& misfit) const {
        const tensor_info& c = info(codes);
        const tensor_info& s = info(scales);
        for (const std::string_view ending : unread_companions) {
            if (beside(codes, name + std::string(ending), misfit) || !misfit.empty()) {
                misfit = fmt::format("{} with {}{} are not read", l.title, name, ending);
                return std::nullopt;
            }
        }
        const auto extents = beside(codes, name + std::string(packed_shape_ending), misfit);
        if (!extents || info(*extents).type != dtype::i64 || info(*extents).elements != 2 ||
            c.shape.size() != 2 || s.shape.size() != 2) {
            if (misfit.empty()) {
                misfit = fmt::format("{} call for two axes and {}{} (I64 2)", l.title, name,
                                     packed_shape_ending);
            }
            return std::nullopt;
        }
        std::array<std::uint64_t, 2> size{};
        arrays_[*extents]
            .file->open(arrays_[*extents].index)
            ->read(0, std::as_writable_bytes(std::span(size)));
        const auto [rows, cols] = size;
        for (const std::uint64_t bits : {4u, 8u}) {
            const std::uint64_t per_word = 32 / bits;
            if (rows != c.shape[0] || cols % per_word != 0 || cols / per_word != c.shape[1])
                continue;
            if (cols == 0 || s.shape[0] != rows || s.shape[1] == 0 || cols % s.shape[1] != 0) {
                continue;
            }
            pairing p = begun(name, l, codes, scales);
            p.extents = extents;
            p.shape = {rows, cols};
            p.code_bits = static_cast<int>(bits);
            p.grid = {{1, rows, cols}, 1, cols / s.shape[1]};
            const auto elements = tensor::element_count(p.shape);
            if (elements && *elements != 0 && tensor::byte_count(dtype::f64, *elements)) return p;
        }
        misfit =
            fmt::format("{} of 4 or 8 bits, {}x{} by {}, do not fill these words in equal parts",
                        l.title, rows, cols, info(*extents).name);
        return std::nullopt;
    }

    // The tensor scale, if there is one, and the words.
    bool accept(pairing p, std::string& reason) {
        const tensor_info& c = info(p.codes);
        const tensor_info& s = info(p.scales);
        p.why = fmt::format("{} from {} and {}", p.layout->title, described(c), described(s));
        if (s.file != c.file) p.why += fmt::format(" of {}", s.file);
        p.why += ": " + per_scale(p);
        if (p.swizzled) p.why += ", scales in the 128x4 order";
        for (const tensor_scale_name& t : tensor_scale_names) {
            const auto at = beside(p.codes, p.name + std::string(t.ending), reason);
            if (!at) {
                if (!reason.empty()) return false;
                continue;
            }
            const tensor_info& g = info(*at);
            const char* wrong = !p.layout->tensor_scale ? "has no place in this layout"
                                : g.type != dtype::f32 || g.elements != 1 ? "is not one F32"
                                : p.tensor_scale ? "is a second tensor scale"
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
        taken_[p.codes] = true;
        taken_[p.scales] = true;
        if (p.tensor_scale) taken_[*p.tensor_scale] = true;
        if (p.extents) taken_[*p.extents] = true;
        result_.found.push_back(std::move(p));
        return true;
    }

    std::span<const tensor_ref> arrays_;
    bool swizzled_;
    std::vector<bool> taken_;
    name_index names_;
    pairings result_;
};

}  // namespace

pairings find_pairings(std::span<const tensor_ref> arrays, bool swizzled,
                       const std::vector<bool>& skip) {
    return search(arrays, swizzled, skip).run();
}

}  // namespace mx::io

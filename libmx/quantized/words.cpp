// SPDX-License-Identifier: Apache-2.0
// Integers in 32-bit words: compressed-tensors, GPTQ, AWQ. Which arrays confirm each other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "libmx/quantized/candidate.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

bool is_matrix(const tensor_info& t, dtype type) { return t.type == type && t.shape.size() == 2; }

// Words that `count` codes of `bits` fill without gaps.
std::uint64_t words_for(std::uint64_t count, std::uint64_t bits) {
    return count / 32 * bits + (count % 32 * bits + 31) / 32;
}

// Bits of `count` codes that take `words` words: those that fill them, else the only ones that
// leave less than a word; 0 if there are none.
int bits_in_words(std::uint64_t count, std::uint64_t words) {
    int found = 0;
    for (const int bits : {4, 8, 2, 3, 5, 6}) {
        const auto wide = static_cast<std::uint64_t>(bits);
        if (words_for(count, wide) != words) continue;
        if (count % 32 * wide % 32 == 0) return bits;
        found = found == 0 ? bits : -1;
    }
    return std::max(found, 0);
}

// Rows and columns that NAME_shape states, in integers of either width.
std::optional<std::array<std::uint64_t, 2>> stated_extents(const candidate& c, std::size_t at) {
    const tensor_info& info = c.arrays.info(at);
    if (info.elements != 2 || (info.type != dtype::i64 && info.type != dtype::i32)) {
        return std::nullopt;
    }
    const std::string bytes = c.arrays.content(at);
    std::array<std::uint64_t, 2> size{};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t width = bytes.size() / 2;
        std::memcpy(&size[i], bytes.data() + i * width, width);
    }
    return size;
}

// Whether an array of groups has a number for each of `cols` columns. A row of more is not read.
bool fits_groups(const tensor_info& groups, std::uint64_t cols) {
    constexpr std::uint64_t most = 1 << 20;
    return groups.type == dtype::i32 && groups.elements == cols && cols <= most;
}

// Blocks of a row, each under one scale: equal parts, or whole rows if columns name their scale.
bool lay_out_groups(pairing& p, const candidate& c, std::uint64_t count, std::string& misfit) {
    p.groups = c.groups(misfit);
    if (!misfit.empty()) return false;
    const std::uint64_t rows = p.shape[0], cols = p.shape[1];
    if (p.groups && !fits_groups(c.arrays.info(*p.groups), cols)) {
        misfit = fmt::format("{} of {} columns requires their groups in I32, at most 2^20, not {}",
                             p.layout->title, cols, described(c.arrays.info(*p.groups)));
        return false;
    }
    if (count == 0 || count > cols || (!p.groups && cols % count != 0)) {
        misfit = fmt::format("{} columns do not divide into {} groups", cols, count);
        return false;
    }
    p.grid = {{1, rows, cols}, 1, p.groups ? cols : cols / count};
    return true;
}

std::optional<pairing> compressed_tensors(const candidate& c, const quantized_layout& l,
                                          std::string& misfit) {
    const tensor_info& codes = c.code_info();
    const tensor_info& scales = c.scale_info();
    const auto at = c.beside(c.name + std::string(packed_shape_ending), misfit);
    const auto size = at ? stated_extents(c, *at) : std::nullopt;
    if (!size || codes.shape.size() != 2 || scales.shape.size() != 2) {
        if (misfit.empty()) {
            misfit = fmt::format("{} require two axes and {}{} (I64 2)", l.title, c.name,
                                 packed_shape_ending);
        }
        return std::nullopt;
    }
    const auto [rows, cols] = *size;
    pairing p = c.begin(l);
    p.said.push_back(*at);
    p.shape = {rows, cols};
    p.code_bits = bits_in_words(cols, codes.shape[1]);
    if (rows != codes.shape[0] || rows != scales.shape[0] || p.code_bits == 0 ||
        !fits_memory(p.shape)) {
        misfit = fmt::format("{} of 2 to 8 bits without gaps, {}x{} by {}, do not fill these words",
                             l.title, rows, cols, c.arrays.info(*at).name);
        return std::nullopt;
    }
    if (!lay_out_groups(p, c, scales.shape[1], misfit)) return std::nullopt;
    p.zeros = c.zeros(misfit);
    if (!misfit.empty()) return std::nullopt;
    if (p.zeros) {
        // Packed down the rows, as bytes where the scale is one for the tensor.
        const tensor_info& z = c.arrays.info(*p.zeros);
        const tensor::shape packed{words_for(rows, static_cast<std::uint64_t>(p.code_bits)),
                                   scales.shape[1]};
        if (!(z.type == dtype::i32 && z.shape == packed) &&
            !(z.type == dtype::i8 && z.shape == scales.shape)) {
            misfit = fmt::format("zero points of {} must be in I32 {}, not {}", l.title,
                                 tensor::to_string(packed), described(z));
            return std::nullopt;
        }
    }
    return p;
}

std::optional<pairing> gptq_or_awq(const candidate& c, const quantized_layout& l,
                                   std::string& misfit) {
    const tensor_info& codes = c.code_info();
    const tensor_info& scales = c.scale_info();
    const auto zeros = c.zeros(misfit);
    if (!misfit.empty()) return std::nullopt;
    if (!zeros || !is_matrix(c.arrays.info(*zeros), dtype::i32) || codes.shape.size() != 2 ||
        scales.shape.size() != 2) {
        misfit =
            fmt::format("{} requires two axes and {}{} (I32)", l.title, c.stem, c.naming.zeros);
        return std::nullopt;
    }
    const tensor_info& z = c.arrays.info(*zeros);
    const std::uint64_t count = scales.shape[0], out = scales.shape[1];
    pairing p = c.begin(l);
    p.zeros = zeros;
    p.code_bits = 0;
    std::uint64_t in = codes.shape[0];
    if (l.codes == code_array::awq_words) {
        const bool fits = out % 8 == 0 && codes.shape[1] == out / 8;
        if (fits) p.code_bits = 4;
    } else if (codes.shape[1] == out) {
        for (const int bits : {4, 8, 2, 3, 5, 6, 7}) {
            const auto wide = static_cast<std::uint64_t>(bits);
            const bool fills = out % 32 * wide % 32 == 0 && in % wide == 0;
            if (p.code_bits == 0 && fills && words_for(out, wide) == z.shape[1]) p.code_bits = bits;
        }
        if (p.code_bits != 0 && in > (std::uint64_t{1} << 40)) p.code_bits = 0;
        if (p.code_bits != 0) in = in * 32 / static_cast<std::uint64_t>(p.code_bits);
    }
    p.shape = {out, in};
    if (p.code_bits == 0 || z.shape[0] != count || !fits_memory(p.shape) ||
        z.shape[1] != words_for(out, static_cast<std::uint64_t>(p.code_bits))) {
        misfit = fmt::format("{} of {} outputs does not fill {} and {}", l.title, out,
                             described(codes), described(z));
        return std::nullopt;
    }
    if (!lay_out_groups(p, c, count, misfit)) return std::nullopt;
    return p;
}

}  // namespace

std::optional<pairing> confirm_words(const candidate& c, const quantized_layout& l,
                                     std::string& misfit) {
    return l.codes == code_array::int_words ? compressed_tensors(c, l, misfit)
                                            : gptq_or_awq(c, l, misfit);
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// Codes that are indices into a table in another array (bitsandbytes), and GGUF's NVFP4 with a
// further scale. Which arrays confirm each other.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "libmx/quantized/candidate.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

constexpr std::uint64_t state_limit = 4096;  // bytes; typical ones have some two hundred
constexpr std::uint64_t block_limit = 1 << 20;

struct table_state {
    tensor::shape shape;
    std::uint64_t block = 0;
    std::uint64_t outer_block = 0;
    float outer_offset = 0;
};

std::uint64_t natural(const nlohmann::json& state, const char* key) {
    const auto at = state.find(key);
    return at != state.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

// What the JSON states; none if that is not enough.
std::optional<table_state> parse_state(const std::string& text) {
    const nlohmann::json state = nlohmann::json::parse(text, nullptr, false);
    if (!state.is_object()) return std::nullopt;
    table_state s;
    s.block = natural(state, "blocksize");
    s.outer_block = natural(state, "nested_blocksize");
    const auto offset = state.find("nested_offset");
    if (offset != state.end() && offset->is_number()) s.outer_offset = offset->get<float>();
    const auto shape = state.find("shape");
    if (shape == state.end() || !shape->is_array() || shape->size() > 8) return std::nullopt;
    for (const nlohmann::json& extent : *shape) {
        if (!extent.is_number_unsigned()) return std::nullopt;
        s.shape.push_back(extent.get<std::uint64_t>());
    }
    const bool sound = s.block != 0 && s.block <= block_limit && s.outer_block <= block_limit &&
                       std::isfinite(s.outer_offset) && fits_memory(s.shape);
    return sound ? std::optional(s) : std::nullopt;
}

bool holds(const array_index& arrays, std::optional<std::size_t> at, dtype type,
           std::uint64_t elements) {
    return at && arrays.info(*at).type == type && arrays.info(*at).elements == elements;
}

std::uint64_t parts_of(std::uint64_t count, std::uint64_t size) {
    return count / size + (count % size != 0 ? 1 : 0);
}

}  // namespace

std::optional<pairing> confirm_table(const candidate& c, const quantized_layout& l,
                                     std::string& misfit) {
    const auto beside = [&](std::string_view ending) {
        return c.beside(c.name + std::string(ending), misfit);
    };
    pairing p = c.begin(l);
    std::optional<std::size_t> state;
    for (const std::string_view ending : table_state_endings) {
        if (!state) state = beside(ending);
    }
    p.table = beside(table_ending);
    p.outer_scales = beside(outer_scales_ending);
    p.outer_table = beside(outer_table_ending);
    if (!misfit.empty()) return std::nullopt;
    const auto wants = [&](const std::string& what) {
        misfit = fmt::format("{} calls for {}", l.title, what);
        return std::nullopt;
    };
    if (!holds(c.arrays, p.table, dtype::f32, 16)) {
        return wants(fmt::format("{}{} (F32 16)", c.name, table_ending));
    }
    if (!state || c.arrays.info(*state).type != dtype::u8 ||
        c.arrays.info(*state).bytes > state_limit) {
        return wants(fmt::format("{}{} or ...fp4 (U8, at most {} bytes)", c.name,
                                 table_state_endings.front(), state_limit));
    }
    p.said.push_back(*state);
    const auto said = parse_state(c.arrays.content(*state));
    if (!said) {
        return wants(fmt::format("extents and the size of a block as JSON in {}",
                                 c.arrays.info(*state).name));
    }
    p.shape = said->shape;
    p.code_bits = 4;
    const std::uint64_t elements = *tensor::element_count(p.shape);
    const std::uint64_t blocks = parts_of(elements, said->block);
    p.grid = {{1, 1, elements}, 1, said->block};
    if (c.code_info().bytes < parts_of(elements, 2) ||
        c.code_info().bytes > parts_of(elements, 2) + 8) {
        return wants(fmt::format("{} bytes of codes", parts_of(elements, 2)));
    }
    if (!p.outer_scales && !p.outer_table) {
        if (!holds(c.arrays, c.scales, dtype::f32, blocks)) {
            return wants(fmt::format("{} scales in F32", blocks));
        }
        return p;
    }
    p.outer_block = said->outer_block;
    p.outer_offset = said->outer_offset;
    if (p.outer_block == 0 || !holds(c.arrays, c.scales, dtype::u8, blocks) ||
        !holds(c.arrays, p.outer_table, dtype::f32, 256) ||
        !holds(c.arrays, p.outer_scales, dtype::f32,
               p.outer_block == 0 ? 0 : parts_of(blocks, p.outer_block))) {
        return wants(fmt::format("{} scales in U8, with {} and {} (F32) of their blocks", blocks,
                                 outer_scales_ending, outer_table_ending));
    }
    return p;
}

std::optional<pairing> confirm_ggml(const candidate& c, const quantized_layout& l,
                                    std::string& misfit) {
    const tensor_info& values = c.code_info();
    const std::uint64_t matrices = values.shape.size() > 2 ? values.shape.front() : 1;
    const std::uint64_t count = c.scale_info().elements;
    if (c.scale_info().type != dtype::f32 || (count != 1 && count != matrices) ||
        !fits_memory(values.shape)) {
        misfit = fmt::format("{} requires one F32, or {}", l.title, matrices);
        return std::nullopt;
    }
    pairing p = c.begin(l);
    p.shape = values.shape;
    p.grid = {{1, count, values.elements / count}, 1, values.elements / count};
    return p;
}

}  // namespace mx::io

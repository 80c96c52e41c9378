// SPDX-License-Identifier: Apache-2.0
// Repeats the inputs of vector files of kind `mma` on the GPU: the same files with new outputs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "apps/mx_capture/known_products.hpp"
#include "apps/mx_capture/parts.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/io/reader.hpp"

namespace mx::capture {
namespace {

using namespace conformance::vectors;
using namespace conformance::verify;

// Names of a unit's instructions in vector files.
std::string_view word_of(unit u) {
    if (u == unit::tcgen05) return "tcgen05";
    return u == unit::wgmma ? "wgmma" : "mma.sync";
}

// The chip's instruction that a file describes, if it has it.
std::optional<instruction> instruction_for(const vector_file& file, const chip& c) {
    const std::string* kind = file.find("kind");
    if (kind == nullptr || *kind != "mma" || has_generated_inputs(file)) return {};
    mma_case what = mma_case_of(file);
    what.instruction_k = size_of(file, "instruction_k", 1, 256);
    what.f16 = file.at("acc_format") == "f16";
    for (const instruction& i : instructions_of(c)) {
        if (i.what == what && file.at("instruction").find(word_of(i.by)) != std::string::npos) {
            return i;
        }
    }
    return {};
}

// `rows` x `depth` values of tile `t`, padded with zero rows.
template <typename T>
std::vector<T> padded(const std::vector<T>& all, std::size_t t, std::size_t rows, std::size_t width,
                      std::size_t padded_rows) {
    std::vector<T> tile(padded_rows * width);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(t * rows * width), rows * width,
                tile.begin());
    return tile;
}

void replay_distribution(const vector_file& file, const std::string& dist, const instruction& i,
                         std::size_t steps, device& d, recording& out) {
    const auto add = [&](const std::string& tensor, const std::vector<std::uint32_t>& words) {
        const io::tensor_info& info = file.info(tensor);
        out.add(tensor, info.type, info.shape, words);
    };
    const tensor::shape& shape = file.info(dist + ".D").shape;
    const std::size_t depth = i.what.instruction_k * steps;
    if (shape.size() != 3 || shape[1] == 0 || shape[1] > mma_tile_rows || shape[2] == 0 ||
        shape[2] > mma_tile_cols) {
        file.fail_in(dist + ".D", "is no stack of tiles of at most 16 x 8");
    }
    const std::size_t tiles = shape[0], rows = shape[1], cols = shape[2];
    const auto a = mma_codes(file, dist + ".A", *i.what.a);
    const auto b = mma_codes(file, dist + ".B", *i.what.b);
    const auto c = file.words(dist + ".C", i.what.f16 ? 16 : 32, tiles * rows * cols);
    if (a.size() != tiles * rows * depth || b.size() != tiles * cols * depth) {
        file.fail_in(dist + ".D", "does not fit its operands");
    }
    const std::size_t blocks = i.what.scale == nullptr ? 0 : depth / i.what.scale->block;
    std::vector<std::uint8_t> sfa, sfb;
    if (blocks != 0) {
        sfa = file.u8(dist + ".SFA", tiles * rows * blocks);
        sfb = file.u8(dist + ".SFB", tiles * cols * blocks);
    }
    std::vector<mma_tile> stack;
    for (std::size_t t = 0; t < tiles; ++t) {
        mma_tile tile;
        tile.a = padded(a, t, rows, depth, mma_tile_rows);
        tile.b = padded(b, t, cols, depth, mma_tile_cols);
        tile.sfa = padded(sfa, t, rows, blocks, mma_tile_rows);
        tile.sfb = padded(sfb, t, cols, blocks, mma_tile_cols);
        tile.c.resize(mma_tile_outputs);
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t j = 0; j < cols; ++j) {
                tile.c[r * mma_tile_cols + j] = c[(t * rows + r) * cols + j];
            }
        }
        stack.push_back(std::move(tile));
    }
    const auto got = d.multiply(i, steps, true, stack);
    std::vector<std::uint32_t> outputs;
    for (std::size_t t = 0; t < tiles; ++t) {
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t j = 0; j < cols; ++j) {
                outputs.push_back(got[t * mma_tile_outputs + r * mma_tile_cols + j]);
            }
        }
    }
    add(dist + ".A", a);
    add(dist + ".B", b);
    if (blocks != 0) {
        add(dist + ".SFA", {sfa.begin(), sfa.end()});
        add(dist + ".SFB", {sfb.begin(), sfb.end()});
    }
    add(dist + ".C", c);
    add(dist + ".D", outputs);
}

void replay(const std::string& from, const chip& c, device& d, recording& out) {
    const auto reader = io::open_model(from, {});
    const vector_file file(*reader, from);
    instruction i = *instruction_for(file, c);
    const std::size_t total = size_of(file, "k_total", 1, 1 << 16);
    const std::size_t steps = total / i.what.instruction_k;
    if (steps == 0 || steps > chain_steps || steps * i.what.instruction_k != total) {
        file.fail("its metadata says k_total={}", total);
    }
    mma_case what = i.what;
    what.steps = steps;
    note_placement(i, what, d, out);
    for (const io::tensor_info& t : file.tensors()) {
        if (!t.name.ends_with(".D")) continue;
        replay_distribution(file, t.name.substr(0, t.name.size() - 2), i, steps, d, out);
    }
    for (const char* key : {"a_format", "b_format", "acc_format", "scale_format", "scale_block",
                            "instruction_k", "k_total", "mode", "seed"}) {
        if (const std::string* value = file.find(key)) out.metadata[key] = *value;
    }
    out.metadata["kind"] = "mma";
    out.metadata["inputs"] = fmt::format("of {}", std::filesystem::path(from).filename().string());
}

}  // namespace

void append_replays(std::vector<part>& parts, const chip& c, const std::string& folder) {
    for (const std::string& from : vector_paths({folder})) {
        const auto reader = io::open_model(from, {});
        const vector_file file(*reader, from);
        if (!instruction_for(file, c)) continue;
        std::uint64_t bytes = 0;
        for (const io::tensor_info& t : file.tensors()) bytes += t.bytes;
        parts.push_back(
            {fmt::format("mma/replay.{}", std::filesystem::path(from).filename().string()), bytes,
             [from, c](device& d, recording& to) { replay(from, c, d, to); }});
    }
}

}  // namespace mx::capture

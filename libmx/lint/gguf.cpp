// SPDX-License-Identifier: Apache-2.0
// What only GGUF has: scales inside blocks, and a header that states how many layers there are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "libmx/io/gguf/gguf_header.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/lint/checkpoint.hpp"

namespace mx::lint {
namespace {

constexpr std::uint64_t sample_bytes = 1 << 16;
constexpr std::uint64_t most_layers = 1 << 12;
constexpr std::size_t most_kinds = 64;  // of layers; hybrid models have a few

// Bytes of whole blocks: all of a short tensor, else the first, middle and last 64 KiB.
template <class OnBlock>
std::uint64_t for_sampled_blocks(const io::input_file& file, const io::gguf_tensor& t, bool all,
                                 OnBlock&& on_block) {
    const std::uint64_t size = t.type->block_bytes, blocks = t.bytes / size;
    const std::uint64_t each = std::max<std::uint64_t>(1, sample_bytes / size);
    std::vector<std::uint64_t> firsts{0, (blocks - std::min(blocks, each)) / 2,
                                      blocks - std::min(blocks, each)};
    if (all || blocks <= 3 * each) {
        firsts.clear();
        for (std::uint64_t at = 0; at < blocks; at += each) firsts.push_back(at);
    }
    std::uint64_t read = 0;
    std::vector<std::byte> bytes;
    for (const std::uint64_t first : firsts) {
        bytes.resize(static_cast<std::size_t>(std::min(each, blocks - first) * size));
        file.read(t.begin + first * size, bytes, t.name);
        for (std::size_t at = 0; at < bytes.size(); at += size) {
            on_block(std::span<const std::byte>(bytes).subspan(at, size));
        }
        read += bytes.size() / size;
    }
    return read;
}

struct block_faults {
    std::uint64_t nan = 0, lost = 0, not_finite = 0;
};

block_faults faults_of(const io::gguf_type& type, bool big_endian,
                       std::span<const std::byte> block) {
    block_faults f;
    const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(block[i]); };
    if (type.name == "MXFP4") {
        f.nan = byte(0) == 255;
    } else if (type.name == io::gguf_nvfp4) {
        for (std::size_t part = 0; part < 4; ++part) {
            const unsigned scale = byte(part) & 0x7fu;
            f.nan += scale == 0x7f;
            unsigned codes = 0;
            for (std::size_t i = 0; i < 8; ++i) codes |= byte(4 + 8 * part + i);
            f.lost += scale == 0 && (codes & 0x77u) != 0;
        }
    } else {
        std::array<float, 256> values{};
        const auto of_block = std::span(values).first(type.block_elements);
        type.decode({block.data(), big_endian}, of_block);
        f.not_finite = !std::ranges::all_of(of_block, [](float v) { return std::isfinite(v); });
    }
    return f;
}

// Of "blk.3.ffn_up.weight" the layer and the rest.
bool split_name(std::string_view name, std::uint64_t& layer, std::string_view& rest) {
    constexpr std::string_view prefix = "blk.";
    if (!name.starts_with(prefix)) return false;
    const char* const end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, layer);
    if (error != std::errc() || at == end || *at != '.') return false;
    rest = std::string_view(at + 1, static_cast<std::size_t>(end - at - 1));
    return true;
}

}  // namespace

void find_block_scales(const checkpoint& c, std::vector<finding>& out) {
    std::set<std::string> files;
    for (const io::tensor_ref& a : c.arrays()) {
        if (!a.info().layout.empty()) files.insert(a.info().file);
    }
    for (const std::string& path : files) {
        const io::shared_file file = io::input_file::open(path);
        if (file->head(4) != "GGUF") continue;
        const io::gguf_header header = io::read_gguf_header(file);
        for (const io::gguf_tensor& t : header.tensors) {
            if (t.type == nullptr || t.type->decode == nullptr) continue;
            block_faults all;
            const std::uint64_t read =
                for_sampled_blocks(*file, t, c.values(), [&](std::span<const std::byte> block) {
                    const block_faults f = faults_of(*t.type, header.big_endian, block);
                    all.nan += f.nan;
                    all.lost += f.lost;
                    all.not_finite += f.not_finite;
                });
            const bool mxfp4 = t.type->name == "MXFP4";
            const std::uint64_t scales = mxfp4 || all.not_finite != 0 ? read : 4 * read;
            const auto tell = [&](std::uint64_t count, std::string message, std::string effect) {
                if (count == 0) return;
                out.push_back(finding_at(severity::error, t.name, std::move(message),
                                         fmt::format("{} of {} scales read", count, scales),
                                         std::move(effect), "quantize the tensor again"));
            };
            tell(all.nan,
                 mxfp4 ? "has scales of 255, which E8M0 reads as NaN"
                       : "has scales of 127, which UE4M3 reads as NaN",
                 mxfp4 ? "ggml reads the scale as 2^128: values of these blocks are Inf or near it"
                       : "ggml reads the scale as 0: the values of these blocks are lost");
            tell(all.lost, "has zeros beside other codes",
                 "the values of these blocks are lost: they read as 0");
            tell(all.not_finite,
                 fmt::format("has {} blocks whose scale is NaN or Inf", t.type->name),
                 "values of these blocks are NaN or Inf");
        }
    }
}

void find_missing_layers(const checkpoint& c, std::vector<finding>& out) {
    const auto& header = c.arrays().front().file->metadata();
    const auto entry = [&](const std::string& key) {
        const auto at = header.find(key);
        return at == header.end() ? std::string() : at->second;
    };
    const std::string type = entry("general.type");
    const std::string count = entry(entry("general.architecture") + ".block_count");
    std::uint64_t stated = 0;
    const bool known =
        std::from_chars(count.data(), count.data() + count.size(), stated).ec == std::errc() &&
        stated <= most_layers;
    if (!known || (!type.empty() && type != "model")) return;
    std::map<std::uint64_t, std::set<std::string_view>> layers;
    for (const io::tensor_ref& a : c.arrays()) {
        std::uint64_t layer = 0;
        std::string_view rest;
        if (split_name(a.info().name, layer, rest)) layers[layer].insert(rest);
    }
    if (layers.empty()) return;  // of another kind than language models
    const auto tell = [&](std::string tensor, std::string message, std::string found) {
        out.push_back(finding_at(severity::error, std::move(tensor), std::move(message),
                                 std::move(found), "llama.cpp refuses the file",
                                 "convert the model again"));
    };
    for (std::uint64_t layer = 0; layer < stated; ++layer) {
        if (layers.contains(layer)) continue;
        tell(fmt::format("blk.{}", layer), "has no tensors",
             fmt::format("block_count of the header is {}", stated));
    }
    for (const auto& [layer, names] : layers) {
        if (layer < stated) continue;
        tell(fmt::format("blk.{}", layer), "is beyond the layers that the header states",
             fmt::format("block_count of the header is {}", stated));
    }
    // A layer that lacks one or two of what several layers, equal among themselves, have.
    std::map<std::set<std::string_view>, std::vector<std::uint64_t>> kinds;
    for (const auto& [layer, names] : layers) kinds[names].push_back(layer);
    if (kinds.size() > most_kinds) return;
    for (const auto& [names, members] : kinds) {
        if (members.size() != 1) continue;
        for (const auto& [others, like] : kinds) {
            if (like.size() < 2 || others.size() <= names.size() ||
                others.size() - names.size() > 2 || !std::ranges::includes(others, names)) {
                continue;
            }
            for (const std::string_view rest : others) {
                if (names.contains(rest) || rest.ends_with("scale")) continue;  // missing-scale
                tell(fmt::format("blk.{}.{}", members.front(), rest), "is missing",
                     fmt::format("{} layers that have the same tensors otherwise have it",
                                 like.size()));
            }
            break;
        }
    }
}

}  // namespace mx::lint

// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/parts.hpp"

#include <utility>

namespace mx::capture {

amounts quick_amounts() {
    amounts a;
    a.tiles = 2;
    a.hash_groups = 1;
    a.chain_tiles = 1;
    a.chain_groups = 0;
    a.cell_stride = 65537;
    a.stochastic = 4096;
    a.largest_product = 128;
    return a;
}

void recording::add(std::string name, tensor::dtype type, tensor::shape shape,
                    std::span<const std::uint32_t> words) {
    const int width = tensor::row_of(type).bits / 8;
    std::vector<std::byte> bytes;
    bytes.reserve(words.size() * static_cast<std::size_t>(width));
    for (const std::uint32_t word : words) {
        for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(word >> (8 * i)));
    }
    plan.push_back({std::move(name), type, std::move(shape)});
    data.push_back(std::move(bytes));
}

void recording::add_words64(std::string name, std::span<const std::uint64_t> words) {
    std::vector<std::uint32_t> halves;
    for (const std::uint64_t word : words) {
        halves.push_back(static_cast<std::uint32_t>(word));
        halves.push_back(static_cast<std::uint32_t>(word >> 32));
    }
    add(std::move(name), tensor::dtype::u32, {words.size(), 2}, halves);
}

void recording::note_generator(std::string_view version, std::uint64_t seed) {
    metadata["inputs"] = "generated";
    metadata["generator"] = version;
    note("seed", seed);
}

void recording::note_operands(const vectors::mma_case& what) {
    metadata["a_format"] = what.a->name;
    metadata["b_format"] = what.b->name;
    metadata["acc_format"] = what.f16 ? "f16" : "f32";
    metadata["scale_format"] = what.scale == nullptr ? "none" : what.scale->format;
    note("scale_block", what.scale == nullptr ? 0 : what.scale->block);
    note("instruction_k", what.instruction_k);
    note("k_total", what.depth());
}

void recording::write(const std::string& path) const {
    const auto file = io::create_safetensors(path, plan, metadata);
    for (std::size_t i = 0; i < plan.size(); ++i) file->write(i, 0, data[i]);
    file->commit();
}

}  // namespace mx::capture

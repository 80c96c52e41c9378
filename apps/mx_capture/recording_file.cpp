// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/recording_file.hpp"

#include <utility>

namespace mx::capture {

void recording_file::add(std::string name, tensor::dtype type, tensor::shape shape,
                         std::span<const std::uint32_t> words) {
    const int width = tensor::row_of(type).bits / 8;
    std::vector<std::byte> bytes;
    bytes.reserve(words.size() * static_cast<std::size_t>(width));
    for (const std::uint32_t word : words) {
        for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(word >> (8 * i)));
    }
    plan_.push_back({std::move(name), type, std::move(shape)});
    data_.push_back(std::move(bytes));
}

void recording_file::add_words64(std::string name, std::span<const std::uint64_t> words) {
    std::vector<std::uint32_t> halves;
    for (const std::uint64_t word : words) {
        halves.push_back(static_cast<std::uint32_t>(word));
        halves.push_back(static_cast<std::uint32_t>(word >> 32));
    }
    add(std::move(name), tensor::dtype::u32, {words.size(), 2}, halves);
}

void recording_file::write(const std::string& path, const io::metadata_map& metadata) const {
    const auto file = io::create_safetensors(path, plan_, metadata);
    for (std::size_t i = 0; i < plan_.size(); ++i) file->write(i, 0, data_[i]);
    file->commit();
}

}  // namespace mx::capture

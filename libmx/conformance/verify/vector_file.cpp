// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/vector_file.hpp"

#include <fmt/format.h>

#include <span>

#include "libmx/base/named.hpp"

namespace mx::conformance::verify {

vector_file::vector_file(const io::reader& file, std::string path)
    : file_(&file), path_(std::move(path)) {}

const std::string* vector_file::find(std::string_view key) const {
    const auto found = file_->metadata().find(std::string(key));
    return found == file_->metadata().end() ? nullptr : &found->second;
}

const std::string& vector_file::at(std::string_view key) const {
    const std::string* value = find(key);
    if (value == nullptr) {
        fail(
            "its metadata has no '{}', which describes its vectors; add it, or use --recipe or "
            "--accumulate",
            key);
    }
    return *value;
}

bool vector_file::has(std::string_view tensor) const {
    return base::find_named(tensors(), tensor) != nullptr;
}

const io::tensor_info& vector_file::info(std::string_view tensor) const {
    if (const io::tensor_info* t = base::find_named(tensors(), tensor)) return *t;
    fail_in(tensor, "the file lacks this tensor");
}

// Safe to allocate: the reader has checked the sizes in the header against the file.
template <typename T>
std::vector<T> vector_file::read(std::string_view tensor, tensor::dtype type,
                                 std::uint64_t elements) const {
    const io::tensor_info& t = info(tensor);
    if (t.type != type) {
        fail_in(tensor, "is {}; vectors of this name are {}", tensor::row_of(t.type).name,
                tensor::row_of(type).name);
    }
    if (elements != any_count && t.elements != elements) {
        fail_in(tensor, "has {} values; the inputs require {}", t.elements, elements);
    }
    if (t.bytes != t.elements * sizeof(T)) {
        fail_in(tensor, "holds {} bytes for {} values", t.bytes, t.elements);
    }
    std::vector<T> values(t.elements);
    const auto index = static_cast<std::size_t>(&t - tensors().data());
    file_->open(index)->read(0, std::as_writable_bytes(std::span(values)));
    return values;
}

template std::vector<std::uint8_t> vector_file::read(std::string_view, tensor::dtype,
                                                     std::uint64_t) const;
template std::vector<std::uint16_t> vector_file::read(std::string_view, tensor::dtype,
                                                      std::uint64_t) const;
template std::vector<std::uint32_t> vector_file::read(std::string_view, tensor::dtype,
                                                      std::uint64_t) const;
template std::vector<float> vector_file::read(std::string_view, tensor::dtype, std::uint64_t) const;

std::vector<std::uint32_t> vector_file::words(std::string_view tensor, int bits,
                                              std::uint64_t elements) const {
    if (bits > 16) return u32(tensor, elements);
    const auto widened = [](const auto& narrow) {
        return std::vector<std::uint32_t>(narrow.begin(), narrow.end());
    };
    return bits > 8 ? widened(u16(tensor, elements)) : widened(u8(tensor, elements));
}

std::vector<std::string_view> words_of(std::string_view text, char separator) {
    std::vector<std::string_view> words;
    while (!text.empty()) {
        const std::size_t end = text.find(separator);
        if (end != 0) words.push_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return words;
}

}  // namespace mx::conformance::verify

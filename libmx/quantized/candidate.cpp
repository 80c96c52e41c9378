// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantized/candidate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mx::io {

std::string described(const tensor_info& t) {
    return fmt::format("{} ({} {})", t.name,
                       t.layout.empty() ? tensor::row_of(t.type).name : std::string_view(t.layout),
                       tensor::to_string(t.shape));
}

array_index::array_index(std::span<const tensor_ref> arrays, const std::vector<bool>& skip)
    : arrays_(arrays) {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (i >= skip.size() || !skip[i]) names_[arrays[i].info().name].push_back(i);
    }
}

std::optional<std::size_t> array_index::beside(std::size_t to, const std::string& name,
                                               std::string& reason) const {
    const auto at = names_.find(name);
    if (at == names_.end()) return std::nullopt;
    std::vector<std::size_t> here;
    for (const std::size_t i : at->second) {
        if (info(i).file == info(to).file) here.push_back(i);
    }
    const std::vector<std::size_t>& all = here.empty() ? at->second : here;
    if (all.size() == 1) return all.front();
    reason = fmt::format("{} files have an array {}", all.size(), name);
    return std::nullopt;
}

std::string array_index::content(std::size_t i) const {
    std::string bytes(static_cast<std::size_t>(info(i).bytes), '\0');
    arrays_[i]
        .file->open(arrays_[i].index)
        ->read(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
    return bytes;
}

std::string array_index::metadata_of(std::size_t i, const std::string& key) const {
    const auto& all = arrays_[i].file->metadata();
    const auto at = all.find(key);
    return at == all.end() ? std::string() : at->second;
}

std::optional<std::size_t> candidate::zeros(std::string& reason) const {
    if (const auto at = beside(name + std::string(naming.zeros), reason)) return at;
    return beside(stem + std::string(naming.zeros), reason);
}

std::optional<std::size_t> candidate::groups(std::string& reason) const {
    if (const auto at = beside(name + std::string(naming.groups), reason)) return at;
    return beside(stem + std::string(naming.groups), reason);
}

std::vector<std::string> owners_of(const std::string& name, const std::string& stem) {
    constexpr std::string_view of_module = ".weight";
    std::vector<std::string> all{name};
    if (stem != name) all.push_back(stem);
    if (name.ends_with(of_module)) all.push_back(name.substr(0, name.size() - of_module.size()));
    return all;
}

std::optional<std::size_t> candidate::beside_any(std::span<const std::string_view> endings,
                                                 std::string& reason) const {
    for (const std::string& of : owners_of(name, stem)) {
        for (const std::string_view ending : endings) {
            const auto at = beside(of + std::string(ending), reason);
            if (at || !reason.empty()) return at;
        }
    }
    return std::nullopt;
}

pairing candidate::begin(const quantized_layout& l) const {
    pairing p;
    p.name = name;
    p.layout = &l;
    p.naming = &naming;
    p.codes = codes;
    p.scales = scales;
    return p;
}

block::view matrices(const tensor::shape& shape) {
    block::view v{1, 1, 1};
    const std::size_t axes = shape.size();
    for (std::size_t k = 0; k + 2 < axes; ++k) v.batch *= shape[k];
    if (axes > 1) v.rows = shape[axes - 2];
    if (axes > 0) v.cols = shape[axes - 1];
    return v;
}

bool shapes_agree(const tensor::shape& expected, const tensor::shape& have) {
    if (have.size() == expected.size()) return have == expected;
    std::size_t at = 0;
    for (const std::uint64_t extent : have) {
        if (at < expected.size() && extent == expected[at]) {
            ++at;
        } else if (extent != 1) {
            return false;
        }
    }
    return std::all_of(expected.begin() + static_cast<std::ptrdiff_t>(at), expected.end(),
                       [](std::uint64_t extent) { return extent == 1; });
}

bool is_integer(tensor::dtype t) {
    using tensor::dtype;
    return t == dtype::u8 || t == dtype::i8 || t == dtype::i16 || t == dtype::u16 ||
           t == dtype::i32 || t == dtype::u32 || t == dtype::i64 || t == dtype::u64;
}

bool fits_memory(const tensor::shape& shape) {
    const auto elements = tensor::element_count(shape);
    return elements && *elements != 0 && tensor::byte_count(tensor::dtype::f64, *elements);
}

}  // namespace mx::io

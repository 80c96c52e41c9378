// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/quantized/candidate.hpp"

#include <fmt/format.h>

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

std::optional<std::size_t> candidate::zeros(std::string& reason) const {
    if (const auto at = beside(name + std::string(naming.zeros), reason)) return at;
    return beside(stem + std::string(naming.zeros), reason);
}

std::optional<std::size_t> candidate::groups(std::string& reason) const {
    if (const auto at = beside(name + std::string(naming.groups), reason)) return at;
    return beside(stem + std::string(naming.groups), reason);
}

pairing candidate::begin(const quantized_layout& l) const {
    pairing p;
    p.name = name;
    p.layout = &l;
    p.codes = codes;
    p.scales = scales;
    return p;
}

bool fits_memory(const tensor::shape& shape) {
    const auto elements = tensor::element_count(shape);
    return elements && *elements != 0 && tensor::byte_count(tensor::dtype::f64, *elements);
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/tensor_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "libmx/base/status.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::lab {

tensor_file::tensor_file(const std::string& path) : path_(path), reader_(io::open_model(path)) {
    const std::vector<io::tensor_info>& all = reader_->tensors();
    for (std::size_t i = 0; i < all.size(); ++i) index_.emplace(all[i].name, i);
}

void tensor_file::fail(const std::string& message, const std::string& tensor) const {
    throw base::error(base::error_kind::input, message, {path_, tensor, {}});
}

std::vector<std::string> tensor_file::names() const {
    std::vector<std::string> all;
    for (const auto& [name, at] : index_) all.push_back(name);
    return all;
}

const io::tensor_info& tensor_file::info(const std::string& name) const {
    const auto found = index_.find(name);
    if (found == index_.end()) fail("has no tensor of this name", name);
    return reader_->tensors()[found->second];
}

std::vector<float> tensor_file::read(const std::string& name, const tensor::shape& shape) const {
    const io::tensor_info& t = info(name);
    if (!shape.empty() && t.shape != shape) {
        fail(
            fmt::format("has the shape {}, not {}", fmt::join(t.shape, "x"), fmt::join(shape, "x")),
            name);
    }
    std::vector<float> values(static_cast<std::size_t>(t.elements));
    read_part(name, 0, values);
    return values;
}

void tensor_file::read_part(const std::string& name, std::uint64_t first,
                            std::span<float> to) const {
    const io::tensor_info& t = info(name);
    if (tensor::row_of(t.type).to_f32 == tensor::widening::none) fail("holds no numbers", name);
    if (first > t.elements || to.size() > t.elements - first) fail("has too few values", name);
    std::vector<std::byte> scratch;
    const std::uint64_t inexact =
        io::read_f32(*reader_->open(index_.at(name)), t.type, first, to, scratch);
    if (inexact != 0) fail("has values that are not exact in float32", name);
}

std::vector<std::byte> tensor_file::bytes(const std::string& name, tensor::dtype type) const {
    const io::tensor_info& t = info(name);
    if (t.type != type) {
        fail(fmt::format("is {}, not {}", tensor::row_of(t.type).name, tensor::row_of(type).name),
             name);
    }
    std::vector<std::byte> all(static_cast<std::size_t>(t.bytes));
    reader_->open(index_.at(name))->read(0, all);
    return all;
}

}  // namespace mx::lab

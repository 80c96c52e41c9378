// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/packed_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "libmx/base/status.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/geometry.hpp"

namespace mx::engine {
namespace {

constexpr std::string_view tensor_prefix = "mx.tensor.";

[[noreturn]] void fail(const io::reader& file, const std::string& tensor, std::string message) {
    throw base::error(base::error_kind::input, std::move(message), {path_of(file), tensor, {}});
}

std::optional<tensor::shape> parse_shape(std::string_view text) {
    tensor::shape s;
    if (text == "-") return s;
    while (!text.empty()) {
        std::uint64_t extent = 0;
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), extent);
        if (status != std::errc{}) return std::nullopt;
        s.push_back(extent);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) break;
        if (text.front() != 'x' || text.size() == 1) return std::nullopt;
        text.remove_prefix(1);
    }
    if (s.empty()) return std::nullopt;
    return s;
}

std::optional<std::size_t> index_of(const io::reader& file, const std::string& name) {
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        if (file.tensors()[i].name == name) return i;
    }
    return std::nullopt;
}

std::size_t need(const io::reader& file, const std::string& tensor, const char* part,
                 std::uint64_t bytes) {
    const std::string name = tensor + part;
    const std::optional<std::size_t> at = index_of(file, name);
    if (!at) fail(file, tensor, fmt::format("the packed file has no array '{}'", name));
    const std::uint64_t have = file.tensors()[*at].bytes;
    if (have != bytes) {
        fail(file, tensor,
             fmt::format("'{}' holds {} bytes where shape and recipe call for {}", name, have,
                         bytes));
    }
    return *at;
}

packed_tensor read_entry(const io::reader& file, const std::string& name, std::string_view entry,
                         const codec::recipe& recipe) {
    const std::size_t space = entry.find(' ');
    const auto type = tensor::find_dtype(entry.substr(0, space));
    const auto shape =
        space == std::string_view::npos ? std::nullopt : parse_shape(entry.substr(space + 1));
    if (!type || !shape) {
        fail(file, name, fmt::format("metadata entry '{}' is not DTYPE SHAPE", entry));
    }
    const auto elements = tensor::element_count(*shape);
    if (!elements) fail(file, name, "the shape in the metadata is too large");
    std::string reason;
    const std::optional<geometry> layout = lay_out(*shape, recipe, reason);
    if (!layout) fail(file, name, "the recipe does not fit the tensor: " + reason);
    const std::uint64_t blocks = layout->grid.blocks();
    packed_tensor t{name, *type, *shape, 0, 0, std::nullopt, std::nullopt};
    t.codes = need(file, name, ".codes", block::packed_bytes(recipe.element->bits(), *elements));
    // The codes are there, so the number of blocks is far from overflowing.
    const auto scale_bytes = static_cast<std::uint64_t>(recipe.scale_format->bits() / 8);
    t.scales = need(file, name, ".scales", scale_bytes * blocks);
    if (codec::needs_tensor_facts(recipe)) {
        t.tensor_scale = need(file, name, tensor_scale_suffix, sizeof(float));
    }
    if (recipe.offset == codec::offset_kind::fp16) {
        t.offsets = need(file, name, ".offsets", 2 * blocks);
    }
    return t;
}

}  // namespace

std::vector<std::size_t> packed_tensor::parts() const {
    std::vector<std::size_t> all{codes, scales};
    for (const auto& more : {offsets, tensor_scale}) {
        if (more) all.push_back(*more);
    }
    return all;
}

std::string path_of(const io::reader& file) {
    return file.files().empty() ? std::string() : file.files().front().first;
}

io::planned_array codes_array(const std::string& tensor, std::string_view type_name, int bits,
                              const tensor::shape& shape) {
    const tensor::dtype type = *tensor::find_dtype(type_name);
    const std::uint64_t elements = *tensor::element_count(shape);
    const std::uint64_t bytes = block::packed_bytes(bits, elements);
    // A sub-byte dtype states its size in bits, which has to be whole bytes.
    const auto type_bits = static_cast<std::uint64_t>(tensor::row_of(type).bits);
    if (type_bits == 8 && bytes == elements) return {tensor + ".codes", type, shape};
    if (type_bits < 8 && elements * type_bits % 8 == 0) return {tensor + ".codes", type, shape};
    return {tensor + ".codes", tensor::dtype::u8, {bytes}};
}

tensor::dtype scales_type(const codec::recipe& r) {
    if (!codec::scales_have_codes(r)) return tensor::dtype::f32;
    return *tensor::find_dtype(r.scale_format->safetensors);
}

std::string tensor_key(const std::string& tensor) { return std::string(tensor_prefix) + tensor; }

std::string tensor_entry(const io::tensor_info& info) {
    return fmt::format("{} {}", tensor::row_of(info.type).name, tensor::to_string(info.shape));
}

packed_model read_packed(const io::reader& file) {
    const io::metadata_map& metadata = file.metadata();
    const auto recipe = metadata.find(recipe_key_name);
    if (recipe == metadata.end()) {
        fail(file, "",
             "not a packed file: its metadata names no recipe; "
             "`mx quantize --packed` writes such files");
    }
    packed_model model;
    try {
        model.recipe = codec::parse_recipe(recipe->second);
    } catch (const base::error& e) {
        fail(file, "", e.message());
    }
    for (const auto& [key, entry] : metadata) {
        if (key.rfind(tensor_prefix, 0) != 0) continue;
        const std::string name = key.substr(tensor_prefix.size());
        model.tensors.push_back(read_entry(file, name, entry, model.recipe));
    }
    // The metadata is sorted by name; the file has the order of the original.
    std::sort(model.tensors.begin(), model.tensors.end(),
              [](const packed_tensor& a, const packed_tensor& b) { return a.codes < b.codes; });
    return model;
}

}  // namespace mx::engine

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <optional>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/pipeline/geometry.hpp"
#include "libmx/pipeline/packed_file.hpp"
#include "libmx/pipeline/scale_origin.hpp"

namespace mx::pipeline {
namespace {

constexpr std::string_view blocks_suffix = "_blocks";
constexpr std::string_view scales_suffix = "_scales";
constexpr std::uint64_t largest_block = quantize::max_block_elements;

[[noreturn]] void fail(const io::reader& file, const std::string& tensor, std::string message) {
    throw base::error(base::error_kind::input, std::move(message), {path_of(file), tensor, {}});
}

std::optional<std::size_t> index_of(const io::reader& file, std::string_view name) {
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        if (file.tensors()[i].name == name) return i;
    }
    return std::nullopt;
}

std::size_t need(const io::reader& file, std::string_view option, const std::string& name) {
    if (const auto at = index_of(file, name)) return *at;
    std::vector<std::string_view> names;
    for (const io::tensor_info& t : file.tensors()) names.emplace_back(t.name);
    throw base::error(base::error_kind::usage,
                      fmt::format("{}: {}", option, base::unknown("array", name, names)));
}

const format::element_format& element_named(const std::string& name) {
    if (const format::element_format* f = format::find_element_format(name)) return *f;
    std::vector<std::string_view> names;
    for (const format::element_format& f : format::element_formats) names.push_back(f.name);
    throw base::error(base::error_kind::usage, base::unknown("element format", name, names));
}

// The element format that a dtype names, or nullptr for bytes.
const format::element_format* element_of(tensor::dtype type) {
    const std::string_view name = tensor::row_of(type).name;
    if (name == "U8" || name == "I8") return nullptr;
    for (const format::element_format& f : format::element_formats) {
        if (f.safetensors == name) return &f;
    }
    return nullptr;
}

// Blocks along the last axis, as many as there are scale bytes.
coded_tensor pair_of(const io::reader& file, std::string name, std::size_t codes,
                     std::size_t scales, const format::element_format& element) {
    const io::tensor_info& c = file.tensors()[codes];
    const io::tensor_info& s = file.tensors()[scales];
    if (tensor::row_of(c.type).bits > 8) {
        fail(file, c.name, "element codes are called for, of one byte or less each");
    }
    const auto width = static_cast<std::uint64_t>(block::packed_bits(element.bits()));
    if (s.bytes != s.elements) {
        fail(file, s.name, "scales of one byte each are called for");
    }
    const std::uint64_t elements = c.bytes / width * 8 + c.bytes % width * 8 / width;
    if (s.elements == 0 || elements % s.elements != 0 || elements / s.elements < 2 ||
        elements / s.elements > largest_block) {
        fail(file, c.name,
             fmt::format("{} codes do not divide into blocks for the {} scales of '{}'", elements,
                         s.elements, s.name));
    }
    const std::uint64_t size = elements / s.elements;
    const std::uint64_t along = s.shape.empty() ? 1 : s.shape.back();
    coded_tensor t;
    t.name = std::move(name);
    t.file = &file;
    t.codes = codes;
    t.scales = scales;
    t.element = &element;
    t.grid = {{1, s.elements / along, along * size}, 1, size};
    t.block = fmt::format("1x{}", size);
    return t;
}

coded_tensor of_packed(const io::reader& file, const packed_model& model, const packed_tensor& p) {
    const quantize::recipe& r = model.recipe;
    if (!r.scale_format->power_of_two() || r.offset != quantize::offset_kind::none) {
        fail(file, p.name,
             "only blocks with E8M0 scales and without an offset are judged by their bytes");
    }
    std::string reason;
    coded_tensor t;
    t.name = p.name;
    t.file = &file;
    t.codes = p.codes;
    t.scales = p.scales;
    t.element = r.element;
    t.grid = lay_out(p.shape, r, reason)->grid;
    t.block = fmt::format("{}x{}", r.block.rows, r.block.cols);
    t.recipe = r;
    t.has_recipe = true;
    return t;
}

}  // namespace

std::vector<coded_tensor> find_coded_tensors(const io::reader& file, const coded_request& how) {
    std::vector<coded_tensor> found;
    if (!how.elements.empty()) {
        const std::size_t codes = need(file, "--elements", how.elements);
        const std::size_t scales = need(file, "--scales", how.scales);
        const format::element_format* element = element_of(file.tensors()[codes].type);
        if (!how.element.empty()) element = &element_named(how.element);
        if (element == nullptr) {
            throw base::error(base::error_kind::usage,
                              fmt::format("--elements {}: bytes do not say their format; name it "
                                          "with --element",
                                          how.elements));
        }
        found.push_back(pair_of(file, how.elements, codes, scales, *element));
        return found;
    }
    if (file.metadata().count(recipe_key_name) != 0) {
        const packed_model model = read_packed(file);
        for (const packed_tensor& p : model.tensors) found.push_back(of_packed(file, model, p));
        return found;
    }
    std::map<std::string_view, std::size_t> names;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) names[file.tensors()[i].name] = i;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        const io::tensor_info& info = file.tensors()[i];
        if (info.type != tensor::dtype::u8 || info.name.size() <= blocks_suffix.size()) continue;
        const std::size_t cut = info.name.size() - blocks_suffix.size();
        if (info.name.compare(cut, blocks_suffix.size(), blocks_suffix) != 0) continue;
        const std::string name = info.name.substr(0, cut);
        const std::string scales_name = name + std::string(scales_suffix);
        const auto scales = names.find(scales_name);
        if (scales == names.end()) continue;
        const std::string element = how.element.empty() ? "e2m1" : how.element;
        found.push_back(pair_of(file, name, i, scales->second, element_named(element)));
    }
    return found;
}

}  // namespace mx::pipeline

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/io/packed_read.hpp"
#include "libmx/quantized/layouts.hpp"
#include "libmx/quantized/pairings.hpp"
#include "libmx/studies/rosetta/scale_origin.hpp"

namespace mx::rosetta {
namespace {

constexpr std::uint64_t largest_block = codec::max_block_elements;

[[noreturn]] void fail(const io::tensor_info& at, std::string message) {
    throw base::error(base::error_kind::input, std::move(message), {at.file, at.name, {}});
}

using reader_list = std::vector<const io::reader*>;

engine::tensor_ref need(const reader_list& files, std::string_view option,
                        const std::string& name) {
    std::vector<std::string_view> names;
    for (const io::reader* file : files) {
        for (std::size_t i = 0; i < file->tensors().size(); ++i) {
            if (file->tensors()[i].name == name) return {file, i};
            names.emplace_back(file->tensors()[i].name);
        }
    }
    base::refuse("{}: {}", option, base::unknown("array", name, names));
}

// The element format of a dtype, or nullptr for bytes.
const format::element_format* element_of(tensor::dtype type) {
    const std::string_view name = tensor::row_of(type).name;
    if (name == "U8" || name == "I8") return nullptr;
    for (const format::element_format& f : format::element_formats) {
        if (f.safetensors == name) return &f;
    }
    return nullptr;
}

// The format of named scales: UE4M3 for F8_E4M3; for bytes `named`, or E8M0 if empty.
const format::scale_format& scale_format_of(const io::tensor_info& scales,
                                            const std::string& named) {
    const std::string e4m3 = "ue4m3", e8m0 = "e8m0";
    const bool numbers = tensor::row_of(scales.type).name == "F8_E4M3";
    const format::scale_format& f = base::row_named(format::scale_formats, "scale format",
                                                    !named.empty() ? named
                                                    : numbers      ? e4m3
                                                                   : e8m0);
    if (!f.has_codes()) fail(scales, "scales of one byte each are expected");
    return f;
}

// The single number of an array; nullopt if it scales nothing, as in a tensor of zeros.
std::optional<codec::tensor_scale> tensor_scale_of(engine::tensor_ref from,
                                                   codec::two_level_kind convention) {
    const io::tensor_info& info = from.info();
    if (info.type != tensor::dtype::f32 || info.elements != 1) {
        fail(info, "a tensor scale of one F32 is expected");
    }
    const float stored = io::read_run<float>(*from.file->open(from.index), 0, 1).front();
    const codec::tensor_scale t = codec::stored_tensor_scale(convention, stored);
    const auto usable = [](float x) { return x > 0 && std::isfinite(x); };
    if (!usable(t.stored) || !usable(t.decode)) return std::nullopt;
    return t;
}

// Checkpoints either divide or multiply by the tensor scale.
codec::two_level_kind convention_of(bool divides) {
    return divides ? codec::two_level_kind::compressed_tensors : codec::two_level_kind::exact;
}

bool name_divides(std::string_view name) {
    return std::ranges::any_of(io::tensor_scale_names, [&](const io::tensor_scale_name& n) {
        return n.divides && name.ends_with(n.ending);
    });
}

// Blocks along the last axis, one for each scale byte.
coded_tensor named_pair(engine::tensor_ref codes, engine::tensor_ref scales,
                        const format::element_format& element,
                        const format::scale_format& scale_format) {
    const io::tensor_info& c = codes.info();
    const io::tensor_info& s = scales.info();
    if (tensor::row_of(c.type).bits > 8) {
        fail(c, "element codes are expected, of one byte or less each");
    }
    const auto width = static_cast<std::uint64_t>(block::packed_bits(element.bits()));
    if (s.bytes != s.elements) fail(s, "scales of one byte each are expected");
    const std::uint64_t elements = c.bytes / width * 8 + c.bytes % width * 8 / width;
    if (s.elements == 0 || elements % s.elements != 0 || elements / s.elements < 2 ||
        elements / s.elements > largest_block) {
        fail(c, fmt::format("{} codes do not divide into blocks for the {} scales of '{}'",
                            elements, s.elements, s.name));
    }
    const std::uint64_t size = elements / s.elements;
    const std::uint64_t along = s.shape.empty() ? 1 : s.shape.back();
    const block::grid grid{{1, s.elements / along, along * size}, 1, size};
    coded_tensor t;
    t.name = c.name;
    t.codes = codes;
    t.scales = scales;
    t.element = &element;
    t.scale_format = &scale_format;
    t.grid = grid;
    t.block = fmt::format("1x{}", size);
    return t;
}

// Why no recipe explains the bytes of a quantized tensor; empty if one may.
std::string unexplained(const io::pairing& p, const std::vector<engine::tensor_ref>& arrays) {
    if (p.layout->scales == io::scale_array::real || p.element == nullptr) {
        return "its scales are numbers, not codes";
    }
    if (p.down) return "its blocks run down the columns";
    if (p.tensor_scale && arrays[*p.tensor_scale].info().elements != 1) {
        return "it has a tensor scale for each expert";
    }
    if (p.input_channels) return "its weights were divided by factors of their input channels";
    return {};
}

// Appends the pairings that the layouts of quantized/layouts.hpp confirm.
void append_pairings(const std::vector<engine::tensor_ref>& arrays, const std::vector<bool>& skip,
                     const coded_request& how, std::vector<coded_tensor>& to,
                     std::vector<engine::skipped_tensor>& left_out) {
    for (const io::pairing& p : io::find_pairings(arrays, how.swizzled, skip).found) {
        if (std::string why = unexplained(p, arrays); !why.empty()) {
            left_out.push_back({arrays[p.codes].info().file, p.name, {}, std::move(why)});
            continue;
        }
        coded_tensor t;
        t.fits_swizzled = p.fits_swizzled;
        if (p.swizzled) {
            std::vector<engine::tensor_ref> own;
            for (const std::size_t part : p.parts()) own.push_back(arrays[part]);
            t.open_scales = [own, alone = p.alone()] { return io::open_block_scales(alone, own); };
        }
        if (p.layout->scales == io::scale_array::e4m3) {
            t.scale_format = format::find_scale_format("ue4m3");
        }
        if (p.tensor_scale) {
            t.outer = tensor_scale_of(arrays[*p.tensor_scale], convention_of(p.divides));
        }
        t.name = p.name;
        t.codes = arrays[p.codes];
        t.scales = arrays[p.scales];
        t.element = how.element.empty()
                        ? p.element
                        : &base::row_named(format::element_formats, "element format", how.element);
        if (block::packed_bits(t.element->bits()) != block::packed_bits(p.element->bits())) {
            fail(t.codes.info(), fmt::format("its codes have {} bits, {} has {}", p.element->bits(),
                                             t.element->name, t.element->bits()));
        }
        t.grid = p.grid;
        t.block = fmt::format("{}x{}", p.grid.block_rows, p.grid.block_cols);
        to.push_back(std::move(t));
    }
}

coded_tensor of_packed(const io::reader& file, const engine::packed_tensor& p) {
    const codec::recipe& r = p.recipe;
    if (!r.scale_format->has_codes() || r.offset != codec::offset_kind::none) {
        throw base::error(base::error_kind::input,
                          "only blocks with scales of one byte and without an offset are judged by "
                          "their bytes",
                          {engine::path_of(file), p.name, {}});
    }
    coded_tensor t;
    t.name = p.name;
    t.codes = {&file, p.codes};
    t.scales = {&file, p.scales};
    t.element = r.element;
    t.scale_format = r.scale_format;
    t.grid = p.grid();
    t.block = fmt::format("{}x{}", r.block.rows, r.block.cols);
    t.recipe = r;
    t.has_recipe = true;
    if (p.tensor_scale && !codec::has_outer_areas(r)) {
        t.outer = tensor_scale_of({&file, *p.tensor_scale}, r.by->two_level.value);
    }
    return t;
}

std::vector<coded_tensor> find_in(const reader_list& files, const coded_request& how,
                                  std::vector<engine::skipped_tensor>& left_out) {
    std::vector<coded_tensor> found;
    if (!how.elements.empty()) {
        const engine::tensor_ref codes = need(files, "--codes", how.elements);
        const engine::tensor_ref scales = need(files, "--scales", how.scales);
        const format::element_format* element = element_of(codes.info().type);
        if (!how.element.empty())
            element = &base::row_named(format::element_formats, "element format", how.element);
        if (element == nullptr) {
            base::refuse("--codes {}: bytes do not say their format; name it with --element",
                         how.elements);
        }
        found.push_back(
            named_pair(codes, scales, *element, scale_format_of(scales.info(), how.scale_format)));
        if (!how.tensor_scale.empty()) {
            const engine::tensor_ref of = need(files, "--tensor-scale", how.tensor_scale);
            found.back().outer = tensor_scale_of(of, convention_of(name_divides(how.tensor_scale)));
            if (!found.back().outer) fail(of.info(), "a finite and positive number is expected");
        }
        return found;
    }
    std::vector<engine::tensor_ref> arrays;
    std::vector<bool> skip;
    for (const io::reader* file : files) {
        for (std::size_t i = 0; i < file->tensors().size(); ++i) arrays.push_back({file, i});
        const bool packed = engine::names_recipes(*file);
        skip.resize(arrays.size(), packed);
        if (!packed) continue;
        for (const engine::packed_tensor& p : engine::read_packed(*file)) {
            found.push_back(of_packed(*file, p));
        }
    }
    append_pairings(arrays, skip, how, found, left_out);
    return found;
}

}  // namespace

std::vector<coded_tensor> find_coded_tensors(const engine::model& of, const coded_request& how,
                                             std::vector<engine::skipped_tensor>& left_out) {
    reader_list files;
    for (const auto& file : of.readers()) files.push_back(file.get());
    return find_in(files, how, left_out);
}

std::vector<coded_tensor> find_coded_tensors(const io::reader& file, const coded_request& how) {
    std::vector<engine::skipped_tensor> left_out;
    return find_in({&file}, how, left_out);
}

}  // namespace mx::rosetta

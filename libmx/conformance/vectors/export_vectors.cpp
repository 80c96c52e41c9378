// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/export_vectors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <span>
#include <system_error>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/io/writer.hpp"

namespace mx::conformance::vectors {
namespace {

using tensor::dtype;
namespace fs = std::filesystem;

template <typename T>
std::vector<std::uint32_t> words_of(const std::vector<T>& values) {
    return {values.begin(), values.end()};
}

// Dialects that store the factor applied before encoding, not the one applied after decoding.
bool stores_encode_scale(const codec::recipe& r) {
    const codec::two_level_kind kind = r.by->two_level.value;
    return kind == codec::two_level_kind::te || kind == codec::two_level_kind::compressed_tensors;
}

// The arrays of vectors of `r` in the order in which they are written; without an input, only their
// descriptions.
std::vector<vector_array> arrays_of(const codec::recipe& r, std::span<const float> input = {},
                                    const block_vectors& made = {}) {
    const std::size_t n = elements_of_block(r);
    std::vector<std::uint32_t> x;
    for (const float value : input) x.push_back(base::bits_of(value));
    std::vector<vector_array> all{{"input", "input", dtype::f32, 32, n, false,
                                   "float32 words to be quantized", std::move(x)}};
    if (codec::scales_have_codes(r)) {
        all.push_back({"scale_code", "scale", dtype::u8, 8, 1, true, "scale codes",
                       words_of(made.scale_code)});
    } else {
        all.push_back({"scale", "scale", dtype::f32, 32, 1, true, "float32 scales", made.scale});
    }
    if (r.offset != codec::offset_kind::none) {
        all.push_back({"offset", "offset", dtype::f16, 16, 1, true, "binary16 offsets",
                       words_of(made.offset)});
    }
    if (codec::has_tensor_scale(r)) {
        all.push_back({stores_encode_scale(r) ? "global_encode_scale" : "per_tensor_scale",
                       "tensor_scale",
                       dtype::f32,
                       32,
                       0,
                       true,
                       "float32 scale that all blocks share",
                       {made.tensor_scale.value_or(0)}});
    }
    all.push_back({"code", "codes", dtype::u8, r.element->bits(), n, true, "element codes",
                   words_of(made.code)});
    all.push_back({"dequant", "dequant", dtype::f32, 32, n, true, "float32 dequantized values",
                   made.dequant});
    return all;
}

std::vector<std::byte> bytes_of(const vector_array& a) {
    std::vector<std::byte> bytes;
    const int width = tensor::row_of(a.type).bits / 8;
    for (const std::uint32_t word : a.words) {
        for (int i = 0; i < width; ++i) {
            bytes.push_back(static_cast<std::byte>(word >> (8 * i) & 0xffu));
        }
    }
    return bytes;
}

std::string contract_of(const std::vector<vector_array>& arrays) {
    std::string names;
    for (const vector_array& a : arrays) {
        if (a.contract) names += fmt::format("{}{}", names.empty() ? "" : " ", a.name);
    }
    return names;
}

io::metadata_map metadata_of(const vector_request& request, const vector_source& source,
                             const std::vector<vector_array>& arrays) {
    const codec::recipe& r = request.recipe;
    io::metadata_map m{{"kind", "blocks"},
                       {"recipe", codec::to_string(r)},
                       {"dialect", std::string(r.by->name)},
                       {"element", std::string(r.element->name)},
                       {"scale", std::string(r.rule->name)},
                       {"scale_format", std::string(r.scale_format->name)},
                       {"round", std::string(format::row_of(r.round).name)},
                       {"block", fmt::format("{}x{}", r.block.rows, r.block.cols)},
                       {"input_dtype", "f32"},
                       {"contract", contract_of(arrays)},
                       {"source", request.made_by},
                       {"inputs", source.words}};
    if (!source.inputs.category.empty()) m["categories"] = category_text();
    return m;
}

// The shape of an array: rows of `row_blocks` blocks.
tensor::shape shape_of(const vector_array& a, std::uint64_t blocks, std::uint64_t row_blocks) {
    if (a.per_block == 0) return {1};
    if (a.per_block == 1) return {blocks};
    return {blocks / row_blocks, row_blocks * a.per_block};
}

void write_safetensors(const std::string& out, const vector_request& request,
                       const vector_source& source, const std::vector<vector_array>& arrays,
                       std::uint64_t blocks) {
    const std::uint64_t row_blocks = row_blocks_of(request.recipe);
    std::vector<io::planned_array> plan;
    std::vector<std::vector<std::byte>> data;
    for (const vector_array& a : arrays) {
        plan.push_back({std::string(a.name), a.type, shape_of(a, blocks, row_blocks)});
        data.push_back(bytes_of(a));
    }
    const auto add_marks = [&](const char* name, const std::vector<std::uint8_t>& marks) {
        if (marks.empty()) return;
        plan.push_back({name, tensor::dtype::u8, {marks.size()}});
        const auto bytes = std::as_bytes(std::span(marks));
        data.emplace_back(bytes.begin(), bytes.end());
    };
    add_marks("category", source.inputs.category);
    add_marks("is_bf16", source.inputs.is_bf16);
    const auto file = io::create_safetensors(out, plan, metadata_of(request, source, arrays));
    for (std::size_t i = 0; i < plan.size(); ++i) file->write(i, 0, data[i]);
    file->commit();
}

std::string hex_path(const std::string& folder, const vector_array& a) {
    return (fs::path(folder) / fmt::format("{}.hex", a.text)).string();
}

std::vector<std::string> write_hex(const std::string& folder, const vector_request& request,
                                   const vector_source& source,
                                   const std::vector<vector_array>& arrays) {
    make_folder(folder);
    const hex_heading heading{codec::to_string(request.recipe), request.made_by, source.words};
    std::vector<std::string> paths;
    for (const vector_array& a : arrays) {
        paths.push_back(hex_path(folder, a));
        io::output_file file(paths.back());
        file.append(hex_text(a, heading));
        file.commit();
    }
    return paths;
}

}  // namespace

std::string hex_text(const vector_array& a, const hex_heading& heading) {
    std::string text;
    const auto out = std::back_inserter(text);
    const std::size_t line = a.per_block == 0 ? a.words.size() : a.per_block;
    fmt::format_to(out, "// {}: {} of recipe {}\n", a.text, a.meaning, heading.recipe);
    fmt::format_to(out, "// written by {}; inputs: {}\n", heading.made_by, heading.source);
    if (a.per_block == 0) {
        fmt::format_to(out, "// layout: one word for all blocks\n");
    } else {
        fmt::format_to(out, "// layout: one block per line, {} word{} each, first element first\n",
                       line, line == 1 ? "" : "s");
    }
    fmt::format_to(out, "// $readmemh: reg [{}:0] {} [0:{}], {} words of {} bits\n", a.bits - 1,
                   a.text, a.words.size() - 1, a.words.size(), a.bits);
    const int digits = (a.bits + 3) / 4;
    for (std::size_t i = 0; i < a.words.size(); ++i) {
        const char end = (i + 1) % line == 0 ? '\n' : ' ';
        fmt::format_to(out, "{:0{}x}{}", a.words[i], digits, end);
    }
    return text;
}

void make_folder(const std::string& path) {
    std::error_code failure;
    fs::create_directories(path, failure);
    if (!failure) return;
    throw base::error(base::error_kind::output,
                      fmt::format("cannot make the folder: {}", failure.message()), {path, {}, {}});
}

std::uint64_t default_vector_blocks(const codec::recipe& r) {
    const std::uint64_t fitting = 16384 / elements_of_block(r);
    return std::clamp<std::uint64_t>(fitting, input_category_count, 240);
}

vector_source generated_source(const vector_request& request) {
    const std::size_t row = row_blocks_of(request.recipe);
    std::size_t blocks =
        request.blocks != 0 ? request.blocks : default_vector_blocks(request.recipe);
    blocks = (blocks + row - 1) / row * row;  // round up to whole rows
    return {generate_inputs(request.recipe, blocks, request.seed),
            fmt::format("generated, {} blocks, seed {}", blocks, request.seed)};
}

vector_report export_vectors(const vector_request& request, const vector_source& source,
                             const std::string& out, const std::string& hex) {
    const std::vector<float>& input = source.inputs.values;
    const block_vectors made =
        quantize_blocks(request.recipe, input, row_blocks_of(request.recipe));
    const std::vector<vector_array> arrays = arrays_of(request.recipe, input, made);
    vector_report report{out, made.blocks(), input.size(), {}};
    write_safetensors(out, request, source, arrays, made.blocks());
    if (!hex.empty()) report.texts = write_hex(hex, request, source, arrays);
    return report;
}

std::vector<std::string> hex_files(const codec::recipe& r, const std::string& hex) {
    std::vector<std::string> paths;
    for (const vector_array& a : arrays_of(r)) paths.push_back(hex_path(hex, a));
    return paths;
}

}  // namespace mx::conformance::vectors

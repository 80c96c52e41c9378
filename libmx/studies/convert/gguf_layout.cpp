// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/io/gguf/gguf_types.hpp"
#include "libmx/io/gguf/gguf_writer.hpp"
#include "libmx/studies/convert/engine_layouts.hpp"
#include "libmx/studies/convert/gguf_model.hpp"

namespace mx::convert {
namespace {

using code_span = std::span<const std::uint8_t>;

constexpr std::string_view gguf_weight = ".weight", gguf_outer = ".scale";

// Two halves of `codes` as the low and the high nibbles of bytes.
void pack_halves(code_span codes, std::span<std::byte> out) {
    const std::size_t half = codes.size() / 2;
    for (std::size_t i = 0; i < half; ++i) {
        out[i] = static_cast<std::byte>(codes[i] | codes[half + i] << 4);
    }
}

void pack_mxfp4(code_span codes, code_span scales, std::span<std::byte> out) {
    out[0] = static_cast<std::byte>(scales[0]);
    pack_halves(codes, out.subspan(1));
}

void pack_nvfp4(code_span codes, code_span scales, std::span<std::byte> out) {
    constexpr std::size_t part = 16;
    for (std::size_t i = 0; i < scales.size(); ++i) {
        out[i] = static_cast<std::byte>(scales[i]);
        pack_halves(codes.subspan(part * i, part),
                    out.subspan(scales.size() + part / 2 * i, part / 2));
    }
}

// The scale is rounded to float16 after codes have been computed from its float32 reciprocal
// (ggml-org/llama.cpp@01243c5 ggml/src/ggml-quants.c). A block with NaN or Inf has a NaN scale.
bool encode_q8_0(std::span<const float> x, std::span<std::byte> out) {
    float amax = 0;
    bool finite = true;
    for (const float v : x) {
        amax = std::max(amax, std::abs(v));
        finite = finite && std::isfinite(v);
    }
    const float d = finite ? amax / 127 : std::numeric_limits<float>::quiet_NaN();
    const float inverse = d > 0x1p-126f ? 1 / d : 0;  // below, d is 0 in float16
    const std::uint16_t half = format::half_bits(d);
    out[0] = static_cast<std::byte>(half);
    out[1] = static_cast<std::byte>(half >> 8);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const float code = finite ? std::round(x[i] * inverse) : 0;
        out[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(code));
    }
    std::array<float, 32> decoded;
    io::decode_q8_0({out.data(), false}, decoded);
    return std::ranges::equal(x, decoded);
}

constexpr std::array gguf_forms{
    gguf_form{"mxfp4", "mxfp4", 39, 38, {32, 17, pack_mxfp4}},
    gguf_form{"nvfp4", "nvfp4", 40, 39, {64, 36, pack_nvfp4}},
    gguf_form{"q8_0",
              "fp8_1x128:element=int8,block=1x32,int_min=symmetric,round=away",
              8,
              7,
              {32, 34, nullptr, encode_q8_0}},
};

bool holds_blocks(const gguf_form& f, const codec::recipe& r) {
    if (f.blocks.encode != nullptr) return r == codec::parse_block_recipe(f.recipe);
    return has_blocks_of(r, f.recipe) && codec::scales_have_codes(r) &&
           outer_of(r) != outer_form::divides;
}

const gguf_form& gguf_form_of(const codec::recipe& r) {
    std::vector<std::string_view> others;
    for (const gguf_form& f : gguf_forms) {
        if (holds_blocks(f, r)) return f;
        others.push_back(f.name);
    }
    base::refuse("--layout gguf cannot hold '{}'; it has {}, under any scale rule",
                 codec::to_string(r), base::joined(others, ", "));
}

std::string gguf_misfit(const gguf_form& f, const codec::recipe& r, const io::tensor_info& info) {
    const tensor::shape& s = info.shape;
    if (s.size() < 2 || s.back() % f.blocks.elements != 0) {
        return fmt::format("ggml's blocks have {} elements of a row", f.blocks.elements);
    }
    if (engine::axes_along_sums(info) != engine::last_axis(s)) return "no product with it is known";
    if (codec::has_tensor_scale(r) && (s.size() > 2 || !info.name.ends_with(gguf_weight))) {
        return "only a matrix NAME.weight has a tensor scale; take scale=single-level";
    }
    return {};
}

// The name of a weight's tensor scale.
std::string outer_name(const std::string& weight) {
    return weight.substr(0, weight.size() - gguf_weight.size()) + std::string(gguf_outer);
}

}  // namespace

codec::recipe parse_layout_recipe(std::string_view layout, std::string_view text) {
    for (const gguf_form& f : gguf_forms) {
        if (layout == gguf_layout && f.blocks.encode != nullptr && text == f.name) {
            return codec::parse_recipe(f.recipe);
        }
    }
    return codec::parse_recipe(text);
}

conversion write_gguf_layout(const std::vector<assigned_tensor>& tensors, const std::string& path,
                             const engine::run_control& control) {
    const gguf_model model = gguf_model_of(tensors);
    std::map<std::string, const io::planned_gguf_tensor*> by_name;
    for (const io::planned_gguf_tensor& t : model.plan) by_name.emplace(t.name, &t);

    std::vector<assigned_tensor> all;
    std::map<std::string, io::planned_gguf_tensor> written;  // what is quantized, and its scales
    std::map<std::string, std::string> why;
    std::pair<std::string, std::string> unfit;  // the first one, and why
    std::uint32_t file_type = 0;
    for (const assigned_tensor& t : model.tensors) {
        const io::tensor_info& info = t.tensor.info();
        why[info.name] = t.kept;
        if (!t.recipe) continue;
        const gguf_form& f = gguf_form_of(*t.recipe);
        const std::string misfit = gguf_misfit(f, *t.recipe, info);
        if (!misfit.empty()) {
            why[info.name] = misfit;
            if (unfit.first.empty()) unfit = {info.name, misfit};
            continue;
        }
        file_type = f.file_type;
        written[info.name] = {info.name, f.type_id, info.shape};
        if (codec::has_tensor_scale(*t.recipe)) {
            written[outer_name(info.name)] = {outer_name(info.name), 0, {1}};
        }
        all.push_back(t);
    }
    if (written.empty() && !unfit.first.empty()) {
        throw base::error(base::error_kind::input, "nothing can be quantized: " + unfit.second,
                          {tensors.front().tensor.info().file, unfit.first, {}});
    }
    for (std::size_t i = 0; i < model.plan.size(); ++i) {
        const std::string& name = model.plan[i].name;
        // The tensor scale of a weight that is quantized anew.
        const bool replaced = name.ends_with(gguf_outer) &&
                              written.contains(name.substr(0, name.size() - gguf_outer.size()) +
                                               std::string(gguf_weight));
        if (!written.contains(name) && !replaced)
            all.push_back({{model.as_stored.get(), i}, {}, why[name]});
    }

    conversion_parts parts;
    parts.arrays = [](const io::tensor_info& info, const codec::recipe& r) {
        const gguf_form& f = gguf_form_of(r);
        stored_arrays a;
        a.codes = {
            info.name, tensor::dtype::u8, {info.elements / f.blocks.elements * f.blocks.bytes}};
        a.code_bits = r.element->bits();
        a.interleaved = &f.blocks;
        if (codec::has_tensor_scale(r)) {
            a.tensor_scale = {outer_name(info.name), tensor::dtype::f32, {1}};
        }
        return a;
    };
    const destination to = [&](const std::vector<io::planned_array>& plan, const auto&) {
        std::vector<io::planned_gguf_tensor> planned;
        for (const io::planned_array& a : plan) {
            const auto at = written.find(a.name);
            planned.push_back(at != written.end() ? at->second : *by_name.at(a.name));
        }
        return io::create_gguf(path, planned, model.metadata(file_type));
    };
    conversion done = quantize_model(all, quantized_form::packed, true, to, control, parts);
    done.skipped.insert(done.skipped.end(), model.left_out.begin(), model.left_out.end());
    return done;
}

}  // namespace mx::convert

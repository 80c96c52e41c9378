// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/engine/remarks.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/studies/convert/output.hpp"

namespace mx::convert {
namespace {

constexpr std::uint64_t decoded_at_once = std::uint64_t{1} << 17;  // elements

}  // namespace

conversion dequantize_tensors(const std::vector<engine::tensor_ref>& tensors,
                              const std::string& out, const engine::run_control& control) {
    output o;
    o.result.remarks = engine::remarks_on(tensors);
    std::vector<engine::tensor_ref> decoded;
    for (const engine::tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        const std::string reason = engine::why_left_out(info);
        if (reason.empty() && !info.layout.empty()) {
            decoded.push_back(t);
        } else if (!o.keep(t, !reason.empty()        ? reason
                              : info.missing.empty() ? "not packed"
                                                     : "lacks " + info.missing)) {
            o.result.skipped.push_back({info.file, info.name, "", reason});
        }
    }
    if (decoded.empty()) {
        throw base::error(
            base::error_kind::input,
            "nothing here has a packing that mx decodes; `mx tensors` shows what was found",
            {tensors.empty() ? std::string() : tensors.front().info().file, "", {}});
    }
    std::vector<std::size_t> arrays;
    for (const engine::tensor_ref& t : decoded) {
        arrays.push_back(o.add({t.info().name, tensor::dtype::f32, t.info().shape}));
        engine::put_axes(o.metadata, t.info());
        o.result.elements += t.info().elements;
    }
    o.result.tensors = decoded.size();
    io::array_writer& writer = o.create(to_file(out));
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < decoded.size(); ++i) {
        const io::tensor_info& info = decoded[i].info();
        const std::unique_ptr<io::byte_source> source = decoded[i].file->open(decoded[i].index);
        const std::uint64_t pieces = (info.elements + decoded_at_once - 1) / decoded_at_once;
        base::parallel_for(pieces, control.threads, control.cancel, [&](std::uint64_t at, int) {
            const std::uint64_t first = at * decoded_at_once;
            std::vector<float> values(
                static_cast<std::size_t>(std::min(decoded_at_once, info.elements - first)));
            std::vector<std::byte> scratch;
            io::read_f32(*source, info.type, first, values, scratch);
            writer.write(arrays[i], first * sizeof(float), std::as_bytes(std::span(values)));
        });
        done += info.elements;
        if (control.on_progress) control.on_progress({done, o.result.elements});
    }
    return o.finish(control);
}

conversion dequantize_model(const io::reader& file, const std::string& out,
                            const engine::run_control& control) {
    const std::vector<engine::packed_tensor> tensors = engine::read_packed(file);
    output o;
    std::vector<bool> packed(file.tensors().size());
    for (const engine::packed_tensor& t : tensors) {
        for (const std::size_t part : t.parts()) packed[part] = true;
    }
    for (std::size_t i = 0; i < packed.size(); ++i) {
        if (packed[i] || o.keep({&file, i}, "not packed")) continue;
        const io::tensor_info& info = file.tensors()[i];
        o.result.skipped.push_back({info.file, info.name, "", engine::why_left_out(info)});
    }
    std::vector<std::size_t> arrays;
    std::vector<engine::tensor_recipe> recipes;
    for (const engine::packed_tensor& t : tensors) {
        recipes.push_back({t.name, t.recipe});
        arrays.push_back(o.add({t.name, tensor::dtype::f32, t.shape}));
        io::tensor_info info;
        info.name = t.name;
        info.shape = t.shape;
        info.sums_over = t.sums_over;
        engine::put_axes(o.metadata, info);
        o.result.elements += *tensor::element_count(t.shape);
    }
    o.result.tensors = tensors.size();
    engine::put_recipes(o.metadata, recipes, false);
    io::array_writer& writer = o.create(to_file(out));
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const engine::packed_tensor& t = tensors[i];
        const std::uint64_t elements = *tensor::element_count(t.shape);
        if (elements == 0) continue;
        const std::unique_ptr<io::byte_source> values = engine::open_packed(file, t);
        engine::for_each_piece(
            t.grid(), control.threads, control.cancel,
            [&](std::uint64_t first, std::uint64_t count) {
                std::vector<std::byte> bytes(static_cast<std::size_t>(count * sizeof(float)));
                values->read(first * sizeof(float), bytes);
                writer.write(arrays[i], first * sizeof(float), bytes);
            });
        done += elements;
        if (control.on_progress) control.on_progress({done, o.result.elements});
    }
    return o.finish(control);
}

}  // namespace mx::convert

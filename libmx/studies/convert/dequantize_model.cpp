// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "libmx/engine/geometry.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/studies/convert/output.hpp"

namespace mx::convert {

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
        std::string reason;
        const block::grid grid = engine::lay_out(t.shape, t.recipe, reason)->grid;
        engine::for_each_piece(
            grid, control.threads, control.cancel, [&](std::uint64_t first, std::uint64_t count) {
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

// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>

#include "apps/mx/product_options.hpp"
#include "libmx/pages/views/stages_view.hpp"
#include "libmx/studies/products/stages.hpp"

namespace mx::app {
namespace {

using products::layer_tensor_names;
using products::stage_rows;

constexpr const char* stages_recipe = "mxfp4";
constexpr std::array transform_names{"none", "hadamard", "random-hadamard"};

struct stages_options {
    std::array<matrix_argument, layer_tensor_names.size()> tensors;
    matrix_options in;
    output_options to;
    run_options run;
    product_options products;
    std::string recipe = stages_recipe;
    std::array<std::string, layer_tensor_names.size()> tensor_recipes;
    std::array<std::array<std::string, 2>, stage_rows.size()> stage_recipes;
    std::vector<std::string> transforms;
    int transform_size = 0;
    bool once = false;
    bool transpose_w = false;
};

std::size_t index_of(products::layer_tensor t) { return static_cast<std::size_t>(t); }

// The most specific setting of an operand.
const std::string& spelling_of(const stages_options& o, std::size_t stage, std::size_t operand) {
    const std::string& own = o.stage_recipes[stage][operand];
    if (!own.empty()) return own;
    const std::string& tensor =
        o.tensor_recipes[index_of(stage_rows[stage].operands[operand].tensor)];
    return tensor.empty() ? o.recipe : tensor;
}

products::stages_request request_of(const stages_options& o) {
    products::stages_request r;
    bool own_transforms = false;
    for (std::size_t s = 0; s < stage_rows.size(); ++s) {
        for (std::size_t i = 0; i < 2; ++i) {
            r.recipes[s][i] = products::parse_operand_recipe(spelling_of(o, s, i));
            own_transforms =
                own_transforms || r.recipes[s][i].rotation().what != transform::kind::none;
        }
    }
    if (own_transforms && !o.transforms.empty()) {
        refuse("--transform and a recipe with transform=: say it in one place");
    }
    for (const std::string& name : o.transforms) {
        require_one_of("--transform", "transform", name,
                       {transform_names.begin(), transform_names.end()});
    }
    r.transforms = o.transforms;
    if (!own_transforms && r.transforms.empty()) {
        r.transforms.assign(transform_names.begin(), transform_names.end());
    }
    r.transform_size = o.transform_size;
    r.requantize = !o.once;
    r.models = models_of(o.products);
    r.how = arrangement_of(o.products);
    r.backend = o.run.backend;
    return r;
}

int run_stages(const stages_options& o) {
    const products::stages_request request = request_of(o);
    std::vector<products::operand_recipe> all;
    for (const auto& pair : request.recipes) all.insert(all.end(), pair.begin(), pair.end());
    const engine::run_control control = control_of(o.run, block_recipes(all));
    std::vector<std::string> paths;
    for (const matrix_argument& m : o.tensors) {
        if (!m.text.empty()) paths.push_back(place_of(m.text).path);
    }
    outputs to(o.to, paths);
    matrix_reader reader{o.in, to, control};
    std::array<std::optional<products::matrix>, layer_tensor_names.size()> tensors;
    report::record described;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        if (o.tensors[t].text.empty()) continue;
        io::tensor_info info;
        tensors[t] = reader.read(o.tensors[t], fmt::format("--{}", layer_tensor_names[t]), &info);
        described.emplace_back(layer_tensor_names[t], products::tensor_record(info));
    }
    const std::size_t w = index_of(products::layer_tensor::w);
    if (o.transpose_w) tensors[w] = products::transposed(*tensors[w]);
    const auto at = [&](std::size_t t) { return tensors[t] ? &*tensors[t] : nullptr; };
    const std::vector<products::stage_result> results =
        products::study_stages({at(0), at(1), at(2)}, request, control);

    report::document d;
    d.title = "Products of a linear layer in training";
    d.head = pages::document_head("mx.stages/1");
    d.head.emplace_back("inputs", std::move(reader.inputs));
    d.head.emplace_back("layer", std::move(described));
    d.head.emplace_back("arrangement", arrangement_record(request.how));
    for (const products::stage_result& r : results) d.results.push_back(stage_record(r));
    d.sections = pages::stages_sections(results);
    finish_with_page(to, d, o.run.quiet);
    return exit_code::fine;
}

void declare_tensors_of_layer(parser& cmd, stages_options& o) {
    const std::array<const char*, layer_tensor_names.size()> help{
        "input activations of the layer: FILE or FILE:TENSOR, tokens x in; leading axes are rows",
        "weights, out x in", "gradients of its output, tokens x out; without it only Fprop"};
    cmd.group("Input");
    for (std::size_t t = 0; t < layer_tensor_names.size(); ++t) {
        const std::string name(layer_tensor_names[t]);
        option* option = cmd.add_option("--" + name + " FILE:TENSOR", o.tensors[t].text, help[t]);
        if (t != index_of(products::layer_tensor::dy)) option->required();
    }
    cmd.add_flag("--transpose-w", o.transpose_w, "W is in x out");
    for (std::size_t t = 0; t < layer_tensor_names.size(); ++t) {
        declare_matrix_shape(cmd, o.tensors[t], std::string(layer_tensor_names[t]));
    }
    declare_matrix_options(cmd, o.in);
}

void declare_stages_recipes(parser& cmd, stages_options& o) {
    cmd.group("Operands");
    cmd.add_option("-r,--recipe RECIPE", o.recipe,
                   fmt::format("of every operand ({}); see mx gemm --help", stages_recipe));
    constexpr std::array<std::string_view, layer_tensor_names.size()> also{"activations", "weights",
                                                                           "gradients"};
    for (std::size_t t = 0; t < layer_tensor_names.size(); ++t) {
        cmd.add_option(fmt::format("--recipe-{},--{} RECIPE", layer_tensor_names[t], also[t]),
                       o.tensor_recipes[t],
                       fmt::format("of {} in every product", layer_tensor_names[t]));
    }
    for (std::size_t s = 0; s < stage_rows.size(); ++s) {
        for (std::size_t i = 0; i < 2; ++i) {
            const std::string_view tensor =
                layer_tensor_names[index_of(stage_rows[s].operands[i].tensor)];
            cmd.add_option(fmt::format("--{}-{} RECIPE", stage_rows[s].name, tensor),
                           o.stage_recipes[s][i],
                           fmt::format("of {} in {} ({})", tensor, stage_rows[s].title,
                                       stage_rows[s].product));
        }
    }
    cmd.add_option("--transform NAME,...", o.transforms,
                   "rotations of both operands along the axis that is summed over "
                   "(none,hadamard,random-hadamard); the others are compared with the first")
        ->delimiter(',');
    cmd.add_option("--transform-size N", o.transform_size,
                   "elements that are rotated together: 16, 32, 64 or 128 (the block's)")
        ->one_of({16, 32, 64, 128});
    cmd.add_flag("--once", o.once, "only operands quantized from the tensors themselves");
}

}  // namespace

runner declare_stages(parser& cmd) {
    const auto o = std::make_shared<stages_options>();
    declare_tensors_of_layer(cmd, *o);
    declare_stages_recipes(cmd, *o);
    declare_products(cmd, o->products, "the matrix unit for the operands, and exact");
    declare_outputs(cmd, o->to);
    declare_run(cmd, o->run);
    cmd.description(
        "Measures the effect of quantization on the three products of a linear layer in training: "
        "Fprop (Y = X W^T), Dgrad (dX = dY W) and Wgrad (dW = dY^T X). Each operand is quantized "
        "along the axis that its product sums over, from the tensor and from a copy that was "
        "quantized along the other axis, without and with rotations. Reports which stage loses "
        "most, how much of the error is bias, and whether rotations help. It trains nothing; mx "
        "study stages measures the cost of each stage in loss and in steps.");
    cmd.examples(
        "mx stages --x x.npy --w w.npy --dy dy.npy\n"
        "mx stages --x dump.safetensors:x --w dump.safetensors:w --dy dump.safetensors:dy -r "
        "nvfp4\n"
        "mx stages --x x.npy --w w.npy --dy dy.npy --recipe-dy mxfp8_e5m2 --wgrad-x bf16 "
        "--wgrad-dy bf16\n"
        "mx stages --x x.npy --w w.npy --dy dy.npy --recipe-dy mxfp4:round=stochastic --json "
        "stages.json\n");
    return [o] { return run_stages(*o); };
}

}  // namespace mx::app

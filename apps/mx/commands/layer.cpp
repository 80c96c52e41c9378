// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "apps/mx/product_options.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/studies/products/layer_dump.hpp"
#include "libmx/studies/products/stages.hpp"

namespace mx::app {
namespace {

using products::layer_tensor_names;
using products::stage_rows;

constexpr const char* layer_recipe = "mxfp4";
constexpr std::array transform_names{"none", "hadamard", "random-hadamard"};

struct layer_options {
    std::vector<std::string> dump;
    std::array<matrix_argument, layer_tensor_names.size()> tensors;
    matrix_options in;
    output_options to;
    run_options run;
    product_options products;
    std::string recipe = layer_recipe;
    std::array<std::string, layer_tensor_names.size()> tensor_recipes;
    std::array<std::array<std::string, 2>, stage_rows.size()> stage_recipes;
    std::vector<std::string> transforms;
    int transform_size = 0;
    bool once = false;
    bool transpose_w = false;
};

std::size_t index_of(products::layer_tensor t) { return static_cast<std::size_t>(t); }

// The most specific setting of an operand.
const std::string& spelling_of(const layer_options& o, std::size_t stage, std::size_t operand) {
    const std::string& own = o.stage_recipes[stage][operand];
    if (!own.empty()) return own;
    const std::string& tensor =
        o.tensor_recipes[index_of(stage_rows[stage].operands[operand].tensor)];
    return tensor.empty() ? o.recipe : tensor;
}

products::stages_request request_of(const layer_options& o) {
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

// For each product, the layer with the largest error among the first results of its stage.
std::vector<std::string> worst_layers(const report::record_list& results) {
    struct worst {
        std::string layer;
        double error = -1;
    };
    std::array<worst, stage_rows.size()> found;
    std::set<std::pair<std::string, std::string>> seen;
    for (const report::record& r : results) {
        const std::string layer = report::text_of(r, "layer"), stage = report::text_of(r, "stage");
        if (!seen.emplace(layer, stage).second) continue;
        const double error = report::number_of(r, "total_nrmse").value_or(-1);
        const auto row = std::ranges::find(stage_rows, stage, &products::stage_row::name);
        worst& w = found[static_cast<std::size_t>(row - stage_rows.begin())];
        if (error >= 0 && error >= w.error) w = {layer, error};
    }
    std::vector<std::string> sentences;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i].error < 0) continue;
        sentences.push_back(fmt::format("{} has its largest error in {}: {:.3g} of |{}|.",
                                        stage_rows[i].title, found[i].layer, found[i].error,
                                        stage_rows[i].result));
    }
    return sentences;
}

int run_dump(const layer_options& o, const products::stages_request& request,
             const engine::run_control& control) {
    for (const matrix_argument& m : o.tensors) {
        if (!m.text.empty()) refuse("give the files of a dump, or --x, --w and --dy of one layer");
    }
    outputs to(o.to, o.dump);
    io::open_options open;
    open.as = o.in.open.as;
    const engine::model model(o.dump, open, o.in.views);
    report::document d;
    d.title = "Products of the linear layers of a dump";
    d.head = pages::document_head("mx.layer/1");
    d.head.emplace_back("inputs", input_list(model.files()));
    d.head.emplace_back("arrangement", arrangement_record(request.how));
    const std::size_t w = index_of(products::layer_tensor::w);
    for (const auto& [name, dumped] : products::dumped_layers(model.tensors(), o.transpose_w)) {
        std::array<std::optional<products::matrix>, layer_tensor_names.size()> m;
        for (std::size_t t = 0; t < m.size(); ++t) {
            if (dumped[t]) m[t] = products::read_matrix(*dumped[t], control);
        }
        if (o.transpose_w) m[w] = products::transposed(*m[w]);
        const auto at = [&](std::size_t t) { return m[t] ? &*m[t] : nullptr; };
        for (const products::stage_result& r :
             products::study_stages({at(0), at(1), at(2)}, request, control)) {
            report::record record = stage_record(r);
            record.insert(record.begin(), {"layer", name});
            d.results.push_back(record);
        }
    }
    finish_with_page(to, d, worst_layers(d.results), o.run.quiet);
    return exit_code::fine;
}

int run_layer(const layer_options& o) {
    const products::stages_request request = request_of(o);
    std::vector<products::operand_recipe> all;
    for (const auto& pair : request.recipes) all.insert(all.end(), pair.begin(), pair.end());
    const engine::run_control control = control_of(o.run, block_recipes(all));
    if (!o.dump.empty()) return run_dump(o, request, control);
    for (std::size_t t = 0; t < index_of(products::layer_tensor::dy); ++t) {
        if (o.tensors[t].text.empty()) {
            refuse("layer: --{} is required, or the files of a dump; see 'mx help layer'",
                   layer_tensor_names[t]);
        }
    }
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
    d.head = pages::document_head("mx.layer/1");
    d.head.emplace_back("inputs", std::move(reader.inputs));
    d.head.emplace_back("layer", std::move(described));
    d.head.emplace_back("arrangement", arrangement_record(request.how));
    for (const products::stage_result& r : results) d.results.push_back(stage_record(r));
    finish_with_page(to, d, products::sentences_of(results), o.run.quiet);
    return exit_code::fine;
}

void declare_tensors_of_layer(parser& cmd, layer_options& o) {
    const std::array<const char*, layer_tensor_names.size()> help{
        "input activations of the layer: FILE or FILE:TENSOR, tokens x in; leading axes are rows",
        "weights, out x in", "gradients of its output, tokens x out; without it only Fprop"};
    cmd.group("Input");
    cmd.add_option("DUMP", o.dump,
                   "files or folders with the tensors of many layers, as mx train --dump writes "
                   "them: LAYER.x or .input, LAYER.weight or .w, LAYER.dy or .grad_output; a table "
                   "by layer");
    for (std::size_t t = 0; t < layer_tensor_names.size(); ++t) {
        const std::string name(layer_tensor_names[t]);
        cmd.add_option("--" + name + " FILE:TENSOR", o.tensors[t].text, help[t]);
    }
    cmd.add_flag("--transpose-w", o.transpose_w, "W is in x out");
    for (std::size_t t = 0; t < layer_tensor_names.size(); ++t) {
        declare_matrix_shape(cmd, o.tensors[t], std::string(layer_tensor_names[t]));
    }
    declare_stored(cmd, o.in.open, o.in.views);
}

void declare_layer_recipes(parser& cmd, layer_options& o) {
    cmd.group("Operands");
    cmd.add_option("-r,--recipe RECIPE", o.recipe,
                   fmt::format("of every operand ({}); see mx gemm --help", layer_recipe));
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

runner declare_layer(parser& cmd) {
    const auto o = std::make_shared<layer_options>();
    declare_tensors_of_layer(cmd, *o);
    declare_layer_recipes(cmd, *o);
    declare_products(cmd, o->products, "the matrix unit for the operands, and exact");
    declare_outputs(cmd, o->to);
    declare_run(cmd, o->run);
    cmd.description(
        "Measures the effect of quantization on the three products of a linear layer in training: "
        "Fprop (Y = X W^T), Dgrad (dX = dY W) and Wgrad (dW = dY^T X). Each operand is quantized "
        "along the axis that its product sums over, from the tensor and from a copy that was "
        "quantized along the other axis, without and with rotations. Reports which product has "
        "the largest error, how much of the error is bias, and whether rotations help. It trains "
        "nothing; mx "
        "study stages measures the cost of each stage in loss and in steps.");
    cmd.examples(
        "mx layer run/dump-000100.safetensors -r nvfp4\n"
        "mx layer --x x.npy --w w.npy --dy dy.npy\n"
        "mx layer --x dump.safetensors:x --w dump.safetensors:w --dy dump.safetensors:dy -r "
        "nvfp4\n"
        "mx layer --x x.npy --w w.npy --dy dy.npy --recipe-dy mxfp8_e5m2 --wgrad-x bf16 "
        "--wgrad-dy bf16\n"
        "mx layer --x x.npy --w w.npy --dy dy.npy --recipe-dy mxfp4:round=stochastic --json "
        "layer.json\n");
    return [o] { return run_layer(*o); };
}

}  // namespace mx::app

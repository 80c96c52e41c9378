// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "apps/mx/options.hpp"
#include "libmx/pages/views/show_view.hpp"
#include "libmx/policy/figures.hpp"
#include "libmx/studies/show/tensor_view.hpp"

namespace mx::app {
namespace {

constexpr const char* default_recipe = "mxfp8";
constexpr std::size_t default_worst = 5;
constexpr std::size_t blocks_of_each = 3;  // if there are several tensors

struct options {
    input_options in;
    role_options roles;
    output_options out;
    run_options run;
    std::string file, tensor;
    std::string recipe = default_recipe;
    std::optional<std::uint64_t> block;
    std::uint64_t worst = default_worst;
};

engine::tensor_ref find_tensor(const std::vector<engine::tensor_ref>& all, const options& o) {
    std::vector<std::string_view> names;
    std::vector<engine::tensor_ref> named;
    for (const engine::tensor_ref& t : all) {
        if (t.info().name == o.tensor) named.push_back(t);
        names.emplace_back(t.info().name);
    }
    if (named.size() == 1) return named.front();
    if (!named.empty()) {
        refuse(fmt::format("{} files hold a tensor '{}'; name one of them: {}, {}{}", named.size(),
                           base::printable(o.tensor), named[0].info().file, named[1].info().file,
                           named.size() > 2 ? ", ..." : ""),
               {o.file, {}, {}});
    }
    const std::string near = base::similar(o.tensor, names);
    refuse(fmt::format("there is no tensor '{}'{}; 'mx tensors' lists what there is",
                       base::printable(o.tensor),
                       near.empty() ? std::string()
                                    : fmt::format("; did you mean '{}'?", base::printable(near))),
           {o.file, {}, {}});
}

show::show_request request_of(const options& o) {
    show::show_request r;
    r.recipes = codec::parse_block_recipes({o.recipe});
    r.roles = finder_of(o.roles);
    r.norm_bias = o.roles.norm_bias;
    r.worst = static_cast<std::size_t>(o.worst);
    r.block = o.block;
    return r;
}

// Matrices that are operands of products: no norms, biases or lookup tables.
bool is_operand(const engine::tensor_ref& t, const engine::role_finder& roles) {
    const io::tensor_info& info = t.info();
    const std::string_view role = roles.role_of(info);
    const auto longer = [](std::uint64_t n) { return n > 1; };
    return info.elements != 0 && std::ranges::count_if(info.shape, longer) > 1 &&
           (role == "weight" || role == "head" || role == "activation" || role == "gradient");
}

// The operands with the largest relative error under the recipe, worst first.
std::vector<engine::tensor_ref> worst_of(const std::vector<engine::tensor_ref>& operands,
                                         const show::show_request& request, std::size_t count,
                                         const engine::run_control& control) {
    analysis::analysis_request all;
    static_cast<engine::run_request&>(all) = request;
    const analysis::analysis found = analysis::analyze(operands, all, control);
    engine::require_any(analysis::has_elements(found.results), found.skipped);
    struct rank {
        double error;
        engine::tensor_ref tensor;
    };
    std::vector<rank> ranks;
    std::size_t next = 0;
    for (const analysis::result& r : found.results) {
        // Results are in tensor order; tensors that do not fit the recipe have none.
        while (operands[next].info().name != r.of->tensor ||
               operands[next].info().file != r.of->file) {
            ++next;
        }
        ranks.push_back({analysis::value_or(r.nrmse, 0), operands[next++]});
    }
    std::ranges::stable_sort(ranks, std::greater{}, &rank::error);
    std::vector<engine::tensor_ref> worst;
    for (const rank& r : ranks) {
        if (worst.size() < count) worst.push_back(r.tensor);
    }
    return worst;
}

int run(const options& o) {
    show::show_request request = request_of(o);
    const engine::run_control control = control_of(o.run, request.recipes);
    input_options in = o.in;
    in.files = {o.file};
    outputs to(o.out, in.files);
    const engine::model model = open_inputs(in, to.paths());
    // One tensor may be chosen of a model that is there twice.
    const std::vector<engine::tensor_ref> all =
        o.tensor.empty() ? model.select({}) : model.tensors();

    std::vector<engine::tensor_ref> chosen;
    std::size_t operands = 0;
    if (!o.tensor.empty()) {
        chosen = {find_tensor(all, o)};
    } else if (all.size() == 1) {
        chosen = all;
    } else {
        if (o.block)
            refuse("--block-index is of one tensor; name it: mx show FILE TENSOR --block-index I");
        std::vector<engine::skipped_tensor> skipped;
        std::vector<engine::tensor_ref> some = engine::numeric_only(all, skipped);
        std::erase_if(some, [&](const auto& t) { return !is_operand(t, request.roles); });
        if (some.empty()) {
            refuse("it holds no operand of a product; name the tensor: mx show FILE TENSOR",
                   o.file);
        }
        operands = some.size();
        chosen = worst_of(some, request, static_cast<std::size_t>(o.worst), control);
        request.worst = blocks_of_each;
    }
    std::vector<show::tensor_view> views;
    for (const engine::tensor_ref& t : chosen) {
        views.push_back(show::view_tensor(t, request, control));
    }

    report::document d;
    d.head = pages::document_head("mx.show/2");
    d.head.emplace_back("inputs", input_list(model.files()));
    std::vector<report::record> rows;
    for (const show::tensor_view& v : views) {
        for (const show::block_view& b : v.blocks) rows.push_back(show::block_record(v, b));
    }
    d.results = rows;
    d.tail = {{"tensors", to_list(views, show::tensor_record)}};
    const std::string recipe = codec::to_string(request.recipes.front());
    report::document page;
    page.head = d.head;
    if (operands != 0) {
        report::given_command by{{"show", in.files, {}, documents::given_options(in, o.roles)}, {}};
        for (const engine::input_file& f : model.files()) by.named.emplace(f.path, f.given);
        d.sections = {pages::worst_tensors_section(views, operands, by)};
        page.title = fmt::format("Worst blocks of {} under {}", o.file, recipe);
        page.sections = d.sections;
    } else if (o.block) {
        d.sections = pages::block_sections(views.front(), views.front().blocks.front());
    } else {
        d.sections = pages::tensor_sections(views.front());
    }
    if (operands == 0) {
        page.title = fmt::format("Blocks of {} under {}", chosen.front().info().name, recipe);
    }
    for (report::section& s : pages::show_page_sections(views)) {
        page.sections.push_back(std::move(s));
    }
    to.finish(d, o.run.quiet, {{"html", &page}});
    return exit_code::fine;
}

}  // namespace

runner declare_show(parser& cmd) {
    const auto o = std::make_shared<options>();
    cmd.group("Input");
    cmd.add_option("FILE", o->file, "a file, directory or quoted pattern")->required();
    cmd.add_option("TENSOR", o->tensor,
                   "its name; optional if there is only one. Without it, the worst operands of "
                   "several");
    declare_views(cmd, o->in);
    declare_role_patterns(cmd, o->roles);
    cmd.group("Blocks");
    cmd.add_option("-r,--recipe RECIPE", o->recipe,
                   fmt::format("what to quantize to ({})", default_recipe));
    cmd.add_option("--block-index I", o->block,
                   "one block: its index in the tensor's block grid, from 0, as printed by other "
                   "commands")
        ->not_negative();
    cmd.add_option("--worst N", o->worst,
                   fmt::format("number of worst blocks to list, or without TENSOR of tensors "
                               "({}), with {} blocks each in --json and --html",
                               default_worst, blocks_of_each))
        ->in_range<std::uint64_t>(1, 1000);
    declare_outputs(cmd, o->out);
    declare_run(cmd, o->run);
    cmd.description(
        "Shows a tensor, its blocks and their elements. Draws a map of a tensor's blocks by error "
        "and by clamping, and lists the worst rows and blocks; for one block shows the "
        "scale, every value with its code, and the result of each scale rule. Figures, codes and "
        "scales are those of mx analyze and mx quantize.");
    cmd.examples(
        "mx show model.safetensors model.layers.0.mlp.down_proj.weight -r mxfp4\n"
        "mx show model.safetensors model.layers.0.mlp.down_proj.weight -r mxfp4 --block-index 17\n"
        "mx show model.safetensors -r nvfp4 --worst 3 --html blocks.html\n"
        "mx show weights.npy -r mxfp8:block=16x16 --json -\n");
    return [o] { return run(*o); };
}

}  // namespace mx::app

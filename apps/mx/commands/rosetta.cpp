// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <set>

#include "apps/mx/options.hpp"
#include "libmx/pages/views/rosetta_view.hpp"

namespace mx::app {
namespace {

struct rosetta_options {
    input_options in;
    run_options run;
    output_options out;
    std::vector<std::string> recipes;
    std::string element, block, scale_format;
    std::string elements, scales, tensor_scale;
    std::string original;
};

constexpr const char* default_element = "e2m1";
constexpr const char* default_block = "1x32";
constexpr const char* default_number_block = "1x16";
constexpr const char* default_scale_format = "e8m0";

std::vector<codec::recipe> recipes_to_compare(const rosetta_options& o) {
    if (o.recipes.empty()) {
        const std::string scales = o.scale_format.empty() ? default_scale_format : o.scale_format;
        const char* const block =
            scales == default_scale_format ? default_block : default_number_block;
        return rosetta::recipes_of_element(o.element.empty() ? default_element : o.element,
                                           o.block.empty() ? block : o.block, scales);
    }
    if (!o.element.empty() || !o.block.empty() || !o.scale_format.empty()) {
        refuse(
            "--recipe says the formats and the block; leave --element, --scale-format and --block "
            "out");
    }
    std::vector<codec::recipe> recipes;
    for (const std::string& text : o.recipes) recipes.push_back(codec::parse_block_recipe(text));
    return recipes;
}

// A line for each reason: many tensors of a model share one.
void state_skipped(const std::vector<engine::skipped_tensor>& all, report::document& d) {
    std::map<std::string, std::pair<std::string, std::size_t>> by_reason;
    for (const engine::skipped_tensor& s : all) {
        auto& [first, count] = by_reason[s.reason];
        if (count++ == 0) first = s.tensor;
    }
    for (const auto& [reason, of] : by_reason) {
        const std::string more = of.second == 1 ? "" : fmt::format(" and {} more", of.second - 1);
        d.sections.back().notes.push_back(fmt::format("skipped {}{}: {}", of.first, more, reason));
    }
    d.tail.emplace_back("skipped", report::listed(rosetta::skipped_members, all));
}

// Without the original: finds the recipes that can have made the bytes.
void judge(const rosetta_options& o, const outputs& to,
           const std::vector<rosetta::coded_tensor>& tensors, report::document& d) {
    std::optional<engine::model> original;
    if (!o.original.empty()) {
        original.emplace(std::vector<std::string>{o.original}, io::open_options{});
        require_distinct(paths_of(*original), to.paths());
    }
    const auto results =
        rosetta::find_origins(tensors, original ? &*original : nullptr, control_of(o.run));
    for (const rosetta::origin_result& r : results) {
        for (const rosetta::origin_row& row : r.rows) {
            d.results.push_back(rosetta::origin_record(r, row));
        }
    }
    d.sections = pages::origin_sections(results);
}

void compare(const rosetta_options& o, const engine::model& model,
             const std::vector<engine::skipped_tensor>& left_out, report::document& d) {
    if (!o.original.empty() && left_out.empty()) {
        refuse("--original: the file holds no scales next to elements to compare with it");
    }
    if (!o.original.empty()) {
        const engine::skipped_tensor& first = left_out.front();
        refuse("--original: {} has no bytes to compare: {}", base::printable(first.tensor),
               first.reason);
    }
    const std::vector<codec::recipe> recipes = recipes_to_compare(o);
    rosetta::rosetta_result result =
        rosetta::compare_bytes(model.select(o.in.globs), recipes, control_of(o.run, recipes));
    d.sections = pages::comparison_sections(result, recipes);
    std::vector<std::string> names;
    for (const codec::recipe& r : recipes) names.push_back(codec::to_string(r));
    report::list all;
    for (std::size_t a = 0; a < recipes.size(); ++a) {
        for (std::size_t b = a + 1; b < recipes.size(); ++b) {
            all.push_back(rosetta::pair_record(result.total, a, b, names));
        }
    }
    d.tail.emplace_back("summary", std::move(all));
    state_skipped(result.skipped, d);
    d.results = std::move(result.results);
}

int run_rosetta(const rosetta_options& o) {
    if (o.elements.empty() != o.scales.empty()) {
        refuse("--codes and --scales: give both or neither");
    }
    if (!o.tensor_scale.empty() && o.scales.empty()) {
        refuse("--tensor-scale: only with --codes and --scales");
    }
    outputs to(o.out, o.in.files);
    const engine::model model = open_inputs(o.in, to.paths());
    std::vector<engine::skipped_tensor> left_out;
    std::vector<rosetta::coded_tensor> coded = rosetta::find_coded_tensors(
        model,
        {o.element, o.elements, o.scales, o.scale_format, o.tensor_scale, o.in.views.swizzled},
        left_out);
    if (!o.in.globs.empty() && o.elements.empty()) {
        std::set<std::string> chosen;
        for (const engine::tensor_ref& t : model.select(o.in.globs)) chosen.insert(t.info().name);
        std::erase_if(coded, [&](const auto& t) { return !chosen.contains(t.name); });
        std::erase_if(left_out, [&](const auto& t) { return !chosen.contains(t.tensor); });
    }
    report::document d;
    d.head = pages::document_head(coded.empty() ? "mx.rosetta/1" : "mx.origins/1");
    d.head.emplace_back("inputs", input_list(model.files()));
    if (coded.empty()) {
        compare(o, model, left_out, d);
    } else {
        judge(o, to, coded, d);
        state_skipped(left_out, d);
    }
    to.finish(d, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_rosetta(parser& cmd) {
    const auto o = std::make_shared<rosetta_options>();
    declare_inputs(cmd, o->in);
    cmd.group("Comparison");
    cmd.add_option("--element F", o->element, "element format to compare recipes of (e2m1)");
    cmd.add_option("--scale-format F", o->scale_format,
                   "format of the scales: e8m0, ue4m3, ue5m3, ue5m3_inf (e8m0)");
    cmd.add_option("--block RxC", o->block,
                   "rows x columns that share a scale (1x32, 1x16 if scales are numbers)");
    cmd.add_option("-r,--recipe RECIPE", o->recipes,
                   "compare these instead of every rule and dialect; repeatable");
    cmd.group("Origin");
    cmd.add_option("--codes NAME", o->elements, "the array of element codes, with --scales");
    cmd.add_option("--scales NAME", o->scales, "the array of scale bytes that go with --codes");
    cmd.add_option("--tensor-scale NAME", o->tensor_scale, "the tensor scale that goes with them");
    cmd.add_option("--original FILE", o->original, "the tensors the codes were made from");
    declare_outputs(cmd, o->out);
    declare_run(cmd, o->run);
    cmd.description(
        "Compares the bytes of every scale rule and dialect that applies to an element format: "
        "how many blocks get different scales, how many elements different codes, and the cost of "
        "decoding the codes of one with the scales of another. For a file with scales of one byte "
        "and elements (of 'mx quantize --packed', of a layout that 'mx tensors' finds, or --codes "
        "with --scales), reports which of them could have produced it.");
    cmd.examples(
        "mx rosetta model.safetensors\n"
        "mx rosetta model.safetensors --element e4m3 --json pairs.json\n"
        "mx rosetta model.safetensors --recipe mxfp4:scale=even --recipe mxfp4:scale=rceil\n"
        "mx rosetta mxfp4-checkpoint.safetensors\n"
        "mx rosetta packed.safetensors --original model.safetensors\n");
    return [o] { return run_rosetta(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/mx/judging.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/review_page.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/documents/plan.hpp"
#include "libmx/policy/judged_inputs.hpp"

namespace mx::app {
namespace {

struct plan_options {
    std::vector<std::string> files;
    std::optional<double> bits;
    std::optional<double> sqnr;
    std::vector<std::string> rules;
    std::string by = "error";
    plan::candidate_request request;
    judging_options judging;
    std::size_t top = 10;
    std::string output;
    std::string tool;  // --export
    output_options out;
    bool quiet = false;
};

// -o is another name for --json.
output_options outputs_of(const plan_options& o) {
    output_options out = o.out;
    if (o.output.empty()) return out;
    std::string& path = out.path_of("json");
    if (!path.empty()) refuse("plan: -o and --json are one; give one of them");
    path = o.output;
    return out;
}

// --export takes the place of the table. Called before anything is written: it may refuse the plan.
plan::export_text export_of(const plan_options& o, const plan::candidates& from,
                            const plan::plan& p) {
    return o.tool.empty() ? plan::export_text{} : plan::exported(from, p, o.tool);
}

void print_export(const plan::export_text& e) {
    print(e.text);
    for (const std::string& line : e.remarks) remark(line);
}

int plan_by_divergence(const plan_options& o) {
    if (!o.bits) refuse("plan: --by divergence is within a budget: give --bits B");
    if (o.sqnr || !o.rules.empty() || !o.request.groups.empty() || !o.request.globs.empty() ||
        !o.judging.policy.empty() || !o.judging.target.empty() || !o.judging.eval.empty()) {
        refuse(
            "plan: --by divergence takes --bits, --recipe, --keep, --separate and --export; the "
            "other "
            "options are of results of tensors");
    }
    outputs to(outputs_of(o), o.files);
    std::vector<analysis::results_input> inputs;
    for (const std::string& file : o.files) inputs.push_back(analysis::open_results(file));
    const plan::measured_divergences measured =
        plan::gather_divergences(inputs, {o.request.recipes, o.request.keep, o.request.separate});
    const plan::plan_goal goal{o.bits, {}};
    const plan::plan p = plan::make_plan(measured.from, goal);
    const plan::export_text exported = export_of(o, measured.from, p);
    const report::document d = documents::placement_document(measured, goal, p);
    write_with_page(to, d, o.quiet || !o.tool.empty());
    print_export(exported);
    return exit_code::fine;
}

int run_plan(const plan_options& o) {
    require_one_of("--by", "measure", o.by, {"error", "divergence"});
    if (!o.tool.empty()) {
        require_one_of("--export", "tool", o.tool, plan::export_tools());
        for (const std::string& path : outputs_of(o).paths) {
            if (path == "-") {
                refuse(
                    "plan: --export and another output both write to standard output: give "
                    "that one a file");
            }
        }
    }
    if (o.by == "divergence") return plan_by_divergence(o);
    if (o.bits && o.sqnr) refuse("plan: --bits and --sqnr exclude each other: give one of them");
    plan::candidate_request request = o.request;
    request.follow = !o.bits && !o.sqnr;
    if (request.follow && (request.keep || request.separate || !o.rules.empty() ||
                           !request.recipes.empty() || !request.groups.empty())) {
        refuse(
            "plan: --recipe, --rule, --group, --separate and --keep are for a budget, --bits B, or "
            "a floor, --sqnr DB; without one the plan is what the policy recommends");
    }
    for (const std::string& text : o.rules) {
        request.rules.push_back(analysis::parse_gate_rule(text));
    }
    const plan::plan_goal goal{o.bits, o.sqnr};
    outputs to(outputs_of(o), o.files);
    const std::vector<analysis::results_input> inputs =
        analysis::open_analyses(o.files, "plan", plan::plan_members());
    const policy::judged_model judged = policy::judge_inputs(inputs, basis_of(o.judging));
    const plan::candidates from = plan::gather_candidates(inputs, request, judged);
    const plan::plan p = plan::make_plan(from, goal);
    const plan::export_text exported = export_of(o, from, p);
    const report::document d =
        documents::plan_document(inputs, from, goal, p, request.rules, o.top, judged);
    write_with_page(to, d, o.quiet || !o.tool.empty());
    print_export(exported);
    return exit_code::fine;
}

}  // namespace

runner declare_plan(parser& cmd) {
    const auto o = std::make_shared<plan_options>();
    cmd.group("Input");
    cmd.add_option(
           "RESULTS", o->files,
           "results files (--json) of analyze, compare or cluster ('-': standard input); with "
           "--by divergence, of mx eval --each")
        ->required();
    cmd.add_option("-t,--tensor GLOB", o->request.globs,
                   "tensors whose name matches (*, ?, [set]); repeatable");
    cmd.group("Plan");
    cmd.add_option("--bits B", o->bits,
                   "budget: bits per element of the quantized tensors, including scales; "
                   "minimises the squared error")
        ->finite();
    cmd.add_option("--sqnr DB", o->sqnr,
                   "least SQNR in dB over all quantized tensors; minimises the bits")
        ->finite();
    cmd.add_option("--by MEASURE", o->by,
                   "what to minimise within --bits: error (default), or divergence, nats a token "
                   "as mx eval measured them part by part");
    cmd.add_flag("--separate", o->request.separate,
                 "q, k and v, gate and up, and the experts of a layer may differ");
    cmd.add_option("-r,--recipe RECIPE", o->request.recipes,
                   "choose this recipe, or recipes that match, instead of those of the policy; "
                   "repeatable");
    cmd.add_flag("--keep", o->request.keep,
                 "a tensor may stay as stored: no error, the bits that it takes in its file");
    cmd.add_option("--rule RULE", o->rules,
                   "forbid choices that break it, as in mx gate: [CLASS:]METRIC OP NUMBER; "
                   "repeatable");
    cmd.add_option("--group BY", o->request.groups,
                   "the same recipe for further tensors: a pattern, as 'layers.*', for names that "
                   "differ there "
                   "alone; layer,role or role for all that no pattern takes; repeatable");
    cmd.add_option("--top N", o->top,
                   "show N tensors whose recipe differs from that of most; default 10")
        ->in_range(1, 1000000);
    declare_judging(cmd, o->judging);
    cmd.group("Output");
    cmd.add_option("-o,--output PLAN.json", o->output, "the same as --json");
    cmd.add_option("--export TOOL", o->tool,
                   "print what that tool reads, in place of the table: torchao, compressed-tensors "
                   "or modelopt (JSON), or llama.cpp (arguments of llama-quantize)");
    declare_outputs(cmd, o->out);
    declare_quiet(cmd, o->quiet);
    cmd.description(
        "Assigns a recipe to every tensor. With --bits or --sqnr, chooses among the measured "
        "recipes that the policy lists and does not rule out for the tensor, with the least total "
        "squared error within a budget of bits, or the fewest bits for a given SQNR; the plan is "
        "optimal or has a proved bound. Without a goal, the plan is the recommendation of the "
        "policy. Matrices that engines load as one, such as q, k and v, get one recipe. Tensors "
        "that "
        "are not operands of products, such as norms and biases, stay as stored. With --by "
        "divergence, the least sum of divergences that mx eval --each measured "
        "for a language model. JSON has every tensor, the Pareto curve, and the settings for "
        "torchao, llm-compressor, ModelOpt and llama.cpp, one of which --export prints; mx "
        "quantize "
        "--plan writes the checkpoint.");
    cmd.examples(
        "mx plan results.json -o plan.json\n"
        "mx plan results.json --bits 5 -o plan.json\n"
        "mx plan results.json --bits 4.5 --target b200 --eval scores.json\n"
        "mx plan results.json --sqnr 25 --recipe 'mxfp*'\n"
        "mx plan results.json --bits 4.5 --group 'layers.*' -o plan.json\n"
        "mx plan results.json --bits 6 --keep --rule 'saturated_block_rate==0 or null'\n"
        "mx plan eval.json --by divergence --bits 5 -o plan.json\n"
        "mx plan eval.json --by divergence --bits 5 --export modelopt >quantize.json\n"
        "mx plan fp8.json fp4.json --bits 4.5 --tensor '*.weight'\n");
    return [o] { return run_plan(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0

#include "apps/mx/options.hpp"
#include "libmx/pages/views/gate_view.hpp"

namespace mx::app {
namespace {

struct gate_options {
    std::vector<std::string> files;
    std::vector<std::string> rules;
    std::vector<std::string> rule_files;
    std::vector<std::string> recipes;
    std::size_t top = 5;
    output_options out;
    bool quiet = false;
};

std::vector<analysis::gate_rule> rules_of(const gate_options& o) {
    std::vector<analysis::gate_rule> rules;
    for (const std::string& text : o.rules) rules.push_back(analysis::parse_gate_rule(text));
    for (const std::string& path : o.rule_files) {
        for (analysis::gate_rule& rule : analysis::read_gate_rules(path)) {
            rules.push_back(std::move(rule));
        }
    }
    if (rules.empty()) {
        refuse("gate: no rule; give --rule 'clamp_rate<0.001' or --rules FILE");
    }
    return rules;
}

int run_gate(const gate_options& o) {
    const std::vector<analysis::gate_rule> rules = rules_of(o);
    const analysis::recipe_filter recipes(o.recipes);
    std::vector<std::string> read = o.files;
    read.insert(read.end(), o.rule_files.begin(), o.rule_files.end());
    outputs to(o.out, read);
    const gate::gate_inputs inputs = gate::open_for_gate(o.files, rules);
    const gate::gate_verdict verdict = gate::apply_gate(rules, inputs, recipes);
    to.finish(pages::gate_document(rules, inputs, verdict, o.top), o.quiet);
    return verdict.holds() ? exit_code::fine : exit_code::difference;
}

}  // namespace

runner declare_gate(parser& cmd) {
    const auto o = std::make_shared<gate_options>();
    cmd.group("Input");
    cmd.add_option("RESULTS", o->files, "what analyze, compare or cluster wrote with --json")
        ->required();
    cmd.group("Rules");
    cmd.add_option("--rule RULE", o->rules,
                   "[CLASS:]METRIC OP NUMBER with OP < <= > >= == !=; CLASS is a role, the name of "
                   "tensors (*, ?, [set]), or summary; repeatable");
    cmd.add_option("--rules FILE", o->rule_files, "rules from a file, one per line; # comments");
    cmd.add_option("-r,--recipe RECIPE", o->recipes,
                   "only results of this recipe, or of recipes that match; repeatable");
    cmd.add_option("--top N", o->top,
                   "show the N results of each rule that are farthest from it; default 5")
        ->in_range(1, 1000000);
    declare_outputs(cmd, o->out);
    cmd.group("Output");
    cmd.add_flag("-q,--quiet", o->quiet, "no table; the exit code says it");
    cmd.description(
        "Holds results against rules, for scripts and CI: exit code 0 when every rule holds, 1 and "
        "what broke when not. A figure that is undefined breaks its rule unless 'or null' follows "
        "the number, and a rule that finds nothing to check fails. 0.1% is 0.001, and true is 1. "
        "JSON and CSV hold every result that broke a rule.");
    cmd.examples(
        "mx gate results.json --rule 'clamp_rate<0.001'\n"
        "mx gate results.json --rule 'norm:saturated_block_rate==0 or null'\n"
        "mx gate results.json --recipe 'mxfp8*' --rule 'sqnr_db>=30' --rule "
        "'summary:sqnr_db>31'\n"
        "mx gate results.json --rules limits.txt --json broken.json --quiet\n");
    return [o] { return run_gate(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/mx/judging.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/documents/gate.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/pages/views/gate_ci.hpp"

namespace mx::app {
namespace {

struct gate_command {
    documents::gate_options options;
    std::vector<std::string> files;
    std::string junit;
    std::string annotations;
    output_options out;
    bool quiet = false;
};

int run_gate(const gate_command& o) {
    std::vector<std::string> read = o.files;
    read.insert(read.end(), o.options.rule_files.begin(), o.options.rule_files.end());
    if (std::count(read.begin(), read.end(), io::standard_input) > 1) {
        refuse("gate: standard input ('-') can be read once");
    }
    if (!o.annotations.empty()) {
        require_one_of("--annotations", "kind", o.annotations, {"github"});
    }
    std::optional<outputs> to;
    std::optional<io::output_file> junit;
    const documents::gated g = documents::gate(o.options, [&](const auto& rules) {
        to.emplace(o.out, read,
                   o.junit.empty() ? std::vector<std::string>() : std::vector{o.junit});
        if (!o.junit.empty()) junit.emplace(o.junit);
        return gate::open_for_gate(o.files, rules);
    });
    if (junit) {
        junit->append(pages::gate_junit(g.rules, g.inputs, g.verdict, o.options.top));
        junit->commit();
    }
    write_with_page(*to, g.document, o.quiet);
    if (!o.annotations.empty()) {
        // On stderr: GitHub reads both streams, and stdout may be JSON.
        for (const std::string& line :
             pages::gate_annotations(g.rules, g.inputs, g.verdict, o.options.top)) {
            std::fputs((line + "\n").c_str(), stderr);
        }
    }
    return g.verdict.holds() ? exit_code::fine : exit_code::difference;
}

}  // namespace

runner declare_gate(parser& cmd) {
    const auto o = std::make_shared<gate_command>();
    cmd.group("Input");
    cmd.add_option("RESULTS", o->files,
                   "results files (--json) of analyze, compare, cluster or diff ('-': standard "
                   "input)")
        ->required();
    cmd.group("Rules");
    cmd.add_option("--rule RULE", o->options.rules,
                   "[CLASS:]METRIC OP NUMBER with OP < <= > >= == !=; CLASS is a role, the name of "
                   "tensors (*, ?, [set]), or summary; or [CLASS:]policy: no tensor reaches a "
                   "limit of the policy; repeatable");
    cmd.add_option("--rules FILE", o->options.rule_files,
                   "rules from a file ('-': standard input), one per line; # comments");
    cmd.add_option("-r,--recipe RECIPE", o->options.recipes,
                   "only results of this recipe, or of recipes that match; repeatable");
    cmd.add_option("--top N", o->options.top, "show the N worst results of each rule; default 5")
        ->in_range(1, 1000000);
    declare_judging(cmd, o->options.judging);
    declare_outputs(cmd, o->out);
    cmd.add_option("--junit FILE", o->junit, "JUnit XML: a test case per rule")->file_name();
    cmd.add_option("--annotations KIND", o->annotations,
                   "github: a line '::error file=...' on stderr per rule that does not hold");
    declare_quiet(cmd, o->quiet);
    cmd.description(
        "Checks results against rules, for scripts and CI. Exits with 0 if every rule holds; "
        "otherwise names what broke and exits with 1. An undefined figure breaks its rule unless "
        "'or null' follows the number, and a rule that finds nothing to check fails. 0.1% is "
        "0.001, and true is 1. The rule 'policy' holds if no operand of a product reaches a limit "
        "of the policy under the recipe that it chose for its class, or under each of --recipe. "
        "JSON and CSV have every result that broke a rule.");
    cmd.examples(
        "mx gate results.json --rule 'clamp_rate<0.001'\n"
        "mx gate results.json --rule 'norm:saturated_block_rate==0 or null'\n"
        "mx gate results.json --recipe 'mxfp8*' --rule 'sqnr_db>=30' --rule 'summary:sqnr_db>31'\n"
        "mx gate results.json --rule policy --recipe mxfp8:scale=rceil\n"
        "mx gate results.json --rules limits.txt --json broken.json --quiet\n"
        "mx diff old.safetensors new.safetensors --json - -q | mx gate - --rule 'nrmse<1%'\n"
        "mx gate results.json --rules limits.txt --junit gate.xml --annotations github\n");
    return [o] { return run_gate(*o); };
}

}  // namespace mx::app

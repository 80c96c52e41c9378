// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "apps/mx/options.hpp"
#include "apps/mx/parts.hpp"
#include "apps/mx/review_page.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/stored_path.hpp"
#include "libmx/report/command_line.hpp"

namespace mx::app {
namespace {

struct merge_options {
    std::vector<std::string> parts;
    std::vector<std::string> inputs;
    std::string policy, eval, plan;
    output_options out;
    std::string arrays;
    std::optional<std::uint64_t> shard_bytes;
    run_options run;
    bool summary = false;
};

constexpr std::string_view converts = "quantize";

// The file name of a part, derived from that of another: part-3.json from part-2.json.
std::string path_for(std::uint64_t part, const documents::part_head& other) {
    const std::string number = std::to_string(other.number.index);
    const std::size_t slash = other.path.rfind('/');
    const std::size_t at = other.path.rfind(number);
    if (at == std::string::npos || (slash != std::string::npos && at < slash)) {
        return fmt::format("{}.{}", other.path, part);
    }
    std::string path = other.path;
    return path.replace(at, number.size(), std::to_string(part));
}

// The command of the run, with its files. A part may come from others, so that mx opens what it
// names only below this folder; all else the user names.
report::command_line run_of(const merge_options& o, const documents::part_head& part) {
    report::command_line line = part.given;
    if (!o.inputs.empty()) line.files = o.inputs;
    for (const std::string& file : line.files) {
        if (!o.inputs.empty() || base::stays_inside(file)) continue;
        refuse("{}: is of '{}', which is not below this folder: name the file with --input",
               base::printable(part.path), file);
    }
    for (const auto& [name, value] :
         {std::pair("policy", o.policy), std::pair("eval", o.eval), std::pair("plan", o.plan)}) {
        const auto at = std::ranges::find(line.options, name, &report::given_option::name);
        const bool needed = at != line.options.end() && documents::names_file(*at);
        if (needed && value.empty()) {
            refuse("{}: was made with --{} '{}': give the file to mx merge, too",
                   base::printable(part.path), name, at->value.value_or(""));
        }
        if (!needed && !value.empty())
            refuse("--{}: the parts were made without a file of it", name);
        if (needed) line.set(name, {value});
    }
    for (const report::given_option& option : line.options) {
        if (option.name != "recipe" && option.name != "baseline") continue;
        codec::require_files_inside(codec::parse_recipe(option.value.value_or("")));
    }
    return line;
}

// A shell command that makes a part.
std::string command_for(std::uint64_t part, const documents::part_head& other,
                        report::command_line line) {
    line.options.push_back({"shard", fmt::format("{}/{}", part, other.number.count)});
    if (other.page_sums) line.options.push_back({"page-sums"});
    line.options.push_back({line.command == converts ? "output" : "json", path_for(part, other)});
    return line.text();
}

int print_missing(const std::vector<std::uint64_t>& missing, const documents::part_head& other,
                  const report::command_line& run) {
    remark(fmt::format("{} of {} parts {} missing; these commands make them:", missing.size(),
                       other.number.count, missing.size() == 1 ? "is" : "are"));
    for (const std::uint64_t i : missing) print(command_for(i, other, run) + "\n");
    finish_stdout();
    return exit_code::difference;
}

int run_merge(const merge_options& o) {
    std::vector<documents::part_head> heads;
    for (const std::string& path : o.parts) heads.push_back(documents::read_part_head(path));
    const auto missing = documents::missing_parts(heads);
    const report::command_line run = run_of(o, heads.front());
    if (!missing.empty()) return print_missing(missing, heads.front(), run);
    const bool arrays = run.command == converts;
    if (arrays == o.arrays.empty()) {
        refuse(arrays ? "parts of mx quantize: name the file of all arrays with --output"
                      : "--output is for parts of mx quantize; these have --json, --csv, --html");
    }
    if (!arrays && o.shard_bytes) refuse("--max-shard-size is for parts of mx quantize");
    std::vector<std::string> written{o.arrays};
    written.insert(written.end(), o.out.paths.begin(), o.out.paths.end());
    std::erase(written, "");
    require_distinct(o.parts, written);
    // The command of the parts, with the requested outputs.
    std::vector<std::string> words{"mx", run.command};
    for (const std::string& path : o.parts) words.push_back("--parts=" + path);
    const auto add = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) words.push_back(fmt::format("--{}={}", name, value));
    };
    for (std::size_t i = 0; i < report::writers.size(); ++i) {
        add(report::writers[i].name, o.out.paths[i]);
    }
    add("title", o.out.title);
    if (!arrays) add("color", o.out.color);
    add("output", o.arrays);
    if (o.shard_bytes) add("max-shard-size", std::to_string(*o.shard_bytes));
    if (o.run.threads != 0) add("threads", std::to_string(o.run.threads));
    add("backend", o.run.backend);
    if (o.run.verbose) words.emplace_back("--verbose");
    if (o.run.quiet) words.emplace_back("--quiet");
    if (o.summary) words.emplace_back("--summary");
    for (std::string& word : report::arguments_of(run)) words.push_back(std::move(word));
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return parse_command_line(static_cast<int>(arguments.size()), arguments.data())();
}

}  // namespace

runner declare_merge(parser& cmd) {
    const auto o = std::make_shared<merge_options>();
    cmd.group("Input");
    cmd.add_option("PART", o->parts, "all parts of a run, in any order")->required()->file_name();
    cmd.add_option("--input FILE", o->inputs,
                   "the model as the parts were made from, if its path is an address, absolute or "
                   "not below this folder; repeatable")
        ->file_name();
    cmd.add_option("--policy NAME", o->policy, "the same file as that of the parts")->file_name();
    cmd.add_option("--eval FILE", o->eval, "the same file as that of the parts")->file_name();
    cmd.add_option("--plan FILE", o->plan, "the same file as that of the parts")->file_name();
    declare_outputs(cmd, o->out);
    cmd.add_option("-o,--output OUT", o->arrays,
                   "parts of mx quantize: the .safetensors or .h5 file of all arrays, or the "
                   "NAME.safetensors.index.json of several files")
        ->file_name();
    declare_shard_size(cmd, o->shard_bytes);
    declare_summary(cmd, o->summary);
    declare_run(cmd, o->run);
    cmd.description(
        "Combines the parts that commands wrote under --shard into the output of one run, byte "
        "for byte. The model files must be under the same paths: mx reads their headers again, "
        "and the data for the blocks on a page and for the remedies of mx cluster. If parts are "
        "missing, prints the commands that make them and exits with 1. Parts with other options, "
        "of another version of mx, or of changed files are refused. Of the files that parts "
        "name, mx opens those below this folder alone; name others here.");
    cmd.examples(
        "mx analyze model.safetensors --shard 1/2 --json part-1.json\n"
        "mx analyze model.safetensors --shard 2/2 --json part-2.json\n"
        "mx merge part-*.json --json results.json --csv results.csv\n");
    return [o] { return run_merge(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
// THE LIST of commands. A command is one file commands/<name>.cpp with one function that declares
// its options, and here its declaration and a row; help, the man page and docs/reference follow.
#include "apps/mx/commands.hpp"

#include <algorithm>
#include <array>

#include "apps/mx/completion.hpp"
#include "apps/mx/help.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/pager.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"

namespace mx::app {

runner declare_analyze(parser& cmd);
runner declare_compare(parser& cmd);
runner declare_cluster(parser& cmd);
runner declare_diff(parser& cmd);
runner declare_watch(parser& cmd);
runner declare_gemm(parser& cmd);
runner declare_eval(parser& cmd);
runner declare_layer(parser& cmd);
runner declare_train(parser& cmd);
runner declare_runs(parser& cmd);
runner declare_study(parser& cmd);
runner declare_scaling_law(parser& cmd);
runner declare_speedups(parser& cmd);
runner declare_merge(parser& cmd);
runner declare_report(parser& cmd);
runner declare_tensors(parser& cmd);
runner declare_show(parser& cmd);
runner declare_lint(parser& cmd);
runner declare_rosetta(parser& cmd);
runner declare_plan(parser& cmd);
runner declare_quantize(parser& cmd);
runner declare_dequantize(parser& cmd);
runner declare_synth(parser& cmd);
runner declare_verify(parser& cmd);
runner declare_vectors(parser& cmd);
runner declare_gate(parser& cmd);
runner declare_bench(parser& cmd);
runner declare_explain(parser& cmd);
runner declare_version(parser& cmd);
runner declare_help(parser& cmd);

namespace {

constexpr std::array command_rows{
    command{"analyze", "Measure", "error, underflow and clamp rates under each recipe",
            declare_analyze},
    command{"compare", "Measure", "all combinations of formats, rules and blocks, ranked",
            declare_compare},
    command{"cluster", "Measure", "blocks that saturate or collapse, why, and the remedies",
            declare_cluster},
    command{"diff", "Measure", "what changed between dumps of a model or results files",
            declare_diff},
    command{"show", "Measure", "a tensor's blocks: a map, the worst, one per scale rule",
            declare_show},
    command{"merge", "Measure", "combine the parts of --shard into one output", declare_merge},
    command{"eval", "Decide", "what a recipe does to a language model: perplexity, divergence",
            declare_eval},
    command{"report", "Decide", "the page for a design review, from results files", declare_report},
    command{"plan", "Decide", "one measured recipe per tensor under a budget of bits",
            declare_plan},
    command{"gate", "Decide", "rules that results must keep; exit code 1 if one breaks",
            declare_gate},
    command{"gemm", "Multiply", "a matrix product as matrix units compute it", declare_gemm},
    command{"layer", "Multiply", "the error of each product of a linear layer, or of all of a dump",
            declare_layer},
    command{"quantize", "Convert", "a file under a recipe: values, or codes and scales",
            declare_quantize},
    command{"dequantize", "Convert", "float32 values of a quantized file", declare_dequantize},
    command{"synth", "Convert", "checkpoints with the statistics of transformers", declare_synth},
    command{"lint", "Check", "what a quantized checkpoint lacks or states wrongly", declare_lint},
    command{"rosetta", "Check", "where scale rules and dialects differ; who made a file",
            declare_rosetta},
    command{"verify", "Check", "check this build, or vectors of other implementations",
            declare_verify},
    command{"vectors", "Check", "write conformance vectors: safetensors, and $readmemh",
            declare_vectors},
    command{"bench", "Check", "elements per second on this machine", declare_bench},
    command{"train", "Train", "a small training run, bit for bit: is it stable", declare_train},
    command{"runs", "Train", "training runs compared: which became unstable, and when",
            declare_runs},
    command{"watch", "Train", "checkpoints of a training run: warns before gains clamp",
            declare_watch},
    command{"study", "Train", "a paper's experiment; scaling-law; speedups", declare_study},
    command{"study scaling-law",
            {},
            "loss by parameters, tokens and precision, fitted to a table of runs, with intervals",
            declare_scaling_law},
    command{"study speedups",
            {},
            "the time of a training step by class of work, and how much of it a recipe saves",
            declare_speedups},
    command{"tensors", "Look up", "names, dtypes, shapes and sizes of a file's tensors",
            declare_tensors},
    command{"explain", "Look up", "formats, rules, dialects, accumulators, metrics, codes",
            declare_explain},
    command{"version", "Look up", "version, compiler, backends and optional parts",
            declare_version},
    command{"help", "Look up", "one command in full: mx help COMMAND", declare_help},
};

// Commands of earlier versions, and what does their work.
struct renamed_command {
    std::string_view name, now;
};
constexpr std::array renamed_commands{
    renamed_command{"formats", "explain formats"},
    renamed_command{"rules", "explain rules"},
    renamed_command{"dialects", "explain dialects"},
    renamed_command{"accumulators", "explain accumulators"},
    renamed_command{"plan-shards", "tensors --parts N"},
    renamed_command{"fit", "study scaling-law"},
    renamed_command{"stages", "layer"},
    renamed_command{"cast", "quantize -r FORMAT --all-tensors"},
    renamed_command{"selftest", "verify"},
    renamed_command{"project", "study speedups"},
};

runner print_later(std::string text) {
    return [text = std::move(text)] {
        print_paged(text);
        return exit_code::fine;
    };
}

}  // namespace

std::span<const command> commands() { return command_rows; }

const command& command_named(std::span<const std::string> words) {
    if (words.size() > 1) {
        if (const command* c = base::find_named(command_rows, words[0] + " " + words[1])) return *c;
    }
    if (const renamed_command* old = base::find_named(renamed_commands, words[0])) {
        refuse("'mx {}' is now 'mx {}'", old->name, old->now);
    }
    if (const command* c = base::find_named(command_rows, words[0])) return *c;
    const std::string near = base::similar(words[0], base::names_of(command_rows));
    refuse("unknown command '{}'{} ('mx help' lists the commands)", words[0],
           near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near));
}

runner parse_command_line(int argc, char** argv) {
    const std::string first = argc > 1 ? argv[1] : "--help";
    if (first == "-h" || first == "--help") return print_later(overview(terminal_help_width()));
    if (first == "--complete") {
        const std::vector<std::string> words(argv + 2, argv + argc);
        return print_later(completion_lines(words));
    }
    if (first == "--version") return print_later(fmt::format("mx {}\n", MX_VERSION));
    if (first.rfind('-', 0) == 0) {
        refuse("{}: options come after the command; 'mx help' lists commands", first);
    }
    const std::vector<std::string> words(argv + 1, argv + argc);
    const command& chosen = command_named(words);
    const int skipped = chosen.name == first ? 1 : 2;
    parser cmd;
    runner run = chosen.declare(cmd);
    set_up(cmd, chosen);
    try {
        if (!cmd.parse(argc - skipped, argv + skipped))
            return print_later(help_text(cmd, chosen, terminal_help_width()));
    } catch (const base::error& e) {
        const bool asks = e.message().ends_with('?');
        refuse("{}: {}{} 'mx help {}'", chosen.name, e.message(), asks ? " See" : "; see",
               chosen.name);
    }
    cmd.take_settings();
    const auto is_quiet = [](const std::string& word) { return word.starts_with("--quiet="); };
    follow_tasks(std::ranges::any_of(cmd.given({}), is_quiet));
    return run;
}

}  // namespace mx::app

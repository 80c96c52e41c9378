// SPDX-License-Identifier: Apache-2.0
// THE LIST of commands. A command is one file commands/<name>.cpp with one function that declares
// its options, and one row here; help, the man page and docs/reference follow.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string_view>

#include "apps/mx/cli.hpp"

namespace mx::app {

/// Runs a command with its parsed options; returns the exit code. Failures are thrown
/// (base::error), never printed here.
using runner = std::function<int()>;

/// Declares options, description and examples (as the footer) on `cmd`, and returns the function to
/// run. It owns the options' storage (a shared_ptr); there are no globals.
using declare_function = runner (*)(parser& cmd);

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

struct command {
    std::string_view name;   ///< one word, or two: "study speedups"
    std::string_view group;  ///< of one word: where 'mx help' lists it
    std::string_view summary;
    declare_function declare;
};

/// THE LIST of commands, in the order of 'mx help'.
inline constexpr std::array commands{
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

/// Commands of earlier versions, and what does their work.
struct renamed_command {
    std::string_view name, now;
};
inline constexpr std::array renamed_commands{
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

/// The command that the words begin with. Throws base::error (usage) if there is none.
const command& command_named(std::span<const std::string> words);

/// Parses the command line and returns the function to run (also for help and --version). Throws
/// base::error (usage) with one line that names the error and the help page.
runner parse_command_line(int argc, char** argv);

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
// THE LIST of commands. A command is one file commands/<name>.cpp with one function that declares
// its options, and one row here; help, the man page and docs/reference follow.
#pragma once

#include <array>
#include <functional>
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
runner declare_stages(parser& cmd);
runner declare_train(parser& cmd);
runner declare_runs(parser& cmd);
runner declare_study(parser& cmd);
runner declare_fit(parser& cmd);
runner declare_project(parser& cmd);
runner declare_merge(parser& cmd);
runner declare_plan_shards(parser& cmd);
runner declare_report(parser& cmd);
runner declare_tensors(parser& cmd);
runner declare_show(parser& cmd);
runner declare_rosetta(parser& cmd);
runner declare_plan(parser& cmd);
runner declare_quantize(parser& cmd);
runner declare_dequantize(parser& cmd);
runner declare_cast(parser& cmd);
runner declare_synth(parser& cmd);
runner declare_verify(parser& cmd);
runner declare_vectors(parser& cmd);
runner declare_gate(parser& cmd);
runner declare_bench(parser& cmd);
runner declare_formats(parser& cmd);
runner declare_rules(parser& cmd);
runner declare_dialects(parser& cmd);
runner declare_accumulators(parser& cmd);
runner declare_explain(parser& cmd);
runner declare_selftest(parser& cmd);
runner declare_version(parser& cmd);
runner declare_help(parser& cmd);

struct command {
    std::string_view name;
    std::string_view group;
    std::string_view summary;
    declare_function declare;
};

inline constexpr std::array commands{
    command{"analyze", "Analyse",
            "error, overflow, underflow and clamp rates per tensor and recipe", declare_analyze},
    command{"compare", "Analyse",
            "every combination of formats, rules and blocks, ranked in one pass", declare_compare},
    command{"cluster", "Analyse",
            "which tensors' blocks saturate or collapse, why, and the remedies", declare_cluster},
    command{"diff", "Analyse",
            "dumps of one model: values, scales and codes that changed between them", declare_diff},
    command{"watch", "Analyse",
            "checkpoints as a training run writes them: warns before norm gains clamp",
            declare_watch},
    command{"gemm", "Analyse",
            "a matrix product as matrix units compute it, bit for bit, and its error",
            declare_gemm},
    command{"stages", "Analyse",
            "the error of each product of a linear layer: forward, data and weight gradient",
            declare_stages},
    command{"train", "Analyse",
            "a small training run, reproducible bit for bit: is it stable under this recipe",
            declare_train},
    command{"runs", "Analyse",
            "training runs compared: which became unstable, when, and how "
            "significant that is",
            declare_runs},
    command{"study", "Analyse",
            "a paper's experiment repeated at a small size, with paired seeds and intervals",
            declare_study},
    command{"fit", "Analyse",
            "a scaling law: loss by parameters, tokens and precision, with "
            "uncertainty",
            declare_fit},
    command{"project", "Analyse",
            "the time of a training step by class of work, and how much of it a recipe saves",
            declare_project},
    command{"merge", "Analyse", "combine the parts of --shard into the output of one run",
            declare_merge},
    command{"plan-shards", "Analyse",
            "the parts into which --shard divides a model, and their "
            "bytes",
            declare_plan_shards},
    command{"report", "Analyse",
            "the page for a design review: what to use for each class of tensors, and why",
            declare_report},
    command{"tensors", "Analyse", "names, dtypes, shapes and sizes of the tensors of a file",
            declare_tensors},
    command{"show", "Analyse",
            "a tensor's blocks: a map, the worst, and one block under each scale rule",
            declare_show},
    command{"rosetta", "Analyse", "where scale rules and dialects differ; which one made a file",
            declare_rosetta},
    command{"plan", "Analyse", "mixed precision: one measured recipe per tensor under a budget",
            declare_plan},
    command{"quantize", "Convert", "quantize a file under a recipe: values, or codes and scales",
            declare_quantize},
    command{"dequantize", "Convert", "decode a quantized file to float32 values",
            declare_dequantize},
    command{"cast", "Convert", "convert elements to a format without a scale", declare_cast},
    command{"synth", "Convert", "deterministic checkpoints with transformer-like statistics",
            declare_synth},
    command{"verify", "Check", "compare the emulator with vectors of other implementations",
            declare_verify},
    command{"vectors", "Check", "write conformance vectors: safetensors, and text for $readmemh",
            declare_vectors},
    command{"gate", "Check", "rules that results must keep: exit code 1 and what broke",
            declare_gate},
    command{"bench", "Check", "elements per second compared with this machine's memory bandwidth",
            declare_bench},
    command{"formats", "Look up", "element, scale and block formats with their exact limits",
            declare_formats},
    command{"rules", "Look up", "scale rules and roundings", declare_rules},
    command{"dialects", "Look up", "what each implementation does in corner cases, with evidence",
            declare_dialects},
    command{"accumulators", "Look up",
            "how the matrix units of each chip add, and how well that is known",
            declare_accumulators},
    command{"explain", "Look up",
            "a recipe or policy in words; the codes of a format; the meaning of a code",
            declare_explain},
    command{"selftest", "About", "checks this build on this machine, in seconds", declare_selftest},
    command{"version", "About", "version, compiler, backends and optional parts", declare_version},
    command{"help", "About", "what mx does; help COMMAND for one command", declare_help},
};

/// Parses the command line and returns the function to run (also for help and --version). Throws
/// base::error (usage) with one line that names the error and the help page.
runner parse_command_line(int argc, char** argv);

}  // namespace mx::app

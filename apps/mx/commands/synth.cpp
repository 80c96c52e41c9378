// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "datasets/generators/checkpoint_plan.hpp"
#include "datasets/generators/write_checkpoint.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {
namespace {

struct synth_options {
    std::string out;
    std::string preset;
    std::uint64_t seed = 0;
    std::string dtype = "bf16";
    std::optional<std::uint64_t> size;
    bool list = false;
    run_options run;
    output_options tables;
};

synth::plan_options plan_of(const synth_options& o) {
    std::string name = o.dtype;
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const std::optional<tensor::dtype> type = tensor::find_dtype(name);
    if (!type) refuse("--dtype {}: unknown; choose bf16, f16 or f32", base::printable(o.dtype));
    return {*type, o.size};
}

/// --size selects the preset of that size.
const synth::preset_row& preset_of(const synth_options& o) {
    if (!o.preset.empty()) return synth::find_preset(o.preset);
    return synth::find_preset(o.size ? "bulk" : "tiny");
}

struct planned_preset {
    const synth::preset_row& preset;
    std::size_t tensors;
    std::uint64_t bytes;
};
constexpr std::array preset_members = std::to_array<report::declared<planned_preset>>({
    {"name", "string", "", [](auto& p) { return p.preset.name; }},
    {"tensors", "count", "", [](auto& p) { return p.tensors; }},
    {"bytes", "count", "of tensor data, as bf16", [](auto& p) { return p.bytes; }},
    {"scalable", "boolean", "takes --size", [](auto& p) { return p.preset.scalable; }},
    {"summary", "string", "", [](auto& p) { return p.preset.summary; }},
});

report::document presets_document() {
    std::vector<report::record> rows;
    for (const synth::preset_row& preset : synth::presets) {
        const auto plan = synth::plan_checkpoint(preset, {});
        rows.push_back(
            report::written(preset_members, {preset, plan.size(), synth::total_bytes(plan)}));
    }
    report::document d;
    d.head = pages::document_head("mx.presets/1");
    d.results = rows;
    d.sections.push_back(
        {"Presets of synthetic checkpoints",
         pages::columns_of({"name", "tensors", pages::column_of("bytes", "bytes\n(BF16)"),
                            pages::column_of("summary", "")}),
         rows});
    return d;
}

synth::write_control control_for(const run_options& run) {
    const engine::run_control shared = control_of(run);
    synth::write_control control;
    control.threads = shared.threads;
    control.cancel = shared.cancel;
    if (shared.on_progress) {
        control.on_progress = [report = shared.on_progress](std::uint64_t done,
                                                            std::uint64_t total) {
            report({done, total});
        };
    }
    return control;
}

int run_synth(const synth_options& o) {
    if (o.list) return print_document(o.tables, presets_document, o.run.quiet);
    if (o.out.empty()) refuse("synth needs -o OUT.safetensors, or --list to see the presets");
    const synth::preset_row& preset = preset_of(o);
    const synth::plan_options options = plan_of(o);
    const std::vector<synth::tensor_spec> plan = synth::plan_checkpoint(preset, options);
    const std::string dtype(tensor::row_of(options.type).name);
    synth::write_checkpoint(o.out, plan, o.seed,
                            {{"generator", "mx synth"},
                             {"preset", std::string(preset.name)},
                             {"seed", std::to_string(o.seed)},
                             {"dtype", dtype}},
                            control_for(o.run));
    if (!o.run.quiet && o.out != "-") {
        print(fmt::format("{}: {} tensors, {} bytes of data (preset {}, seed {}, {})\n",
                          base::printable(o.out), plan.size(), synth::total_bytes(plan),
                          preset.name, o.seed, dtype));
    }
    return exit_code::fine;
}

}  // namespace

report::document_schema presets_schema() {
    return report::document_schema("mx.presets/1", "mx synth --list", "Presets of mx synth.")
        .member({"results", "[#preset]", "a preset each"})
        .define("preset", preset_members);
}

runner declare_synth(parser& cmd) {
    const auto o = std::make_shared<synth_options>();
    cmd.description(
        "Writes a deterministic checkpoint with transformer-like statistics: attention, MLP and "
        "expert weights, norm gains, some of which cluster just below a power of two, activations "
        "with outlier channels, log-normal gradients. The bytes depend on preset, seed, dtype and "
        "size only.");
    cmd.group("Output");
    cmd.add_option("-o,--output OUT", o->out, "safetensors file to write")->file_name();
    cmd.group("Synthesis");
    cmd.add_option("--preset NAME", o->preset,
                   fmt::format("one of: {}; default tiny, with --size bulk",
                               base::joined(names_of(synth::presets), ", ")));
    cmd.add_option("--seed N", o->seed, "another seed gives other values; default 0")
        ->not_negative();
    cmd.add_option("--dtype DTYPE", o->dtype, "bf16 (the default), f16 or f32");
    cmd.add_option("--size BYTES", o->size, "bytes of tensor data, e.g. 4GiB or 500MB (bulk only)")
        ->size_in_bytes();
    cmd.add_flag("--list", o->list, "list the presets and write nothing");
    declare_run(cmd, o->run, false);
    declare_outputs(cmd, o->tables);
    cmd.examples(
        "mx synth -o tiny.safetensors                    # under 1 MiB\n"
        "mx synth -o big.safetensors --size 4GiB         # any size\n"
        "mx synth -o norms.safetensors --preset layernorm --seed 7\n"
        "mx synth --list --json -\n");
    return [o] { return run_synth(*o); };
}

}  // namespace mx::app

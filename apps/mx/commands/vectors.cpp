// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/conformance/vectors/export_vectors.hpp"

namespace mx::app {
namespace {

using namespace conformance::vectors;
namespace fs = std::filesystem;

struct vectors_options {
    std::vector<std::string> recipes;
    std::string out;
    std::string hex;
    std::uint64_t blocks = 0;
    std::uint64_t seed = 0;
    std::string from;
    std::vector<std::string> globs;
    bool quiet = false;
};

// One recipe and the output of its vectors.
struct vector_job {
    vector_request request;
    std::string out;
    std::string hex;
};

// A recipe as a file name: mxfp4:scale=even,block=1x16 -> mxfp4_scale-even_block-1x16.
std::string file_name(const codec::recipe& r) {
    std::string name = codec::to_string(r);
    std::ranges::replace(name, '=', '-');
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ':' || c == ','; }, '_');
    return name;
}

vector_job job_of(const vectors_options& o, const std::string& recipe) {
    vector_job j;
    j.request.recipe = codec::parse_block_recipe(recipe);
    j.request.blocks = o.blocks;
    j.request.seed = o.seed;
    j.request.made_by = fmt::format("mx {} (mx vectors)", MX_VERSION);
    j.out = o.out;
    j.hex = o.hex;
    if (o.recipes.size() > 1) {
        const std::string name = file_name(j.request.recipe);
        j.out = (fs::path(o.out) / (name + ".safetensors")).string();
        if (!o.hex.empty()) j.hex = (fs::path(o.hex) / name).string();
    }
    return j;
}

std::vector<vector_job> jobs_of(const vectors_options& o) {
    std::vector<vector_job> jobs;
    for (const std::string& recipe : o.recipes) jobs.push_back(job_of(o, recipe));
    std::vector<std::string> outputs;
    for (const vector_job& j : jobs) {
        outputs.push_back(j.out);
        if (j.hex.empty()) continue;
        for (std::string& path : hex_files(j.request.recipe, j.hex)) {
            outputs.push_back(std::move(path));
        }
    }
    std::vector<std::string> inputs;
    if (!o.from.empty()) inputs.push_back(o.from);
    require_distinct(inputs, outputs);
    return jobs;
}

int run_vectors(const vectors_options& o) {
    if (o.from.empty() && !o.globs.empty()) refuse("--tensor chooses tensors of --from FILE");
    if (o.recipes.size() > 1 && o.out.ends_with(".safetensors")) {
        refuse("-o: with several recipes it names a folder, which gets one file for each");
    }
    const std::vector<vector_job> jobs = jobs_of(o);
    std::vector<engine::tensor_ref> tensors;
    std::unique_ptr<engine::model> model;
    if (!o.from.empty()) {
        model = std::make_unique<engine::model>(std::vector{o.from}, io::open_options{});
        tensors = model->select(o.globs);
    }
    if (jobs.size() > 1) make_folder(o.out);
    for (const vector_job& j : jobs) {
        if (interrupted()) throw base::error(base::error_kind::cancelled, "interrupted");
        const vector_source source =
            o.from.empty() ? generated_source(j.request) : tensor_source_of(tensors, j.request);
        const auto done = export_vectors(j.request, source, j.out, j.hex);
        if (o.quiet || j.out == "-") continue;
        print(fmt::format("{}: {} blocks, {} elements of {}\n", base::printable(done.path),
                          done.blocks, done.elements, codec::to_string(j.request.recipe)));
        for (const std::string& path : done.texts) print(base::printable(path) + "\n");
    }
    return exit_code::fine;
}

}  // namespace

runner declare_vectors(parser& cmd) {
    const auto o = std::make_shared<vectors_options>();
    cmd.group("Vectors");
    cmd.add_option("-r,--recipe RECIPE", o->recipes, "recipe to make vectors of; repeatable")
        ->required();
    cmd.add_option("--count N", o->blocks,
                   "blocks per recipe (default 240, fewer if blocks are large)")
        ->in_range(1, 1 << 20);
    cmd.add_option("--seed N", o->seed, "another seed gives other inputs (default 0)")
        ->not_negative();
    cmd.add_option("--from FILE", o->from, "take whole blocks from this checkpoint, evenly spaced");
    cmd.add_option("-t,--tensor GLOB", o->globs,
                   "tensors of --from whose name matches; repeatable");
    declare_destination(cmd, o->out, "safetensors file; with several recipes a folder");
    cmd.group("Output");
    cmd.add_option("--hex DIR", o->hex, "also write text for $readmemh, one file per array, here")
        ->file_name();
    cmd.add_flag("-q,--quiet", o->quiet, "do not list the files; errors only");
    cmd.description(
        "Writes conformance vectors for hardware and software that implements a recipe: inputs, "
        "scale codes, element codes and dequantized values, in the form that 'mx verify' reads. "
        "Inputs are generated from integers (thresholds and ties one ulp either side, subnormals, "
        "huge values, signed zeros, clusters, Inf and NaN), so the bytes depend on recipe, "
        "--count and --seed alone, or taken from a checkpoint. A tensor scale is that of the "
        "written blocks.");
    cmd.examples(
        "mx vectors --recipe mxfp4:scale=rceil -o mxfp4.safetensors --hex mxfp4-hex\n"
        "mx vectors --recipe mxfp8 --recipe mxfp4 --recipe nvfp4 -o vectors\n"
        "mx vectors --recipe nvfp4 --from model.safetensors --tensor '*.mlp.*' -o w.safetensors\n"
        "mx verify vectors\n");
    return [o] { return run_vectors(*o); };
}

}  // namespace mx::app

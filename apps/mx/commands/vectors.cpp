// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/conformance/vectors/export_vectors.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/studies/convert/output.hpp"
#include "libmx/studies/products/identify.hpp"
#include "libmx/studies/products/product_power.hpp"

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
    bool power = false;
    bool probe = false;
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

// Writes A and B; `made` has m, n, k, a and b.
template <typename Made>
void write_matrices(const vectors_options& o, const Made& made, const std::string& recipe) {
    const auto writer = convert::to_file(o.out)(
        {{"A", tensor::dtype::f32, {made.m, made.k}}, {"B", tensor::dtype::f32, {made.k, made.n}}},
        {{"generator", o.power ? "mx vectors --power" : "mx vectors --probe"}, {"recipe", recipe}});
    writer->write(0, 0, std::as_bytes(std::span(made.a)));
    writer->write(1, 0, std::as_bytes(std::span(made.b)));
    writer->commit();
    if (o.quiet || o.out == "-") return;
    print(fmt::format("{}: A is {}x{}, B {}x{}\n", base::printable(o.out), made.m, made.k, made.k,
                      made.n));
}

// Matrices A and B, on which faults of kernels show or accumulator models differ.
int write_inputs(const vectors_options& o) {
    if (o.power && o.probe) refuse("--power and --probe write different inputs; give one");
    if (o.recipes.size() != 1 || o.blocks != 0 || !o.from.empty() || !o.hex.empty()) {
        refuse(
            fmt::format("{} writes two matrices for one recipe; leave out --count, --from and "
                        "--hex",
                        o.power ? "--power" : "--probe"));
    }
    if (o.power) {
        const codec::recipe recipe = codec::parse_block_recipe(o.recipes.front());
        write_matrices(o, products::make_power_inputs(recipe, o.seed), codec::to_string(recipe));
        return exit_code::fine;
    }
    const products::operand_recipe recipe = products::parse_operand_recipe(o.recipes.front());
    const products::unit_probe made = products::make_unit_probe(recipe, o.seed, {});
    write_matrices(o, made, products::to_string(recipe));
    if (o.quiet || o.out == "-") return exit_code::fine;
    print(fmt::format("{} outputs; models with the same outputs, a line each:\n", made.m * made.n));
    for (const auto& models : made.classes) {
        std::string line;
        for (const gemm::accumulator& m : models) {
            line += (line.empty() ? "  " : " = ") + gemm::to_string(m);
        }
        print(line + "\n");
    }
    return exit_code::fine;
}

int run_vectors(const vectors_options& o) {
    if (o.power || o.probe) return write_inputs(o);
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
    cmd.add_flag("--power", o->power,
                 "write matrices A and B instead, on which tolerances find the faults that usual "
                 "inputs hide (mx verify --power)");
    cmd.add_flag("--probe", o->probe,
                 "write matrices A and B instead, with fewer than 1,000 outputs, on which the "
                 "accumulator models differ (mx gemm --identify); -r as in mx gemm");
    declare_destination(cmd, o->out, "safetensors file; with several recipes a folder");
    cmd.group("Output");
    cmd.add_option("--hex DIR", o->hex, "also write text for $readmemh, one file per array, here")
        ->file_name();
    declare_quiet(cmd, o->quiet);
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
        "mx vectors --recipe mxfp4 --power -o sharp.safetensors\n"
        "mx vectors --recipe bf16 --probe -o probe.safetensors\nmx verify vectors\n");
    return [o] { return run_vectors(*o); };
}

}  // namespace mx::app

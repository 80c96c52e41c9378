// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>

#include "apps/mx/backends.hpp"
#include "apps/mx/commands.hpp"
#include "apps/mx/commands/bench_view.hpp"
#include "apps/mx/commands/product_bench_view.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/input_records.hpp"
#include "apps/mx/names.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/bench/product_throughput.hpp"
#include "libmx/bench/throughput.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/io/dtype_names.hpp"

namespace mx::app {
namespace {

// Without --recipe: what a kernel can find easy or hard.
constexpr std::array default_recipes{
    "mxfp4:scale=floor",      "mxfp4:scale=ceil", "mxfp4:scale=even", "mxfp4:scale=rceil",
    "mxfp4:round=stochastic", "mxfp4:block=32x1", "mxfp4:block=4x4",  "mxfp4:offset=fp16",
    "mxfp8:scale=floor",      "mxfp8:scale=ceil", "mxfp8:scale=even", "mxfp8:scale=rceil",
    "mxfp8:round=stochastic",
};

// Without --accumulate: one of each kind of instruction.
constexpr std::array default_models{
    "sm100.mxf8f6f4", "sm100.mxf4", "sm100.mxf4nvf4", "sm100.f8f6f4",
    "sm100.f16",      "sm100.tf32", "sm90.wgmma.fp8", "sm90.wgmma.f16",
};

constexpr std::string_view every_backend = "all";

struct options {
    input_options in;
    output_options out;
    std::vector<std::string> recipes;
    std::string dtype = "BF16";
    std::string backend;
    std::vector<int> threads;
    bench::throughput_request request;
    bool products = false;
    std::vector<std::string> models;
    std::vector<std::size_t> mnk;
    bool quiet = false;
};

std::vector<codec::recipe> recipes_of(const options& o) {
    std::vector<std::string> spellings = o.recipes;
    if (spellings.empty()) spellings.assign(default_recipes.begin(), default_recipes.end());
    return codec::parse_recipes(spellings);
}

tensor::dtype dtype_of(const std::string& name) {
    const tensor::dtype type = io::parse_dtype("--dtype", name);
    if (!codec::is_stored(type)) {
        throw base::error(base::error_kind::usage,
                          fmt::format("--dtype: {} is widened before anything is measured; choose "
                                      "BF16, F16 or F32",
                                      tensor::row_of(type).name));
    }
    return type;
}

std::vector<const codec::backend*> backends_of(const std::string& backend) {
    if (backend != every_backend) return {&chosen_backend(backend)};
    std::vector<const codec::backend*> all;
    for (const codec::backend& d : codec::backends()) {
        if (d.available()) all.push_back(&d);
    }
    return all;
}

// One thread, and as many as a run would take; or those asked for.
std::vector<int> threads_of(const std::vector<int>& asked) {
    std::vector<int> threads = asked.empty() ? std::vector<int>{1, base::thread_count(0)} : asked;
    std::sort(threads.begin(), threads.end());
    threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
    return threads;
}

std::vector<const gemm::backend*> gemm_backends_of(const std::string& backend) {
    if (backend != every_backend) return {&gemm::backend_named(chosen_backend(backend).name)};
    std::vector<const gemm::backend*> all;
    for (const gemm::backend& b : gemm::backends()) {
        if (b.available()) all.push_back(&b);
    }
    return all;
}

int run_products(const options& o) {
    bench::product_throughput_request request;
    std::vector<std::string> models = o.models;
    if (models.empty()) models.assign(default_models.begin(), default_models.end());
    for (const std::string& m : models) request.models.push_back(gemm::parse_accumulator(m));
    request.backends = gemm_backends_of(o.backend);
    request.threads = threads_of(o.threads);
    request.seconds = o.request.seconds;
    if (!o.mnk.empty()) {
        request.rows = o.mnk[0];
        request.columns = o.mnk[1];
        request.depth = o.mnk[2];
    }
    outputs to(o.out, {});
    const auto rates = bench::measure_product_throughput(
        request, &interrupted(), progress_bar(o.quiet, progress_unit::none));
    to.finish(product_bench_document(request, rates), o.quiet);
    return exit_code::fine;
}

int run(const options& o) {
    if (o.products) return run_products(o);
    bench::throughput_request request = o.request;
    request.recipes = recipes_of(o);
    request.type = dtype_of(o.dtype);
    request.backends = backends_of(o.backend);
    request.threads = threads_of(o.threads);
    outputs to(o.out, o.in.files);
    std::unique_ptr<engine::model> model;
    if (!o.in.files.empty()) {
        model = std::make_unique<engine::model>(open_inputs(o.in));
        to.check_inputs(paths_of(*model, {}));
        request.files = model->select({});
    }
    const bench::throughput t = bench::measure_throughput(
        request, &interrupted(), progress_bar(o.quiet, progress_unit::none));
    to.finish(bench_document(request, t), o.quiet);
    return exit_code::fine;
}

void declare_products(parser& cmd, options& o) {
    option* products =
        cmd.add_flag("--gemm", o.products,
                     "measure emulated matrix products: multiply-adds per second of 'mx gemm'");
    products->group("Matrix products");
    for (const char* name :
         {"FILE", "--recipe", "--dtype", "--size", "--histograms", "--together"}) {
        products->excludes(cmd.get_option(name));
    }
    cmd.add_option("-a,--accumulate", o.models,
                   "what to measure, a row of 'mx accumulators', e.g. sm100.mxf4; repeatable")
        ->allow_extra_args(false)
        ->needs(products)
        ->type_name("MODEL")
        ->group("Matrix products");
    cmd.add_option("--mnk", o.mnk,
                   "rows, columns and depth of the product; default 1024,1024,2048; fewer rows "
                   "where time is short")
        ->delimiter(',')
        ->expected(3)
        ->needs(products)
        ->in_range(1, 1 << 16)
        ->type_name("M,N,K")
        ->group("Matrix products");
}

}  // namespace

runner declare_bench(parser& cmd) {
    const auto o = std::make_shared<options>();
    cmd.add_option("FILE", o->in.files,
                   "files that 'mx analyze' is measured with as well, from the page cache")
        ->type_name("")
        ->group("Measurement");
    cmd.add_option("-r,--recipe", o->recipes, "what to measure, e.g. mxfp4:scale=even; repeatable")
        ->allow_extra_args(false)
        ->type_name("RECIPE")
        ->group("Measurement");
    cmd.add_option("--dtype", o->dtype,
                   "what the elements are stored as: BF16 (the default), F16 or F32")
        ->type_name("DTYPE")
        ->group("Measurement");
    cmd.add_option("--size", o->request.elements,
                   "elements of the matrix; without it as many as memory is measured over: 512 MiB "
                   "or twice the caches")
        ->in_range(std::uint64_t{1}, std::uint64_t{1} << 40)
        ->type_name("N")
        ->group("Measurement");
    cmd.add_option("--seconds", o->request.seconds,
                   "time for each backend and thread count, shared by all measured; default 3")
        ->in_range(0.0, 3600.0)
        ->type_name("S")
        ->group("Measurement");
    cmd.add_flag("--histograms", o->request.histograms,
                 "measure every recipe with histograms as well")
        ->group("Measurement");
    cmd.add_flag("--together", o->request.together,
                 "measure all recipes in one pass as well, next to a pass for each")
        ->group("Measurement");
    declare_products(cmd, *o);
    declare_outputs(cmd, o->out);
    cmd.add_option("--threads", o->threads, "worker threads, e.g. 1,2,4; without it 1 and all")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->in_range(1, 4096)
        ->type_name("N,...")
        ->group("Run");
    std::vector<std::string_view> names = names_of(codec::backends());
    names.push_back(every_backend);
    cmd.add_option("--backend", o->backend,
                   fmt::format("one of: {}; without it the one that 'mx version' names",
                               fmt::join(names, ", ")))
        ->type_name("NAME")
        ->group("Run");
    cmd.add_flag("-q,--quiet", o->quiet, "no table and no progress; errors only")->group("Run");
    cmd.description(
        "Measures elements per second of the code that 'mx analyze' runs, over values in memory, "
        "and sets it beside this machine's memory bandwidth, measured in the same run by the same "
        "number of threads: nothing can go through a checkpoint faster than memory is read. With "
        "--backend cuda also what the card does with values that lie in its own memory, beside how "
        "fast that memory and the way there are. With --gemm: multiply-adds per second of emulated "
        "matrix products.");
    examples(cmd,
             "mx bench\n"
             "mx bench --recipe mxfp4 --recipe nvfp4 --dtype F32 --threads 1\n"
             "mx bench --backend all --threads 1,2 --json bench.json\n"
             "mx bench --together --histograms\n"
             "mx bench model.safetensors --recipe mxfp4 --backend cuda\n"
             "mx bench --gemm --accumulate sm100.mxf4 --backend all --threads 1\n");
    return [o] { return run(*o); };
}

}  // namespace mx::app

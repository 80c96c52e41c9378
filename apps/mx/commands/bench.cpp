// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "apps/mx/backends.hpp"
#include "apps/mx/commands/bench_suite.hpp"
#include "apps/mx/commands/bench_view.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/glob.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/bench/model_throughput.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/io/dtype_names.hpp"

namespace mx::app {
namespace {

// Without --recipe: recipes that are easy and hard for kernels.
constexpr std::array bench_recipes{
    "mxfp4:scale=floor",      "mxfp4:scale=ceil", "mxfp4:scale=even", "mxfp4:scale=rceil",
    "mxfp4:round=stochastic", "mxfp4:block=32x1", "mxfp4:block=4x4",  "mxfp4:offset=fp16",
    "mxfp8:scale=floor",      "mxfp8:scale=ceil", "mxfp8:scale=even", "mxfp8:scale=rceil",
    "mxfp8:round=stochastic",
};

// Without --accumulate: one model of each kind of instruction.
constexpr std::array default_models{
    "sm100.mxf8f6f4", "sm100.mxf4", "sm100.mxf4nvf4", "sm100.f8f6f4",
    "sm100.f16",      "sm100.tf32", "sm90.wgmma.fp8", "sm90.wgmma.f16",
};

constexpr std::string_view every_backend = "all";

struct bench_options {
    input_options in;
    output_options out;
    std::vector<std::string> recipes;
    std::string dtype = "BF16";
    std::string backend;
    std::vector<int> threads;
    bench::throughput_request request;
    std::optional<double> seconds;
    bool products = false, trainings = false, suite = false;
    std::string model;
    std::vector<std::string> chosen_cases;
    std::vector<std::string> models;
    std::vector<std::size_t> mnk;
    bool quiet = false;
};

tensor::dtype dtype_of(const std::string& name) {
    const tensor::dtype type = io::parse_dtype("--dtype", name);
    if (!codec::is_stored(type)) {
        refuse(
            fmt::format("--dtype: {} is widened before anything is measured; choose "
                        "BF16, F16 or F32",
                        tensor::row_of(type).name));
    }
    return type;
}

// The requested entry of `list`, or all that can run here.
template <typename Backend>
std::vector<const Backend*> backends_of(const std::string& requested, std::span<const Backend> list,
                                        const Backend& (*named)(std::string_view)) {
    if (requested != every_backend) return {&named(chosen_backend(requested).name)};
    std::vector<const Backend*> all;
    for (const Backend& b : list) {
        if (b.available()) all.push_back(&b);
    }
    return all;
}

// One thread and the default number of threads, or the requested numbers.
std::vector<int> threads_of(const std::vector<int>& requested) {
    std::vector<int> threads =
        requested.empty() ? std::vector<int>{1, base::thread_count(0)} : requested;
    std::sort(threads.begin(), threads.end());
    threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
    return threads;
}

int run_products(const bench_options& o) {
    bench::product_throughput_request request;
    std::vector<std::string> models = o.models;
    if (models.empty()) models.assign(default_models.begin(), default_models.end());
    for (const std::string& m : models) request.models.push_back(gemm::parse_accumulator(m));
    request.backends = backends_of(o.backend, gemm::backends(), gemm::backend_named);
    request.threads = threads_of(o.threads);
    request.seconds = o.seconds.value_or(request.seconds);
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

int run_trainings(const bench_options& o) {
    const bench::training_throughput_request request{threads_of(o.threads),
                                                     chosen_backend(o.backend).name,
                                                     o.seconds.value_or(o.request.seconds)};
    outputs to(o.out, {});
    const auto rates = bench::measure_training_throughput(
        request, &interrupted(), progress_bar(o.quiet, progress_unit::none));
    to.finish(training_bench_document(
                  rates, false,
                  "Steps: width 512, depth 4, batch 512, all six operands in the recipe; seeds: "
                  "width 64, depth 4, batch 64, side by side."),
              o.quiet);
    return exit_code::fine;
}

int run_models(const bench_options& o) {
    bench::model_throughput_request request;
    request.model = o.model;
    request.threads = threads_of(o.threads);
    request.backend = chosen_backend(o.backend).name;
    request.seconds = o.seconds.value_or(request.seconds);
    outputs to(o.out, {o.model});
    const auto rates = bench::measure_model_throughput(request, &interrupted(),
                                                       progress_bar(o.quiet, progress_unit::none));
    to.finish(
        training_bench_document(
            rates, true,
            "512 tokens, or the model's context, in one window, weights read from the file. A "
            "recipe, for weights and inputs, runs beside the model as it is: both passes count."),
        o.quiet);
    return exit_code::fine;
}

// The first path, which the others are compared with, and the requested paths.
void keep_cases(const std::vector<std::string>& globs, std::vector<bench::suite_case>& cases) {
    if (globs.empty()) return;
    for (const std::string& glob : globs) {
        const bool any = std::any_of(cases.begin(), cases.end(), [&](const bench::suite_case& r) {
            return base::glob_match(glob, r.name);
        });
        if (!any) refuse(fmt::format("--case: '{}' is the name of no case", glob));
    }
    const bench::suite_case first = cases.front();
    std::erase_if(cases, [&](const bench::suite_case& r) {
        return std::none_of(globs.begin(), globs.end(), [&](const std::string& glob) {
            return base::glob_match(glob, r.name);
        });
    });
    if (cases.front().name != first.name) cases.insert(cases.begin(), first);
}

int run_suite(const bench_options& o) {
    if (o.threads.size() > 1) refuse("--suite takes one thread count: --threads N");
    bench::suite_request request;
    request.type = dtype_of(o.dtype);
    request.elements = o.request.elements;
    request.threads = o.threads.empty() ? 1 : o.threads.front();
    request.seconds = o.seconds.value_or(request.seconds);
    engine::run_control control;
    control.threads = request.threads;
    control.backend = &codec::backend_named(chosen_backend(o.backend).name);
    control.cancel = &interrupted();
    outputs to(o.out, {});
    std::vector<bench::suite_case> cases = bench::recipe_cases(request.type, control);
    for (bench::suite_case& r : command_cases(request.type, control)) cases.push_back(std::move(r));
    keep_cases(o.chosen_cases, cases);
    const bench::suite_table t = bench::measure_suite(cases, request, &interrupted(),
                                                      progress_bar(o.quiet, progress_unit::none));
    to.finish(suite_document(cases, request, t), o.quiet);
    return exit_code::fine;
}

int run_bench(const bench_options& o) {
    if (o.products) return run_products(o);
    if (o.trainings) return run_trainings(o);
    if (!o.model.empty()) return run_models(o);
    if (o.suite) return run_suite(o);
    bench::throughput_request request = o.request;
    request.seconds = o.seconds.value_or(request.seconds);
    request.recipes = recipes_of(o.recipes, bench_recipes);
    request.type = dtype_of(o.dtype);
    request.backends = backends_of(o.backend, codec::backends(), codec::backend_named);
    request.threads = threads_of(o.threads);
    outputs to(o.out, o.in.files);
    std::unique_ptr<engine::model> model;
    if (!o.in.files.empty()) {
        model = std::make_unique<engine::model>(open_inputs(o.in, to.paths()));
        request.files = model->select({});
    }
    const bench::throughput t = bench::measure_throughput(
        request, &interrupted(), progress_bar(o.quiet, progress_unit::none));
    to.finish(bench_document(request, t), o.quiet);
    return exit_code::fine;
}

void declare_products(parser& cmd, bench_options& o) {
    cmd.group("Matrix products");
    option* products =
        cmd.add_flag("--gemm", o.products,
                     "measure emulated matrix products: multiply-adds per second of 'mx gemm'");
    for (const char* name :
         {"FILE", "--recipe", "--dtype", "--elements", "--histograms", "--together"}) {
        products->excludes(cmd.get_option(name));
    }
    cmd.add_option(
           "-m,--accumulate MODEL", o.models,
           "model to measure, a row of 'mx explain accumulators', e.g. sm100.mxf4; repeatable")
        ->needs(products);
    cmd.add_option("--mnk M,N,K", o.mnk,
                   "rows, columns and depth of the product; default 1024,1024,2048; fewer rows "
                   "where time is short")
        ->delimiter(',')
        ->expected(3)
        ->needs(products)
        ->in_range(1, 1 << 16);
}

void declare_trainings(parser& cmd, bench_options& o) {
    cmd.group("Training runs");
    option* trainings = cmd.add_flag("--train", o.trainings,
                                     "measure steps of 'mx train proxy' and their products");
    for (const char* name :
         {"FILE", "--recipe", "--dtype", "--elements", "--histograms", "--together", "--gemm"}) {
        trainings->excludes(cmd.get_option(name));
    }
}

void declare_models(parser& cmd, bench_options& o) {
    cmd.group("Language models");
    option* models = cmd.add_option("--eval MODEL", o.model, "measure 'mx eval' of this model");
    for (const char* name : {"FILE", "--recipe", "--dtype", "--elements", "--histograms",
                             "--together", "--gemm", "--train"}) {
        models->excludes(cmd.get_option(name));
    }
}

void declare_suite(parser& cmd, bench_options& o) {
    cmd.group("Suite");
    option* suite = cmd.add_flag(
        "--suite", o.suite,
        "measure every group of recipes and every command that quantizes, alternating in one run");
    for (const char* name :
         {"FILE", "--recipe", "--histograms", "--together", "--gemm", "--train", "--eval"}) {
        suite->excludes(cmd.get_option(name));
    }
    cmd.add_option("--case GLOB", o.chosen_cases,
                   "only those whose name matches (*, ?, [set]), and mxfp4; repeatable")
        ->needs(suite);
}

}  // namespace

runner declare_bench(parser& cmd) {
    const auto o = std::make_shared<bench_options>();
    cmd.group("Measurement");
    cmd.add_option("FILE", o->in.files,
                   "also measure 'mx analyze' with these files, from the page cache");
    cmd.add_option("-r,--recipe RECIPE", o->recipes,
                   "recipe to measure, e.g. mxfp4:scale=even; repeatable");
    cmd.add_option("--dtype DTYPE", o->dtype,
                   "dtype of the elements: BF16 (the default), F16 or F32");
    cmd.add_option("--elements N", o->request.elements,
                   "elements of the matrix; default: as many as for the memory bandwidth, 512 MiB "
                   "or twice the caches")
        ->in_range(std::uint64_t{1}, std::uint64_t{1} << 40);
    cmd.add_option("--seconds S", o->seconds,
                   "time for each backend and thread count, shared by all measured; default 3, "
                   "with --suite 60")
        ->in_range(0.0, 3600.0);
    cmd.add_flag("--histograms", o->request.histograms,
                 "measure every recipe with histograms as well");
    cmd.add_flag("--together", o->request.together,
                 "measure all recipes in one pass as well, next to a pass for each");
    declare_products(cmd, *o);
    declare_trainings(cmd, *o);
    declare_models(cmd, *o);
    declare_suite(cmd, *o);
    declare_outputs(cmd, o->out);
    cmd.group("Run");
    cmd.add_option("--threads N,...", o->threads, "worker threads, e.g. 1,2,4; default: 1 and all")
        ->delimiter(',')
        ->in_range(1, 4096);
    std::vector<std::string_view> names = names_of(codec::backends());
    names.push_back(every_backend);
    cmd.add_option("--backend NAME", o->backend,
                   fmt::format("one of: {}; without it the one that 'mx version' names",
                               fmt::join(names, ", ")));
    declare_quiet(cmd, o->quiet);
    cmd.description(
        "Measures elements per second of the code that 'mx analyze' runs, over values in memory, "
        "and compares them with the memory bandwidth, the limit of every analysis, measured in "
        "the same run with the same number of threads. With --backend cuda also measures values "
        "in GPU memory, compared with the bandwidth of that memory and of copies to it. With "
        "--gemm: multiply-adds per second of emulated matrix products. With --train: steps of 'mx "
        "train proxy'; with --eval, 'mx eval' of a model. With --suite: one table of every group "
        "of recipes and every command, each "
        "compared with mxfp4 and with the limit of memory.");
    cmd.examples(
        "mx bench\n"
        "mx bench --recipe mxfp4 --recipe nvfp4 --dtype F32 --threads 1\n"
        "mx bench --backend all --threads 1,2 --json bench.json\n"
        "mx bench --together --histograms\n"
        "mx bench model.safetensors --recipe mxfp4 --backend cuda\n"
        "mx bench --gemm --accumulate sm100.mxf4 --backend all --threads 1\n"
        "mx bench --train --threads 1,2\n"
        "mx bench --suite --json suite.json\n"
        "mx bench --suite --case 'quantize*' --case 'cast*' --seconds 10\n");
    return [o] { return run_bench(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/lab/model.hpp"

namespace mx::experiments {
namespace {

// Rates at which float32 stays stable and still learns at the end.
struct study_size {
    std::size_t width, depth, batch;
    std::uint64_t steps;
    double rate;
    std::size_t heads = 0, context = 0;  // of language models
};
constexpr std::array proxy_sizes{
    study_size{32, 2, 32, 200, 5e-3},     study_size{64, 2, 32, 300, 3e-3},
    study_size{64, 2, 64, 500, 3e-3},     study_size{64, 4, 128, 800, 3e-3},
    study_size{128, 4, 256, 1200, 2e-3},  study_size{256, 4, 512, 2400, 1e-3},
    study_size{512, 4, 1024, 4800, 6e-4},
};
// The last three have the networks of tiny, small and medium in mx train.
constexpr std::array language_sizes{
    study_size{32, 1, 256, 200, 1e-2, 2, 32},     study_size{32, 2, 256, 400, 1e-2, 2, 32},
    study_size{32, 2, 256, 800, 1e-2, 2, 32},     study_size{32, 2, 512, 1000, 1e-2, 2, 32},
    study_size{64, 2, 2048, 1000, 4e-3, 2, 64},   study_size{128, 4, 4096, 1500, 2e-3, 4, 128},
    study_size{256, 4, 8192, 3000, 1e-3, 4, 256},
};

lab::run_request request_of_size(const std::string& model, const study_size& s) {
    lab::run_request r = lab::request_for(model, "");
    r.shape.width = s.width;
    r.shape.depth = s.depth;
    r.batch = s.batch;
    r.steps = s.steps;
    r.rate = s.rate;
    if (r.model == lab::model_kind::proxy) {
        r.task = lab::task_kind::teacher;
    } else {
        r.heads = s.heads;
        r.context = s.context;
    }
    return r;
}

// Seconds of a step of one core.
double step_of(double flop, double elements) {
    return flop / model_flop + elements / model_elements;
}

double language_step(lab::run_request r) {
    r.text_file.clear();  // it costs nothing
    const auto tokens = static_cast<double>(r.batch);
    double elements = 0;
    const lab::language_network network(lab::language_shape_of(r));
    for (const lab::parameter& p : network.parameters().all()) {
        const bool linear = p.kind == lab::parameter_kind::weight && p.first > 0;  // no embedding
        if (!linear) continue;
        const auto in = static_cast<double>(p.shape[1]), out = static_cast<double>(p.shape[0]);
        elements += 2 * (network.share_of_tokens(p) * tokens * (in + out) + in * out);
    }
    lab::execution_context on;
    return step_of(lab::make_model(r, on)->cost().flop, elements);
}

}  // namespace

double parse_duration(const std::string& text) {
    struct unit {
        char letter;
        double seconds;
    };
    constexpr std::array units{unit{'s', 1}, unit{'m', 60}, unit{'h', 3600}};
    std::string_view digits = text;
    double factor = 1;
    for (const unit& u : units) {
        if (digits.empty() || digits.back() != u.letter) continue;
        digits.remove_suffix(1);
        factor = u.seconds;
        break;
    }
    const auto n = base::parsed<double>(digits);
    if (!n || !(*n > 0) || !(*n * factor <= 1e9)) {
        base::refuse("--budget: '{}' is not a time; give seconds, or as in 90s, 10m, 1.5h", text);
    }
    return *n * factor;
}

double cost_of(const lab::run_request& r) {
    const auto steps = static_cast<double>(r.steps);
    if (r.model != lab::model_kind::proxy) return steps * language_step(r);
    const auto d = static_cast<double>(r.shape.width), depth = static_cast<double>(r.shape.depth);
    const auto tokens = static_cast<double>(r.batch);
    const double flop = 48 * tokens * d * d * depth;
    const double elements = (20 * tokens * d + 16 * d * d) * depth;
    return steps * step_of(flop, elements);
}

std::vector<distinct_run> runs_of(const std::vector<configuration>& configurations) {
    std::vector<distinct_run> runs;
    const auto add = [&](const distinct_run& r) {
        if (std::ranges::find(runs, r) == runs.end()) runs.push_back(r);
    };
    for (const configuration& c : configurations) {
        add({c.baseline, "", 0});
        add({c.settings, c.from > 0 ? c.baseline : "", c.from});
    }
    return runs;
}

sized size_for(const std::string& model, std::size_t runs, double seconds) {
    const bool proxy = lab::request_for(model, "").model == lab::model_kind::proxy;
    const std::span<const study_size> sizes =
        proxy ? std::span<const study_size>(proxy_sizes) : language_sizes;
    const auto seconds_of = [&](const lab::run_request& r) {
        return cost_of(r) * static_cast<double>(runs) / model_cores;
    };
    const auto seeds_at = [&](const lab::run_request& r) {
        return static_cast<std::uint64_t>(std::min(seconds / seconds_of(r), 1e6));
    };
    lab::run_request chosen = request_of_size(model, sizes.front());
    for (const study_size& s : sizes.subspan(1)) {
        const lab::run_request larger = request_of_size(model, s);
        if (seeds_at(larger) < wanted_seeds) break;
        chosen = larger;
    }
    const std::uint64_t seeds = std::min(seeds_at(chosen), most_seeds);
    if (seeds < 2) {
        base::refuse(
            "--budget: {:.3g} s are less than two seeds of the smallest size need, {:.3g} s by "
            "the cost model; give more",
            seconds, 2 * seconds_of(chosen));
    }
    sized all{std::move(chosen), {}};
    for (std::uint64_t s = 1; s <= seeds; ++s) all.seeds.push_back(s);
    return all;
}

}  // namespace mx::experiments

// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::experiments {
namespace {

// Sizes of the proxy. Rates at which float32 stays stable and still learns at the end.
struct proxy_size {
    std::size_t width, depth, batch;
    std::uint64_t steps;
    double rate;
};
constexpr std::array proxy_sizes{
    proxy_size{32, 2, 32, 200, 5e-3},     proxy_size{64, 2, 32, 300, 3e-3},
    proxy_size{64, 2, 64, 500, 3e-3},     proxy_size{64, 4, 128, 800, 3e-3},
    proxy_size{128, 4, 256, 1200, 2e-3},  proxy_size{256, 4, 512, 2400, 1e-3},
    proxy_size{512, 4, 1024, 4800, 6e-4},
};

lab::run_request request_of_size(const proxy_size& s) {
    lab::run_request r;
    r.shape.width = s.width;
    r.shape.depth = s.depth;
    r.batch = s.batch;
    r.steps = s.steps;
    r.rate = s.rate;
    r.task = lab::task_kind::teacher;
    return r;
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
    const auto d = static_cast<double>(r.shape.width), depth = static_cast<double>(r.shape.depth);
    const auto tokens = static_cast<double>(r.batch);
    const double flop = 48 * tokens * d * d * depth;
    const double elements = (20 * tokens * d + 16 * d * d) * depth;
    return static_cast<double>(r.steps) * (flop / model_flop + elements / model_elements);
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

void require_model(std::string_view name) {
    if (name != "proxy") base::refuse(base::unknown("model", name, {"proxy"}));
}

sized size_for(std::size_t runs, double seconds) {
    const auto seeds_at = [&](const proxy_size& s) {
        const double one = cost_of(request_of_size(s)) * static_cast<double>(runs) / model_cores;
        return static_cast<std::uint64_t>(std::min(seconds / one, 1e6));
    };
    const proxy_size* chosen = &proxy_sizes.front();
    for (const proxy_size& s : proxy_sizes) {
        if (seeds_at(s) >= wanted_seeds) chosen = &s;
    }
    const std::uint64_t seeds = std::min(seeds_at(*chosen), most_seeds);
    if (seeds < 2) {
        base::refuse(
            "--budget: {:.3g} s are less than two seeds of the smallest size need, {:.3g} s by "
            "the cost model; give more, or your own sizes",
            seconds,
            2 * cost_of(request_of_size(*chosen)) * static_cast<double>(runs) / model_cores);
    }
    sized all{request_of_size(*chosen), {}};
    for (std::uint64_t s = 1; s <= seeds; ++s) all.seeds.push_back(s);
    return all;
}

}  // namespace mx::experiments

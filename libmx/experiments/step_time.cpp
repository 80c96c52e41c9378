// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/step_time.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "libmx/lab/model.hpp"
#include "libmx/lab/training.hpp"

namespace mx::experiments {
namespace {

constexpr double enough_flop = 2e9;  // of the smaller batch

double least_seconds(const lab::run_request& r, int threads, std::string_view backend) {
    lab::training t(r, lab::execution_context(threads, backend));
    t.step();  // the first step allocates buffers
    double quickest = INFINITY;
    for (int i = 0; i < 2 && !t.finished(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        t.step();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        quickest = std::min(quickest, took.count());
    }
    return quickest;
}

}  // namespace

double seconds_of_step(const lab::run_request& request, int threads, std::string_view backend) {
    lab::run_request r = request;
    r.data_file.clear();
    r.init_file.clear();
    r.steps = 4;
    r.cosine_steps = r.warmup_steps = 0;
    r.probe_every = 0;
    r.interventions.clear();
    lab::execution_context on;
    const std::size_t unit = r.model == lab::model_kind::proxy ? 32 : r.context;
    const double flop_of_unit = lab::make_model(r, on)->cost().flop / static_cast<double>(r.batch) *
                                static_cast<double>(unit);
    const auto units =
        static_cast<std::size_t>(std::max(1.0, std::ceil(enough_flop / flop_of_unit)));
    if (2 * units * unit >= r.batch) return least_seconds(r, threads, backend);
    r.batch = units * unit;
    const double one = least_seconds(r, threads, backend);
    r.batch *= 2;
    const double two = least_seconds(r, threads, backend);
    const auto times = static_cast<double>(request.batch) / static_cast<double>(units * unit);
    return two > one ? one + (times - 1) * (two - one) : two * times / 2;
}

}  // namespace mx::experiments

// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/step_time.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "libmx/lab/model.hpp"
#include "libmx/lab/training.hpp"

namespace mx::experiments {
namespace {

constexpr double enough_flop = 2e9;  // of the smaller batch

step_time least_time(const lab::run_request& r, int threads, std::string_view backend) {
    lab::training t(r, lab::execution_context(threads, backend));
    t.step();  // the first step allocates buffers
    step_time quickest{INFINITY, INFINITY};
    for (int i = 0; i < 2 && !t.finished(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        const std::clock_t used = std::clock();
        t.step();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        quickest.seconds = std::min(quickest.seconds, took.count());
        quickest.processor_seconds = std::min(
            quickest.processor_seconds, static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC);
    }
    return quickest;
}

}  // namespace

step_time time_of_step(const lab::run_request& request, int threads, std::string_view backend) {
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
    if (2 * units * unit >= r.batch) return least_time(r, threads, backend);
    r.batch = units * unit;
    const step_time one = least_time(r, threads, backend);
    r.batch *= 2;
    const step_time two = least_time(r, threads, backend);
    const auto times = static_cast<double>(request.batch) / static_cast<double>(units * unit);
    const auto at = [&](double of_one, double of_two) {
        return of_two > of_one ? of_one + (times - 1) * (of_two - of_one) : of_two * times / 2;
    };
    return {at(one.seconds, two.seconds), at(one.processor_seconds, two.processor_seconds)};
}

}  // namespace mx::experiments

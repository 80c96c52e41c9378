// SPDX-License-Identifier: Apache-2.0
// The output of `mx bench --train`.
#include <fmt/format.h>

#include "apps/mx/backends.hpp"
#include "apps/mx/commands/bench_view.hpp"
#include "apps/mx/outputs.hpp"

namespace mx::app {

report::document training_bench_document(const bench::training_throughput_request& request,
                                         const std::vector<bench::training_rate>& rates) {
    report::document d;
    d.head = pages::document_head("mx.bench/1");
    report::section s;
    s.heading = "Trainings of the proxy, and their products";
    s.columns = {{"what", "what"},
                 {"multiply_adds_per_second", "G multiply-\nadds/s", cell::fixed, 2},
                 {"steps_per_second", "steps/s", cell::significant, 4},
                 {"time_ratio", "time, times\nthe first's", cell::fixed, 2},
                 {"times_one_thread", "times one\nthread", cell::fixed, 2}};
    s.group_field = "group";
    for (const bench::training_rate& r : rates) {
        report::value times = undefined();
        for (const bench::training_rate& one : rates) {
            if (one.what != r.what || one.threads != 1) continue;
            times = real(r.multiply_adds_per_second / one.multiply_adds_per_second);
        }
        const auto row = [&](double unit) {
            return report::record{
                {"what", text(r.what)},
                {"threads", integer(r.threads)},
                {"multiply_adds_per_second", real(r.multiply_adds_per_second * unit)},
                {"steps_per_second",
                 r.steps_per_second > 0 ? real(r.steps_per_second) : undefined()},
                {"time_ratio", real(r.time_ratio)},
                {"times_one_thread", times}};
        };
        d.results.push_back(row(1));
        s.rows.push_back(row(1e-9));
        s.rows.back().insert(s.rows.back().begin(), {"group", threads_text(r.threads)});
    }
    s.notes.push_back(fmt::format(
        "Every figure is the best of its passes; all take turns, for {} s per thread count. "
        "Steps: width 512, depth 4, batch 512, all six operands in the recipe; seeds: width 64, "
        "depth 4, batch 64, side by side. The same bits whatever the threads.",
        request.seconds));
    d.sections = {std::move(s)};
    return d;
}

}  // namespace mx::app

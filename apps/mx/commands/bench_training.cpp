// SPDX-License-Identifier: Apache-2.0
// The output of `mx bench --train` and `mx bench --eval`.
#include "apps/mx/backends.hpp"
#include "apps/mx/commands/bench_view.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {

report::document training_bench_document(const std::vector<bench::training_rate>& rates,
                                         bool tokens, const std::string& note) {
    const std::string each = tokens ? "tokens_per_second" : "steps_per_second";
    report::document d;
    d.head = pages::document_head("mx.bench/1");
    report::section s;
    s.heading = tokens ? "Evaluations of a model, and a product"
                       : "Training runs of the proxy, and their products";
    s.columns = pages::columns_of(
        {"what",
         pages::column_of("multiply_adds_per_second", "G multiply-\nadds/s", cell::fixed, 2),
         pages::column_of(each, tokens ? "tokens/s" : "steps/s", cell::significant, 4),
         pages::column_of("time_ratio", "time, times\nthe first's", cell::fixed, 2),
         pages::column_of("times_one_thread", "times one\nthread", cell::fixed, 2)});
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
                {each, r.steps_per_second > 0 ? real(r.steps_per_second) : undefined()},
                {"time_ratio", real(r.time_ratio)},
                {"times_one_thread", times}};
        };
        d.results.push_back(row(1));
        s.rows.push_back(row(1e-9));
        s.rows.back().insert(s.rows.back().begin(), {"group", threads_text(r.threads)});
    }
    s.notes.push_back("Every figure is the best of its passes, which take turns. " + note +
                      " The same bits whatever the threads.");
    d.sections = {std::move(s)};
    return d;
}

}  // namespace mx::app

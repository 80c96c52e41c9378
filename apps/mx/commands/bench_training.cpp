// SPDX-License-Identifier: Apache-2.0
// The output of `mx bench --train` and `mx bench --eval`.
#include <array>
#include <optional>

#include "apps/mx/backends.hpp"
#include "apps/mx/commands/bench_view.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {
namespace {

struct timed_training {
    const bench::training_rate& of;
    bool tokens;
    report::value times;
    double unit;  // of multiply-adds

    std::optional<report::value> each(bool asked) const {
        return report::only_if(asked, known_rate(of.steps_per_second));
    }
    static report::value known_rate(double x) { return x > 0 ? real(x) : undefined(); }
};
constexpr std::array training_members = std::to_array<report::declared<timed_training>>({
    {"what", "string", "a training or evaluation, or a product alone",
     [](auto& t) { return t.of.what; }},
    {"threads", "ordinal", "", [](auto& t) { return t.of.threads; }},
    {"multiply_adds_per_second", "amount", "of the products",
     [](auto& t) { return t.of.multiply_adds_per_second * t.unit; }},
    {"steps_per_second", "amount?", "of all runs together; null: of a product alone",
     [](auto& t) { return t.each(!t.tokens); }, false},
    {"tokens_per_second", "amount?", "of evaluations, likewise",
     [](auto& t) { return t.each(t.tokens); }, false},
    {"time_ratio", "amount", "of the time of the first with as many threads",
     [](auto& t) { return t.of.time_ratio; }},
    {"times_one_thread", "amount?", "of the rate with one thread", [](auto& t) { return t.times; }},
});

}  // namespace

void declare_training(report::document_schema& to) { to.define("training", training_members); }

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
            return report::written(training_members, {r, tokens, times, unit});
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

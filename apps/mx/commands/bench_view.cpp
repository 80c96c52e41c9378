// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/bench_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/mx/commands/placed_bench_view.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {

using pages::integer;
using pages::real;
using pages::text;
using pages::undefined;
namespace {

using bench::bandwidth;
using bench::throughput;
using bench::throughput_request;
using bench::throughput_row;
using report::cell;

std::string threads_text(int threads) {
    return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

// The machine's: those of the largest thread count.
const bandwidth& of_the_machine(const throughput& t) {
    return *std::max_element(
        t.bandwidths.begin(), t.bandwidths.end(),
        [](const bandwidth& a, const bandwidth& b) { return a.threads < b.threads; });
}

std::string recipe_name(const throughput_request& request, std::size_t r) {
    return codec::to_string(request.recipes[r]);
}

report::list bandwidth_list(const throughput& t) {
    report::list list;
    for (const bandwidth& b : t.bandwidths) {
        list.emplace_back(report::record{{"threads", integer(b.threads)},
                                         {"read_bandwidth_bytes_per_second", real(b.read)},
                                         {"copy_bandwidth_bytes_per_second", real(b.copy)}});
    }
    return list;
}

report::record result_of(const throughput_request& request, const throughput_row& r) {
    return {{"recipe", recipe_name(request, r.recipes.front())},
            {"backend", text(r.backend->name)},
            {"threads", integer(r.threads)},
            {"dtype", text(tensor::row_of(request.type).name)},
            {"histograms", r.histograms},
            {"elements_per_second", real(r.elements_per_second)},
            {"fraction_of_read_bandwidth", real(r.fraction)}};
}

report::record joint_result_of(const throughput_request& request, const throughput_row& r) {
    report::list names;
    for (const std::size_t i : r.recipes) names.emplace_back(recipe_name(request, i));
    report::record record{{"recipes", std::move(names)}};
    report::record rest = result_of(request, r);
    record.insert(record.end(), rest.begin() + 1, rest.end());
    record.emplace_back("fraction_of_separate_passes", real(r.of_separate_passes));
    return record;
}

std::string count_text(std::uint64_t elements) {
    return elements < 1000000 ? fmt::format("{}", elements)
                              : fmt::format("{} million", elements / 1000000);
}

report::record table_row(const throughput_request& request, const throughput_row& r) {
    std::string name = r.recipes.size() == 1 ? recipe_name(request, r.recipes.front())
                                             : fmt::format("all {} in one pass", r.recipes.size());
    if (r.histograms) name += " +histograms";
    return {{"group", fmt::format("{}, {}", r.backend->name, threads_text(r.threads))},
            {"recipe", std::move(name)},
            {"rate", real(r.elements_per_second * 1e-9)},
            {"fraction", real(r.fraction)},
            {"bar", bar_text(r.fraction)},
            {"separate", r.recipes.size() == 1 ? undefined() : real(r.of_separate_passes)}};
}

report::section memory_section(const throughput_request& request, const throughput& t) {
    const double bytes = tensor::row_of(request.type).bits / 8.0;
    report::section s;
    s.heading = fmt::format("Memory, over {} MiB", t.memory >> 20);
    s.columns = {{"threads", "threads", cell::integer},
                 {"read", "reads\nGB/s", cell::fixed, 1},
                 {"copy", "copies\nGB/s", cell::fixed, 1},
                 {"roof", fmt::format("roof: {}\nG elements/s", tensor::row_of(request.type).name),
                  cell::fixed, 2}};
    for (const bandwidth& b : t.bandwidths) {
        s.rows.push_back({{"threads", integer(b.threads)},
                          {"read", real(b.read * 1e-9)},
                          {"copy", real(b.copy * 1e-9)},
                          {"roof", real(b.read / bytes * 1e-9)}});
    }
    return s;
}

report::section roofline(const throughput_request& request, const throughput& t) {
    report::section s;
    s.heading = fmt::format("Roofline: {} normally distributed elements of {}",
                            count_text(t.elements), tensor::row_of(request.type).name);
    s.columns = {{"recipe", "recipe"},
                 {"rate", "G elements/s", cell::fixed, 3},
                 {"fraction", "of read\nbandwidth", cell::fixed, 3},
                 {"bar", bar_title()}};
    const bool joint = std::any_of(t.rows.begin(), t.rows.end(),
                                   [](const throughput_row& r) { return r.recipes.size() > 1; });
    if (joint) {
        s.columns.insert(s.columns.end() - 1, {"separate", "of separate\npasses", cell::fixed, 2});
    }
    s.group_field = "group";
    for (const throughput_row& r : t.rows) s.rows.push_back(table_row(request, r));
    s.notes.push_back(fmt::format(
        "Every figure is the best of its passes; all take turns, for {} s per backend and thread "
        "count. Copies count the bytes read and the bytes written. A pass of a recipe takes the "
        "next part of the matrix, so that it finds nothing in a cache, unless --size makes the "
        "matrix small.",
        request.seconds));
    return s;
}

}  // namespace

report::document bench_document(const throughput_request& request, const throughput& t) {
    report::document d;
    const bandwidth& machine = of_the_machine(t);
    d.head = pages::document_head("mx.bench/1");
    d.head.emplace_back("read_bandwidth_bytes_per_second", real(machine.read));
    d.head.emplace_back("copy_bandwidth_bytes_per_second", real(machine.copy));
    d.head.emplace_back("bandwidths", bandwidth_list(t));
    d.head.emplace_back("elements", integer(t.elements));
    report::list together;
    for (const throughput_row& r : t.rows) {
        if (r.recipes.size() == 1) {
            d.results.push_back(result_of(request, r));
        } else {
            together.emplace_back(joint_result_of(request, r));
        }
    }
    if (!together.empty()) d.tail.emplace_back("together", std::move(together));
    d.sections = {memory_section(request, t), roofline(request, t)};
    add_placed(request, t, d);
    return d;
}

}  // namespace mx::app

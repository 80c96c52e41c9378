// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/suite.hpp"

#include <algorithm>
#include <array>

#include "libmx/bench/memory.hpp"
#include "libmx/bench/normal_values.hpp"
#include "libmx/bench/rounds.hpp"
#include "libmx/bench/row_source.hpp"
#include "libmx/bench/suite_recipes.hpp"
#include "libmx/io/memory_tensor.hpp"

namespace mx::bench {
namespace {

// Recipes with which optional figures are timed.
constexpr std::array figure_recipes{"mxfp4", "mxfp8", "nvfp4"};

double rate_of_pass(const suite_case& r, const analysis::matrix& m) {
    std::uint64_t elements = 0;
    const double took = seconds_of([&] { elements = r.pass(m); });
    return static_cast<double>(elements) / took;
}

suite_case analysis_case(std::string group, const codec::recipe& recipe, bool histograms,
                         bool decompose, tensor::dtype type, const engine::run_control& control) {
    std::string name = codec::to_string(recipe);
    if (histograms) name += " +histograms";
    if (decompose) name += " +decomposition";
    analysis::analysis_request request;
    request.recipes = {recipe};
    request.histograms = histograms;
    request.decompose = decompose;
    return {std::move(group),
            std::move(name),
            serving_backend(control.chosen_backend(), recipe),
            static_cast<double>(bytes_of(type)),
            0,
            [request = std::move(request), &control](const analysis::matrix& m) {
                const auto file =
                    io::memory_tensor(m.data, m.type, {m.rows, m.cols}, {}, std::string(m.name));
                analysis::analyze({{file.get(), 0}}, request, control);
                return m.rows * m.cols;
            }};
}

}  // namespace

suite_rate rate_of(const suite_case& r, double elements_per_second, double first,
                   const bandwidth& b) {
    suite_rate rate;
    rate.elements_per_second = elements_per_second;
    rate.of_first = elements_per_second / first;
    rate.of_read_bandwidth = elements_per_second * r.reads / b.read;
    rate.of_roof = elements_per_second * (r.reads + r.writes) / (r.writes > 0 ? b.copy : b.read);
    return rate;
}

suite_table measure_suite(const std::vector<suite_case>& cases, const suite_request& request,
                          const std::atomic<bool>* cancel,
                          const std::function<void(const engine::progress&)>& on_progress) {
    suite_table table;
    const std::uint64_t elements =
        request.elements != 0 ? request.elements : default_elements(request.type);
    const std::uint64_t needed = elements * bytes_of(request.type);
    measured_memory memory(std::max(memory_to_measure(), needed), request.threads);
    table.memory = memory.bytes().size();
    table.machine.threads = request.threads;
    const auto moved = static_cast<double>(table.memory);
    double& copy = table.machine.copy;
    take_turns(0, cancel, {}, [&] { copy = std::max(copy, moved / memory.copy_once()); });
    const std::span<std::byte> values = memory.bytes().first(needed);
    const codec::tensor_facts facts = fill_normal(request.type, values);
    row_source rows(request.type, values, elements, facts);
    table.elements = rows.elements();

    part_progress progress(on_progress);
    progress.add_parts(1);
    std::vector<double> best(cases.size());
    // Warm-up; also estimates how much each path can do in its share of the time.
    for (std::size_t i = 0; i < cases.size(); ++i) {
        base::stop_if(cancel);
        best[i] = rate_of_pass(cases[i], rows.next(0));
    }
    const double share = request.seconds / least_rounds / static_cast<double>(cases.size());
    double& read = table.machine.read;
    take_turns(
        request.seconds, cancel, [&](double done) { progress.report(done); },
        [&] {
            read = std::max(read, moved / memory.read_once());
            for (std::size_t i = 0; i < cases.size(); ++i) {
                base::stop_if(cancel);
                best[i] = std::max(best[i], rate_of_pass(cases[i], rows.next(best[i] * share)));
            }
        });
    for (std::size_t i = 0; i < cases.size(); ++i) {
        table.rates.push_back(rate_of(cases[i], best[i], best.front(), table.machine));
    }
    return table;
}

std::vector<suite_case> recipe_cases(tensor::dtype type, const engine::run_control& control) {
    std::vector<suite_case> all;
    for (const suite_recipe& r : suite_recipes()) {
        all.push_back(analysis_case(r.group, r.recipe, false, false, type, control));
    }
    for (const char* text : figure_recipes) {
        const codec::recipe r = codec::parse_recipe(text);
        all.push_back(analysis_case("figures", r, true, false, type, control));
        all.push_back(analysis_case("figures", r, false, true, type, control));
    }
    return all;
}

std::string_view serving_backend(const codec::backend& b, const codec::recipe& r) {
    const bool own = b.takes == nullptr || b.takes(codec::params_of(r));
    return own ? b.name : codec::backends().front().name;
}

}  // namespace mx::bench

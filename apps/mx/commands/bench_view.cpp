// SPDX-License-Identifier: Apache-2.0
// The output of `mx bench`: records for programs; tables of the memory bandwidth, then GPUs and
// files, for people.
#include "apps/mx/commands/bench_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/mx/backends.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {

using namespace bench;
namespace {

// A share of 1 as a bar, and its column title.
constexpr long bar_cells = 24;
std::string bar_text(double share) {
    const long filled =
        std::clamp(std::lround(share * static_cast<double>(bar_cells)), 0L, bar_cells);
    return std::string(static_cast<std::size_t>(filled), '=') +
           std::string(static_cast<std::size_t>(bar_cells - filled), '.');
}

std::string bar_title() { return "0" + std::string(bar_cells - 2, ' ') + "1"; }

// The bandwidths for the largest thread count.
const bandwidth& of_the_machine(const throughput& t) {
    return *std::max_element(
        t.bandwidths.begin(), t.bandwidths.end(),
        [](const bandwidth& a, const bandwidth& b) { return a.threads < b.threads; });
}

std::string recipe_name(const throughput_request& request, std::size_t r) {
    return codec::to_string(request.recipes[r]);
}

report::list bandwidth_list(const throughput& t) {
    return to_list(t.bandwidths, [](const bandwidth& b) {
        return report::record{{"threads", integer(b.threads)},
                              {"read_bandwidth_bytes_per_second", real(b.read)},
                              {"copy_bandwidth_bytes_per_second", real(b.copy)}};
    });
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
    report::record record{
        {"recipes", to_list(r.recipes, [&](std::size_t i) { return recipe_name(request, i); })}};
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
    s.columns = pages::columns_of(
        {"recipe", "rate", pages::column_of("fraction", "of read\nbandwidth", cell::fixed, 3),
         pages::column_of("bar", bar_title())});
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
        "next part of the matrix, so that it finds nothing in a cache, unless --elements makes the "
        "matrix small.",
        request.seconds));
    return s;
}

std::string_view name_of(values_place p) {
    switch (p) {
        case values_place::device:
            return "device";
        case values_place::memory:
            return "memory";
        default:
            return "files";
    }
}

std::string_view name_of(pass_output o) { return o == pass_output::sums ? "sums" : "codes"; }

report::record record_of(const bench::device_throughput& d) {
    const base::cuda::device_facts& f = d.device;
    const auto known = [](int n) { return n == 0 ? undefined() : integer(n); };
    return {{"name", f.name},
            {"compute_capability", fmt::format("{}.{}", f.major, f.minor)},
            {"multiprocessors", integer(f.multiprocessors)},
            {"clock_mhz", known(f.clock_mhz)},
            {"memory_clock_mhz", known(f.memory_clock_mhz)},
            {"memory_bus_bits", integer(f.memory_bus_bits)},
            {"memory_bytes", integer(f.memory)},
            {"l2_cache_bytes", integer(f.l2_cache)},
            {"driver", cuda_version_text(f.driver)},
            {"runtime", cuda_version_text(f.runtime)},
            {"measured_bytes", integer(d.memory)},
            {"elements", integer(d.elements)},
            {"device_read_bytes_per_second", real(d.bandwidth.read)},
            {"device_copy_bytes_per_second", real(d.bandwidth.copy)},
            {"pinned_copy_bytes_per_second", real(d.bandwidth.pinned)}};
}

report::record record_of(const throughput_request& request, const placed_rate& r) {
    return {{"values", text(name_of(r.from))},
            {"writes", text(name_of(r.writes))},
            {"recipe", recipe_name(request, r.recipe)},
            {"backend", text(r.backend->name)},
            {"threads", r.threads == 0 ? undefined() : integer(r.threads)},
            {"histograms", r.histograms},
            {"elements_per_second", real(r.elements_per_second)},
            {"bytes_per_second", real(r.bytes_per_second)},
            {"roof", text(row_of(r.bound).name)},
            {"fraction_of_roof", real(r.fraction)}};
}

report::section card_section(const bench::device_throughput& d) {
    report::section s;
    s.heading = fmt::format("The card's memory, over {} MiB", d.memory >> 20);
    s.columns = pages::columns_of({"what", pages::column_of("rate", "GB/s", cell::fixed, 1)});
    const auto row = [&](roof r, double rate) {
        s.rows.push_back({{"what", text(row_of(r).words)}, {"rate", real(rate * 1e-9)}});
    };
    row(roof::device_read, d.bandwidth.read);
    row(roof::device_copy, d.bandwidth.copy);
    row(roof::pinned_copy, d.bandwidth.pinned);
    s.notes.push_back(fmt::format("{}; CUDA {}, driver for CUDA {}", device_text(d.device),
                                  cuda_version_text(d.device.runtime),
                                  cuda_version_text(d.device.driver)));
    return s;
}

// "cuda, 2 threads: values in files", and the bound.
std::string group_of(const placed_rate& r) {
    std::string from = "values in files, in the page cache";
    if (r.from == values_place::device) {
        from = r.writes == pass_output::codes ? "values on the card, codes written"
                                              : "values on the card";
    } else if (r.from == values_place::memory) {
        from = "values in memory";
    }
    const std::string threads = r.threads == 0 ? "" : ", " + threads_text(r.threads);
    return fmt::format("{}{}: {}; roof: {}", r.backend->name, threads, from, row_of(r.bound).words);
}

report::section placed_section(const throughput_request& request, const throughput& t) {
    report::section s;
    s.heading = t.devices.empty() ? "From files" : "On the card, and on the way there";
    s.columns =
        pages::columns_of({"recipe", "rate", pages::column_of("bytes", "GB/s", cell::fixed, 1),
                           pages::column_of("fraction", "of the\nroof", cell::fixed, 3),
                           pages::column_of("bar", bar_title())});
    s.group_field = "group";
    std::vector<placed_rate> rates = t.placed;
    // The rows of a group are consecutive.
    std::stable_sort(rates.begin(), rates.end(), [](const placed_rate& a, const placed_rate& b) {
        if (a.from != b.from) return a.from < b.from;
        return a.from == values_place::device && a.writes < b.writes;
    });
    for (const placed_rate& r : rates) {
        std::string name = recipe_name(request, r.recipe);
        if (r.histograms) name += " +histograms";
        s.rows.push_back({{"group", group_of(r)},
                          {"recipe", std::move(name)},
                          {"rate", real(r.elements_per_second * 1e-9)},
                          {"bytes", real(r.bytes_per_second * 1e-9)},
                          {"fraction", real(r.fraction)},
                          {"bar", bar_text(r.fraction)}});
    }
    if (!t.devices.empty()) {
        s.notes.push_back(
            "On the card: kernels only, by the card's own clock; every metric that 'mx analyze' "
            "always reports is computed, and nothing is copied there or back. Bytes are those of "
            "the values read and, where codes are written, one for each code; the facts of every "
            "scale, which are written as well, are not counted. From memory and from files, the "
            "way there and back is in the time.");
    }
    if (!request.files.empty()) {
        s.notes.push_back(
            "From files: 'mx analyze' of all tensors, without the start of the program; a first "
            "pass brings the files into the page cache and is not counted.");
    }
    return s;
}

// Adds the members `devices` and `placed` and their tables; nothing if these were not measured.
void add_placed(const throughput_request& request, const throughput& t, report::document& d) {
    if (!t.devices.empty()) {
        report::list devices;
        for (const bench::device_throughput& device : t.devices) {
            devices.emplace_back(record_of(device));
            d.sections.push_back(card_section(device));
        }
        d.head.emplace_back("devices", std::move(devices));
    }
    if (t.placed.empty()) return;
    d.tail.emplace_back(
        "placed", to_list(t.placed, [&](const placed_rate& r) { return record_of(request, r); }));
    d.sections.push_back(placed_section(request, t));
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

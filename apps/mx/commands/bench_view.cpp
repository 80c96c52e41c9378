// SPDX-License-Identifier: Apache-2.0
// The output of `mx bench`: records for programs; tables of the memory bandwidth, then GPUs and
// files, for people.
#include "apps/mx/commands/bench_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/mx/backends.hpp"
#include "apps/mx/commands/bench_suite.hpp"
#include "apps/mx/manual.hpp"
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

constexpr std::array bandwidth_members = std::to_array<report::declared<bandwidth>>({
    {"threads", "count", "", [](auto& b) { return b.threads; }},
    {"read_bandwidth_bytes_per_second", "amount", "", [](auto& b) { return b.read; }},
    {"copy_bandwidth_bytes_per_second", "amount", "", [](auto& b) { return b.copy; }},
});

struct measured_memory {
    const bandwidth& machine;
    std::span<const bandwidth> by_threads;
    std::uint64_t elements;
};
constexpr std::array memory_members = std::to_array<report::declared<measured_memory>>({
    {"read_bandwidth_bytes_per_second", "amount", "of this machine, under the most threads",
     [](auto& m) { return m.machine.read; }},
    {"copy_bandwidth_bytes_per_second", "amount", "", [](auto& m) { return m.machine.copy; }},
    {"bandwidths", "[#bandwidth]", "by threads",
     [](auto& m) { return report::listed(bandwidth_members, m.by_threads); }},
    {"elements", "count", "of the matrix", [](auto& m) { return m.elements; }},
});

struct measured_pass {
    const throughput_request& request;
    const throughput_row& of;
};
constexpr std::array pass_recipe_members = std::to_array<report::declared<measured_pass>>({
    {"recipe", "string", "", [](auto& p) { return recipe_name(p.request, p.of.recipes.front()); }},
});
constexpr std::array joint_recipe_members = std::to_array<report::declared<measured_pass>>({
    {"recipes", "[string]", "",
     [](auto& p) {
         return to_list(p.of.recipes, [&](std::size_t i) { return recipe_name(p.request, i); });
     }},
});
constexpr std::array pass_members = std::to_array<report::declared<measured_pass>>({
    {"backend", "string", "", [](auto& p) { return p.of.backend->name; }},
    {"threads", "count", "", [](auto& p) { return p.of.threads; }},
    {"dtype", "@members#dtype", "", [](auto& p) { return tensor::row_of(p.request.type).name; }},
    {"histograms", "boolean", "", [](auto& p) { return p.of.histograms; }},
    {"elements_per_second", "amount", "", [](auto& p) { return p.of.elements_per_second; }},
    {"fraction_of_read_bandwidth", "amount", "", [](auto& p) { return p.of.fraction; }},
});
constexpr std::array joint_pass_members = std::to_array<report::declared<measured_pass>>({
    {"fraction_of_separate_passes", "amount", "", [](auto& p) { return p.of.of_separate_passes; }},
});

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

report::value known(int n) { return n == 0 ? undefined() : integer(n); }
constexpr std::array device_members = std::to_array<report::declared<bench::device_throughput>>({
    {"name", "string", "", [](auto& d) { return d.device.name; }},
    {"compute_capability", "string", "",
     [](auto& d) { return fmt::format("{}.{}", d.device.major, d.device.minor); }},
    {"multiprocessors", "count", "", [](auto& d) { return d.device.multiprocessors; }},
    {"clock_mhz", "count?", "", [](auto& d) { return known(d.device.clock_mhz); }},
    {"memory_clock_mhz", "count?", "", [](auto& d) { return known(d.device.memory_clock_mhz); }},
    {"memory_bus_bits", "count", "", [](auto& d) { return d.device.memory_bus_bits; }},
    {"memory_bytes", "count", "", [](auto& d) { return d.device.memory; }},
    {"l2_cache_bytes", "count", "", [](auto& d) { return d.device.l2_cache; }},
    {"driver", "string", "", [](auto& d) { return cuda_version_text(d.device.driver); }},
    {"runtime", "string", "", [](auto& d) { return cuda_version_text(d.device.runtime); }},
    {"measured_bytes", "count", "", [](auto& d) { return d.memory; }},
    {"elements", "count", "", [](auto& d) { return d.elements; }},
    {"device_read_bytes_per_second", "amount", "", [](auto& d) { return d.bandwidth.read; }},
    {"device_copy_bytes_per_second", "amount", "", [](auto& d) { return d.bandwidth.copy; }},
    {"pinned_copy_bytes_per_second", "amount", "", [](auto& d) { return d.bandwidth.pinned; }},
});

struct placed_pass {
    const throughput_request& request;
    const placed_rate& of;
};
constexpr std::array placed_members = std::to_array<report::declared<placed_pass>>({
    {"values", "device|memory|files", "", [](auto& p) { return name_of(p.of.from); }},
    {"writes", "sums|codes", "", [](auto& p) { return name_of(p.of.writes); }},
    {"recipe", "string", "", [](auto& p) { return recipe_name(p.request, p.of.recipe); }},
    {"backend", "string", "", [](auto& p) { return p.of.backend->name; }},
    {"threads", "count?", "", [](auto& p) { return known(p.of.threads); }},
    {"histograms", "boolean", "", [](auto& p) { return p.of.histograms; }},
    {"elements_per_second", "amount", "", [](auto& p) { return p.of.elements_per_second; }},
    {"bytes_per_second", "amount", "", [](auto& p) { return p.of.bytes_per_second; }},
    {"roof", "string", "what bounds the rate", [](auto& p) { return row_of(p.of.bound).name; }},
    {"fraction_of_roof", "amount", "", [](auto& p) { return p.of.fraction; }},
});

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

constexpr report::member_type devices_member{"devices", "[#device]", "cards", false};
constexpr report::member_type together_member{"together", "[#together]", "all recipes in one pass",
                                              false};
constexpr report::member_type placed_member{"placed", "[#placed]",
                                            "values on the card, in memory or in files", false};

// Adds the members `devices` and `placed` and their tables; nothing if these were not measured.
void add_placed(const throughput_request& request, const throughput& t, report::document& d) {
    if (!t.devices.empty()) {
        d.head.emplace_back(devices_member.name, report::listed(device_members, t.devices));
        for (const bench::device_throughput& device : t.devices) {
            d.sections.push_back(card_section(device));
        }
    }
    if (t.placed.empty()) return;
    d.tail.emplace_back(placed_member.name, to_list(t.placed, [&](const placed_rate& r) {
                            return report::written(placed_members, {request, r});
                        }));
    d.sections.push_back(placed_section(request, t));
}

}  // namespace

void add_memory(report::record& head, const bandwidth& machine,
                std::span<const bandwidth> by_threads, std::uint64_t elements) {
    report::append(head, memory_members, {machine, by_threads, elements});
}

report::document bench_document(const throughput_request& request, const throughput& t) {
    report::document d;
    d.head = pages::document_head("mx.bench/1");
    add_memory(d.head, of_the_machine(t), t.bandwidths, t.elements);
    report::list together;
    for (const throughput_row& r : t.rows) {
        const measured_pass pass{request, r};
        const bool joint = r.recipes.size() > 1;
        report::record row =
            report::written(joint ? joint_recipe_members : pass_recipe_members, pass);
        report::append(row, pass_members, pass);
        if (!joint) {
            d.results.push_back(row);
            continue;
        }
        report::append(row, joint_pass_members, pass);
        together.emplace_back(std::move(row));
    }
    if (!together.empty()) d.tail.emplace_back(together_member.name, std::move(together));
    d.sections = {memory_section(request, t), roofline(request, t)};
    add_placed(request, t, d);
    return d;
}

report::document_schema bench_schema() {
    report::document_schema schema("mx.bench/1", "mx bench",
                                   "Rates of this machine: of passes over a matrix, of products "
                                   "(--gemm), of trainings (--train) and evaluations (--eval).");
    schema.members_together(memory_members).member(devices_member);
    declare_products(schema);
    schema
        .condition("not",
                   {{"required", report::list{std::string("rows"), std::string("elements")}}})
        .member({"results", "[#pass|#product|#case|#training]", "a measurement each"})
        .member(together_member)
        .member(placed_member)
        .define("bandwidth", bandwidth_members)
        .define("pass", report::member_list().add(pass_recipe_members).add(pass_members))
        .define("together", report::member_list()
                                .add(joint_recipe_members)
                                .add(pass_members)
                                .add(joint_pass_members))
        .define("device", device_members)
        .define("placed", placed_members);
    declare_suite(schema);
    declare_training(schema);
    return schema;
}

}  // namespace mx::app

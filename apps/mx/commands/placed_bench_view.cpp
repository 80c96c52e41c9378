// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/placed_bench_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/mx/commands/device_words.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {

using pages::integer;
using pages::real;
using pages::text;
using pages::undefined;
namespace {

using bench::device_throughput;
using bench::pass_output;
using bench::placed_rate;
using bench::throughput;
using bench::throughput_request;
using bench::values_place;
using report::cell;

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

report::record record_of(const device_throughput& d) {
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
            {"recipe", codec::to_string(request.recipes[r.recipe])},
            {"backend", text(r.backend->name)},
            {"threads", r.threads == 0 ? undefined() : integer(r.threads)},
            {"histograms", r.histograms},
            {"elements_per_second", real(r.elements_per_second)},
            {"bytes_per_second", real(r.bytes_per_second)},
            {"roof", text(bench::row_of(r.bound).name)},
            {"fraction_of_roof", real(r.fraction)}};
}

report::section card_section(const device_throughput& d) {
    report::section s;
    s.heading = fmt::format("The card's memory, over {} MiB", d.memory >> 20);
    s.columns = {{"what", "what"}, {"rate", "GB/s", cell::fixed, 1}};
    const auto row = [&](bench::roof r, double rate) {
        s.rows.push_back({{"what", text(bench::row_of(r).words)}, {"rate", real(rate * 1e-9)}});
    };
    row(bench::roof::device_read, d.bandwidth.read);
    row(bench::roof::device_copy, d.bandwidth.copy);
    row(bench::roof::pinned_copy, d.bandwidth.pinned);
    s.notes.push_back(fmt::format("{}; CUDA {}, driver for CUDA {}", device_words(d.device),
                                  cuda_version_text(d.device.runtime),
                                  cuda_version_text(d.device.driver)));
    return s;
}

// "cuda, 2 threads: values in files", and what bounds it.
std::string group_of(const placed_rate& r) {
    std::string from = "values in files, in the page cache";
    if (r.from == values_place::device) {
        from = r.writes == pass_output::codes ? "values on the card, codes written"
                                              : "values on the card";
    } else if (r.from == values_place::memory) {
        from = "values in memory";
    }
    const std::string threads =
        r.threads == 0 ? "" : fmt::format(", {} thread{}", r.threads, r.threads == 1 ? "" : "s");
    return fmt::format("{}{}: {}; roof: {}", r.backend->name, threads, from,
                       bench::row_of(r.bound).words);
}

report::section placed_section(const throughput_request& request, const throughput& t) {
    report::section s;
    s.heading = t.devices.empty() ? "From files" : "On the card, and on the way there";
    s.columns = {{"recipe", "recipe"},
                 {"rate", "G elements/s", cell::fixed, 3},
                 {"bytes", "GB/s", cell::fixed, 1},
                 {"fraction", "of the\nroof", cell::fixed, 3},
                 {"bar", bar_title()}};
    s.group_field = "group";
    std::vector<placed_rate> rates = t.placed;
    // Rows of a group come one after the other.
    std::stable_sort(rates.begin(), rates.end(), [](const placed_rate& a, const placed_rate& b) {
        if (a.from != b.from) return a.from < b.from;
        return a.from == values_place::device && a.writes < b.writes;
    });
    for (const placed_rate& r : rates) {
        std::string name = codec::to_string(request.recipes[r.recipe]);
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

}  // namespace

std::string bar_text(double share) {
    const long filled =
        std::clamp(std::lround(share * static_cast<double>(bar_cells)), 0L, bar_cells);
    return std::string(static_cast<std::size_t>(filled), '=') +
           std::string(static_cast<std::size_t>(bar_cells - filled), '.');
}

std::string bar_title() { return "0" + std::string(bar_cells - 2, ' ') + "1"; }

void add_placed(const throughput_request& request, const throughput& t, report::document& d) {
    if (!t.devices.empty()) {
        report::list devices;
        for (const device_throughput& device : t.devices) {
            devices.emplace_back(record_of(device));
            d.sections.push_back(card_section(device));
        }
        d.head.emplace_back("devices", std::move(devices));
    }
    if (t.placed.empty()) return;
    report::list placed;
    for (const placed_rate& r : t.placed) placed.emplace_back(record_of(request, r));
    d.tail.emplace_back("placed", std::move(placed));
    d.sections.push_back(placed_section(request, t));
}

}  // namespace mx::app

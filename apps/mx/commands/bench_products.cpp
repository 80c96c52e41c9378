// SPDX-License-Identifier: Apache-2.0
// The output of `mx bench --gemm`.
#include "apps/mx/commands/bench_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/mx/backends.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {
namespace {

using bench::product_operands;
using bench::product_rate;
using bench::product_throughput_request;

report::value scales_of(const product_operands& o) {
    if (o.scale == nullptr) return undefined();
    return fmt::format("{} per {}", o.scale->format, o.scale->block);
}

struct timed_product {
    const product_rate& of;
    const gemm::accumulator& model;
    product_operands operands = bench::operands_for(model);
};
constexpr std::array product_members = std::to_array<report::declared<timed_product>>({
    {"accumulator", "string", "", [](auto& p) { return gemm::to_string(p.model); }},
    {"operands", "string", "", [](auto& p) { return p.operands.format->name; }},
    {"scales", "string?", "", [](auto& p) { return scales_of(p.operands); }},
    {"backend", "string", "", [](auto& p) { return p.of.backend->name; }},
    {"kernels", "boolean", "vector code; false: the plain loop",
     [](auto& p) { return p.of.by_kernels; }},
    {"threads", "count", "", [](auto& p) { return p.of.threads; }},
    {"multiply_adds_per_second", "amount", "",
     [](auto& p) { return p.of.multiply_adds_per_second; }},
    {"times_two_threads_of_the_processor", "amount", "",
     [](auto& p) { return report::only_if(p.of.times_processor > 0, p.of.times_processor); },
     false},
});

constexpr std::array product_head_members =
    std::to_array<report::declared<product_throughput_request>>({
        {"rows", "count", "of the product", [](auto& r) { return r.rows; }},
        {"columns", "count", "", [](auto& r) { return r.columns; }},
        {"depth", "count", "", [](auto& r) { return r.depth; }},
    });

report::record table_row(const product_throughput_request& request, const product_rate& r) {
    const gemm::accumulator& m = request.models[r.model];
    const product_operands o = bench::operands_for(m);
    const bool plain_only = !r.by_kernels && r.backend->name != "scalar";
    return {{"group", fmt::format("{}, {}", r.backend->name, threads_text(r.threads))},
            {"accumulator", gemm::to_string(m) + (plain_only ? " (plain loop)" : "")},
            {"operands", text(o.format->name)},
            {"scales", scales_of(o)},
            {"rate", real(r.multiply_adds_per_second * 1e-9)},
            {"each", real(r.multiply_adds_per_second / r.threads * 1e-9)},
            {"times", r.times_processor > 0 ? real(r.times_processor) : undefined()}};
}

}  // namespace

void declare_products(report::document_schema& to) {
    to.members_together(product_head_members).define("product", product_members);
}

report::document product_bench_document(const product_throughput_request& request,
                                        const std::vector<product_rate>& rates) {
    report::document d;
    d.head = pages::document_head("mx.bench/1");
    report::append(d.head, product_head_members, request);
    report::section s;
    s.heading = fmt::format("Emulated matrix products, up to {} x {} x {}", request.rows,
                            request.columns, request.depth);
    s.columns = pages::columns_of({"accumulator", "operands", "scales",
                                   pages::column_of("rate", "G multiply-\nadds/s"),
                                   pages::column_of("each", "per\nthread", cell::fixed, 3)});
    const bool device = std::any_of(rates.begin(), rates.end(),
                                    [](const product_rate& r) { return r.times_processor > 0; });
    if (device) {
        s.columns.push_back(
            {"times", fmt::format("times {}\nthreads", bench::processor_threads), cell::fixed, 1});
    }
    s.group_field = "group";
    for (const product_rate& r : rates) {
        d.results.push_back(report::written(product_members, {r, request.models[r.model]}));
        s.rows.push_back(table_row(request, r));
    }
    s.notes.push_back(fmt::format(
        "Every figure is the best of its passes; all take turns, for {} s per backend and thread "
        "count. A pass is a whole product, operands unpacked anew; it has fewer rows where the "
        "time would not be enough. Every backend gives the same bits.",
        request.seconds));
    if (device) {
        s.notes.push_back(
            fmt::format("Times {0} threads: the rate of a card as a multiple of that of the "
                        "processor's fastest "
                        "backend with {0} threads, in this run.",
                        bench::processor_threads));
    }
    d.sections = {std::move(s)};
    return d;
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/analyze_exact.hpp"

#if defined(MX_HAS_ORACLE)

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/oracle/metrics.hpp"

namespace mx::app {
namespace {

float largest_finite(const std::vector<float>& values) {
    float largest = 0;
    for (const float v : values) {
        if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    }
    return largest;
}

oracle::recipe stated(const codec::recipe& r, const block::grid& grid,
                      const std::vector<float>& values) {
    if (!oracle_rule(*r.rule)) {
        throw base::error(base::error_kind::unavailable,
                          fmt::format("--exact: the oracle does not state scale={}", r.rule->name));
    }
    codec::refuse_scale_files(r);
    oracle::recipe o = oracle_recipe(r, largest_finite(values));
    o.block_rows = grid.block_rows;
    o.block_cols = grid.block_cols;
    if (grid.has_areas()) o.outer_rows = grid.outer_rows, o.outer_cols = grid.outer_cols;
    return o;
}

std::vector<float> read_whole(const engine::tensor_ref& t) {
    const io::tensor_info& info = t.info();
    std::vector<float> values(info.elements);
    std::vector<std::byte> scratch;
    const auto source = t.file->open(t.index);
    io::read_f32(*source, info.type, 0, values, scratch);
    return values;
}

// Reals are replaced. Counts are exact in both implementations, so a difference is a defect.
void replace(analysis::result& r, const std::map<std::string, std::optional<double>>& figures) {
    for (auto& [name, value] : analysis::record_of(r)) {
        if (auto* nested = std::get_if<report::record>(&value)) {
            for (auto& [member, v] : *nested) {
                const auto figure = figures.find(name + "." + member);
                if (figure != figures.end() && figure->second) v = *figure->second;
            }
            analysis::put(r, name, value);
            continue;
        }
        const auto figure = figures.find(name);
        if (figure == figures.end()) continue;
        if (const auto* count = std::get_if<std::int64_t>(&value)) {
            if (static_cast<double>(*count) == figure->second) continue;
            throw std::logic_error(fmt::format("{} of tensor {} under {} is {}, the oracle says {}",
                                               name, r.of->tensor, r.under->name, *count,
                                               figure->second.value_or(-1)));
        }
        analysis::put(r, name, figure->second ? report::value(*figure->second) : report::value());
    }
}

// The figures of a result, from the prepared values.
void replace_one(analysis::result& of, const io::tensor_info& info, const codec::recipe& r,
                 const block::grid& grid, const std::vector<float>& values) {
    const block::view& view = grid.over;
    const oracle::tensor exact{values, view.batch, view.rows, view.cols,
                               base::tensor_id(info.name)};
    replace(of, oracle::metrics_of(exact, stated(r, grid, values)));
}

}  // namespace

void make_exact(analysis::analysis& a, const std::vector<engine::tensor_ref>& tensors,
                const analysis::analysis_request& request, const engine::run_control& control) {
    // Results are in the order of tensors, recipes and factors, without skipped ones.
    analysis::result_list exact;
    for (const engine::tensor_ref& t : tensors) {
        std::vector<float> values;
        for (const codec::recipe& r : request.recipes) {
            if (exact.size() == a.results.size()) break;
            std::string reason;
            const auto layout = engine::lay_out(t.info(), r, reason);
            const analysis::result result = a.results[exact.size()];
            const bool theirs = result.of->tensor == t.info().name &&
                                result.of->file == t.info().file && result.under->recipe == r;
            if (!theirs || !layout) continue;
            if (values.empty()) values = read_whole(t);
            for (const float factor : request.factors) {
                if (control.cancel != nullptr && control.cancel->load()) {
                    throw base::error(base::error_kind::cancelled, "interrupted");
                }
                const auto how = engine::input_transform_of(request, t.info(), r, factor);
                analysis::result of = a.results[exact.size()];
                replace_one(of, t.info(), r, layout->grid,
                            engine::prepared(how, layout->grid, values));
                exact.push_back(of);
            }
        }
    }
    while (exact.size() < a.results.size()) exact.push_back(a.results[exact.size()]);
    a.results = std::move(exact);
}

}  // namespace mx::app

#else

namespace mx::app {

void make_exact(analysis::analysis&, const std::vector<engine::tensor_ref>&,
                const analysis::analysis_request&, const engine::run_control&) {}

}  // namespace mx::app

#endif

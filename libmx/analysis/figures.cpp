// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/figures.hpp"

#include "libmx/codec/tensor_scale.hpp"
#include "libmx/metrics/metrics.hpp"

namespace mx::analysis {
namespace {

bool requested(metrics::when collected, const analysis_request& request) {
    switch (collected) {
        case metrics::when::decompose:
            return request.decompose;
        case metrics::when::histograms:
            return request.histograms;
        case metrics::when::regret:
            return false;  // see add_regrets
        case metrics::when::always:
            break;
    }
    return true;
}

}  // namespace

result figures_of(const metrics::totals& t, std::size_t recipe, std::size_t phase,
                  const analysis_request& request) {
    result r;
    static_cast<metrics::row&>(r) = metrics::row_of(t);
    if (request.factors.size() > 1) r.phase = static_cast<std::int64_t>(phase);
    r.elements = t.count.elements;
    r.blocks = t.block.blocks;
    r.nan = t.count.nan;
    r.inf = t.count.inf;
    r.poisoned = t.count.poisoned;
    if (codec::has_outer_areas(request.recipes[recipe])) {
        const bool any = t.least_outer <= t.largest_outer;
        const auto figure = [&](float scale) {
            return any ? report::value(double{scale}) : report::value();
        };
        put(r, "outer_scale",
            report::record{{"min", figure(t.least_outer)}, {"max", figure(t.largest_outer)}});
    }
    for (const metrics::metric& m : metrics::all()) {
        if (m.finish != nullptr && requested(m.collected, request)) put(r, m.name, m.finish(t));
    }
    return r;
}

}  // namespace mx::analysis

// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/product_options.hpp"

#include <algorithm>

#include "apps/mx/names.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {

using pages::integer;
using pages::real;
using pages::text;
namespace {

constexpr const char* ascending = "ascending";
constexpr const char* descending = "descending";

}  // namespace

void declare_products(parser& cmd, product_options& o, const std::string& without_models) {
    cmd.add_option(
           "-m,--accumulate", o.models,
           "how products are summed (mx accumulators); repeatable; without it " + without_models)
        ->allow_extra_args(false)
        ->type_name("MODEL")
        ->group("Product");
    cmd.add_option("--k-order", o.k_order, "how k is walked: ascending (the default), descending")
        ->type_name("ORDER")
        ->group("Product");
    cmd.add_option("--slices", o.slices,
                   "cut K into N parts that are summed apart and added in float32 (split-K)")
        ->in_range(1, 1 << 20)
        ->type_name("N")
        ->group("Product");
}

std::vector<gemm::accumulator> models_of(const product_options& o) {
    std::vector<gemm::accumulator> models;
    std::vector<std::string> spellings;
    for (const std::string& text : o.models) {
        const gemm::accumulator m = gemm::parse_accumulator(text);
        const std::string spelling = gemm::to_string(m);
        if (std::find(spellings.begin(), spellings.end(), spelling) != spellings.end()) continue;
        spellings.push_back(spelling);
        models.push_back(m);
    }
    return models;
}

gemm::arrangement arrangement_of(const product_options& o) {
    gemm::arrangement how;
    if (o.k_order != ascending && o.k_order != descending) {
        unknown_name("--k-order", "order", o.k_order, {ascending, descending});
    }
    how.order = o.k_order == descending ? gemm::k_order::descending : gemm::k_order::ascending;
    how.slices = o.slices;
    return how;
}

report::record arrangement_record(const gemm::arrangement& how) {
    return {{"k_order", text(how.order == gemm::k_order::descending ? descending : ascending)},
            {"slices", integer(how.slices)},
            {"alpha", real(static_cast<double>(how.alpha))},
            {"beta", real(static_cast<double>(how.beta))},
            {"accumulate_into_c", how.accumulate_c}};
}

}  // namespace mx::app

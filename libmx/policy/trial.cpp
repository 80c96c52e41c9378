// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/trial.hpp"

namespace mx::policy {

trial judge_tensor(const std::vector<const rule*>& vetoes, double dominated,
                   const measured_tensor& t, std::size_t column, const analysis::result& result,
                   const metrics::row& normal) {
    trial out;
    out.column = column;
    out.over_normal = error_over_normal(result, normal);
    if (lossless(result)) return out;
    const figure_input in{t, result, normal, dominated};
    if (const double share = largest_share(in); share >= dominated) out.one_element = share;
    for (const rule* v : vetoes) {
        const auto value = v->measured->value(in);
        if (!value) continue;
        const auto reaches = [&](const std::optional<double>& limit, verdict is) {
            if (!limit || *value < *limit || is <= out.is) return;
            out.is = is;
            out.worst = reached_limit{v->measured, *value, *limit, is};
        };
        reaches(v->no, verdict::no);
        reaches(v->evaluate, verdict::evaluate);
    }
    return out;
}

}  // namespace mx::policy

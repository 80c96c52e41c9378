// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/trial.hpp"

namespace mx::policy {

trial judge_tensor(const std::vector<const rule*>& vetoes, double dominated,
                   const measured_tensor& t, const measurement& m, const analysis::result& result,
                   const metrics::row& normal) {
    trial out;
    out.of = &m;
    out.over_normal = error_over_normal(result, normal);
    if (lossless(result)) return out;
    for (const rule* v : vetoes) {
        const auto value = v->measured->value({t, result, normal, dominated});
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

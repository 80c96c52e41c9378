// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/judging.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "libmx/analysis/results_input.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/parts.hpp"
#include "libmx/engine/skip.hpp"

namespace mx::documents {
namespace {

// The choices that are not the defaults.
std::vector<report::given_option> judging_given(const judging_options& o) {
    std::vector<report::given_option> given;
    if (!o.policy.empty()) given.push_back({"policy", o.policy});
    if (!o.target.empty()) given.push_back({"target", o.target});
    if (!o.eval.empty()) given.push_back({"eval", o.eval});
    return given;
}

}  // namespace

policy::basis basis_of(const judging_options& o) {
    policy::basis b;
    if (!o.policy.empty()) b.by = policy_of(o.policy);
    b.on = &target_of(o.target);
    if (!o.eval.empty()) {
        b.scores = policy::parse_scores(analysis::open_results(o.eval).content, o.eval);
    }
    b.options = judging_given(o);
    return b;
}

std::vector<policy::measured_tensor> described(const std::vector<engine::tensor_ref>& tensors,
                                               const engine::role_finder& roles) {
    std::vector<policy::measured_tensor> of;
    for (const engine::tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        policy::measured_tensor& m = of.emplace_back();
        m.file = info.file;
        m.name = info.name;
        m.left_out = engine::why_left_out(info);
        // As in results (policy::add_left_out).
        m.role = m.left_out.empty() ? std::string(roles.role_of(info)) : "other";
        m.dtype = tensor::row_of(info.type).name;
        m.shape.assign(info.shape.begin(), info.shape.end());
        m.elements = info.elements;
        m.bytes = engine::bytes_of(info);
        m.sums_over = engine::summed_axes_of(info, m.role);
    }
    return of;
}

bool is_policy_file(const std::string& name) {
    return name.find_first_of("./") != std::string::npos;
}

policy::policy policy_of(const std::string& name) {
    if (is_policy_file(name)) {
        return policy::parse_policy(analysis::open_results(name).content, name);
    }
    return policy::find_policy(name);
}

const policy::target& target_of(const std::string& name) {
    if (name.empty()) return policy::targets.front();
    std::vector<std::string_view> names;
    for (const policy::target& t : policy::targets) names.push_back(t.name);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        base::refuse("--target: " + base::unknown("target", name, names));
    }
    return policy::find_target(name);
}

}  // namespace mx::documents

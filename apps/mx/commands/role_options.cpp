// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/role_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/mx/options.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::app {
namespace {

std::vector<std::string_view> role_names() {
    std::vector<std::string_view> names;
    for (const engine::role_row& r : engine::roles()) names.push_back(r.name);
    return names;
}

}  // namespace

void declare_roles(parser& cmd, role_options& o) {
    cmd.add_option("--role", o.roles,
                   fmt::format("only tensors of these roles: {}", fmt::join(role_names(), ", ")))
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("ROLE,...")
        ->group("Input");
    cmd.add_option("--role-pattern", o.patterns,
                   "gives the tensors that match GLOB a role; goes before the built-in patterns; "
                   "repeatable")
        ->allow_extra_args(false)
        ->type_name("ROLE=GLOB")
        ->group("Input");
    cmd.add_option("--norm-bias", o.norm_bias,
                   "added to the values of norm tensors: 1 where a model stores gamma - 1 (Gemma)")
        ->finite()
        ->type_name("X")
        ->group("Input");
}

engine::role_finder finder_of(const role_options& o) {
    std::vector<engine::role_override> overrides;
    for (const std::string& p : o.patterns) {
        overrides.push_back(engine::parse_role_override(p));
    }
    return engine::role_finder(std::move(overrides));
}

std::vector<engine::tensor_ref> with_roles(std::vector<engine::tensor_ref> tensors,
                                           const role_options& o,
                                           const engine::role_finder& finder) {
    if (o.roles.empty()) return tensors;
    const std::vector<std::string_view> known = role_names();
    for (const std::string& role : o.roles) {
        if (std::find(known.begin(), known.end(), role) == known.end()) {
            throw base::error(base::error_kind::usage, base::unknown("role", role, known));
        }
    }
    const auto unwanted = [&](const engine::tensor_ref& t) {
        return std::find(o.roles.begin(), o.roles.end(), finder.role_of(t.info())) == o.roles.end();
    };
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(), unwanted), tensors.end());
    if (tensors.empty()) {
        throw base::error(base::error_kind::usage,
                          fmt::format("--role {}: no tensor has it; name them with "
                                      "--role-pattern ROLE=GLOB",
                                      fmt::join(o.roles, ",")));
    }
    return tensors;
}

}  // namespace mx::app

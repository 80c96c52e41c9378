// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/missing.hpp"
#include "libmx/report/members.hpp"

namespace mx::documents {

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
    std::vector<std::string_view> known;
    for (const engine::role_row& r : engine::roles()) known.push_back(r.name);
    for (const std::string& role : o.roles) {
        if (std::find(known.begin(), known.end(), role) == known.end()) {
            base::refuse(base::unknown("role", role, known));
        }
    }
    const auto unwanted = [&](const engine::tensor_ref& t) {
        return std::find(o.roles.begin(), o.roles.end(), finder.role_of(t.info())) == o.roles.end();
    };
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(), unwanted), tensors.end());
    if (tensors.empty()) {
        base::refuse("--role {}: no tensor has it; name them with --role-pattern ROLE=GLOB",
                     base::joined(o.roles, ","));
    }
    return tensors;
}

std::string selection_text(const input_options& in, const role_options& roles) {
    std::string text;
    const auto add = [&](std::string_view option, const std::string& value) {
        if (!text.empty()) text += ' ';
        text += option;
        if (!value.empty()) text += " " + policy::shell_word(value);
    };
    const auto add_all = [&](std::string_view option, const std::vector<std::string>& values) {
        for (const std::string& v : values) add(option, v);
    };
    add_all("-t", in.globs);
    if (!in.open.as.empty()) add("--as", in.open.as);
    if (!in.open.shape.empty()) add("--shape", in.open.shape);
    if (!in.open.dtype.empty()) add("--dtype", in.open.dtype);
    if (in.open.offset != 0) add("--byte-offset", std::to_string(in.open.offset));
    if (in.views.raw) add("--raw", {});
    if (in.views.integers) add("--integers", {});
    if (in.views.swizzled) add("--swizzled", {});
    add_all("--split", in.views.splits);
    add_all("--transpose", in.views.transposed);
    add_all("--experts", in.views.experts);
    add_all("--heads", in.views.heads);
    add_all("--role", roles.roles);
    add_all("--role-pattern", roles.patterns);
    if (roles.norm_bias != 0) add("--norm-bias", fmt::format("{}", roles.norm_bias));
    return text;
}

report::list input_list(const file_sizes& files, const digest_function& digest) {
    return report::to_list(files, [&](const auto& f) {
        report::record file{{"path", f.first}, {"bytes", pages::integer(f.second)}};
        const std::string sha256 = digest ? digest(f.first) : std::string();
        if (!sha256.empty()) file.emplace_back("sha256", sha256);
        return file;
    });
}

report::list skipped_list(const std::vector<engine::skipped_tensor>& skipped) {
    return report::to_list(skipped, [](const engine::skipped_tensor& s) {
        report::record r{
            {"file", s.file},
            {"tensor", s.tensor},
            {"recipe", s.recipe.empty() ? pages::undefined() : report::value(s.recipe)},
            {"reason", s.reason}};
        if (s.dtype.empty()) return r;
        r.insert(r.end(), {{"dtype", s.dtype},
                           {"shape", report::to_list(s.shape)},
                           {"elements", pages::integer(s.elements)},
                           {"bytes", pages::integer(s.bytes)}});
        if (!s.tied_to.empty()) r.emplace_back("tied_to", s.tied_to);
        return r;
    });
}

}  // namespace mx::documents

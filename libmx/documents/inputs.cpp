// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "libmx/base/glob.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/members.hpp"

namespace mx::documents {

engine::role_finder finder_of(const role_options& o) {
    std::vector<engine::role_override> overrides;
    for (const std::string& p : o.patterns) {
        overrides.push_back(engine::parse_role_override(p));
    }
    return engine::role_finder(std::move(overrides));
}

namespace {

// Refuses a pattern that gives no tensor a role: a misspelt one would change nothing.
void check_patterns(const std::vector<engine::tensor_ref>& tensors, const role_options& o) {
    std::set<const io::reader*> files;
    for (const engine::tensor_ref& t : tensors) files.insert(t.file);
    if (o.patterns.empty() || files.empty()) return;
    std::vector<std::string_view> names;
    for (const io::reader* file : files) {
        for (const io::tensor_info& t : file->tensors()) names.emplace_back(t.name);
    }
    for (const std::string& pattern : o.patterns) {
        const std::string glob = engine::parse_role_override(pattern).glob;
        const auto fits = [&](std::string_view name) { return base::glob_match(glob, name); };
        if (std::any_of(names.begin(), names.end(), fits)) continue;
        base::refuse("--role-pattern '{}' matches no tensor: {}", base::printable(pattern),
                     base::no_match(glob, "the pattern", names));
    }
}

}  // namespace

std::vector<engine::tensor_ref> with_roles(std::vector<engine::tensor_ref> tensors,
                                           const role_options& o,
                                           const engine::role_finder& finder) {
    check_patterns(tensors, o);
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

std::vector<report::given_option> given_options(const input_options& in, const role_options& roles,
                                                const std::vector<std::string>& groups) {
    std::vector<report::given_option> given;
    const auto flag = [&](const char* name, bool set) {
        if (set) given.push_back({name});
    };
    const auto one = [&](const char* name, const std::string& value) {
        if (!value.empty()) given.push_back({name, value});
    };
    const auto all = [&](const char* name, const std::vector<std::string>& values) {
        for (const std::string& v : values) given.push_back({name, v});
    };
    all("tensor", in.globs);
    one("as", in.open.as);
    one("shape", in.open.shape);
    one("dtype", in.open.dtype);
    one("byte-offset", in.open.offset == 0 ? std::string() : std::to_string(in.open.offset));
    flag("raw", in.views.raw);
    flag("integers", in.views.integers);
    flag("swizzled", in.views.swizzled);
    all("split", in.views.splits);
    all("transpose", in.views.transposed);
    all("experts", in.views.experts);
    all("heads", in.views.heads);
    all("role", roles.roles);
    all("role-pattern", roles.patterns);
    one("norm-bias", roles.norm_bias == 0 ? std::string() : fmt::format("{}", roles.norm_bias));
    all("group", groups);
    return given;
}

report::list input_list(const file_sizes& files, const digest_function& digest) {
    return report::to_list(files, [&](const auto& f) {
        report::record file{{"path", f.path}, {"bytes", pages::integer(f.bytes)}};
        if (f.given != f.path) file.emplace_back("given", f.given);
        const std::string sha256 = digest ? digest(f.path) : std::string();
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

report::list results_list(const std::vector<analysis::results_input>& inputs) {
    report::list files;
    for (const analysis::results_input& input : inputs) {
        files.emplace_back(
            report::record{{"path", input.path}, {"bytes", report::tally(input.bytes)}});
    }
    return files;
}

}  // namespace mx::documents

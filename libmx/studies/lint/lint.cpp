// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/lint/lint.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/studies/lint/parts.hpp"

namespace mx::lint {
namespace {

// RULE, or RULE:GLOB of tensors.
struct ignored_rule {
    std::string rule, tensors;
};

std::vector<ignored_rule> ignored_in(const lint_request& request) {
    std::vector<std::string_view> names;
    for (const rule_row& r : rules) names.push_back(r.name);
    std::vector<ignored_rule> all;
    for (const std::string& text : request.ignored) {
        const std::size_t colon = text.find(':');
        ignored_rule one{text.substr(0, colon),
                         colon == std::string::npos ? "*" : text.substr(colon + 1)};
        if (std::ranges::find(names, one.rule) == names.end()) {
            base::refuse("--ignore: " + base::unknown("rule", one.rule, names));
        }
        all.push_back(std::move(one));
    }
    return all;
}

std::size_t place_of(std::string_view rule) {
    return static_cast<std::size_t>(std::ranges::find(rules, rule, &rule_row::name) -
                                    rules.begin());
}

}  // namespace

std::string_view to_string(severity s) { return s == severity::error ? "error" : "warning"; }

std::uint64_t lint_outcome::count(severity s) const {
    return static_cast<std::uint64_t>(std::ranges::count(findings, s, &finding::is));
}

lint_outcome run_rules(const checkpoint& c, const lint_request& request) {
    const std::vector<ignored_rule> ignored = ignored_in(request);
    inspection at(c, request);
    check_scales(at);
    check_fused(at);
    check_config(at);
    check_index(at);
    check_values(at);
    std::erase_if(at.found, [&](const finding& f) {
        return std::ranges::any_of(ignored, [&](const ignored_rule& i) {
            return i.rule == f.rule && base::glob_match(i.tensors, f.tensor);
        });
    });
    std::ranges::stable_sort(at.found, {},
                             [](const finding& f) { return std::pair(f.is, place_of(f.rule)); });
    lint_outcome o;
    o.findings = std::move(at.found);
    o.files = c.files.size();
    o.quantized = c.pairs.found.size();
    o.tensors = c.arrays.size();
    for (const io::pairing& p : c.pairs.found) o.tensors -= p.parts().size() - 1;
    o.all_scales = at.all_scales;
    return o;
}

}  // namespace mx::lint

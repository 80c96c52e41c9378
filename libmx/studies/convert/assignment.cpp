// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/convert/assignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "libmx/analysis/results_input.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/stored_precision.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/convert/engine_layouts.hpp"

namespace mx::convert {
namespace {

// The name of the stored precision in mx report.
constexpr std::string_view keep_name = "keep";

[[noreturn]] void fail(const std::string& path, const std::string& tensor, std::string message) {
    throw base::error(base::error_kind::input, std::move(message), {path, tensor, {}});
}

std::optional<codec::recipe> parse_named(const std::string& path, const std::string& tensor,
                                         const std::string& name, std::string_view layout) {
    if (name == engine::stored_choice || name == keep_name) return {};
    try {
        const codec::recipe r =
            layout.empty() ? codec::parse_block_recipe(name) : parse_layout_recipe(layout, name);
        codec::require_files_inside(r);
        return r;
    } catch (const base::error& e) {
        fail(path, tensor, e.message());
    }
}

bool same(const engine::tensor_ref& a, const engine::tensor_ref& b) {
    return a.file == b.file && a.index == b.index;
}

// All tensors in order: the chosen ones as `of` assigns them, the others copied or left out.
std::vector<assigned_tensor> with_rest(
    const std::vector<engine::tensor_ref>& all, const std::vector<engine::tensor_ref>& chosen,
    bool keep_rest, const std::function<void(const engine::tensor_ref&, assigned_tensor&)>& of) {
    std::vector<assigned_tensor> assigned;
    std::size_t next = 0;  // both lists are in the order of the model
    for (const engine::tensor_ref& t : all) {
        const bool is_chosen = next < chosen.size() && same(chosen[next], t);
        if (is_chosen) ++next;
        if (!is_chosen && !keep_rest) continue;
        assigned_tensor a{t, {}, "not chosen by --tensor"};
        if (is_chosen) of(t, a);
        assigned.push_back(std::move(a));
    }
    return assigned;
}

// Refuses an assignment made for another model.
void check_model(const assignment& by, const std::vector<engine::tensor_ref>& all) {
    std::set<std::string_view> there;
    for (const engine::tensor_ref& t : all) {
        const io::tensor_info& info = t.info();
        there.insert(info.name);
        const auto at = by.tensors.find(info.name);
        if (at == by.tensors.end() ||
            at->second.elements.value_or(info.elements) == info.elements) {
            continue;
        }
        base::refuse(fmt::format("is of another model: '{}' has {} elements there and {} in "
                                 "'{}'",
                                 base::printable(info.name), *at->second.elements, info.elements,
                                 base::printable(info.file)),
                     {by.path, {}, {}});
    }
    const std::string* first = nullptr;
    std::size_t missing = 0;
    for (const auto& [name, entry] : by.tensors) {
        if (there.contains(name)) continue;
        if (first == nullptr) first = &name;
        ++missing;
    }
    if (first == nullptr) return;
    const std::string more = missing == 1 ? "" : fmt::format(" and {} more", missing - 1);
    base::refuse(fmt::format("is of another model: its tensor '{}'{} {} not in the input",
                             base::printable(*first), more, missing == 1 ? "is" : "are"),
                 {by.path, {}, {}});
}

}  // namespace

assignment read_assignment(const std::string& path, std::string_view layout) {
    report::read_options options;
    options.keep = [](std::string_view member) {
        return member == "tensor" || member == "recipe" || member == "elements";
    };
    const report::results_file file = analysis::open_results(path, options).content;
    if (file.kind != "plan" && file.kind != "placement" && file.kind != "report") {
        fail(path, {},
             fmt::format("is mx.{}, not a recipe per tensor: mx plan and mx report write those "
                         "with --json",
                         file.kind));
    }
    assignment all{path, {}};
    for (const report::record& r : file.results) {
        const std::string* tensor = report::member<std::string>(r, "tensor");
        const report::value* recipe = report::find(r, "recipe");
        if (tensor == nullptr || recipe == nullptr) {
            fail(path, {}, "has results without a tensor and a recipe: give the JSON of mx plan");
        }
        const auto* name = std::get_if<std::string>(recipe);
        if (name == nullptr) continue;  // undecided
        assignment::entry e{parse_named(path, *tensor, *name, layout), {}};
        if (const auto* n = report::member<std::int64_t>(r, "elements")) {
            e.elements = static_cast<std::uint64_t>(*n);
        }
        if (!all.tensors.emplace(*tensor, std::move(e)).second) {
            fail(path, *tensor, "has two recipes");
        }
    }
    return all;
}

std::vector<assigned_tensor> assign(const assignment& by,
                                    const std::vector<engine::tensor_ref>& all,
                                    const std::vector<engine::tensor_ref>& chosen, bool keep_rest) {
    check_model(by, all);
    const std::string* first = nullptr;
    std::size_t unnamed = 0;
    std::vector<assigned_tensor> assigned =
        with_rest(all, chosen, keep_rest, [&](const engine::tensor_ref& t, assigned_tensor& a) {
            const io::tensor_info& info = t.info();
            const auto at = by.tensors.find(info.name);
            const std::string left_out = engine::why_left_out(info);
            if (at != by.tensors.end()) {
                a.recipe = at->second.recipe;
                a.kept = "the plan keeps it";
            } else if (!left_out.empty()) {
                a.kept = left_out;
            } else {
                a.kept = "not in the plan";
                if (first == nullptr) first = &info.name;
                ++unnamed;
            }
        });
    if (first != nullptr && !keep_rest) {
        base::refuse(
            fmt::format("has no recipe for {}, '{}' the first: --keep-rest copies what is not in "
                        "the plan, --tensor leaves it out",
                        report::plural(unnamed, "tensor"), base::printable(*first)),
            {by.path, {}, {}});
    }
    if (std::ranges::none_of(assigned, [](const auto& a) { return a.recipe.has_value(); })) {
        base::refuse("quantizes none of the tensors chosen", {by.path, {}, {}});
    }
    return assigned;
}

std::vector<assigned_tensor> assign(const codec::recipe& recipe,
                                    const std::vector<engine::tensor_ref>& all,
                                    const std::vector<engine::tensor_ref>& chosen, bool keep_rest) {
    return with_rest(all, chosen, keep_rest,
                     [&](const engine::tensor_ref&, assigned_tensor& a) { a.recipe = recipe; });
}

}  // namespace mx::convert

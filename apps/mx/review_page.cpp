// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/review_page.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "apps/mx/build_facts.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/policy/missing.hpp"

namespace mx::app {
namespace {

analysis::analysis_request& with_finder(analysis::analysis_request& request,
                                        const role_options& o) {
    request.roles = finder_of(o);
    request.norm_bias = o.norm_bias;
    return request;
}

// Without --recipe: what the policy judges. Names and shapes decide which one that is.
std::vector<codec::recipe> recipes_for(const policy::basis& by,
                                       const std::vector<engine::tensor_ref>& tensors,
                                       const engine::role_finder& roles) {
    std::vector<policy::measured_tensor> of;
    for (const engine::tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        if (!engine::why_left_out(info).empty()) continue;
        policy::measured_tensor& m = of.emplace_back();
        m.name = info.name;
        m.role = std::string(roles.role_of(info));
        m.shape.assign(info.shape.begin(), info.shape.end());
    }
    const policy::policy p = by.by ? *by.by : policy::find_policy(policy::default_policy(of));
    return policy::recipes_to_measure(p, *by.on, of);
}

const std::vector<codec::recipe>& with_recipes(std::vector<codec::recipe>& recipes,
                                               const measuring_options& o,
                                               const std::vector<engine::tensor_ref>& tensors,
                                               const engine::role_finder& roles) {
    if (recipes.empty()) recipes = recipes_for(basis_of(o.review.judging), tensors, roles);
    return recipes;
}

// How tensors were selected and seen, as options: the JSON's member `selection`.
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
    add_all("--role", roles.roles);
    add_all("--role-pattern", roles.patterns);
    if (roles.norm_bias != 0) add("--norm-bias", fmt::format("{}", roles.norm_bias));
    return text;
}

std::string judging_text(const judging_options& o) {
    std::string text;
    if (!o.policy.empty()) text += " --policy " + policy::shell_word(o.policy);
    if (!o.target.empty()) text += " --target " + policy::shell_word(o.target);
    if (!o.eval.empty()) text += " --eval " + policy::shell_word(o.eval);
    return text;
}

// The blocks of the tensors that a review finds most harmed: a second pass over these alone.
std::vector<show::tensor_view> blocks_of(const pages::review& r, const measured_model& m) {
    constexpr std::size_t blocks_of_each = 5;
    constexpr std::uint64_t most_map_rows = 16, most_map_columns = 32;
    std::vector<show::tensor_view> views;
    for (const pages::harmed_tensor& worst : r.worst) {
        const auto at = std::ranges::find_if(m.tensors, [&](const engine::tensor_ref& t) {
            return t.info().name == worst.tensor && t.info().file == worst.file;
        });
        if (at == m.tensors.end()) continue;
        show::show_request request;
        request.recipes = codec::parse_recipes({worst.recipe});
        request.roles = m.request.roles;
        request.norm_bias = m.request.norm_bias;
        request.worst = blocks_of_each;
        request.map_rows = most_map_rows;
        request.map_columns = most_map_columns;
        views.push_back(show::view_tensor(*at, request, m.control));
    }
    return views;
}

}  // namespace

void declare_review(parser& cmd, review_options& o) {
    declare_judging(cmd, o.judging);
    cmd.group("Output");
    cmd.add_flag("--summary", o.summary,
                 "the verdict in one line, for chat and CI, in place of the tables");
}

void declare_measured_outputs(parser& cmd, measuring_options& o) {
    declare_outputs(cmd, o.out);
    cmd.add_flag("--sha256", o.sha256, "also the SHA-256 of the inputs in JSON; --html implies it");
    declare_review(cmd, o.review);
}

pages::review review_of(std::span<const pages::result_set> sets, const judging_options& o,
                        bool with_page) {
    pages::review_options options;
    options.judged_by = basis_of(o);
    options.judging = judging_text(o);
    options.made_by = fmt::format("mx {}, {}, {}", version, compiler, build_type);
    pages::review r = pages::make_review(sets, options, with_page);
    report::record head = pages::document_head("mx.report/2");
    for (auto& member : r.page.head) head.push_back(std::move(member));
    r.page.head = std::move(head);
    return r;
}

void print_summary(const pages::review& r, const output_options& out) {
    if (std::ranges::find(out.paths, "-") != out.paths.end()) return;
    print(base::printable(r.summary.empty() ? "no tensor was measured" : r.summary) + "\n");
    finish_stdout();
}

measured_model::measured_model(const measuring_options& o, analysis::analysis_request& r,
                               const std::vector<std::string>& more)
    : options(o),
      request(with_finder(r, o.roles)),
      to(o.out, o.in.files, more),
      model(open_inputs(o.in, to.paths())),
      tensors(with_roles(model.select(o.in.globs), o.roles, r.roles)),
      control(control_of(o.run, with_recipes(r.recipes, o, tensors, r.roles))) {
    basis_of(o.review.judging);  // what cannot be read ends a run before it begins
    r.distributions = r.distributions || has_page();
}

void measured_model::finish(report::document d, const std::vector<analysis::result>& results,
                            const std::vector<engine::skipped_tensor>& skipped,
                            const analysis::distributions& sums, bool verdict_first) {
    d.head = pages::document_head("mx.analysis/1");
    d.head.emplace_back("inputs", input_list(model, options.sha256 || has_page()));
    const std::string selection = selection_text(options.in, options.roles);
    if (!selection.empty()) d.head.emplace_back("selection", selection);
    d.tail.emplace_back("skipped", skipped_list(skipped));
    if (request.distributions) d.tail.emplace_back("distributions", sums.members());
    if (!has_page() && !verdict_first && !options.review.summary) {
        return to.finish(d, options.run.quiet);
    }
    const pages::result_set set{"", &d.head, &results, &d.tail};
    pages::review r = review_of({&set, 1}, options.review.judging, has_page());
    if (has_page()) pages::add_blocks(r, blocks_of(r, *this));
    if (verdict_first) {
        d.sections.insert(d.sections.begin(), std::make_move_iterator(r.first_screen.begin()),
                          std::make_move_iterator(r.first_screen.end()));
    }
    to.finish(d, options.run.quiet || options.review.summary, {{"html", &r.page}});
    if (options.review.summary && !options.run.quiet) print_summary(r, options.out);
}

}  // namespace mx::app

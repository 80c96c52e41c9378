// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "libmx/documents/build_facts.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/engine/remarks.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/offers.hpp"
#include "libmx/studies/cluster/diagnose.hpp"
#include "libmx/studies/compare/comparison.hpp"
#include "libmx/studies/show/tensor_view.hpp"

namespace mx::documents {
namespace {

analysis::analysis_request& with_finder(analysis::analysis_request& request,
                                        const measuring_options& o) {
    request.roles = finder_of(o.roles);
    request.norm_bias = o.roles.norm_bias;
    request.groups = o.groups;
    return request;
}

// The recipes that the policy judges, which depend on names and shapes.
std::vector<codec::recipe> recipes_for(const policy::basis& by,
                                       const std::vector<engine::tensor_ref>& tensors,
                                       const engine::role_finder& roles) {
    std::vector<policy::measured_tensor> of = described(tensors, roles);
    std::erase_if(of, [](const policy::measured_tensor& t) { return !t.left_out.empty(); });
    return policy::recipes_to_measure(policy::policy_for(by.by, of), *by.on, of);
}

const std::vector<codec::recipe>& with_recipes(std::vector<codec::recipe>& recipes,
                                               const measuring_options& o,
                                               const std::vector<engine::tensor_ref>& tensors,
                                               const engine::role_finder& roles, bool baselines) {
    if (!recipes.empty()) return recipes;
    recipes = recipes_for(basis_of(o.judging), tensors, roles);
    if (baselines) std::ranges::copy(policy::baselines(), std::back_inserter(recipes));
    return recipes;
}

// The blocks of the tensors that a review finds most harmed: a second pass over these alone.
std::vector<show::tensor_view> blocks_of(const pages::review& r, const measuring_session& m) {
    constexpr std::size_t blocks_of_each = 5;
    constexpr std::uint64_t most_map_rows = 16, most_map_columns = 32;
    std::vector<show::tensor_view> views;
    for (const pages::harmed_tensor& worst : r.worst) {
        const auto at = std::ranges::find_if(m.opened.tensors, [&](const engine::tensor_ref& t) {
            return t.info().name == worst.tensor && t.info().file == worst.file;
        });
        if (at == m.opened.tensors.end()) continue;
        show::show_request request;
        request.recipes = codec::parse_recipes({worst.recipe});
        if (!codec::has_blocks(request.recipes.front())) continue;
        request.roles = m.request.roles;
        request.norm_bias = m.request.norm_bias;
        request.worst = blocks_of_each;
        request.map_rows = most_map_rows;
        request.map_columns = most_map_columns;
        views.push_back(show::view_tensor(*at, request, m.control));
    }
    return views;
}

struct scaled_tensor {
    const io::tensor_info& info;
    report::list scales;
};
constexpr std::array scaled_members = std::to_array<report::declared<scaled_tensor>>({
    {"file", "string", "", [](auto& t) { return t.info.file; }},
    {"tensor", "string", "", [](auto& t) { return t.info.name; }},
    {"scales", "@common#tensor_scales", "", [](auto& t) { return t.scales; }},
});

// The scales that tensors have one of: of each measured one that has any.
report::list scales_list(const std::vector<engine::tensor_ref>& tensors) {
    report::list all;
    for (const engine::tensor_ref& t : tensors) {
        report::list scales = engine::tensor_scales_of(t);
        if (scales.empty()) continue;
        all.emplace_back(report::written(scaled_members, {t.info(), std::move(scales)}));
    }
    return all;
}

opened_tensors chosen(opened_tensors opened, const role_options& o,
                      const engine::role_finder& finder) {
    opened.tensors = with_roles(std::move(opened.tensors), o, finder);
    return opened;
}

}  // namespace

pages::review review_of(std::span<const pages::result_set> sets, const judging_options& o,
                        bool with_page, std::vector<std::string> digested) {
    const pages::review_options options{basis_of(o),
                                        fmt::format("mx {}, {}, {}", version, compiler, build_type),
                                        std::move(digested)};
    pages::review r = pages::make_review(sets, options, with_page);
    report::record head = pages::document_head("mx.report/3");
    for (auto& member : r.page.head) head.push_back(std::move(member));
    r.page.head = std::move(head);
    return r;
}

measuring_session::measuring_session(const char* name, const measuring_options& o,
                                     analysis::analysis_request& r,
                                     const run_environment& environment, bool baselines)
    : command(name),
      options(o),
      request(with_finder(r, o)),
      opened(chosen(environment.open(), o.roles, r.roles)),
      control(environment.control(with_recipes(r.recipes, o, opened.tensors, r.roles, baselines))) {
    basis_of(o.judging);  // files that cannot be read end a run before it begins
    r.distributions = r.distributions || o.page || o.parts.page_sums;
    r.partial = partial_run_of(o.parts);
    if (r.partial) check_parts(o.parts, {opened.files, opened.tensors, o.parts}, o.page);
}

report::record measuring_session::head() const {
    report::record head = pages::document_head("mx.analysis/1");
    head.emplace_back("inputs",
                      input_list(opened.files, is_part() ? digest_function() : options.digest));
    head.emplace_back(
        "given", report::given_record(
                     {command, {}, {}, given_options(options.in, options.roles, options.groups)}));
    return head;
}

measured measuring_session::finish(report::document d, const analysis::result_list& results,
                                   const std::vector<engine::skipped_tensor>& skipped,
                                   const analysis::distributions& sums, bool verdict_first,
                                   const view_function& view) const {
    d.head = head();
    d.tail.emplace_back("skipped", skipped_list(skipped));
    const std::vector<std::string> remarks = engine::remarks_on(opened.tensors);
    if (!remarks.empty()) d.tail.emplace_back("remarks", report::to_list(remarks));
    if (report::list scales = scales_list(opened.tensors); !scales.empty()) {
        d.tail.emplace_back("tensor_scales", std::move(scales));
    }
    if (is_part()) {
        finish_part(d, options.parts, *request.partial,
                    {opened.files, opened.tensors, options.parts});
        return {std::move(d), {}};
    }
    if (request.distributions) d.tail.emplace_back("distributions", sums.members());
    measured m{std::move(d), {}};
    pages::result_set set{"", &m.document.head, &results, &m.document.tail};
    for (const auto& [name, records] : m.document.long_members) {
        if (name == "series") set.series = &records;
    }
    if (view) std::ranges::move(view(set), std::back_inserter(m.document.sections));
    if (!remarks.empty()) {
        m.document.sections.push_back(
            {.heading = "Remarks on the files", .notes{remarks.begin(), remarks.end()}});
    }
    if (!options.page && !verdict_first && !options.summary) return m;
    m.review = review_of({&set, 1}, options.judging, options.page);
    if (options.page) pages::add_blocks(m.review, blocks_of(m.review, *this));
    if (verdict_first) {
        std::vector<report::section>& to = m.document.sections;
        std::vector<report::section>& first = m.review.first_screen;
        to.insert(to.begin(), std::make_move_iterator(first.begin()),
                  std::make_move_iterator(first.end()));
    }
    return m;
}

report::document_schema analysis_schema() {
    constexpr std::array given{report::member_type{"command", "analyze|compare|cluster", ""},
                               report::member_type{"options", "[#option]",
                                                   "which decide what tensors there are, how they "
                                                   "are read, and which share a record"}};
    report::document_schema s(
        "mx.analysis/1", "mx analyze, mx compare, mx cluster: results",
        "Every measured tensor under every recipe, and what the command concludes from them. mx "
        "report, mx plan and mx gate read it. Members from `findings` on are those of mx cluster, "
        "from `baseline` on those of mx compare.");
    s.member({"verdict", "[string]", "what the command says, a sentence each", false})
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"given", "#given",
                 "the command that measured the results, without outputs and recipes; of mx "
                 "analyze, compare and cluster",
                 false})
        .member({"results", "[#result]", "a tensor, or group of tensors, under a recipe each"})
        .member({"skipped", "[@common#skipped]", "what was not measured, and why"})
        .member({"remarks", "@common#remarks", "", false})
        .member({"tensor_scales", "[#scaled]", "of each tensor that has any", false})
        .member({"distributions", "#distributions",
                 "histograms for the page, where one is asked for or results may become one",
                 false})
        .define("given", given)
        .define("scaled", scaled_members);
    declare_part(s);
    declare_summary(s);
    analysis::distributions::declare(s);
    report::member_list result;
    cluster::declare_survey(result, s);
    s.define_more("result", "@members#result", result);
    declare_diagnosis(s);
    compare::declare_comparison(s);
    return s;
}

}  // namespace mx::documents

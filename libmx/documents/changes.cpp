// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "libmx/base/status.hpp"
#include "libmx/documents/diff.hpp"
#include "libmx/pages/document_parts.hpp"
#include "libmx/pages/views/changes_view.hpp"
#include "libmx/pages/views/diff_view.hpp"
#include "libmx/pages/views/gate_view.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/diff/changes.hpp"
#include "libmx/studies/diff/labels.hpp"

namespace mx::documents {
namespace {

// Options about tensors, which results no longer have.
void refuse_measuring(const diff_options& o) {
    input_options in = o.in;
    in.globs.clear();
    role_options roles = o.roles;
    roles.roles.clear();
    std::vector<report::given_option> given = given_options(in, roles);
    for (const std::string& glob : o.transposed_first) given.push_back({"transpose-first", glob});
    for (const std::string& glob : o.transposed_second) given.push_back({"transpose-second", glob});
    if (!o.parts.shard.empty()) given.push_back({"shard", o.parts.shard});
    if (given.empty()) return;
    base::refuse(
        "--{}: is about tensors, and these are results files; give it to the command that "
        "measures them",
        given.front().name);
}

report::value text_or_undefined(const std::string& s) {
    return s.empty() ? pages::undefined() : pages::text(s);
}

}  // namespace

bool are_results(const std::vector<std::string>& paths) {
    std::vector<bool> of;
    for (const std::string& path : paths) of.push_back(analysis::looks_like_results(path));
    const auto first = std::ranges::find(of, true);
    if (first == of.end()) return false;
    const std::string& results = paths[static_cast<std::size_t>(first - of.begin())];
    for (std::size_t i = 0; i < paths.size(); ++i) {
        std::error_code problem;
        const auto status = std::filesystem::status(paths[i], problem);
        // Others are missing, or pipes: opening them as results says what they are.
        const bool tensors = paths[i].find("://") != std::string::npos ||
                             std::filesystem::is_directory(status) ||
                             std::filesystem::is_regular_file(status);
        if (of[i] || !tensors) continue;
        throw base::error(base::error_kind::input,
                          fmt::format("is not a results file, but {} is one: compare two results "
                                      "files, or dumps",
                                      results),
                          {paths[i], {}, {}});
    }
    return true;
}

report::document changes(const diff_options& o, const std::vector<std::string>& paths,
                         const analysis::results_opener& open) {
    refuse_measuring(o);
    if (paths.size() != 2) {
        base::refuse("mx diff compares two results files, not {}; name both", paths.size());
    }
    const diff::dump_labels labels = diff::label_dumps(paths, o.labels);
    const std::vector<analysis::results_input> inputs = diff::open_for_changes(paths, open);
    diff::changes_result result = diff::compare_results(
        inputs[0], inputs[1],
        {{labels.text[0], labels.text[1]}, o.recipes, o.in.globs, o.roles.roles});

    report::document d;
    d.head = pages::document_head("mx.changes/1");
    d.head.emplace_back("inputs", pages::results_list(inputs));
    d.head.emplace_back("labels", report::list(labels.text.begin(), labels.text.end()));
    d.head.emplace_back("identical", result.identical);
    report::list summary, left_out;
    for (const diff::recipe_changes& s : result.summary) {
        summary.emplace_back(report::record{{"recipe", s.recipe},
                                            {"compared", pages::integer(s.compared)},
                                            {"changed", pages::integer(s.changed)},
                                            {"sqnr_fell", pages::integer(s.fell)},
                                            {"largest_fall_db", pages::real(s.largest_fall)},
                                            {"fell_most", text_or_undefined(s.fallen)},
                                            {"sqnr_rose", pages::integer(s.rose)},
                                            {"largest_rise_db", pages::real(s.largest_rise)},
                                            {"rose_most", text_or_undefined(s.risen)},
                                            {"sqnr_undefined", pages::integer(s.undefined)}});
    }
    for (const diff::uncompared& u : result.left_out) {
        left_out.emplace_back(report::record{
            {"file", u.file}, {"tensor", u.tensor}, {"recipe", u.recipe}, {"reason", u.reason}});
    }
    d.tail.emplace_back("summary", std::move(summary));
    d.tail.emplace_back("left_out", std::move(left_out));
    d.results = std::move(result.results);
    d.sections = pages::changes_sections(d.results, d.tail, o.all);
    d.sections.insert(d.sections.begin(), pages::order_section(labels, {}));
    pages::add_verdict(d);
    return d;
}

}  // namespace mx::documents

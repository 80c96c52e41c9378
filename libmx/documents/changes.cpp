// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/documents/diff.hpp"
#include "libmx/pages/views/document_page.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
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

constexpr std::array change_summary_members =
    std::to_array<report::declared<diff::recipe_changes>>({
        {"recipe", "string", "", [](auto& s) { return s.recipe; }},
        {"compared", "count", "results", [](auto& s) { return s.compared; }},
        {"changed", "count", "results of which a figure differs",
         [](auto& s) { return s.changed; }},
        {"sqnr_fell", "count", "results of lower SQNR", [](auto& s) { return s.fell; }},
        {"largest_fall_db", "amount", "", [](auto& s) { return s.largest_fall; }},
        {"fell_most", "string?", "the tensor; null: none",
         [](auto& s) { return pages::text_or_null(s.fallen); }},
        {"sqnr_rose", "count", "results of higher SQNR", [](auto& s) { return s.rose; }},
        {"largest_rise_db", "amount", "", [](auto& s) { return s.largest_rise; }},
        {"rose_most", "string?", "the tensor; null: none",
         [](auto& s) { return pages::text_or_null(s.risen); }},
        {"sqnr_undefined", "count", "results whose SQNR is defined in one file only",
         [](auto& s) { return s.undefined; }},
    });

constexpr std::array uncompared_members = std::to_array<report::declared<diff::uncompared>>({
    {"file", "string", "the results file that has it", [](auto& u) { return u.file; }},
    {"tensor", "string", "", [](auto& u) { return u.tensor; }},
    {"recipe", "string", "", [](auto& u) { return u.recipe; }},
    {"reason", "string", "", [](auto& u) { return u.reason; }},
});

// "that of 7 fell, at most by 3.21 dB (layers.0.w)"
std::string moved_text(const report::record& r, const std::string& way, const char* size,
                       const char* tensor) {
    return fmt::format(
        "that of {} {}, at most by {:.2f} dB ({})",
        report::grouped(report::whole(report::number_of(r, "sqnr_" + way).value_or(0))), way,
        report::number_of(r, size).value_or(0), report::text_of(r, tensor));
}

std::string recipe_text(const report::record& r) {
    const auto count = [&](const char* name) {
        return report::whole(report::number_of(r, name).value_or(0));
    };
    std::string text =
        fmt::format("{}: {} of {} changed", report::text_of(r, "recipe"),
                    report::grouped(count("changed")), report::plural(count("compared"), "tensor"));
    if (count("changed") == 0) return text + ".";
    std::vector<std::string> moves;
    if (count("sqnr_fell") > 0) {
        moves.push_back(moved_text(r, "fell", "largest_fall_db", "fell_most"));
    }
    if (count("sqnr_rose") > 0) {
        moves.push_back(moved_text(r, "rose", "largest_rise_db", "rose_most"));
    }
    if (count("sqnr_undefined") > 0) {
        moves.push_back(fmt::format("that of {} is defined in one file only",
                                    report::grouped(count("sqnr_undefined"))));
    }
    if (moves.empty()) return text + "; no SQNR changed.";
    text += ". SQNR: " + base::joined(moves, "; ");
    return text + ".";
}

report::notes verdict_of(const report::document& d) {
    if (d.results.empty()) {
        return {"No result to compare: no tensor is in both files under the same recipe."};
    }
    report::notes notes;
    std::int64_t moved = 0;
    for (const report::record& r : report::records_in(d.tail, "summary")) {
        moved += report::whole(report::number_of(r, "changed").value_or(0));
        notes.push_back(report::item(recipe_text(r)));
    }
    if (moved > 0) return notes;
    const auto* left_out = report::member<report::list>(d.tail, "left_out");
    return {fmt::format("No figure of {} differs{}.", report::plural(d.results.size(), "result"),
                        left_out->empty() ? "" : "; others were left out")};
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
    d.head.emplace_back("inputs", results_list(inputs));
    d.head.emplace_back("labels", report::list(labels.text.begin(), labels.text.end()));
    d.head.emplace_back("identical", result.identical);
    d.tail.emplace_back("summary", report::listed(change_summary_members, result.summary));
    d.tail.emplace_back("left_out", report::listed(uncompared_members, result.left_out));
    d.results = std::move(result.results);
    pages::finish_document(d, verdict_of(d), {.all = o.all});
    return d;
}

report::document_schema changes_schema() {
    report::member_list result;
    diff::declare_changes(result);
    return report::document_schema("mx.changes/1", "mx diff of results files",
                                   "The results of two files, by tensor and recipe.")
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .member({"inputs", "[@common#input]", "files that were read, in the order compared"})
        .member({"labels", "[string]", "of the files"})
        .member({"identical", "boolean", "no figure of a result differs"})
        .member(
            {"results", "[#result]", "a tensor and recipe each; before (a), after (b) and b - a"})
        .member({"summary", "[#recipe]", "a recipe each"})
        .member(
            {"left_out", "[#left_out]", "results that are in one file only, or repeated in a file"})
        .define("result", result)
        .define("recipe", change_summary_members)
        .define("left_out", uncompared_members);
}

}  // namespace mx::documents

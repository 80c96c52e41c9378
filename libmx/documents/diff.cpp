// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/diff.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/pages/views/document_page.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/diff/diff.hpp"
#include "libmx/studies/diff/transposed.hpp"

namespace mx::documents {
namespace {

// Without --recipe: under floor, both formats have a clamp zone.
constexpr std::array diff_recipes{"mxfp8:scale=floor", "mxfp4:scale=floor"};

struct labelled_drift {
    const diff::drift_finding& f;
    const diff::dump_labels& labels;
};
constexpr std::array drift_finding_members = std::to_array<report::declared<labelled_drift>>({
    {"tensor", "@members#tensor", "", [](auto& d) { return d.f.tensor; }},
    {"recipe", "string", "", [](auto& d) { return d.f.recipe; }},
    {"blocks", "count", "", [](auto& d) { return d.f.blocks; }},
    {"clamp_zone_blocks", "[count]", "by dump",
     [](auto& d) { return report::to_list(d.f.in_zone); }},
    {"direction", "rising|falling", "where the gains go",
     [](auto& d) { return d.f.falling ? "falling" : "rising"; }},
    {"clamp_zone_distance", "[number]",
     "by dump: mean octaves to the edge of the zone that they move toward; negative: not there yet",
     [](auto& d) { return report::to_list(d.f.distance, pages::real); }},
    {"extrapolated_arrival", "number?",
     "step, or dumps after the last, at which a line reaches the zone",
     [](auto& d) { return d.f.forecast ? pages::real(d.f.forecast->at) : pages::undefined(); }},
    {"extrapolation_r2", "share?", "share of the variance that the line explains",
     [](auto& d) { return d.f.forecast ? pages::real(d.f.forecast->r2) : pages::undefined(); }},
    {"falling_blocks", "count",
     "blocks whose maximum is about to fall through a power of two, at the pace of the last two "
     "dumps",
     [](auto& d) { return d.f.fall ? d.f.fall->blocks : 0; }},
    {"first_fall", "number?", "step, or dumps after the last one, at which the first of them does",
     [](auto& d) { return d.f.fall ? pages::real(d.f.fall->at) : pages::undefined(); }},
    {"finding", "string", "", [](auto& d) { return diff::sentence_of(d.f, d.labels); }},
});

constexpr std::array transposed_members = std::to_array<report::declared<diff::transposed_tensor>>({
    {"tensor", "@members#tensor", "", [](auto& t) { return t.name; }},
    {"nrmse", "amount?", "on a sample of a square tensor; null: the shapes show it",
     [](auto& t) { return t.nrmse; }},
    {"transposed_nrmse", "amount?", "of the same sample with the axes swapped",
     [](auto& t) { return t.transposed_nrmse; }},
});

// The dumps in the order in which they are compared. A shell puts step1000 before step200, which
// makes a collapse look like a recovery; but two dumps that are named are in the intended order.
std::vector<std::string> ordered(const diff_options& o, const std::vector<std::string>& given) {
    if (o.as_given || (given.size() == 2 && given == o.in.files)) return given;
    std::vector<std::string> paths = diff::by_number(given);
    if (paths != given && !o.labels.empty()) {
        base::refuse(
            "--labels: the dumps are not in the order of their numbers ({}); name them in that "
            "order, or keep this one with --as-given",
            fmt::join(diff::label_dumps(given, {}).text, ", "));
    }
    return paths;
}

// The options of a dump: which of two it is decides which of its tensors are transposed.
input_options inputs_of(const diff_options& o, std::size_t dump) {
    input_options in = o.in;
    const std::vector<std::string>& more = dump == 0 ? o.transposed_first : o.transposed_second;
    in.views.transposed.insert(in.views.transposed.end(), more.begin(), more.end());
    return in;
}

// The command with other tensors transposed.
std::string transposing_command(const diff_options& o, const std::vector<std::string>& globs) {
    report::command_line line{"diff", o.in.files, {}, given_options(o.in, o.roles, o.groups)};
    const auto add = [&](const char* name, const std::vector<std::string>& values) {
        for (const std::string& v : values) line.options.push_back({name, v});
    };
    add("recipe", o.recipes);
    add("labels", o.labels);
    if (o.as_given) line.options.push_back({"as-given"});
    add("transpose-first", o.transposed_first);
    add("transpose-second", o.transposed_second);
    add("transpose-second", globs);
    return line.text();
}

// The counts of one recipe, over all pairs of dumps.
struct recipe_counts {
    double elements = 0, codes = 0, blocks = 0, scales = 0, equal = 0, moved_equal = 0;
    double followed = 0, flipped = 0;
};

std::vector<std::pair<std::string, recipe_counts>> counts_of(
    const std::vector<report::record>& summary) {
    std::vector<std::pair<std::string, recipe_counts>> all;
    for (const report::record& r : summary) {
        const std::string recipe = report::text_of(r, "recipe");
        if (all.empty() || all.back().first != recipe) all.emplace_back(recipe, recipe_counts{});
        recipe_counts& c = all.back().second;
        c.elements += report::number_of(r, "elements").value_or(0);
        c.codes += report::number_of(r, "moved_codes").value_or(0);
        c.blocks += report::number_of(r, "blocks").value_or(0);
        c.scales += report::number_of(r, "moved_scales").value_or(0);
        c.equal += report::number_of(r, "elements_at_equal_scale").value_or(0);
        c.moved_equal += report::number_of(r, "moved_codes_at_equal_scale").value_or(0);
        if (!report::number_of(r, "oscillation")) continue;
        c.followed += report::number_of(r, "elements").value_or(0);
        c.flipped += report::number_of(r, "oscillation").value_or(0) *
                     report::number_of(r, "elements").value_or(0);
    }
    return all;
}

std::string percent(double part, double whole) {
    return report::percent_text(whole > 0 ? std::min(1.0, part / whole) : 0) + " %";
}

std::string flip_text(const recipe_counts& c) {
    if (c.followed == 0) return {};
    return fmt::format("; {} of the codes moved and were back one dump later",
                       percent(c.flipped, c.followed));
}

// "0.31 % of the codes moved; the scales of 1.20 % of the blocks changed, and where they did not,
// 0.10 % of the codes moved; 0.05 % of the codes moved and were back one dump later"
std::string move_text(const recipe_counts& c) {
    if (c.codes == 0 && c.scales == 0) return "no scale and no code changed";
    if (c.scales == 0) {
        return fmt::format("{} of the codes changed, and no scale", percent(c.codes, c.elements)) +
               flip_text(c);
    }
    std::string text = fmt::format("{} of the codes moved; the scales of {} of the blocks changed",
                                   percent(c.codes, c.elements), percent(c.scales, c.blocks));
    if (c.equal > 0) {
        text += fmt::format(", and where they did not, {} of the codes moved",
                            percent(c.moved_equal, c.equal));
    }
    return text + flip_text(c);
}

report::notes verdict_of(const diff::diff_result& d, std::size_t dumps) {
    if (d.identical) {
        return {fmt::format(
            "The {} dumps are identical: every one of {} in {} has the same value{}.", dumps,
            report::plural(d.elements, "element"), report::plural(d.tensors, "tensor"),
            d.left_out.empty() ? "" : "; others were left out")};
    }
    if (d.results.empty()) {
        return {"No tensor to compare: none is in all dumps with the same shape."};
    }
    report::notes notes;
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const report::record& r : d.summary) {
        if (!report::number_of(r, "nrmse")) continue;
        least = std::min(least, report::number_of(r, "nrmse").value_or(0));
        most = std::max(most, report::number_of(r, "nrmse").value_or(0));
    }
    if (least > most) {
        notes.push_back("The values before are all zero or not finite: nrmse is undefined.");
    } else if (dumps > 2) {
        notes.push_back(
            fmt::format("From dump to dump the values differ by {:.3g} to {:.3g} of their RMS "
                        "(nrmse).",
                        least, most));
    } else {
        notes.push_back(fmt::format("The values differ by {:.3g} of their RMS (nrmse).", most));
    }
    for (const auto& [recipe, c] : counts_of(d.summary)) {
        notes.push_back(report::item(fmt::format("{}: {}.", recipe, move_text(c))));
    }
    return notes;
}

report::section transposed_section(const std::vector<diff::transposed_tensor>& found) {
    constexpr std::size_t shown = 4;
    report::section s{.heading = "Stored transposed"};
    for (const diff::transposed_tensor& t : found) {
        if (s.notes.size() == shown) break;
        s.notes.push_back(
            t.nrmse ? report::item(fmt::format(
                          "{}: on a sample, nrmse is {:.2f} as stored and {:.2f} with the "
                          "last two axes of one dump swapped.",
                          t.name, *t.nrmse, *t.transposed_nrmse))
                    : report::item(
                          fmt::format("{}: the shapes agree with the last two axes of one dump "
                                      "swapped.",
                                      t.name)));
    }
    if (found.size() > shown) {
        s.notes.push_back(report::item(fmt::format("{} more.", found.size() - shown)));
    }
    return s;
}

}  // namespace

report::document diff(const diff_options& o, const dump_environment& environment) {
    diff::diff_request request;
    const std::vector<std::string> given =
        environment.on_disk ? io::matched_paths(o.in.files) : o.in.files;
    request.paths = ordered(o, given);
    request.labels = diff::label_dumps(request.paths, o.labels);
    request.recipes = codec::parse_block_recipes(
        o.recipes.empty() ? std::vector<std::string>(diff_recipes.begin(), diff_recipes.end())
                          : o.recipes);
    request.roles = finder_of(o.roles);
    request.norm_bias = o.roles.norm_bias;
    request.groups = o.groups;
    const engine::run_control control = environment.control(request.recipes);
    std::vector<opened_dump> dumps;
    std::vector<const io::reader*> readers;
    file_sizes files;
    const bool two = request.paths.size() == 2;
    if (!two && !(o.transposed_first.empty() && o.transposed_second.empty())) {
        base::refuse(
            "--transpose-first and --transpose-second are for two dumps, not {}: --transpose is "
            "for "
            "all",
            request.paths.size());
    }
    for (const std::string& path : request.paths) {
        dumps.push_back(environment.open(path, inputs_of(o, dumps.size())));
        readers.push_back(dumps.back().tensors.get());
        const file_sizes& more = dumps.back().files;
        files.insert(files.end(), more.begin(), more.end());
    }
    const std::vector<engine::tensor_ref> chosen =
        with_roles(engine::select(readers, o.in.globs), o.roles, request.roles);
    for (std::size_t i = 0; i < readers.size(); ++i) {
        std::vector<engine::tensor_ref> own;
        std::ranges::copy_if(chosen, std::back_inserter(own),
                             [&](const engine::tensor_ref& t) { return t.file == readers[i]; });
        engine::require_names_once(own, request.paths[i]);
    }
    request.partial = partial_run_of(o.parts);
    const part_inputs of(files, chosen, o.parts);
    if (request.partial) check_parts(o.parts, of, false);
    diff::diff_result result = diff::diff(readers, chosen, request, control);

    std::vector<diff::transposed_tensor> transposed;
    if (two && !is_part(request.partial)) transposed = diff::find_transposed(readers, chosen);
    report::document d;
    d.head = pages::document_head("mx.diff/1");
    d.head.emplace_back("inputs", input_list(files));
    const std::vector<std::string>& labels = request.labels.text;
    d.head.emplace_back("labels", report::list(labels.begin(), labels.end()));
    d.head.emplace_back("steps", report::to_list(request.labels.steps));
    d.head.emplace_back("reordered", request.paths != given);
    d.head.emplace_back("identical", result.identical);
    d.tail.emplace_back("series", report::list(result.series.begin(), result.series.end()));
    d.tail.emplace_back("findings", report::to_list(result.findings, [&](auto& f) {
                            return report::written(drift_finding_members, {f, request.labels});
                        }));
    d.tail.emplace_back("summary", report::list(result.summary.begin(), result.summary.end()));
    d.tail.emplace_back("left_out", skipped_list(result.left_out));
    d.tail.emplace_back("transposed", report::listed(transposed_members, transposed));
    const report::notes verdict = verdict_of(result, labels.size());
    d.results = std::move(result.results);
    if (is_part(request.partial)) {
        finish_part(d, o.parts, *request.partial, of);
        return d;
    }
    pages::finish_document(d, verdict, {.all = o.all});
    if (!transposed.empty()) {
        report::section s = transposed_section(transposed);
        if (environment.on_disk) {
            s.notes.push_back("To compare them so:");
            s.notes.push_back(
                report::command(transposing_command(o, diff::globs_of(transposed, *readers[1]))));
        }
        d.sections.insert(d.sections.begin() + 1, std::move(s));
    }
    return d;
}

report::document_schema diff_schema() {
    report::member_list result, series, total;
    diff::declare_diff(result, series, total);
    report::document_schema s("mx.diff/1", "mx diff", "Dumps of one model, each against the next.");
    const auto required = [](const char* name) {
        return report::record{{"required", report::list{std::string(name)}}};
    };
    declare_part(s);
    s.condition("if", {{"not", required("part")}})
        .condition("then", required("verdict"))
        .member({"verdict", "[string]", "what the command says, a sentence each", false})
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"labels", "[string]", "of the dumps"})
        .member({"steps", "[count]", "of the dumps; empty: unknown"})
        .member(
            {"reordered", "boolean", "the dumps are in the order of the numbers in their names"})
        .member({"identical", "boolean", "no value differs"})
        .member({"results", "[#result]", "a tensor (or group), recipe and pair of dumps each"})
        .member({"series", "[#series]",
                 "with three dumps or more: a tensor and recipe each, with a list per figure"})
        .member({"findings", "[#finding]", "norms on their way to where the recipe clamps"})
        .member({"summary", "[#total]", "a recipe and pair of dumps over all tensors each"})
        .member({"left_out", "[@common#skipped]", "tensors that were not compared"})
        .member({"transposed", "[#transposed]",
                 "of two dumps, tensors that agree if the last two axes of one change places"})
        .define("result", result)
        .define("series", series)
        .define("finding", drift_finding_members)
        .define("total", total)
        .define("transposed", transposed_members);
    return s;
}

}  // namespace mx::documents

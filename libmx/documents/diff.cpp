// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/diff.hpp"

#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/pages/document_parts.hpp"
#include "libmx/pages/views/diff_view.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/diff/diff.hpp"

namespace mx::documents {
namespace {

// Without --recipe: under floor, both formats have a clamp zone.
constexpr std::array diff_recipes{"mxfp8:scale=floor", "mxfp4:scale=floor"};

report::list finding_list(const diff::diff_result& d, const diff::dump_labels& labels) {
    report::list list;
    for (const diff::drift_finding& f : d.findings) {
        const bool known = f.forecast.has_value();
        const bool falls = f.fall.has_value();
        list.emplace_back(report::record{
            {"tensor", f.tensor},
            {"recipe", f.recipe},
            {"blocks", pages::integer(f.blocks)},
            {"clamp_zone_blocks", report::to_list(f.in_zone)},
            {"direction", pages::text(f.falling ? "falling" : "rising")},
            {"clamp_zone_distance", report::to_list(f.distance, pages::real)},
            {"extrapolated_arrival", known ? pages::real(f.forecast->at) : pages::undefined()},
            {"extrapolation_r2", known ? pages::real(f.forecast->r2) : pages::undefined()},
            {"falling_blocks", pages::integer(falls ? f.fall->blocks : 0)},
            {"first_fall", falls ? pages::real(f.fall->at) : pages::undefined()},
            {"finding", diff::sentence_of(f, labels)}});
    }
    return list;
}

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

}  // namespace

report::document diff(const diff_options& o, const dump_surroundings& around) {
    diff::diff_request request;
    const std::vector<std::string> given =
        around.on_disk ? io::matched_paths(o.in.files) : o.in.files;
    request.paths = ordered(o, given);
    request.labels = diff::label_dumps(request.paths, o.labels);
    request.recipes = codec::parse_recipes(
        o.recipes.empty() ? std::vector<std::string>(diff_recipes.begin(), diff_recipes.end())
                          : o.recipes);
    request.roles = finder_of(o.roles);
    request.norm_bias = o.roles.norm_bias;
    request.groups = o.groups;
    const engine::run_control control = around.control(request.recipes);
    std::vector<opened_dump> dumps;
    std::vector<const io::reader*> readers;
    file_sizes files;
    for (const std::string& path : request.paths) {
        dumps.push_back(around.open(path));
        readers.push_back(dumps.back().tensors.get());
        const file_sizes& more = dumps.back().files;
        files.insert(files.end(), more.begin(), more.end());
    }
    const std::vector<engine::tensor_ref> chosen =
        with_roles(engine::select(readers, o.in.globs), o.roles, request.roles);
    request.share = share_of(o.parts);
    const part_inputs of(files, chosen);
    if (request.share) check_parts(o.parts, of, false);
    diff::diff_result result = diff::diff(readers, chosen, request, control);

    report::document d;
    const bool reordered = request.paths != given;
    if (!is_part(request.share)) d.sections = pages::diff_sections(result, request.labels, o.all);
    d.sections.insert(
        d.sections.begin(),
        pages::order_section(request.labels, reordered ? diff::label_dumps(given, {}).text
                                                       : std::vector<std::string>()));
    d.head = pages::document_head("mx.diff/1");
    d.head.emplace_back("inputs", input_list(files));
    const std::vector<std::string>& labels = request.labels.text;
    d.head.emplace_back("labels", report::list(labels.begin(), labels.end()));
    d.head.emplace_back("steps", report::to_list(request.labels.steps));
    d.head.emplace_back("reordered", reordered);
    d.head.emplace_back("identical", result.identical);
    d.tail.emplace_back("series", report::list(result.series.begin(), result.series.end()));
    d.tail.emplace_back("findings", finding_list(result, request.labels));
    d.tail.emplace_back("summary", report::list(result.summary.begin(), result.summary.end()));
    d.tail.emplace_back("left_out", skipped_list(result.left_out));
    d.results = std::move(result.results);
    if (is_part(request.share)) {
        finish_part(d, o.parts, *request.share, of);
    } else {
        pages::add_verdict(d);
    }
    return d;
}

}  // namespace mx::documents

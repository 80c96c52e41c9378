// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "apps/mx/review_page.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/analysis/results_input.hpp"
#include "libmx/files/file_digest.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

// Sections that a terminal shows: the first screen. The rest is for pages.
constexpr std::size_t shown_sections = 5;

struct report_options {
    std::vector<std::string> files;
    std::string page;
    output_options out;
    double min_sqnr_db = pages::default_min_sqnr_db;
    bool quiet = false;
};

// Histograms of single tensors are not shown.
bool kept(std::string_view member) {
    constexpr std::array left_out{"shape", "code_histogram", "scale_histogram",
                                  "amax_mantissa_histogram", "block_spread"};
    for (const std::string_view name : left_out) {
        if (name == member) return false;
    }
    return true;
}

// The digests computed here, by path: the dumps of mx diff may be one file.
using digests = std::map<std::string, std::string>;

// Gives inputs without a digest theirs where the file is still there with its size.
void add_digests(report::record& head, digests& computed) {
    for (auto& [name, v] : head) {
        auto* inputs = name == "inputs" ? std::get_if<report::list>(&v) : nullptr;
        if (inputs == nullptr) continue;
        for (report::value& input : *inputs) {
            auto* file = std::get_if<report::record>(&input);
            if (file == nullptr || !report::text_of(*file, "sha256").empty()) continue;
            const std::string path = report::text_of(*file, "path");
            const auto bytes = report::number_of(*file, "bytes");
            std::error_code failure;
            const auto size = std::filesystem::file_size(path, failure);
            if (failure || !bytes || static_cast<double>(size) != *bytes) continue;
            try {
                auto known = computed.find(path);
                if (known == computed.end()) {
                    known = computed.emplace(path, io::sha256_of(path, &interrupted())).first;
                }
                file->emplace_back("sha256", known->second);
            } catch (const base::error& e) {
                // A file that cannot be read any more is as good as gone.
                if (e.kind() != base::error_kind::input) throw;
            }
        }
    }
}

void say_computed(report::document& page, const digests& computed) {
    if (computed.empty()) return;
    std::string names;
    for (const auto& [path, digest] : computed) names += (names.empty() ? "" : ", ") + path;
    for (report::section& s : page.sections) {
        if (s.heading != pages::inputs_heading) continue;
        s.notes.push_back(fmt::format(
            "The results do not record the SHA-256 of {}: it is the one of the file when this page "
            "was made, which still had its size.",
            names));
    }
}

int run_report(const report_options& o) {
    output_options out = o.out;
    std::string& html = out.path_of("html");
    if (!o.page.empty() && !html.empty()) {
        refuse("--output and --html: give one of them");
    }
    if (!o.page.empty()) html = o.page;
    outputs to(out, o.files);
    std::vector<analysis::results_input> read;
    std::vector<std::vector<analysis::result>> results;
    digests computed;
    report::read_options wanted;
    wanted.keep = kept;
    for (const std::string& path : o.files) {
        read.push_back(analysis::open_results(path, wanted));
        report::results_file& content = read.back().content;
        add_digests(content.head, computed);
        const bool typed = content.kind == "analysis";
        results.push_back(typed ? analysis::results_of(content.results, path)
                                : std::vector<analysis::result>());
        content.results = {};
    }
    std::vector<pages::result_set> sets;
    for (std::size_t i = 0; i < read.size(); ++i) {
        sets.push_back({read[i].path, &read[i].content.head, &results[i], &read[i].content.tail});
    }
    report::document page = review_page(sets, o.min_sqnr_db);
    say_computed(page, computed);
    report::document screen{page.title, page.head, {}, page.tail, page.sections};
    for (const report::record& r : page.results) screen.results.push_back(r);
    if (screen.sections.size() > shown_sections) screen.sections.resize(shown_sections);
    to.finish(screen, o.quiet, {{"html", &page}, {"markdown", &page}});
    return exit_code::fine;
}

}  // namespace

runner declare_report(parser& cmd) {
    const auto o = std::make_shared<report_options>();
    cmd.group("Input");
    cmd.add_option("RESULTS", o->files, "what analyze, compare, cluster or diff wrote with --json")
        ->required();
    cmd.group("Output");
    cmd.add_option("-o,--output FILE", o->page, "the page, as HTML: the same as --html")
        ->file_name();
    declare_outputs(cmd, o->out);
    declare_min_sqnr(cmd, o->min_sqnr_db);
    cmd.group("Output");
    cmd.add_flag("-q,--quiet", o->quiet, "no table; errors only");
    cmd.description(
        "Makes the page that a design review decides from: the recipe to use for each class of "
        "tensors, why, at what cost, and what would change that; the worst tensors; plots; and "
        "what all figures rest on. For each class it takes the recipe with the fewest bits that "
        "keeps --min-sqnr and neither saturates nor collapses a tensor; norms, biases and routers "
        "keep their stored precision. Several results are read as one: of a tensor under a "
        "recipe the first counts. mx analyze, compare and cluster "
        "make the same page with --html. A terminal shows its beginning; JSON and CSV hold the "
        "recommendations.");
    cmd.examples(
        "mx report results.json -o review.html\n"
        "mx report results.json --markdown review.md --min-sqnr 30\n"
        "mx report analysis.json clusters.json drift.json -o review.html --quiet\n");
    return [o] { return run_report(*o); };
}

}  // namespace mx::app

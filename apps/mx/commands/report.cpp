// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "apps/mx/review_page.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/analysis/results_input.hpp"
#include "libmx/files/file_digest.hpp"
#include "libmx/pages/document_page.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

struct report_options {
    std::vector<std::string> files;
    std::string page;
    output_options out;
    review_options review;
    bool quiet = false;
};

// Histograms of single tensors are not shown.
bool kept(std::string_view member) {
    constexpr std::array left_out{"code_histogram", "scale_histogram", "amax_mantissa_histogram",
                                  "block_spread"};
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
    std::vector<report::record_list> records;
    digests computed;
    report::read_options wanted;
    wanted.keep = kept;
    for (const std::string& path : o.files) {
        read.push_back(analysis::open_results(path, wanted));
        report::results_file& content = read.back().content;
        const bool typed = content.kind == "analysis";
        results.push_back(typed ? analysis::results_of(content.results, path)
                                : std::vector<analysis::result>());
        records.push_back(typed ? report::record_list() : std::move(content.results));
        content.results = {};
    }
    const bool measured = std::ranges::any_of(
        read, [](const analysis::results_input& r) { return r.content.kind == "analysis"; });
    std::vector<pages::result_set> sets;
    std::vector<report::document> others;
    for (std::size_t i = 0; i < read.size(); ++i) {
        report::results_file& content = read[i].content;
        // Beside results of a model, its dumps are part of the review.
        std::optional<report::document> other;
        if (!(measured && content.kind == "diff")) {
            other = pages::document_page({content.head, records[i], content.tail});
        }
        if (other) {
            others.push_back(std::move(*other));
        } else {
            add_digests(content.head, computed);
            sets.push_back({read[i].path, &content.head, &results[i], &content.tail});
        }
    }
    if (sets.empty() && others.size() == 1) {
        // The page that the command makes with --html.
        report::document& page = others.front();
        page.results = std::move(records.front());
        page.tail = std::move(read.front().content.tail);
        to.finish(page, o.quiet);
        return exit_code::fine;
    }
    pages::review r = review_of(sets, o.review.judging, true);
    say_computed(r.page, computed);
    for (report::document& other : others) {
        for (report::section& s : other.sections) {
            if (!s.heading.empty()) s.heading = fmt::format("{}: {}", other.title, s.heading);
            for (report::figure& f : s.figures) {
                f.id = fmt::format("{}-{}", &other - others.data() + 1, f.id);
            }
            r.page.sections.push_back(std::move(s));
        }
    }
    report::document screen{r.page.title, r.page.head, {}, r.page.tail, {}};
    for (const report::record& of : r.page.results) screen.results.push_back(of);
    // A terminal shows the first screen; dumps alone have no verdict.
    screen.sections = r.first_screen.empty() ? r.page.sections : std::move(r.first_screen);
    to.finish(screen, o.quiet || o.review.summary, {{"html", &r.page}, {"markdown", &r.page}});
    if (o.review.summary && !o.quiet) print_summary(r, o.out);
    return exit_code::fine;
}

}  // namespace

runner declare_report(parser& cmd) {
    const auto o = std::make_shared<report_options>();
    cmd.group("Input");
    cmd.add_option("RESULTS", o->files,
                   "what analyze, compare, cluster, diff, plan, gate, stages, gemm or runs wrote "
                   "with --json")
        ->required();
    cmd.group("Output");
    cmd.add_option("-o,--output FILE", o->page, "the page, as HTML: the same as --html")
        ->file_name();
    declare_outputs(cmd, o->out);
    declare_review(cmd, o->review);
    cmd.group("Output");
    cmd.add_flag("-q,--quiet", o->quiet, "no table; errors only");
    cmd.description(
        "Makes the page that a design review decides from: what to ship for each class of "
        "tensors, what keeps its precision, the cost, the largest risks and what mends them, how "
        "sure that is, and what was not measured; then the worst tensors, plots, and what all "
        "figures rest on. The rules are those of --policy (mx explain policy): only operands of "
        "matrix products are quantized, each tensor is held against limits of its own, and 4 bits "
        "need the metrics of a task (--eval). Several results are read as one: of a tensor under "
        "a recipe the first counts. mx analyze, compare and cluster make the same page with "
        "--html, and add the blocks of the tensors most harmed. A terminal shows its beginning; "
        "JSON and CSV hold the decision on every tensor.");
    cmd.examples(
        "mx report results.json -o review.html\n"
        "mx report results.json --target b200 --eval scores.json --markdown review.md\n"
        "mx report analysis.json clusters.json drift.json -o review.html --quiet\n"
        "mx report results.json --summary\n");
    return [o] { return run_report(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/base/stored_path.hpp"
#include "libmx/documents/measured.hpp"
#include "libmx/pages/views/document_page.hpp"
#include "libmx/report/members.hpp"

namespace mx::documents {

namespace {

// Histograms of single tensors are not shown.
bool kept(std::string_view member) {
    constexpr std::array<std::string_view, 4> left_out{"code_histogram", "scale_histogram",
                                                       "amax_mantissa_histogram", "block_spread"};
    return std::ranges::find(left_out, member) == left_out.end();
}

// The digests computed here, by path: the dumps of mx diff may be one file.
using digests = std::map<std::string, std::string>;

// Adds digests to inputs without one, if the file is below this folder and still has its size.
void add_digests(report::record& head, const digest_function& digest, digests& computed) {
    for (auto& [name, v] : head) {
        auto* inputs = name == "inputs" ? std::get_if<report::list>(&v) : nullptr;
        if (inputs == nullptr) continue;
        for (report::value& input : *inputs) {
            auto* file = std::get_if<report::record>(&input);
            if (file == nullptr || !report::text_of(*file, "sha256").empty()) continue;
            const std::string path = report::text_of(*file, "path");
            if (!base::stays_inside(path)) continue;
            const auto bytes = report::number_of(*file, "bytes");
            std::error_code failure;
            const auto size = std::filesystem::file_size(path, failure);
            if (failure || !bytes || static_cast<double>(size) != *bytes) continue;
            try {
                auto known = computed.find(path);
                if (known == computed.end()) {
                    known = computed.emplace(path, digest(path)).first;
                }
                file->emplace_back("sha256", known->second);
            } catch (const base::error& e) {
                // A file that has become unreadable counts as missing.
                if (e.kind() != base::error_kind::input) throw;
            }
        }
    }
}

}  // namespace

reported report(const report_options& o) {
    std::vector<analysis::results_input> read;
    std::vector<analysis::result_list> results;
    std::vector<report::record_list> records;
    digests computed;
    report::read_options options;
    options.keep = kept;
    for (const std::string& path : o.files) {
        read.push_back(o.open(path, options));
        report::results_file& content = read.back().content;
        const bool typed = content.kind == "analysis";
        results.push_back(typed ? analysis::results_of(content.results, path)
                                : analysis::result_list());
        records.push_back(typed ? report::record_list() : std::move(content.results));
        content.results = {};
    }
    const bool any_measured = std::ranges::any_of(
        read, [](const analysis::results_input& r) { return r.content.kind == "analysis"; });
    std::vector<pages::result_set> sets;
    std::vector<report::document> others;
    for (std::size_t i = 0; i < read.size(); ++i) {
        report::results_file& content = read[i].content;
        // With results of a model, its dumps are part of the review.
        std::optional<report::document> other;
        if (!(any_measured && content.kind == "diff")) {
            other = pages::document_page({content.head, records[i], content.tail});
        }
        if (other) {
            others.push_back(std::move(*other));
        } else {
            if (o.digest) add_digests(content.head, o.digest, computed);
            sets.push_back({read[i].path, &content.head, &results[i], &content.tail});
        }
    }
    if (sets.empty() && others.size() == 1) {
        // The page that the command makes with --html.
        report::document& page = others.front();
        page.results = std::move(records.front());
        page.tail = std::move(read.front().content.tail);
        return {std::move(page), std::nullopt, {}};
    }
    std::vector<std::string> digested;
    for (const auto& [path, digest] : computed) digested.push_back(path);
    pages::review r = review_of(sets, o.judging, true, std::move(digested));
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
    return {std::move(screen), std::move(r.page), std::move(r.summary)};
}

std::vector<report::section> beginning_of(const reported& r) {
    std::vector<report::section> sections = r.screen.sections;
    for (report::section& s : sections) s.figures.clear();
    for (const report::section& s : r.page ? r.page->sections : r.screen.sections) {
        if (s.figures.empty()) continue;
        report::section& last = sections.emplace_back();
        last.figures.push_back(s.figures.front());
        break;
    }
    return sections;
}

}  // namespace mx::documents

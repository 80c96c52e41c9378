// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/pages/views/document_page.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/colored_table.hpp"

namespace mx::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view table_writer = "table";

// The path with links resolved as far as it exists, so that two spellings of one file compare
// equal.
fs::path resolved(const std::string& path) {
    std::error_code failure;
    // Made absolute first: weakly_canonical does not change a relative path of a new file.
    const fs::path full = fs::weakly_canonical(fs::absolute(path, failure), failure);
    return failure ? fs::path(path) : full;
}

bool replaceable(const std::string& path) {
    std::error_code failure;
    const fs::file_status status = fs::status(path, failure);
    return path != "-" && (!fs::exists(status) || fs::is_regular_file(status));
}

bool same_file(const std::string& a, const std::string& b) {
    std::error_code failure;
    return resolved(a) == resolved(b) || fs::equivalent(a, b, failure);
}

// One line per tensor; a single line for many tensors with the same reason.
void print_left_out(std::string_view what, const std::vector<engine::skipped_tensor>& tensors) {
    constexpr std::size_t many = 5;
    std::map<std::string_view, std::size_t> with;  // reason, tensors
    for (const engine::skipped_tensor& t : tensors) ++with[t.reason];
    for (const engine::skipped_tensor& t : tensors) {
        std::size_t& same = with[t.reason];
        if (same == 0) continue;
        const std::string others = same < many ? "" : fmt::format(" and {} more", same - 1);
        if (same >= many) same = 0;
        print(fmt::format("{} {}{}: {}\n", what, base::printable(t.tensor), others,
                          base::printable(t.reason)));
    }
}

}  // namespace

std::string& output_options::path_of(std::string_view writer) {
    std::size_t i = 0;
    while (report::writers[i].name != writer) ++i;
    return paths.at(i);
}

void declare_outputs(parser& cmd, output_options& out) {
    cmd.group("Output", help_page::outputs);
    for (std::size_t i = 0; i < report::writers.size(); ++i) {
        const report::writer& w = report::writers[i];
        if (w.name == table_writer) continue;
        cmd.add_option(fmt::format("--{} FILE", w.name), out.paths[i],
                       fmt::format("{} ('-': stdout)", w.summary))
            ->file_name();
    }
    cmd.add_option("--title TEXT", out.title, "title of the page and of the Markdown");
    cmd.add_option("--color WHEN", out.color,
                   "colours of the table on standard output: auto (on a terminal), always, never")
        ->one_of({std::string("auto"), std::string("always"), std::string("never")});
    cmd.group("Output");
}

void require_distinct(const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!replaceable(outputs[i])) continue;
        for (const std::string& input : inputs) {
            if (same_file(input, outputs[i])) {
                refuse("{}: is both an input and an output; name another output", outputs[i]);
            }
        }
        for (std::size_t k = 0; k < i; ++k) {
            if (same_file(outputs[k], outputs[i])) {
                refuse("{}: is used for two outputs; name another", outputs[i]);
            }
        }
    }
}

outputs::outputs(const output_options& options, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& more)
    : title_(options.title), color_(stdout_is_colored(options.color)), paths_(more) {
    for (std::size_t i = 0; i < report::writers.size(); ++i) {
        const std::string& path = options.paths[i];
        if (path == "-") {
            if (on_stdout_ != nullptr) {
                refuse("--{} - and --{} -: only one output can be stdout", on_stdout_->name,
                       report::writers[i].name);
            }
            on_stdout_ = &report::writers[i];
        } else if (!path.empty()) {
            paths_.push_back(path);
        }
    }
    require_distinct(inputs, paths_);
    for (std::size_t i = 0; i < report::writers.size(); ++i) {
        const std::string& path = options.paths[i];
        if (path.empty() || path == "-") continue;
        files_.push_back({&report::writers[i], path, io::output_file(path)});
    }
}

bool outputs::wants(std::string_view writer) const {
    const auto is_it = [&](const destination& to) { return to.writer->name == writer; };
    return (on_stdout_ != nullptr && on_stdout_->name == writer) ||
           std::ranges::any_of(files_, is_it);
}

void outputs::finish(const report::document& d, bool quiet, const std::vector<page>& pages) {
    const report::layout layout{table_width(), title_};
    const auto document_for = [&](const report::writer& w) -> const report::document& {
        for (const page& p : pages) {
            if (p.writer == w.name) return *p.of;
        }
        return d;
    };
    for (destination& to : files_) {
        to.writer->write(document_for(*to.writer), layout,
                         [&](std::string_view text) { to.file.append(text); });
    }
    // Files first: a closed stdout must not prevent them from being written.
    for (destination& to : files_) to.file.commit();
    if (on_stdout_ != nullptr) {
        on_stdout_->write(document_for(*on_stdout_), layout, print);
    } else if (!quiet) {
        (color_ ? report::write_colored_table : report::write_table)(d, layout, print);
    }
    finish_stdout();
}

void finish_with_page(outputs& to, report::document& d, const std::vector<std::string>& sentences,
                      bool quiet, std::vector<report::section> after) {
    report::notes items;
    for (const std::string& line : sentences) items.push_back(report::item(line));
    pages::finish_document(d, std::move(items));
    std::ranges::move(after, std::back_inserter(d.sections));
    write_with_page(to, d, quiet);
}

void write_with_page(outputs& to, const report::document& d, bool quiet) {
    if (!to.wants("html")) return to.finish(d, quiet);
    const report::document page = pages::document_page(d);
    to.finish(d, quiet, {{"html", &page}});
}

int print_document(const output_options& options, const std::function<report::document()>& make,
                   bool quiet) {
    outputs to(options, {});
    to.finish(make(), quiet);
    return exit_code::fine;
}

void report_conversion(const convert::conversion& done, std::string_view what,
                       const std::string& out, bool quiet) {
    // With data on stdout, no messages may be written there.
    if (quiet || out == "-") return;
    const auto count = [](std::uint64_t n) {
        return report::grouped(static_cast<std::int64_t>(n));
    };
    print(fmt::format("{}: {} tensor{} {}, {} copied as stored; {} elements, {} bytes\n",
                      base::printable(out), count(done.tensors), done.tensors == 1 ? "" : "s", what,
                      count(done.kept.size()), count(done.elements), count(done.bytes_written)));
    print_left_out("kept as stored", done.kept);
    print_left_out("skipped", done.skipped);
    for (const std::string& remark : done.remarks) print(base::printable(remark) + "\n");
}

}  // namespace mx::app

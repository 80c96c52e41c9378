// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/manual.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/accumulator_page.hpp"
#include "apps/mx/commands/dialect_page.hpp"
#include "apps/mx/commands/format_tables.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/help.hpp"
#include "apps/mx/manual_text.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/report/writers.hpp"

namespace mx::app {
namespace {

std::string page_of(std::string_view title, const report::document& d) {
    std::string out = fmt::format("{}# {}\n\n", made_by, title);
    report::write_markdown(d, {}, [&](std::string_view text) { out += text; });
    return out;
}

std::string_view asked_for(metrics::when collected) {
    switch (collected) {
        case metrics::when::decompose:
            return "`--decompose`";
        case metrics::when::histograms:
            return "`--histograms`";
        case metrics::when::always:
            break;
    }
    return "always";
}

std::string metrics_page() {
    std::string out = fmt::format("{}# Metrics\n\n", made_by);
    out +=
        "The members of a result of `mx analyze`: `file`, `tensor`, `dtype` (safetensors' "
        "spelling), "
        "`shape`, `recipe` (canonical), the counts `elements`, `blocks`, `nan`, `inf`, `poisoned` "
        "(finite elements of a block whose scale is NaN) and `inexact_inputs` (stored values that "
        "float32 does not hold, rounded to it once), `passes` (how often the tensor was read), "
        "`tensor_scale` (what all its blocks share, null without one), and the metrics below. JSON "
        "puts them under "
        "`results` (schema `mx.analysis/1`), followed by `summary` (one record per recipe over all "
        "tensors) and `skipped`; numbers read back exactly.\n\n"
        "x is the value as it is quantized: rotated, where the recipe has a transform. "
        "S is the block's scale (times the tensor scale), O its offset (0 where the recipe has "
        "none), y = (x - O) / S "
        "exactly, q the final element and d = O + S q. Rates are over finite elements whose block "
        "has a scale, or over blocks where the definition says so. Undefined values are `null`.\n\n"
        "| name | unit | definition | with |\n|---|---|---|---|\n";
    for (const metrics::metric& m : metrics::all()) {
        out += fmt::format("| `{}` | {} | {} | {} |\n", m.name, m.unit, plain(m.definition),
                           asked_for(m.collected));
    }
    return out;
}

std::string commands_page() {
    std::string out = fmt::format("{}# Commands\n", made_by);
    for (const command& c : commands) {
        parser cmd;
        c.declare(cmd);
        set_up(cmd, c);
        out += fmt::format("\n## mx {}\n\n```text\n{}```\n", c.name, help_text(cmd, c));
    }
    out += "\n## Exit codes\n\n| code | meaning |\n|---:|---|\n";
    for (const exit_code_row& row : exit_codes) {
        out += fmt::format("| {} | {} |\n", row.code, row.meaning);
    }
    return out;
}

// Text as roff wants it: backslashes, hyphens that are minus signs, and leading dots escaped.
std::string roff(std::string_view text) {
    std::string out;
    bool line_start = true;
    for (const char c : text) {
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            if (line_start && (c == '.' || c == '\'')) out += "\\&";
            out += c;
        }
        line_start = c == '\n';
    }
    return out;
}

std::string man_command(const command& c) {
    parser cmd;
    c.declare(cmd);
    set_up(cmd, c);
    std::string out = fmt::format(".SS mx {}\n{}.\n", roff(c.name), roff(c.summary));
    out += fmt::format(".PP\n.B {}\n", roff(synopsis(cmd, c)));
    if (!cmd.description().empty()) out += ".PP\n" + roff(cmd.description()) + "\n";
    for (const option_line& l : option_lines(cmd)) {
        out += fmt::format(".TP\n.B {}\n{}\n", roff(l.spelling), roff(l.text));
    }
    if (!cmd.examples().empty()) out += ".PP\n.EX\n" + roff(cmd.examples()) + ".EE\n";
    return out;
}

std::string man_page() {
    std::string out = fmt::format(
        ".\\\" Made by \"mx help --write-manual docs\"; do not edit.\n"
        ".TH MX 1 \"\" \"mx {}\" \"User Commands\"\n"
        ".SH NAME\nmx \\- block\\-scaled low\\-precision formats, bit for bit\n"
        ".SH SYNOPSIS\n.B mx\n.I COMMAND\n[options]\n.SH DESCRIPTION\n",
        MX_VERSION);
    out +=
        "Emulates OCP Microscaling (MX) formats bit for bit and measures what they do to the "
        "tensors of a checkpoint.\n.SH COMMANDS\n";
    for (const command& c : commands) out += man_command(c);
    out += ".SH EXIT STATUS\n";
    for (const exit_code_row& row : exit_codes) {
        out += fmt::format(".TP\n.B {}\n{}\n", row.code, roff(row.meaning));
    }
    return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> manual_pages() {
    return {{"reference/commands.md", commands_page()},
            {"reference/formats.md", page_of("Formats", formats_document())},
            {"reference/metrics.md", metrics_page()},
            {"reference/rules.md", page_of("Rules, roundings and recipe keys", rules_document())},
            {"design/dialects.md", dialect_page()},
            {"design/gemm.md", accumulator_page()},
            {"man/mx.1", man_page()}};
}

void write_manual(const std::string& directory) {
    namespace fs = std::filesystem;
    for (const auto& [name, text] : manual_pages()) {
        const fs::path path = fs::path(directory) / name;
        std::error_code failure;
        fs::create_directories(path.parent_path(), failure);
        if (failure) {
            throw base::error(base::error_kind::output,
                              fmt::format("cannot make this folder: {}", failure.message()),
                              {path.parent_path().string(), {}, {}});
        }
        io::output_file file(path.string());
        file.append(text);
        file.commit();
    }
}

}  // namespace mx::app

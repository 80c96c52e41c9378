// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/manual.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "apps/mx/exit_code.hpp"
#include "apps/mx/help.hpp"
#include "apps/mx/settings.hpp"
#include "libmx/analysis/result_members.hpp"
#include "libmx/base/status.hpp"
#include "libmx/conformance/verify/capture_folder.hpp"
#include "libmx/documents/diff.hpp"
#include "libmx/documents/gate.hpp"
#include "libmx/documents/lint.hpp"
#include "libmx/documents/plan.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/documents/watch.hpp"
#include "libmx/eval/records.hpp"
#include "libmx/experiments/records.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/lab/run_folder.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/pages/review.hpp"
#include "libmx/pages/views/recipe_words.hpp"
#include "libmx/policy/policy.hpp"
#include "libmx/report/writers.hpp"
#include "libmx/studies/fit/records.hpp"
#include "libmx/studies/products/identify.hpp"
#include "libmx/studies/products/product_check.hpp"
#include "libmx/studies/products/product_power.hpp"
#include "libmx/studies/products/stages.hpp"
#include "libmx/studies/project/records.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"
#include "libmx/studies/rosetta/scale_origin.hpp"
#include "libmx/studies/show/tensor_view.hpp"

namespace mx::app {
namespace {

std::string page_of(std::string_view title, const report::document& d) {
    std::string out = fmt::format("{}\n# {}\n\n", made_by, title);
    report::write_markdown(d, {}, [&](std::string_view text) { out += text; });
    return out;
}

std::string metrics_page() {
    const std::string rows = lines_of(metrics::all(), [](const metrics::metric& m) {
        const std::string_view option = metrics::option_of(m.collected);
        return fmt::format("| `{}` | {} | {} | {} |", m.name, m.unit, plain(m.definition),
                           option.empty() ? "always" : fmt::format("`{}`", option));
    });
    const std::string members = lines_of(analysis::result_members(), [](const auto& m) {
        return fmt::format("| `{}` | {} |", m.name, plain(m.definition));
    });
    return filled(metrics_md(), fmt::arg("members", members), fmt::arg("metrics", rows));
}

std::string commands_page() {
    std::string out = fmt::format("{}\n# Commands\n", made_by);
    for (const command& c : commands()) {
        out += fmt::format("\n## mx {}\n\n```text\n{}```\n", c.name, help_text(c, help_width));
    }
    for (const help_topic& t : help_topics()) {
        out += fmt::format("\n## mx help {}\n\n```text\n{}```\n", t.name, help_text(t, help_width));
    }
    out += "\n## Exit codes\n\n| code | meaning |\n|---:|---|\n";
    for (const exit_code_row& row : exit_codes) {
        out += fmt::format("| {} | {} |\n", row.code, row.meaning);
    }
    out += "\n## Environment and settings\n\n| variable | meaning |\n|---|---|\n";
    for (const setting& s : settings) {
        out += fmt::format("| `{}` | {} |\n", s.variable, plain(s.text));
    }
    for (const shared_variable& v : shared_variables) {
        out += fmt::format("| `{}` | {} |\n", v.name, plain(v.text));
    }
    out += fmt::format(
        "\nThe file of settings is {}. It holds these, a line each, and nothing that changes a "
        "figure, "
        "so that a command repeats its run wherever it is typed:\n\n```toml\n",
        settings_file_text);
    for (const setting& s : settings) out += fmt::format("{} = ...  # {}\n", s.name, s.text);
    out +=
        "```\n\nWhat is said on the command line counts first, then the environment, then the "
        "file.\n";
    out +=
        "\n## JSON\n\nEvery document that `--json` writes names its schema in `schema`. "
        "[Schemas](schemas/README.md) has a JSON Schema of each.\n";
    return out;
}

// Escapes text for roff: backslashes, hyphens that are minus signs, and leading dots.
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

std::string man_options(const std::vector<option_line>& lines) {
    std::string out;
    for (const option_line& l : lines) {
        out += fmt::format(".TP\n.B {}\n{}\n", roff(l.spelling), roff(l.text));
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
    out += man_options(help_lines(cmd));
    if (!cmd.examples().empty()) out += ".PP\n.EX\n" + roff(cmd.examples()) + ".EE\n";
    return out;
}

std::string man_topic(const help_topic& t) {
    std::string out = fmt::format(".SS mx help {}\n{}.\n.PP\n{}\n", roff(t.name), roff(t.summary),
                                  roff(t.description()));
    for (const topic_section& s : topic_sections(t.page)) {
        out += fmt::format(".PP\n{}:\n{}", roff(s.heading), man_options(s.lines));
    }
    return out;
}

std::string man_page() {
    std::string out = fmt::format(
        ".TH MX 1 \"\" \"mx {}\" \"User Commands\"\n"
        ".SH NAME\nmx \\- block\\-scaled low\\-precision formats, bit for bit\n"
        ".SH SYNOPSIS\n.B mx\n.I COMMAND\n[options]\n.SH DESCRIPTION\n",
        MX_VERSION);
    out +=
        "Emulates OCP Microscaling (MX) formats bit for bit and measures their effect on the "
        "tensors of a checkpoint.\n.SH COMMANDS\n";
    for (const command& c : commands()) out += man_command(c);
    out += ".SH SHARED OPTIONS\n";
    for (const help_topic& t : help_topics()) out += man_topic(t);
    out += ".SH EXIT STATUS\n";
    for (const exit_code_row& row : exit_codes) {
        out += fmt::format(".TP\n.B {}\n{}\n", row.code, roff(row.meaning));
    }
    out += ".SH ENVIRONMENT\n";
    for (const setting& s : settings) {
        out += fmt::format(".TP\n.B {}\n{}\n", s.variable, roff(s.text));
    }
    for (const shared_variable& v : shared_variables) {
        out += fmt::format(".TP\n.B {}\n{}\n", v.name, roff(v.text));
    }
    out += fmt::format(".SH FILES\n{}: lines NAME = VALUE of", roff(settings_file_text));
    for (const setting& s : settings) out += fmt::format(" {}", s.name);
    return out + ". Variables go before it, options before both.\n";
}

// Path below the folder, and text.
using page_list = std::vector<std::pair<std::string, std::string>>;

page_list manual_pages() {
    return {
        {"reference/commands.md", commands_page()},
        {"reference/formats.md", page_of("Formats", documents::formats())},
        {"reference/metrics.md", metrics_page()},
        {"reference/rules.md", page_of("Rules, roundings and recipe keys", documents::rules({}))},
        {"design/dialects.md", dialects_page()},
        {"design/gemm.md", accumulators_page()}};
}

/// THE LIST of schemas that are made from declarations.
constexpr std::array schemas{
    bench_schema,
    build_check_schema,
    conformance::verify::capture_schema,
    documents::accumulator_schema,
    documents::accumulators_schema,
    documents::analysis_schema,
    documents::changes_schema,
    documents::codes_schema,
    documents::dialect_differences_schema,
    documents::dialect_schema,
    documents::dialects_schema,
    documents::diff_schema,
    documents::formats_schema,
    documents::gate_schema,
    documents::lint_schema,
    documents::metrics_schema,
    documents::placement_schema,
    documents::plan_schema,
    documents::rules_schema,
    documents::watch_line_schema,
    eval::eval_schema,
    eval::scores_schema,
    experiments::study_schema,
    fit::fit_schema,
    lab::run_schema,
    pages::recipe_schema,
    pages::report_schema,
    policy::policy_schema,
    presets_schema,
    products::gemm_schema,
    products::identity_schema,
    products::power_schema,
    products::product_check_schema,
    products::stages_schema,
    project::project_schema,
    rosetta::origins_schema,
    rosetta::rosetta_schema,
    runs_schema,
    shards_schema,
    show::show_schema,
    tensors_schema,
    train_schema,
    training_cost_schema,
    verify_schema,
    version_schema,
};

page_list shared_files() {
    page_list all{{"man/mx.1", man_page()}, {"schemas/members.json", members_schema()}};
    for (report::document_schema (*const schema)() : schemas) {
        all.emplace_back("schemas/" + schema().file(), schema().text());
    }
    return all;
}

void write_pages(const std::string& directory, const page_list& pages) {
    namespace fs = std::filesystem;
    for (const auto& [name, text] : pages) {
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

}  // namespace

std::string plain(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("*_<>|[]`").find(c) != std::string_view::npos) out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out;
}

void write_manual(const std::string& directory) { write_pages(directory, manual_pages()); }
void write_share(const std::string& directory) { write_pages(directory, shared_files()); }

}  // namespace mx::app

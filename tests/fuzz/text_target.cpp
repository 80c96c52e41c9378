// SPDX-License-Identifier: Apache-2.0
// What users write, and what mx reads of its own files, as arbitrary bytes: recipes, rules,
// results, policies, tables. Nothing but base::error may come out.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "apps/mx/cli.hpp"
#include "apps/mx/commands/watch_log.hpp"
#include "libmx/analysis/recipe_filter.hpp"
#include "libmx/analysis/rule.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/documents/diff.hpp"
#include "libmx/documents/gate.hpp"
#include "libmx/documents/plan.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/documents/report.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/lab/request.hpp"
#include "libmx/lab/training.hpp"
#include "libmx/policy/judged_inputs.hpp"
#include "libmx/policy/policy.hpp"
#include "libmx/policy/scores.hpp"
#include "libmx/report/csv_reader.hpp"
#include "libmx/report/writers.hpp"
#include "libmx/studies/convert/assignment.hpp"
#include "libmx/studies/fit/runs.hpp"
#include "libmx/studies/plan/plan.hpp"
#include "libmx/studies/products/operand_recipe.hpp"
#include "libmx/studies/project/measured.hpp"
#include "libmx/studies/project/solve.hpp"
#include "libmx/tokens/tables.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/reader_target.hpp"

namespace mx::fuzz {
namespace {

/// An input: its bytes, and the path of a file in memory that holds them.
struct given {
    std::string_view bytes;
    std::string path;
};

// Calls f, whose input may be refused.
template <typename F>
void attempt(F f) {
    try {
        f();
    } catch (const base::error&) {
    }
}

// Parses a text; what it is printed as must be read back as the same.
template <typename Parse>
void round_trip(const given& in, Parse parse) {
    attempt([&] {
        const auto first = parse(std::string(in.bytes));
        const std::string text = to_string(first);
        try {
            require(to_string(parse(text)) == text, "the canonical spelling is read back");
        } catch (const base::error&) {
            require(false, "the canonical spelling is accepted");
        }
    });
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// Results of a model that policies, scores and other results are tried with.
std::string sample_results() { return std::string(MX_FUZZ_FINDS) + "/results/analysis.json"; }

void try_recipes(const given& in) {
    round_trip(in, [](const std::string& text) { return codec::parse_recipe(text); });
    round_trip(in, products::parse_operand_recipe);
    attempt([&] { analysis::recipe_filter({std::string(in.bytes)}).takes("mxfp4:scale=floor"); });
}

void try_accumulators(const given& in) {
    round_trip(in, [](const std::string& text) { return gemm::parse_accumulator(text); });
}

void try_rules(const given& in) {
    attempt([&] { analysis::read_gate_rules(in.path); });
}

void try_precisions(const given& in) {
    round_trip(in, [](const std::string& text) {
        auto settings = lab::parse_settings(text);
        attempt([&] { lab::precision_of(settings, {{"block.0.up"}, {"head", true}}); });
        return settings;
    });
    attempt([&] { lab::parse_intervention(std::string(in.bytes)); });
    lab::run_request r;
    for (const std::string& line : lines_of(in.bytes)) {
        const std::size_t equals = line.find('=');
        if (equals == std::string::npos) continue;
        for (const lab::request_key& key : lab::request_keys()) {
            if (key.name != line.substr(0, equals)) continue;
            attempt([&] { lab::set_key(r, key, line.substr(equals + 1)); });
        }
    }
    attempt([&] { lab::check(r); });
    attempt([&] { require(lab::from_text(lab::to_text(r)) == r, "a request is read back"); });
}

void try_results(const given& in) {
    documents::report_options shown;
    shown.files = {in.path};
    attempt([&] {
        const documents::reported r = documents::report(shown);
        for (const report::writer& w : report::writers) {
            w.write(r.page ? *r.page : r.screen, {}, [](std::string_view) {});
        }
    });
    documents::gate_options rules;
    rules.rules = {"clamp_rate<0.1%", "norm:policy", "summary:sqnr_db>10 or null", "block.0>=1"};
    attempt([&] {
        documents::gate(rules, [&](const std::vector<analysis::gate_rule>& r) {
            return gate::open_for_gate({in.path}, r);
        });
    });
    for (const std::string& other : {in.path, sample_results()}) {
        attempt([&] { documents::changes({}, {in.path, other}); });
    }
    attempt([&] { convert::read_assignment(in.path); });
    attempt([&] {
        const auto inputs = analysis::open_analyses({in.path}, "plan", plan::plan_members());
        const policy::judged_model judged = policy::judge_inputs(inputs, {});
        plan::plan_goal goal;
        goal.bits = 6;
        plan::candidate_request request;
        const plan::candidates from = plan::gather_candidates(inputs, request, judged);
        const plan::plan p = plan::make_plan(from, goal);
        documents::plan_document(inputs, from, goal, p, {}, 10, judged);
    });
}

void try_policies(const given& in) {
    documents::report_options shown;
    shown.files = {sample_results()};
    shown.judging.policy = in.path;
    attempt([&] { documents::report(shown); });
    documents::explain_options explained;
    explained.subject = "policy";
    explained.names = {in.path};
    attempt([&] { documents::explain(explained); });
}

void try_scores(const given& in) {
    documents::report_options shown;
    shown.files = {sample_results()};
    shown.judging.eval = in.path;
    attempt([&] { documents::report(shown); });
}

void try_tables(const given& in) {
    attempt([&] {
        std::string_view rest = in.bytes;
        const report::csv_table table = report::read_csv(
            [&](std::span<char> out) {
                const std::size_t count = rest.copy(out.data(), out.size());
                rest.remove_prefix(count);
                return count;
            },
            in.path);
        fit::run_request request;
        request.with_bits = true;
        fit::runs_of(table, request);
    });
    attempt([&] { project::read_targets(in.path); });
    attempt([&] {
        project::assumptions a;
        project::take_measured(in.path, project::model_shapes[0], 8192, a);
    });
}

void try_projections(const given& in) {
    attempt([&] {
        const project::named_shape m = project::find_model(in.path);
        project::forward_flop(m.shape, 8192, true);
        project::parameters(m.shape);
    });
    attempt([&] {
        const project::configuration c = project::parse_configuration(std::string(in.bytes));
        require(project::parse_configuration(c.name).name == c.name,
                "the name of a configuration is read back");
    });
}

void try_settings(const given& in) {
    attempt([&] {
        std::istringstream file{std::string(in.bytes)};
        app::parse_settings_file(file, in.path);
    });
}

void try_watch_logs(const given& in) {
    attempt([&] { app::watch_log(in.path).before("step-3", 2); });
}

void try_vectors(const given& in) {
    attempt([&] {
        const auto file = io::open_safetensors(io::input_file::open(in.path), {});
        conformance::verify::verify_vectors(*file, in.path, {});
    });
}

void try_checkpoints(const given& in) {
    attempt([&] { lab::training(in.path, lab::execution_context()).step(); });
}

// As each kind of file, and a text encoded.
void try_tokenizers(const given& in) {
    const std::string text = "ab abc\n  19'd a\xcc\x81\xc3\xa9<|e|> " + std::string(20, 'a');
    for (const auto read : {tokens::gguf_tables, tokens::json_tables, tokens::sentencepiece_tables,
                            tokens::llama2c_tables}) {
        attempt([&] {
            const auto t = tokens::make_bpe_tokenizer(read(io::input_file::open(in.path)));
            require(!t->bos() || *t->bos() < t->vocabulary(), "BOS is a token");
            for (const std::uint32_t id : t->encode(text)) {
                require(id < t->vocabulary(), "ids are of tokens");
            }
        });
    }
}

/// THE LIST of these programs; CMakeLists.txt reads the names.
struct target {
    std::string_view name;
    void (*attempt)(const given& in);
};
constexpr target targets[] = {
    target{"recipes", try_recipes},
    target{"accumulators", try_accumulators},
    target{"rules", try_rules},
    target{"precisions", try_precisions},
    target{"results", try_results},
    target{"policies", try_policies},
    target{"scores", try_scores},
    target{"tables", try_tables},
    target{"projections", try_projections},
    target{"settings", try_settings},
    target{"watch_logs", try_watch_logs},
    target{"vectors", try_vectors},
    target{"checkpoints", try_checkpoints},
    target{"tokenizers", try_tokenizers},
};

std::string path_of(const std::uint8_t* data, std::size_t size) {
    static const int descriptor = ::memfd_create("input", 0);
    require(descriptor >= 0 && ::ftruncate(descriptor, 0) == 0 &&
                ::pwrite(descriptor, data, size, 0) == static_cast<ssize_t>(size),
            "a file in memory");
    return fmt::format("/proc/self/fd/{}", descriptor);
}

}  // namespace

bool belongs(const std::string& path) {
    return path.find(fmt::format("/{}/", format)) != std::string::npos;
}

void try_input(const std::uint8_t* data, std::size_t size) {
    const given in{{reinterpret_cast<const char*>(data), size}, path_of(data, size)};
    for (const target& t : targets) {
        if (t.name == format) t.attempt(in);
    }
}

}  // namespace mx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    mx::fuzz::try_input(data, size);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mx/commands/verify_build.hpp"
#include "apps/mx/commands/verify_product.hpp"
#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/conformance/verify/capture_folder.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/experiments/replay.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

using namespace conformance::verify;

struct verify_command {
    std::vector<std::string> paths;
    std::string recipe;
    std::string accumulator;
    std::size_t show = 10;
    std::uint64_t seed = 0;
    bool exact = false;
    int threads = 0;
    output_options out;
    bool quiet = false;
    product_check_options product;
};

constexpr std::array skipped_reason_members = std::to_array<report::declared<skipped_values>>({
    {"reason", "string", "", [](auto& s) { return s.reason; }},
    {"places", "count", "", [](auto& s) { return s.places; }},
    {"values", "count", "", [](auto& s) { return s.values; }},
});
constexpr std::array differing_tensor_members =
    std::to_array<report::declared<tensor_differences>>({
        {"tensor", "string", "", [](auto& t) { return t.tensor; }},
        {"compared", "count", "", [](auto& t) { return t.compared; }},
        {"differences", "count", "", [](auto& t) { return t.differences; }},
    });
constexpr std::array model_fit_members = std::to_array<report::declared<model_fit>>({
    {"model", "string", "", [](auto& f) { return f.model; }},
    {"compared", "count", "", [](auto& f) { return f.compared; }},
    {"differences", "count", "", [](auto& f) { return f.differences; }},
    {"equally", "[string]", "models with as few", [](auto& f) { return to_list(f.equally); }},
});

std::uint64_t skipped_in(const verification& v) {
    std::uint64_t skipped = 0;
    for (const skipped_values& s : v.skipped) skipped += s.values;
    return skipped;
}

constexpr std::array verified_file_members = std::to_array<report::declared<verification>>({
    {"file", "string", "", [](auto& v) { return v.file; }},
    {"kind", "blocks|elements|scales|stochastic|mma|cvt|gemm|recorded|training", "",
     [](auto& v) { return v.kind; }},
    {"recipe", "string", "recipe, dialects or model", [](auto& v) { return v.by; }},
    {"compared", "count", "values", [](auto& v) { return v.compared; }},
    {"skipped", "count", "", [](auto& v) { return skipped_in(v); }},
    {"differences", "count", "", [](auto& v) { return v.differences; }},
    {"skipped_because", "[#skipped]", "",
     [](auto& v) { return report::listed(skipped_reason_members, v.skipped); }},
    {"tensors", "[#tensor]", "where something differs",
     [](auto& v) {
         return report::only_if(v.differences != 0 && !v.tensors.empty(),
                                report::listed(differing_tensor_members, v.tensors));
     },
     false},
    {"best_fit", "#fit", "of matrix instructions: the model with the fewest differences",
     [](auto& v) { return v.fit ? report::written(model_fit_members, *v.fit) : undefined(); }, false},
});

constexpr std::array output_operand_members = std::to_array<report::declared<output_operands>>({
    {"tile", "count", "", [](auto& o) { return o.tile; }},
    {"row", "count", "", [](auto& o) { return o.row; }},
    {"column", "count", "", [](auto& o) { return o.column; }},
    {"a", "string", "", [](auto& o) { return o.a; }},
    {"b", "string", "", [](auto& o) { return o.b; }},
    {"sfa", "string", "", [](auto& o) { return o.sfa; }},
    {"sfb", "string", "", [](auto& o) { return o.sfb; }},
    {"c", "string", "", [](auto& o) { return o.c; }},
});

struct placed_difference {
    const std::string& file;
    const difference& is;
};
constexpr std::array placed_difference_members = std::to_array<report::declared<placed_difference>>({
    {"file", "string", "", [](auto& d) { return d.file; }},
    {"tensor", "string", "", [](auto& d) { return d.is.tensor; }},
    {"recipe", "string", "", [](auto& d) { return d.is.by; }},
    {"index", "count", "", [](auto& d) { return d.is.index; }},
    {"block", "count?", "", [](auto& d) { return d.is.block; }},
    {"position", "count?", "in the block", [](auto& d) { return d.is.position; }},
    {"input_hex", "string", "", [](auto& d) { return d.is.input.hex; }},
    {"input", "string", "", [](auto& d) { return d.is.input.decimal; }},
    {"expected_hex", "string", "", [](auto& d) { return d.is.expected.hex; }},
    {"expected", "string", "", [](auto& d) { return d.is.expected.decimal; }},
    {"got_hex", "string", "", [](auto& d) { return d.is.got.hex; }},
    {"got", "string", "", [](auto& d) { return d.is.got.decimal; }},
    {"operands", "#operands", "of matrix instructions",
     [](auto& d) {
         return d.is.operands ? report::written(output_operand_members, *d.is.operands) : undefined();
     },
     false},
});

// "mma/x.safetensors: best fit MODEL, 3 of 18432 outputs differ (as few: MODEL, MODEL)".
report::note fit_note(const verification& v) {
    const model_fit& f = *v.fit;
    return report::item(fmt::format(
        "best fit of {}: {}, {} of {} outputs differ{}", v.file, f.model, f.differences, f.compared,
        f.equally.empty() ? "" : fmt::format(" (as few: {})", base::joined(f.equally, " ; "))));
}

// "12" or "12 (block 0, 12)" for the table.
std::string place_text(const difference& d) {
    if (d.block && d.position)
        return fmt::format("{} (block {}, {})", d.index, *d.block, *d.position);
    if (d.block) return fmt::format("{} (block)", d.index);
    return fmt::format("{}", d.index);
}

std::string number_text(const shown_number& n) {
    return n.hex.empty() ? "-" : fmt::format("{} = {}", n.hex, n.decimal);
}

struct totals {
    std::uint64_t compared = 0, differences = 0, skipped = 0;
};

totals totals_of(const std::vector<verification>& files) {
    totals t;
    for (const verification& v : files) {
        t.compared += v.compared;
        t.differences += v.differences;
        t.skipped += skipped_in(v);
    }
    return t;
}

struct verified_total {
    totals sum;
    report::list differences;
};
constexpr std::array verified_total_members = std::to_array<report::declared<verified_total>>({
    {"compared", "count", "", [](auto& f) { return f.sum.compared; }},
    {"skipped", "count", "", [](auto& f) { return f.sum.skipped; }},
    {"difference_count", "count", "", [](auto& f) { return f.sum.differences; }},
    {"differences", "[#difference]", "the first differences, --top of them a file",
     [](auto& f) { return f.differences; }},
});

// The reasons for skipped values, over all files.
report::notes notes_of(const std::vector<verification>& files, const totals& t) {
    report::notes notes{fmt::format(
        "{} values of {} compared: {}.", report::grouped(static_cast<std::int64_t>(t.compared)),
        files.size() == 1 ? "one file" : fmt::format("{} files", files.size()),
        t.differences == 0 ? std::string("all are equal")
                           : fmt::format("{} differ", t.differences))};
    std::vector<skipped_values> all;
    for (const verification& v : files) {
        if (v.fit) notes.push_back(fit_note(v));
        for (const skipped_values& s : v.skipped) {
            auto same =
                std::ranges::find_if(all, [&](const auto& a) { return a.reason == s.reason; });
            if (same == all.end()) {
                all.push_back({s.reason, 0, 0});
                same = all.end() - 1;
            }
            same->places += s.places;
            same->values += s.values;
        }
    }
    for (const skipped_values& s : all) {
        notes.push_back(report::item(
            fmt::format("skipped: {} ({} places, {} values)", s.reason, s.places, s.values)));
    }
    return notes;
}

constexpr std::string_view file_end = ".safetensors";

// The file names without their common folder and ending.
std::vector<report::record> table_rows(std::vector<report::record> rows) {
    if (rows.size() < 2) return rows;
    const std::string first = report::text_of(rows.front(), "file");
    std::size_t common = first.rfind('/') + 1;
    bool same_end = true;
    for (const report::record& r : rows) {
        const std::string path = report::text_of(r, "file");
        while (path.compare(0, common, first, 0, common) != 0) {
            common = common < 2 ? 0 : first.rfind('/', common - 2) + 1;
        }
        same_end = same_end && path.ends_with(file_end);
    }
    for (report::record& r : rows) {
        std::string path = report::text_of(r, "file").substr(common);
        if (same_end) path.resize(path.size() - file_end.size());
        r.front().second = std::move(path);
    }
    return rows;
}

// A recording may lack parts that the GPU refused.
void note_missing_parts(report::document& d, const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        if (!is_capture(path)) continue;
        const std::size_t count = parts_not_recorded(path);
        if (count == 0) continue;
        d.sections.front().notes.push_back(
            report::item(fmt::format("not recorded in {}: {}, its manifest says why", path,
                                     count == 1 ? "one part" : fmt::format("{} parts", count))));
    }
}

report::document document_of(const std::vector<verification>& files) {
    const totals t = totals_of(files);
    report::document d;
    d.head = pages::document_head("mx.verify/1");
    std::vector<report::record> rows;
    std::vector<report::record> shown;
    report::list differences;
    for (const verification& v : files) {
        rows.push_back(report::written(verified_file_members, v));
        for (const difference& one : v.first) {
            differences.emplace_back(report::written(placed_difference_members, {v.file, one}));
            shown.push_back({{"file", v.file},
                             {"tensor", one.tensor},
                             {"place", place_text(one)},
                             {"input", number_text(one.input)},
                             {"expected", number_text(one.expected)},
                             {"got", number_text(one.got)}});
        }
    }
    d.results = rows;
    d.tail = report::written(verified_total_members, {t, std::move(differences)});
    d.sections.push_back({{},
                          {{"file", "file", cell::name},
                           {"kind", "kind"},
                           {"recipe", "recipe, dialects or model"},
                           {"compared", "compared", cell::integer},
                           {"skipped", "skipped", cell::integer},
                           {"differences", "differences", cell::integer}},
                          table_rows(std::move(rows)),
                          {},
                          notes_of(files, t)});
    if (!shown.empty()) {
        d.sections.push_back(
            {"First differences",
             pages::columns_of({"tensor", pages::column_of("place", "index"), "input",
                                pages::column_of("expected", "expected (file)"),
                                pages::column_of("got", "got (mx)")}),
             std::move(shown), "file"});
    }
    return d;
}

// Folders of recorded training runs are replayed as a whole; others contain vector files.
struct subjects {
    std::vector<std::string> vectors, trainings;
};

subjects subjects_of(const std::vector<std::string>& given) {
    subjects s;
    std::vector<std::string> others;
    for (const std::string& path : given) {
        const std::vector<std::string> cases = experiments::recorded_cases(path);
        s.trainings.insert(s.trainings.end(), cases.begin(), cases.end());
        if (cases.empty()) others.push_back(path);
    }
    s.vectors = vector_paths(others);
    return s;
}

int verify_this_build(const verify_command& o) {
    if (!o.accumulator.empty()) refuse("--accumulate is about vectors: name their files");
    outputs to(o.out, {});
    build_check what{{}, o.seed, o.exact, o.show, o.threads, o.quiet};
    if (!o.recipe.empty()) what.recipes = {codec::parse_block_recipe(o.recipe)};
    const report::document d = check_build(what);
    to.finish(d, o.quiet);
    const bool same = *report::member<std::int64_t>(d.tail, "difference_count") == 0;
    return same ? exit_code::fine : exit_code::difference;
}

int verify_product(const verify_command& o) {
    if (o.paths.size() != (o.product.power ? 0 : 1)) {
        refuse(o.product.power ? "--power plants faults in A; leave out VECTORS"
                               : "--class checks one matrix; name D, and no other file");
    }
    if (o.exact || !o.accumulator.empty()) {
        refuse("--class: leave out --exact and --accumulate, which are about builds and vectors");
    }
    product_check_options p = o.product;
    if (!p.power) p.d.text = o.paths.front();
    p.recipe = o.recipe;
    p.show = o.show;
    p.run.threads = o.threads;
    p.run.quiet = o.quiet;
    p.out = o.out;
    return check_product(p);
}

int run_verify(const verify_command& o) {
    require_class(o.product);
    if (!o.product.of.empty()) return verify_product(o);
    if (o.paths.empty()) return verify_this_build(o);
    if (o.exact) refuse("--exact is about this build: leave out {}", o.paths.front());
    const auto [paths, trainings] = subjects_of(o.paths);
    std::vector<std::string> read = paths;
    read.insert(read.end(), trainings.begin(), trainings.end());
    outputs to(o.out, read);
    verify_options what;
    what.threads = o.threads;
    if (!o.recipe.empty()) what.recipe = codec::parse_block_recipe(o.recipe);
    if (!o.accumulator.empty()) what.accumulator = gemm::parse_accumulator(o.accumulator);
    std::vector<verification> files;
    // The number of further differences to list in full.
    const auto left = [&] {
        std::size_t shown = 0;
        for (const verification& v : files) shown += v.first.size();
        return o.show - std::min(o.show, shown);
    };
    step_bar bar(o.quiet, paths.size() + trainings.size());
    for (const std::string& path : paths) {
        if (interrupted()) throw base::error(base::error_kind::cancelled, "interrupted");
        what.show = left();
        const std::unique_ptr<io::reader> file = io::open_model(path, {});
        files.push_back(verify_vectors(*file, path, what));
        bar.step();
    }
    for (const std::string& path : trainings) {
        experiments::replay_options how;
        how.show = left();
        how.cancel = &interrupted();
        std::vector<verification> replayed = experiments::replay(path, how);
        files.insert(files.end(), replayed.begin(), replayed.end());
        bar.step();
    }
    report::document d = document_of(files);
    note_missing_parts(d, o.paths);
    to.finish(d, o.quiet);
    return totals_of(files).differences == 0 ? exit_code::fine : exit_code::difference;
}

std::string kinds_text() {
    std::string list;
    for (const vector_kind& k : vector_kinds) {
        list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", k.name, k.summary);
    }
    return fmt::format("Kinds: {}.", list);
}

}  // namespace

report::document_schema verify_schema() {
    return report::document_schema("mx.verify/1", "mx verify",
                                   "Vectors of other implementations against the emulator.")
        .member({"results", "[#file]", "a file each"})
        .members(verified_total_members)
        .define("file", verified_file_members)
        .define("skipped", skipped_reason_members)
        .define("tensor", differing_tensor_members)
        .define("fit", model_fit_members)
        .define("difference", placed_difference_members)
        .define("operands", output_operand_members);
}

runner declare_verify(parser& cmd) {
    const auto o = std::make_shared<verify_command>();
    cmd.group("Input");
    cmd.add_option("VECTORS", o->paths,
                   "vector files (safetensors with metadata), or folders of them; or the folder of "
                   "a recorded training run; none: this build is checked");
    cmd.add_option("-r,--recipe RECIPE", o->recipe,
                   "recipe instead of that of the metadata; elements and stochastic files use its "
                   "element format; without VECTORS: only this one");
    cmd.add_option("--accumulate MODEL", o->accumulator,
                   "accumulator model instead of that of the metadata, for matrix instructions "
                   "(mx explain accumulators)");
    declare_product_check(cmd, o->product);
    cmd.group("This build");
    cmd.add_flag("--exact", o->exact,
                 "without VECTORS: also the reference against an oracle in exact rationals (in "
                 "builds with it)");
    cmd.add_option("--seed N", o->seed, "without VECTORS: seed of the sample of blocks")
        ->not_negative();
    declare_threads(cmd, o->threads);
    cmd.group("Output");
    cmd.add_option("--top N", o->show, "differences listed in full (default 10)")
        ->in_range(0, 1000000);
    declare_outputs(cmd, o->out);
    declare_quiet(cmd, o->quiet);
    cmd.description(
        "Compares the emulator with vectors that other implementations, or hardware, made: every "
        "tensor that the file declares as contract, bit for bit. NaNs are one class (of matrix "
        "instructions their bits count as well); +0 and -0 differ. Where a recording of a matrix "
        "instruction differs, or nothing models it, the model that fits best is named, and --json "
        "has the operands. Recorded training runs are replayed, and held to bounds. Exit code 0 "
        "when "
        "all is equal, 1 when anything differs. With --class it checks a matrix product instead: "
        "whether each output lies in the interval that every kernel of the class meets "
        "(docs/design/tolerances.md). Without files it checks this build on this "
        "machine: every backend against the portable reference, under recipes of every preset, "
        "rule, rounding and dialect, over a seeded sample of blocks that are hard to quantize. " +
        kinds_text());
    cmd.examples(
        "mx verify\nmx verify --exact --seed 20\nmx verify datasets/vectors/blocks\nmx verify "
        "captured.safetensors --recipe "
        "mxfp4:scale=rceil,dialect=torchao\nmx verify datasets/vectors/training\nmx verify mma/ "
        "--accumulate sm100.mxf8f6f4:fraction_bits=24\nmx verify d.npy --a a.npy --b b.npy -r "
        "mxfp4 "
        "--class any-order-f32\nmx verify vectors/ --top 50 --json "
        "differences.json\n");
    return [o] { return run_verify(*o); };
}

}  // namespace mx::app

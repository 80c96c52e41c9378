// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/verify_build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "apps/mx/build_facts.hpp"
#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/api/mx/mx.hpp"
#include "libmx/base/bits.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/vectors/vector_inputs.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/report/cells.hpp"

namespace mx::app {
namespace {

using codec::recipe;
namespace vectors = conformance::vectors;

// Keys besides rule, rounding and dialect that backends or the reference treat in code of their
// own.
std::vector<std::string_view> extras_of(const codec::dialect& d) {
    if (d.id == codec::dialect_id::microxcaling) return {"", ",flush_subnormals=true"};
    if (d.id == codec::dialect_id::te) return {"", ",four_over_six=mse", ",four_over_six=mae"};
    if (d.id != codec::dialect_id::ocp) return {""};
    return {"",
            ",int_emax=log2max",
            ",int_emax=1",
            ",ties=even",
            ",offset=fp16",
            ",offset=fp16,range=half",
            ",transform=hadamard",
            ",transform=random-hadamard",
            ",four_over_six=mse",
            ",four_over_six=mae",
            ",four_over_six=abs_max"};
}

// Every preset and every other element format, under every dialect, rule and rounding.
std::vector<recipe> all_recipes() {
    std::vector<std::string> starts;
    for (const auto& f : format::block_formats) starts.push_back(fmt::format("{}:", f.name));
    for (const auto& f : format::element_formats) {
        const auto has_element = [&](const auto& b) { return b.element == f.name; };
        if (std::ranges::any_of(format::block_formats, has_element)) continue;
        starts.push_back(fmt::format("mxfp8:element={},", f.name));
    }
    const std::vector<std::string_view> plain{""};
    std::vector<recipe> all;
    const auto add_if_valid = [&](const std::string& text) {
        try {
            all.push_back(codec::parse_block_recipe(text));
        } catch (const base::error&) {  // no such combination
        }
    };
    for (const std::string& start : starts) {
        for (const codec::dialect& d : codec::dialects()) {
            for (const scale::scale_rule& rule : scale::scale_rules) {
                if (!d.blocks || !codec::lists(d.rules, rule.name)) continue;
                for (const format::rounding_row& rounding : format::roundings) {
                    // Elements without a preset have no code of their own.
                    const bool preset = start.ends_with(':');
                    for (const std::string_view extra : preset ? extras_of(d) : plain) {
                        add_if_valid(fmt::format("{}scale={},round={},dialect={}{}", start,
                                                 rule.name, rounding.name, d.name, extra));
                    }
                }
            }
        }
    }
    const auto spelling = [](const recipe& r) { return codec::to_string(r); };
    std::ranges::sort(all, {}, spelling);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

// Blocks of every kind that is hard to quantize: rows in one row, tiles one below the other.
sample sample_of(const recipe& r, std::uint64_t seed) {
    constexpr std::size_t large = 4096;
    const std::size_t size = vectors::elements_of_block(r);
    const std::size_t blocks = size > large ? 1 : 2 * vectors::input_category_count;
    const auto cols = static_cast<std::size_t>(r.block.cols);
    const bool in_rows = r.block.rows == 1;
    return {r, in_rows ? 1 : blocks * size / cols, in_rows ? blocks * cols : cols,
            vectors::generate_inputs(r, blocks, seed).values};
}

std::vector<std::uint32_t> bits_of_all(const std::vector<float>& x) {
    std::vector<std::uint32_t> bits;
    for (const float v : x) bits.push_back(bits_of(v));
    return bits;
}

std::vector<float> floats_of(const std::vector<std::uint32_t>& bits) {
    std::vector<float> x;
    for (const std::uint32_t b : bits) x.push_back(base::float_from_bits(b));
    return x;
}

template <typename Codes>
std::vector<std::uint32_t> widened(const Codes& codes) {
    return {codes.begin(), codes.end()};
}

outcome outcome_by_reference(const sample& s) {
    recipe plain = s.of;
    plain.rotate = {};
    const std::vector<float> x = prepared(s);
    const std::size_t row_blocks = s.rows == 1 ? x.size() / vectors::elements_of_block(plain) : 1;
    const vectors::block_vectors v = vectors::quantize_blocks(plain, x, row_blocks, {}, 1);
    outcome o;
    o.values = returned(s, floats_of(v.dequant));
    if (codec::bumps_positions(s.of)) return o;
    o.codes = widened(v.code);
    o.scales = bits_of_all(floats_of(v.scale));
    if (s.of.offset != codec::offset_kind::none) o.offsets = widened(v.offset);
    return o;
}

outcome outcome_by(const codec::backend& b, const sample& s) {
    const mx::run_options how{1, b.name, &interrupted()};
    const view x = view(s.values, s.rows, s.cols).named("input");
    outcome o;
    o.values = bits_of_all(fake_quantize(x, s.of, how));
    if (codec::bumps_positions(s.of)) return o;
    const blocks q = quantize(x, s.of, how);
    o.codes = widened(q.codes());
    o.scales = bits_of_all(q.scales());
    o.offsets = widened(q.offsets());
    return o;
}

// The figures of all but three values, so that the last block of a row is short.
std::string figures_by(const codec::backend& b, const sample& s) {
    const std::size_t count = s.rows == 1 ? s.values.size() - 3 : s.values.size();
    const view x(std::span(s.values).first(count), s.rows, count / s.rows);
    const mx::row figures =
        measure(x.named("input"), s.of, mx::run_options{1, b.name, &interrupted()});
    return {reinterpret_cast<const char*>(&figures), sizeof figures};
}

// FNV-1a.
std::uint64_t checksum(const outcome& o) {
    std::string bytes;
    for (const auto* array : {&o.codes, &o.scales, &o.offsets, &o.values}) {
        bytes.append(reinterpret_cast<const char*>(array->data()),
                     array->size() * sizeof array->front());
    }
    return base::tensor_id(bytes);
}

struct build_difference {
    std::string by, recipe, what, input, expected, got;
};

build_difference first_difference(std::string by, const sample& s, const outcome& expected,
                                  const outcome& got) {
    build_difference d{std::move(by), codec::to_string(s.of), "figures", "", "", ""};
    const auto look = [&](std::string_view name, const std::vector<std::uint32_t>& want,
                          const std::vector<std::uint32_t>& have) {
        if (!d.got.empty() || want == have) return;
        std::size_t i = 0;
        while (i < std::min(want.size(), have.size()) && want[i] == have[i]) ++i;
        const auto hex = [&](const auto& list) {
            return i < list.size() ? fmt::format("{:#x}", list[i]) : std::string("none");
        };
        d.what = fmt::format("{} {}", name, i);
        if (want.size() == s.values.size())
            d.input = fmt::format("{:#010x}", base::bits_of(s.values[i]));
        d.expected = hex(want);
        d.got = hex(have);
    };
    look("scale", expected.scales, got.scales);
    look("offset", expected.offsets, got.offsets);
    look("code", expected.codes, got.codes);
    look("value", expected.values, got.values);
    return d;
}

struct build_row {
    std::string by, preset;
    std::uint64_t recipes = 0, values = 0, checksum = 0, expected = 0, differences = 0;
};

std::string hex_of(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

constexpr std::array row_members = std::to_array<report::declared<build_row>>({
    {"backend", "string", "or oracle", [](auto& r) { return r.by; }},
    {"preset", "string", "", [](auto& r) { return r.preset; }},
    {"recipes", "count", "of this preset", [](auto& r) { return r.recipes; }},
    {"values", "count", "of all their samples", [](auto& r) { return r.values; }},
    {"checksum", "string", "of codes, scales, offsets and values: FNV-1a in hexadecimal",
     [](auto& r) { return hex_of(r.checksum); }},
    {"expected", "string", "that of the reference", [](auto& r) { return hex_of(r.expected); }},
    {"differences", "count", "recipes of which a code, scale, value or figure differs",
     [](auto& r) { return r.differences; }},
});

constexpr std::array difference_members = std::to_array<report::declared<build_difference>>({
    {"backend", "string", "or oracle", [](auto& d) { return d.by; }},
    {"recipe", "string", "", [](auto& d) { return d.recipe; }},
    {"what", "string", "the array and the index in it, or figures, of which sums and counts differ",
     [](auto& d) { return d.what; }},
    {"input", "string", "float32 bits; empty for a scale", [](auto& d) { return d.input; }},
    {"expected", "string", "bits by the reference", [](auto& d) { return d.expected; }},
    {"got", "string", "bits", [](auto& d) { return d.got; }},
});

// The work of one backend, or of the oracle.
struct participant {
    std::string name;
    bool alone = false;  ///< a device, which one thread uses
    std::function<outcome(const sample&, const outcome&)> quantize;
    const codec::backend* figures = nullptr;  ///< whose figures are compared with those of scalar
};

constexpr std::string_view figures_from = "scalar";

std::vector<participant> participants(bool exact) {
    std::vector<participant> all;
    if (exact) all.push_back({"oracle", false, outcome_by_oracle});
    for (const codec::backend& b : codec::backends()) {
        if (!b.available()) continue;
        all.push_back({std::string(b.name), b.is_device(),
                       [&b](const sample& s, const outcome&) { return outcome_by(b, s); },
                       b.name == figures_from ? nullptr : &b});
    }
    return all;
}

class build_checker {
  public:
    explicit build_checker(const build_check& what) : what_(what) {
        for (const recipe& r : what.recipes.empty() ? all_recipes() : what.recipes) {
            samples_.push_back({sample_of(r, what.seed), {}, {}, {}});
        }
    }

    void run() {
        const std::vector<participant> all = participants(what_.exact);
        step_bar bar(what_.quiet, samples_.size() * (all.size() + 1));
        const auto each = [&](int threads, const std::function<void(reference_sample&)>& work) {
            base::parallel_for(samples_.size(), threads, &interrupted(), [&](std::uint64_t i, int) {
                work(samples_[i]);
                bar.step();
            });
        };
        each(what_.threads, [](reference_sample& s) {
            s.expected = outcome_by_reference(s.of);
            s.figures = figures_by(codec::backend_named(figures_from), s.of);
        });
        for (const participant& p : all) {
            each(p.alone ? 1 : what_.threads, [&](reference_sample& s) {
                s.got = p.quantize(s.of, s.expected);
                s.same = s.got == s.expected &&
                         (p.figures == nullptr || figures_by(*p.figures, s.of) == s.figures);
            });
            for (const reference_sample& s : samples_) add(p.name, s);
        }
    }

    std::vector<build_row> rows;
    std::vector<build_difference> differences;

  private:
    struct reference_sample {
        sample of;
        outcome expected, got;
        std::string figures;  ///< of the scalar backend
        bool same = true;
    };

    void add(const std::string& by, const reference_sample& s) {
        const std::string preset(s.of.of.preset);
        auto row = std::ranges::find_if(
            rows, [&](const build_row& r) { return r.by == by && r.preset == preset; });
        if (row == rows.end()) row = rows.insert(row, {by, preset});
        const auto append = [](std::uint64_t& sum, const outcome& o) {
            sum = base::tensor_id(hex_of(sum) + hex_of(checksum(o)));
        };
        ++row->recipes;
        row->values += s.of.values.size();
        append(row->checksum, s.got);
        append(row->expected, s.expected);
        if (s.same) return;
        ++row->differences;
        if (differences.size() < what_.show) {
            differences.push_back(first_difference(by, s.of, s.expected, s.got));
        }
    }

    const build_check& what_;
    std::vector<reference_sample> samples_;
};

// Applies `turn` to rows in place if the recipe rotates.
void rotate_rows(const sample& s, std::vector<float>& x, decltype(transform::rotate)* turn) {
    if (s.of.rotate.what == transform::kind::none) return;
    turn(s.of.rotate, {x.data(), s.rows, s.cols, s.cols}, transform::run::row);
}

}  // namespace

std::uint32_t bits_of(float x) { return base::bits_of(std::isnan(x) ? base::quiet_nan() : x); }

std::vector<float> prepared(const sample& s) {
    std::vector<float> x = s.values;
    rotate_rows(s, x, transform::rotate);
    return x;
}

std::vector<std::uint32_t> returned(const sample& s, std::vector<float> values) {
    rotate_rows(s, values, transform::rotate_back);
    return bits_of_all(values);
}

report::document check_build(const build_check& what) {
    if (what.exact && !has_oracle) {
        throw base::error(base::error_kind::unavailable,
                          "--exact: this build is without the oracle; configure with "
                          "MX_BUILD_TESTS=ON");
    }
    build_checker check(what);
    check.run();
    report::document d;
    d.head = pages::document_head("mx.build-check/1");
    d.head.emplace_back("seed", fmt::format("{}", what.seed));
    report::section table{
        {},
        {{"preset", "preset"}, {"recipes", "recipes", cell::integer}, {"checksum", "checksum"}}};
    std::uint64_t recipes = 0, wrong = 0;
    for (const build_row& r : check.rows) {
        d.results.push_back(report::written(row_members, r));
        wrong += r.differences;
        // A line for each preset, a column for each backend.
        const bool first = r.by == check.rows.front().by;
        if (first) {
            table.add(r.preset, r.recipes, hex_of(r.expected));
            recipes += r.recipes;
        }
        const auto is_own = [&](const report::column& c) { return c.field == r.by; };
        if (std::ranges::none_of(table.columns, is_own)) table.columns.push_back({r.by, r.by});
        for (report::record& line : table.rows) {
            if (report::text_of(line, "preset") != r.preset) continue;
            line.emplace_back(r.by, r.differences == 0 ? std::string("ok")
                                                       : fmt::format("DIFFERS: {}", r.differences));
        }
    }
    table.notes.push_back(fmt::format(
        "{}, seed {}: {}", report::plural(recipes, "recipe"), what.seed,
        wrong == 0
            ? "every backend of this machine gives the codes, scales, values and figures of the "
              "reference."
            : "something differs from the reference: please report it."));
    d.sections.push_back(std::move(table));
    d.tail.emplace_back("difference_count", integer(wrong));
    d.tail.emplace_back("differences", to_list(check.differences, [](const build_difference& one) {
                            return report::written(difference_members, one);
                        }));
    if (wrong == 0) return d;
    report::section list{
        "First differences",
        {{"what", "what"}, {"input", "input"}, {"expected", "expected"}, {"got", "got"}},
        {},
        "of"};
    for (const build_difference& one : check.differences) {
        list.add_to(fmt::format("{} by {}", one.recipe, one.by), one.what, one.input, one.expected,
                    one.got);
    }
    d.sections.push_back(std::move(list));
    return d;
}

report::document_schema build_check_schema() {
    return report::document_schema("mx.build-check/1", "mx verify, without files",
                                   "The backends of this machine against the reference.")
        .member({"seed", "string", "of the samples"})
        .member({"results", "[#result]", "a backend and a preset each"})
        .member({"difference_count", "count", "of backends and recipes"})
        .member({"differences", "[#difference]", "the first ones, --top of them"})
        .define("result", row_members)
        .define("difference", difference_members);
}

}  // namespace mx::app

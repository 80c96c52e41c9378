// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/selftest.hpp"
#include "apps/mx/build_facts.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/progress.hpp"

#include <array>
#include <chrono>
#include <iterator>

#include "apps/mx/terminal.hpp"

namespace mx::app {
namespace {

constexpr std::array checks{
    selftest_check{"round trips", "every code of every format, decoded and encoded, by dialect",
                   false, check_round_trips},
    selftest_check{"thresholds",
                   "every value, midpoint and overflow point, one ulp either side, by rounding",
                   false, check_thresholds},
    selftest_check{"special values", "zeros, subnormals, the largest float32, Inf and NaN", false,
                   check_special_values},
    selftest_check{"scale rules", "closed forms at every exponent, one ulp either side", false,
                   check_scale_thresholds},
    selftest_check{"disagreements", "both sides of docs/design/dialects.md differ", false,
                   check_disagreements},
    selftest_check{"backends", "every backend of this machine against the scalar one", false,
                   check_backends},
    selftest_check{"recipes", "formats, rules, roundings, dialects, offsets against the oracle",
                   true, check_recipes},
};

struct selftest_command {
    selftest_options test;
    output_options out;
    bool quiet = false;
};

// One line per check; differences are listed below.
report::record run_check(const selftest_check& check, const selftest_options& o,
                         std::vector<report::record>& differences) {
    report::record row{{"check", text(check.name)}, {"what", text(check.what)}};
    if (check.needs_oracle && !has_oracle) {
        row.insert(row.end(),
                   {{"cases", undefined()},
                    {"seconds", undefined()},
                    {"differences", undefined()},
                    {"note", text("skipped: this build is without the oracle; configure with "
                                  "MX_BUILD_TESTS=ON")}});
        return row;
    }
    selftest_findings found;
    const auto start = std::chrono::steady_clock::now();
    check.run(found, o);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    row.insert(row.end(), {{"cases", integer(found.cases())},
                           {"seconds", real(took.count())},
                           {"differences", integer(found.differences())},
                           {"note", text(found.note)}});
    for (const selftest_difference& d : found.first()) {
        differences.push_back({{"check", text(check.name)},
                               {"subject", d.subject},
                               {"input", d.input},
                               {"expected", d.expected},
                               {"got", d.got}});
    }
    return row;
}

report::section differences_section(const std::vector<report::record>& differences) {
    report::section s;
    s.heading = "First differences";
    for (const report::record& d : differences) {
        const auto part = [&](std::string_view name) { return report::text_of(d, name); };
        s.notes.push_back(fmt::format("- {}: {}; input {}; expected {}; got {}", part("check"),
                                      part("subject"), part("input"), part("expected"),
                                      part("got")));
    }
    return s;
}

int run_selftest(const selftest_command& o) {
    outputs to(o.out, {});
    std::vector<report::record> rows, differences;
    bool skipped = false;
    step_bar bar(o.quiet, std::size(checks));
    for (const selftest_check& check : checks) {
        if (interrupted()) throw base::error(base::error_kind::cancelled, "interrupted");
        skipped = skipped || (check.needs_oracle && !has_oracle);
        rows.push_back(run_check(check, o.test, differences));
        bar.step();
    }
    report::document d;
    d.head = pages::document_head("mx.selftest/1");
    d.head.emplace_back("seed", fmt::format("{}", o.test.seed));
    d.results = rows;
    d.tail.emplace_back("differences", report::list(differences.begin(), differences.end()));
    std::vector<std::string> notes;
    for (const report::record& r : rows) {
        const std::string note = report::text_of(r, "note");
        if (!note.empty()) {
            notes.push_back(fmt::format("- {}: {}", report::text_of(r, "check"), note));
        }
    }
    notes.push_back(!differences.empty() ? "There are differences: please report them."
                    : skipped            ? "No differences in what was checked."
                                         : "No differences.");
    d.sections.push_back({fmt::format("Selftest, seed {}", o.test.seed),
                          {{"check", "check"},
                           {"what", "what"},
                           {"cases", "cases", cell::integer},
                           {"seconds", "seconds", cell::fixed, 1},
                           {"differences", "differences", cell::integer}},
                          rows,
                          {},
                          notes});
    if (!differences.empty()) d.sections.push_back(differences_section(differences));
    to.finish(d, o.quiet);
    return differences.empty() ? exit_code::fine : exit_code::difference;
}

}  // namespace

void selftest_findings::pass(std::uint64_t cases) {
    const std::lock_guard lock(guard_);
    cases_ += cases;
}

void selftest_findings::differ(selftest_difference d) {
    const std::lock_guard lock(guard_);
    ++cases_;
    ++differences_;
    if (first_.size() < kept) first_.push_back(std::move(d));
}

std::string hex_bits(std::uint32_t bits) { return fmt::format("{:#010x}", bits); }

void add_if_valid(std::vector<codec::recipe>& to, const std::string& recipe) {
    try {
        to.push_back(codec::parse_recipe(recipe));
    } catch (const base::error&) {  // no such combination
    }
}

runner declare_selftest(parser& cmd) {
    const auto o = std::make_shared<selftest_command>();
    cmd.group("Run");
    cmd.add_option("--seed N", o->test.seed, "seed of the sample of blocks")->not_negative();
    cmd.add_option("--threads N", o->test.threads, "worker threads")->in_range(1, 4096);
    cmd.add_flag("-q,--quiet", o->quiet, "no table, only the exit code");
    declare_outputs(cmd, o->out);
    cmd.description(
        "Checks this build on this machine: round trips and rounding thresholds of every format, "
        "closed forms of the scale rules, special values, every backend against the scalar one, "
        "and every recipe against an oracle in exact rationals (in builds with it). If anything "
        "differs, prints the first differences with input and expected result, and exits with 1.");
    cmd.examples(
        "mx selftest\n"
        "mx selftest --seed 20 --json selftest.json\n");
    return [o] { return run_selftest(*o); };
}

}  // namespace mx::app

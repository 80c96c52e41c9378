// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/fit/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/joined.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::fit {
namespace {

using report::finite_or_null;
using report::record;
using report::to_value;

constexpr double late_rise = 0.02;  // nats above its own minimum, as in arXiv 2506.20752
constexpr std::size_t most_named = 8;

void add_estimate(record& to, const std::string& name, const estimate& e) {
    to.emplace_back(name, finite_or_null(e.value));
    to.emplace_back(name + "_low", e.low ? finite_or_null(*e.low) : report::value());
    to.emplace_back(name + "_high", e.high ? finite_or_null(*e.high) : report::value());
}

report::value group_value(const group_fit& g) {
    return g.group.empty() ? report::value() : report::value(g.group);
}

// "P_w = 4, P_a = 8": the quantized operands; "" if there are none.
std::string precision_text(const runs& all, std::span<const double> bits, double post) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < bits.size(); ++i) {
        if (std::isfinite(bits[i])) parts.push_back(fmt::format("{} = {:g}", all.bits[i], bits[i]));
    }
    if (std::isfinite(post)) parts.push_back(fmt::format("P_post = {:g}", post));
    return base::joined(parts, ", ");
}

report::value precision_value(const std::string& text) {
    return text.empty() ? report::value() : report::value(text);
}

// "lines 3, 7 and 12 more".
std::string lines_text(const std::vector<std::size_t>& lines) {
    std::string text = lines.size() == 1 ? "line" : "lines";
    for (std::size_t i = 0; i < std::min(lines.size(), most_named); ++i) {
        text += fmt::format("{} {}", i == 0 ? "" : ",", lines[i]);
    }
    if (lines.size() > most_named) text += fmt::format(" and {} more", lines.size() - most_named);
    return text;
}

std::string range_text(const estimate& e, int digits) {
    std::string text = report::significant_text(e.value, digits);
    if (e.low && e.high) {
        text += fmt::format(" ({} to {})", report::significant_text(*e.low, digits),
                            report::significant_text(*e.high, digits));
    }
    return text;
}

void say_group(const group_fit& g, std::vector<std::string>& words) {
    const fitted& f = g.found;
    const std::string of = g.group.empty() ? "" : fmt::format("{}: ", g.group);
    words.push_back(fmt::format(
        "{}{} runs; {} of {} starts reach the least objective{}.", of, g.some.size(), f.reached,
        f.starts,
        f.reached * 50 < f.starts ? ": few, so that another minimum may be better still" : ""));
    words.push_back(fmt::format("{}Compute is best spent on N in proportion to C^{} and D to C^{}.",
                                of, range_text(f.n_exponent, 3), range_text(f.d_exponent, 3)));
    // Published exponents are between 0.2 and 0.6.
    constexpr double least_exponent = 0.02, most_exponent = 2;
    for (const auto& [name, x] : {std::pair{"alpha", f.of.alpha}, std::pair{"beta", f.of.beta}}) {
        if (x > least_exponent && x < most_exponent) continue;
        words.push_back(fmt::format(
            "{}{} = {} is not an exponent of a scaling law: these runs do not determine "
            "one. Diverged runs, or sizes that do not vary apart, give such fits.",
            of, name, report::significant_text(x, 3)));
    }
    if (f.a.low && (*f.a.high > 2 * *f.a.low || *f.b.high > 2 * *f.b.low)) {
        words.push_back(fmt::format(
            "{}A ({} to {}) and B ({} to {}) are hardly determined on their own: they "
            "trade against alpha, beta and E. Compare predictions.",
            of, report::significant_text(*f.a.low, 3), report::significant_text(*f.a.high, 3),
            report::significant_text(*f.b.low, 3), report::significant_text(*f.b.high, 3)));
    }
    if (f.e.low && *f.e.low < 0.5 * f.e.value) {
        words.push_back(
            fmt::format("{}The floor E is hardly determined: larger runs may fall well below {}.",
                        of, report::significant_text(f.e.value, 4)));
    }
    if (f.check) {
        words.push_back(fmt::format(
            "{}Fitted to the {} runs of least compute, the law foretells the other {} with a mean "
            "absolute error of {:.2g} % and a mean error of {:+.2g} %.",
            of, f.check->from, f.check->of, 100 * f.check->mean_abs_error,
            100 * f.check->mean_error));
    }
    std::vector<std::size_t> far, risen;
    for (std::size_t i = 0; i < g.some.size(); ++i) {
        if (f.residuals[i].far) far.push_back(g.some[i].line);
        if (g.some[i].rise.value_or(0) > late_rise) risen.push_back(g.some[i].line);
    }
    if (!far.empty()) {
        words.push_back(fmt::format(
            "{}Kept, but above the law by more than 5 robust standard deviations: {}. If they "
            "diverged, leave them out with --max-loss or a column state.",
            of, lines_text(far)));
    }
    if (!risen.empty()) {
        words.push_back(fmt::format(
            "{}Kept, but ended more than {} above their own minimum: {}. --max-rise {} leaves them "
            "out.",
            of, late_rise, lines_text(risen), late_rise));
    }
}

}  // namespace

record fit_record(const runs& all, const group_fit& g, const fit_request& request) {
    const fitted& f = g.found;
    record r{{"group", group_value(g)},
             {"form", std::string(forms[static_cast<std::size_t>(request.is)].name)},
             {"runs", report::tally(g.some.size())}};
    add_estimate(r, "A", f.a);
    add_estimate(r, "B", f.b);
    add_estimate(r, "E", f.e);
    add_estimate(r, "alpha", f.alpha);
    add_estimate(r, "beta", f.beta);
    report::list gammas;
    for (std::size_t i = 0; i < f.gamma.size(); ++i) {
        record of{{"column", all.bits[i]}};
        add_estimate(of, "gamma", f.gamma[i]);
        gammas.emplace_back(std::move(of));
    }
    r.emplace_back("precision", std::move(gammas));
    if (all.post) {
        record of;
        add_estimate(of, "C", f.c_post);
        add_estimate(of, "gamma_D", f.gamma_d);
        add_estimate(of, "gamma_N", f.gamma_n);
        add_estimate(of, "gamma", f.gamma_post);
        r.emplace_back("post_training", std::move(of));
    } else {
        r.emplace_back("post_training", report::value());
    }
    r.emplace_back("objective", f.objective);
    r.emplace_back("starts", report::tally(f.starts));
    r.emplace_back("reached", report::tally(f.reached));
    r.emplace_back("spread", f.spread);
    add_estimate(r, "G", f.g);
    add_estimate(r, "N_exponent", f.n_exponent);
    add_estimate(r, "D_exponent", f.d_exponent);
    if (f.check) {
        r.emplace_back("foretold", record{{"from_runs", report::tally(f.check->from)},
                                          {"runs", report::tally(f.check->of)},
                                          {"compute", f.check->compute},
                                          {"mean_error", f.check->mean_error},
                                          {"mean_abs_error", f.check->mean_abs_error},
                                          {"largest_abs_error", f.check->largest_abs_error}});
    } else {
        r.emplace_back("foretold", report::value());
    }
    return r;
}

std::vector<record> prediction_records(const runs& all, const group_fit& g) {
    std::vector<record> rows;
    for (const prediction& p : g.found.predictions) {
        record r{{"group", group_value(g)},
                 {"precision", precision_value(precision_text(all, p.bits, INFINITY))},
                 {"optimal", p.compute.has_value()},
                 {"compute", p.compute.value_or(6 * p.n.value * p.d.value)}};
        add_estimate(r, "N", p.n);
        add_estimate(r, "D", p.d);
        r.emplace_back("tokens_per_parameter", finite_or_null(p.d.value / p.n.value));
        add_estimate(r, "loss", p.loss);
        r.emplace_back("beyond", p.beyond);
        rows.push_back(std::move(r));
    }
    return rows;
}

std::vector<record> frontier_records(const group_fit& g, form is) {
    const auto [least, most] = std::ranges::minmax(g.some, std::less{}, &run::compute);
    const double from = std::log(least.compute()), to = std::log(10 * most.compute());
    const optimum best = optimum_of(is, g.found.of, g.some.front().bits);
    constexpr int points = 40;
    std::vector<record> rows;
    for (int i = 0; i <= points; ++i) {
        const double compute = std::exp(from + (to - from) * i / points);
        run r = g.some.front();
        r.n = best.n_at(compute);
        r.d = best.d_at(compute);
        r.post_bits = INFINITY;
        rows.push_back({{"compute", compute},
                        {"N", finite_or_null(r.n)},
                        {"D", finite_or_null(r.d)},
                        {"loss", finite_or_null(predicted(is, g.found.of, r))}});
    }
    return rows;
}

std::vector<record> run_records(const runs& all, const group_fit& g) {
    std::vector<record> rows;
    for (std::size_t i = 0; i < g.some.size(); ++i) {
        const run& r = g.some[i];
        const residual& x = g.found.residuals[i];
        rows.push_back({{"line", report::tally(r.line)},
                        {"group", group_value(g)},
                        {"precision", precision_value(precision_text(all, r.bits, r.post_bits))},
                        {"N", r.n},
                        {"D", r.d},
                        {"loss", r.loss},
                        {"predicted", finite_or_null(x.predicted)},
                        {"log_ratio", finite_or_null(x.log_ratio)},
                        {"far", x.far},
                        {"rise", to_value(r.rise)}});
    }
    return rows;
}

std::vector<record> left_out_records(const runs& all) {
    std::vector<record> rows;
    for (const left_out& l : all.left) {
        rows.push_back({{"line", report::tally(l.line)},
                        {"N", l.n},
                        {"D", l.d},
                        {"loss", l.loss},
                        {"reason", l.reason},
                        {"diverged", l.diverged}});
    }
    return rows;
}

std::vector<std::string> fit_words(const runs& all, const std::vector<group_fit>& groups,
                                   const fit_request& request) {
    std::vector<std::string> words;
    words.push_back(fmt::format("{}, by the least {} of Huber's loss of log L (threshold {:g}).",
                                forms[static_cast<std::size_t>(request.is)].law,
                                request.sum ? "sum" : "mean", request.threshold));
    for (const group_fit& g : groups) say_group(g, words);
    std::vector<std::size_t> diverged;
    for (const left_out& l : all.left) {
        if (l.diverged) diverged.push_back(l.line);
    }
    if (!all.left.empty()) {
        words.push_back(fmt::format(
            "Left out: {} of {} runs{}.", all.left.size(), all.left.size() + all.kept.size(),
            diverged.empty()
                ? std::string()
                : fmt::format(", {} of them diverged: {}", diverged.size(), lines_text(diverged))));
    }
    return words;
}

}  // namespace mx::fit

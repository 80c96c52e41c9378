// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/fit/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "libmx/base/joined.hpp"
#include "libmx/report/cells.hpp"

namespace mx::fit {
namespace {

using report::finite_or_null;
using report::record;

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

// Estimates as members NAME, NAME_low and NAME_high.
struct named_estimate {
    std::string_view name;
    std::string_view text;
    estimate fitted::*of;
};
constexpr std::array law_estimates{
    named_estimate{"A", "coefficient", &fitted::a},
    named_estimate{"B", "coefficient", &fitted::b},
    named_estimate{"E", "floor of the loss, nats a token", &fitted::e},
    named_estimate{"alpha", "exponent of N", &fitted::alpha},
    named_estimate{"beta", "exponent of D", &fitted::beta},
};
constexpr std::array post_estimates{
    named_estimate{"C", "coefficient", &fitted::c_post},
    named_estimate{"gamma_D", "exponent of D", &fitted::gamma_d},
    named_estimate{"gamma_N", "exponent of N", &fitted::gamma_n},
    named_estimate{"gamma", "bits", &fitted::gamma_post},
};
constexpr std::array best_estimates{
    named_estimate{"G", "N = G (C / 6)^N_exponent is best for C FLOP", &fitted::g},
    named_estimate{"N_exponent", "beta / (alpha + beta)", &fitted::n_exponent},
    named_estimate{"D_exponent", "alpha / (alpha + beta)", &fitted::d_exponent},
};

void add_estimates(record& to, std::span<const named_estimate> all, const fitted& f) {
    for (const named_estimate& e : all) add_estimate(to, std::string(e.name), f.*e.of);
}
void declare_estimate(report::member_list& to, std::string_view name, std::string_view text) {
    to.add({name, "number?", text});
    to.add({"_low", "number?", "2.5 % of the resamples lie below"}, name);
    to.add({"_high", "number?", "97.5 %"}, name);
}
void declare_estimates(report::member_list& to, std::span<const named_estimate> all) {
    for (const named_estimate& e : all) declare_estimate(to, e.name, e.text);
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

void describe_group(const group_fit& g, std::vector<std::string>& words) {
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
            "{}A ({} to {}) and B ({} to {}) are not identified individually: they "
            "trade against alpha, beta and E. Compare predictions.",
            of, report::significant_text(*f.a.low, 3), report::significant_text(*f.a.high, 3),
            report::significant_text(*f.b.low, 3), report::significant_text(*f.b.high, 3)));
    }
    if (f.e.low && *f.e.low < 0.5 * f.e.value) {
        words.push_back(
            fmt::format("{}The floor E is not identified: larger runs may fall well below {}.", of,
                        report::significant_text(f.e.value, 4)));
    }
    if (f.check) {
        words.push_back(fmt::format(
            "{}Fitted to the {} runs of least compute, the law predicts the other {} with a mean "
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

constexpr std::string_view form_type = "chinchilla|kaplan|precision";

struct shown_fit {
    const group_fit& g;
    const fit_request& request;
};
constexpr std::array group_members = std::to_array<report::declared<shown_fit>>({
    {"group", "string?", "null: all runs are one group", [](auto& x) { return group_value(x.g); }},
    {"form", form_type, "of the law",
     [](auto& x) { return forms[static_cast<std::size_t>(x.request.is)].name; }},
    {"runs", "count", "fitted to", [](auto& x) { return x.g.some.size(); }},
});

constexpr std::array search_members = std::to_array<report::declared<fitted>>({
    {"objective", "amount", "the least mean or sum of Huber's loss of log L",
     [](auto& f) { return f.objective; }},
    {"starts", "count", "of the search", [](auto& f) { return f.starts; }},
    {"reached", "count", "starts that led to the least objective",
     [](auto& f) { return f.reached; }},
    {"spread", "amount", "robust standard deviation of log(loss / law)",
     [](auto& f) { return f.spread; }},
});

constexpr std::array check_members = std::to_array<report::declared<prediction_check>>({
    {"from_runs", "count", "of least compute, fitted to", [](auto& c) { return c.from; }},
    {"runs", "count", "the others", [](auto& c) { return c.of; }},
    {"compute", "amount", "FLOP: the least of the others", [](auto& c) { return c.compute; }},
    {"mean_error", "number", "mean of predicted / measured - 1",
     [](auto& c) { return c.mean_error; }},
    {"mean_abs_error", "amount", "", [](auto& c) { return c.mean_abs_error; }},
    {"largest_abs_error", "amount", "", [](auto& c) { return c.largest_abs_error; }},
});

struct shown_prediction {
    const runs& all;
    const group_fit& g;
    const prediction& p;
};
constexpr std::array prediction_members = std::to_array<report::declared<shown_prediction>>({
    {"group", "string?", "", [](auto& x) { return group_value(x.g); }},
    {"precision", "string?", "bits, as P_w = 4; null: not quantized",
     [](auto& x) { return precision_value(precision_text(x.all, x.p.bits, INFINITY)); }},
    {"optimal", "boolean", "N and D are the best for the compute",
     [](auto& x) { return x.p.compute.has_value(); }},
    {"compute", "amount", "6 N D FLOP",
     [](auto& x) { return x.p.compute.value_or(6 * x.p.n.value * x.p.d.value); }},
});

struct shown_run {
    const runs& all;
    const group_fit& g;
    const run& r;
    const residual& x;
};
constexpr std::array run_members = std::to_array<report::declared<shown_run>>({
    {"line", "count", "of the table", [](auto& s) { return s.r.line; }},
    {"group", "string?", "", [](auto& s) { return group_value(s.g); }},
    {"precision", "string?", "",
     [](auto& s) { return precision_value(precision_text(s.all, s.r.bits, s.r.post_bits)); }},
    {"N", "amount", "", [](auto& s) { return s.r.n; }},
    {"D", "amount", "", [](auto& s) { return s.r.d; }},
    {"loss", "amount", "", [](auto& s) { return s.r.loss; }},
    {"predicted", "number?", "by the law", [](auto& s) { return finite_or_null(s.x.predicted); }},
    {"log_ratio", "number?", "log(loss / predicted)",
     [](auto& s) { return finite_or_null(s.x.log_ratio); }},
    {"far", "boolean", "above the law by more than 5 robust standard deviations",
     [](auto& s) { return s.x.far; }},
    {"rise", "number?", "of the final loss over the least one", [](auto& s) { return s.r.rise; }},
});

struct frontier_point {
    double compute, n, d, loss;
};
constexpr std::array frontier_members = std::to_array<report::declared<frontier_point>>({
    {"compute", "number", "", [](auto& p) { return p.compute; }},
    {"N", "number?", "", [](auto& p) { return finite_or_null(p.n); }},
    {"D", "number?", "", [](auto& p) { return finite_or_null(p.d); }},
    {"loss", "number?", "", [](auto& p) { return finite_or_null(p.loss); }},
});

constexpr std::array left_out_members = std::to_array<report::declared<left_out>>({
    {"line", "count", "of the table", [](auto& l) { return l.line; }},
    {"N", "string", "as the table has it", [](auto& l) { return l.n; }},
    {"D", "string", "", [](auto& l) { return l.d; }},
    {"loss", "string", "", [](auto& l) { return l.loss; }},
    {"reason", "string", "", [](auto& l) { return l.reason; }},
    {"diverged", "boolean", "its loss says so, its state, or its rise",
     [](auto& l) { return l.diverged; }},
});

}  // namespace

record fit_record(const runs& all, const group_fit& g, const fit_request& request) {
    const fitted& f = g.found;
    record r = report::written(group_members, {g, request});
    add_estimates(r, law_estimates, f);
    report::list gammas;
    for (std::size_t i = 0; i < f.gamma.size(); ++i) {
        record of{{"column", all.bits[i]}};
        add_estimate(of, "gamma", f.gamma[i]);
        gammas.emplace_back(std::move(of));
    }
    r.emplace_back("precision", std::move(gammas));
    record post;
    if (all.post) add_estimates(post, post_estimates, f);
    r.emplace_back("post_training", all.post ? report::value(std::move(post)) : report::value());
    report::append(r, search_members, f);
    add_estimates(r, best_estimates, f);
    r.emplace_back("foretold", f.check ? report::value(report::written(check_members, *f.check))
                                       : report::value());
    return r;
}

std::vector<record> prediction_records(const runs& all, const group_fit& g) {
    std::vector<record> rows;
    for (const prediction& p : g.found.predictions) {
        record r = report::written(prediction_members, {all, g, p});
        add_estimate(r, "N", p.n);
        add_estimate(r, "D", p.d);
        r.emplace_back("tokens_per_parameter", finite_or_null(p.d.value / p.n.value));
        add_estimate(r, "loss", p.loss);
        r.emplace_back("beyond", p.beyond);
        rows.push_back(std::move(r));
    }
    return rows;
}

report::document_schema fit_schema() {
    report::member_list group, gamma, post, prediction;
    group.add(group_members);
    declare_estimates(group, law_estimates);
    group.add({"precision", "[#gamma]", "a column of bits each; form precision"});
    group.add({"post_training", "#post?",
               "C D^gamma_D / N^gamma_N exp(-P_post / gamma); null: no column P_post"});
    group.add(search_members);
    declare_estimates(group, best_estimates);
    group.add({"foretold", "#check?",
               "how the runs of most compute are predicted from the others; null: too few"});
    gamma.add({"column", "string", "of bits"});
    declare_estimate(gamma, "gamma", "bits: N keeps 1 - exp(-P / gamma)");
    declare_estimates(post, post_estimates);
    prediction.add(prediction_members);
    declare_estimate(prediction, "N", "parameters");
    declare_estimate(prediction, "D", "tokens");
    prediction.add({"tokens_per_parameter", "number?", ""});
    declare_estimate(prediction, "loss", "at N and D");
    prediction.add({"beyond", "boolean", "more compute than any run"});
    return report::document_schema("mx.fit/1", "mx study scaling-law",
                                   "A scaling law fitted to runs.")
        .member({"input", "string", "the table"})
        .member({"form", form_type, "of the law"})
        .member({"objective", "mean|sum", "over the runs"})
        .member({"threshold", "positive", "of Huber's loss, in log L"})
        .member({"resamples", "count", "that intervals are of"})
        .member({"seed", "count", "of the resampling"})
        .member({"results", "[#group]", "a group each"})
        .member({"predictions", "[#prediction]", "budgets, and sizes that were asked for"})
        .member({"frontier", "[#point]", "the best sizes over compute, of the first group"})
        .member({"runs", "[#run]", "a run each"})
        .member({"left_out", "[#left_out]", "rows that were not fitted to"})
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .define("group", group)
        .define("gamma", gamma)
        .define("post", post)
        .define("check", check_members)
        .define("prediction", prediction)
        .define("point", frontier_members)
        .define("run", run_members)
        .define("left_out", left_out_members);
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
        rows.push_back(
            report::written(frontier_members, {compute, r.n, r.d, predicted(is, g.found.of, r)}));
    }
    return rows;
}

std::vector<record> run_records(const runs& all, const group_fit& g) {
    std::vector<record> rows;
    for (std::size_t i = 0; i < g.some.size(); ++i) {
        rows.push_back(report::written(run_members, {all, g, g.some[i], g.found.residuals[i]}));
    }
    return rows;
}

std::vector<record> left_out_records(const runs& all) {
    std::vector<record> rows;
    for (const left_out& l : all.left) rows.push_back(report::written(left_out_members, l));
    return rows;
}

std::vector<std::string> fit_summary(const runs& all, const std::vector<group_fit>& groups,
                                     const fit_request& request) {
    std::vector<std::string> words;
    words.push_back(fmt::format("{}, by the least {} of Huber's loss of log L (threshold {:g}).",
                                forms[static_cast<std::size_t>(request.is)].law,
                                request.sum ? "sum" : "mean", request.threshold));
    for (const group_fit& g : groups) describe_group(g, words);
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

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/fit/fit.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/optimize/minimize.hpp"
#include "libmx/studies/fit/records.hpp"
#include "tests/catch.hpp"

namespace fit = mx::fit;

namespace {

bool no_nlopt() { return mx::optimize::nlopt_version().empty(); }

fit::runs published_runs(const std::string& set) {
    const std::string path = MX_SOURCE_DIR "/datasets/scaling-laws/" + set + ".csv";
    mx::io::input_stream file(path);
    return fit::runs_of(
        mx::report::read_csv([&](std::span<char> out) { return file.read(out); }, path), {});
}

fit::runs runs_in(std::string text, const fit::run_request& request = {}) {
    std::size_t at = 0;
    return fit::runs_of(mx::report::read_csv(
                            [&](std::span<char> out) {
                                const std::size_t count = std::min(out.size(), text.size() - at);
                                std::copy_n(text.data() + at, count, out.data());
                                at += count;
                                return count;
                            },
                            "runs.csv"),
                        request);
}

struct published_fit {
    const char* set;
    fit::form is;
    bool sum;
    double a, b, e, alpha, beta, objective;
    double tolerance;  // of E, alpha and beta
};

// A law's own losses at sizes on a grid, each with a deviation of up to `noise` in its logarithm.
fit::runs made_runs(fit::form is, const fit::coefficients& c, double noise) {
    fit::runs all;
    if (is == fit::form::precision) all.bits = {"P_w"};
    const mx::base::random_key key{3, 0};
    for (const double n : {1e7, 3e7, 1e8, 3e8, 1e9}) {
        for (const double d : {1e9, 3e9, 1e10, 3e10, 1e11}) {
            for (const double bits : {3.0, 4.0, 8.0}) {
                fit::run r;
                r.line = all.kept.size() + 2;
                r.n = n;
                r.d = d;
                if (is == fit::form::precision) r.bits = {bits};
                r.post_bits = std::numeric_limits<double>::infinity();
                const double u = mx::base::random_u32(key, all.kept.size()) / 4294967296.0;
                r.loss = fit::predicted(is, c, r) * std::exp(noise * (2 * u - 1));
                all.kept.push_back(r);
                if (is != fit::form::precision) break;
            }
        }
    }
    return all;
}

}  // namespace

TEST_CASE("published fits are found again") {
    if (no_nlopt()) return;
    const auto [f] = std::tuple{GENERATE(
        published_fit{"su2025-e4m3-bf16", fit::form::chinchilla, false, 2822.480604261686,
                      20445.40765376697, 0.5353079817554266, 0.5236196803588452, 0.5533511883618424,
                      8.606554362936132e-06, 1e-5},
        // Published to four digits.
        published_fit{"chinchilla-240", fit::form::chinchilla, true, 477.755932201067,
                      2142.867147818284, 1.817205715279054, 0.3473, 0.3672, 0.0010182741, 1e-4},
        published_fit{"smollm-corpus-c4", fit::form::chinchilla, false, 1437.597074638401,
                      9950.276141142727, 2.491327910346117, 0.4206416093666477, 0.4687899050491425,
                      1.5130144899891891e-06, 1e-5},
        published_fit{"smollm-corpus-c4", fit::form::kaplan, false, 67955624.43230093,
                      877066819.3057203, 2.4487268185984825, 0.39219190785748054,
                      0.45471546486195363, 6.2090099345780365e-06, 1e-5})};
    INFO(f.set);
    const fit::runs all = published_runs(f.set);
    fit::fit_request request;
    request.is = f.is;
    request.sum = f.sum;
    request.resamples = 0;
    const fit::fitted found = fit::fit_law(all, all.kept, request);
    CHECK(found.of.a == Approx(f.a).epsilon(1e-3));
    CHECK(found.of.b == Approx(f.b).epsilon(1e-3));
    CHECK(found.of.e == Approx(f.e).epsilon(f.tolerance));
    CHECK(found.of.alpha == Approx(f.alpha).epsilon(f.tolerance));
    CHECK(found.of.beta == Approx(f.beta).epsilon(f.tolerance));
    CHECK(found.objective == Approx(f.objective).epsilon(1e-5));
    CHECK(found.reached > found.starts / 2);
    CHECK(!found.a.low);
}

TEST_CASE("the compute-optimal sizes of the published fit are found again") {
    const fit::coefficients c{2822.480604261686,  20445.40765376697,  0.5353079817554266,
                              0.5236196803588452, 0.5533511883618424, {}};
    const fit::optimum best = fit::optimum_of(fit::form::chinchilla, c, {});
    CHECK(best.g == Approx(0.1510866).epsilon(1e-6));
    CHECK(best.a == Approx(0.5138033).epsilon(1e-6));
}

TEST_CASE("no size of the same compute beats the optimum") {
    const auto is = GENERATE(fit::form::chinchilla, fit::form::kaplan, fit::form::precision);
    const bool kaplan = is == fit::form::kaplan;
    const fit::coefficients c{kaplan ? 7e7 : 1500,  kaplan ? 9e8 : 10000, 2, 0.4, 0.5,
                              {kaplan ? 1e-9 : 2.5}};
    const std::vector<double> bits{4};
    const fit::optimum best = fit::optimum_of(is, c, bits);
    const double compute = 1e21;
    CHECK(6 * best.n_at(compute) * best.d_at(compute) == Approx(compute));
    fit::run r;
    r.bits = bits;
    r.post_bits = std::numeric_limits<double>::infinity();
    const auto loss_at = [&](double factor) {
        r.n = best.n_at(compute) * factor;
        r.d = best.d_at(compute) / factor;
        return fit::predicted(is, c, r);
    };
    CHECK(loss_at(1) < loss_at(1.01));
    CHECK(loss_at(1) < loss_at(0.99));
}

TEST_CASE("gradients are those of the law") {
    const auto is = GENERATE(fit::form::chinchilla, fit::form::kaplan, fit::form::precision);
    fit::runs all;
    all.kept.resize(2);
    all.kept[0].n = 1e7;
    all.kept[0].d = 1e9;
    all.kept[0].loss = 4;
    all.kept[1].n = 3e8;
    all.kept[1].d = 2e10;
    all.kept[1].loss = 3;
    for (fit::run& r : all.kept) {
        r.post_bits = std::numeric_limits<double>::infinity();
        if (is == fit::form::precision) r.bits = {4, std::numeric_limits<double>::infinity()};
    }
    if (is == fit::form::precision) {
        all.bits = {"P_w", "P_a"};
        all.post = true;
        all.kept[1].post_bits = 3;
        all.kept[1].bits = {3, 6};
    }
    const fit::law law(is, all, all.kept);
    std::vector<double> x = law.starts()[77];
    std::vector<double> gradient(law.size());
    for (const fit::run& r : all.kept) {
        const fit::law::sample sample = law.sample_of(r);
        const auto value_at = [&](const std::vector<double>& at, std::span<double> slope) {
            return law.log_loss(sample, law.place_of(at), slope);
        };
        const double value = value_at(x, gradient);
        CHECK(value == value_at(x, {}));
        CHECK(std::exp(value) == Approx(fit::predicted(is, law.at(x), r)).epsilon(1e-12));
        for (std::size_t i = 0; i < x.size(); ++i) {
            std::vector<double> y = x;
            y[i] = x[i] + 1e-5;
            const double more = value_at(y, {});
            y[i] = x[i] - 1e-5;
            INFO(i);
            CHECK(gradient[i] == Approx((more - value_at(y, {})) / 2e-5).margin(1e-8));
        }
    }
}

TEST_CASE("a made law is found again, in every form and any unit", "[slow]") {
    if (no_nlopt()) return;
    const auto is = GENERATE(fit::form::chinchilla, fit::form::kaplan, fit::form::precision);
    const bool kaplan = is == fit::form::kaplan;
    fit::coefficients c{kaplan ? 7e7 : 1500, kaplan ? 9e8 : 10000, 2, 0.4, 0.5, {}};
    if (is == fit::form::precision) c.gamma = {2.5};
    fit::runs all = made_runs(is, c, 0);
    fit::fit_request request;
    request.is = is;
    request.resamples = 0;
    const fit::fitted found = fit::fit_law(all, all.kept, request);
    CHECK(found.of.alpha == Approx(c.alpha).epsilon(1e-4));
    CHECK(found.of.beta == Approx(c.beta).epsilon(1e-4));
    CHECK(found.of.e == Approx(c.e).epsilon(1e-4));
    CHECK(found.of.a == Approx(c.a).epsilon(1e-2));
    if (is == fit::form::precision) CHECK(found.of.gamma.at(0) == Approx(2.5).epsilon(1e-3));
    // Millions of parameters and billions of tokens instead.
    for (fit::run& r : all.kept) {
        r.n /= 1e6;
        r.d /= 1e9;
    }
    const fit::fitted scaled = fit::fit_law(all, all.kept, request);
    CHECK(scaled.of.alpha == Approx(found.of.alpha).epsilon(1e-4));
    CHECK(scaled.of.e == Approx(found.of.e).epsilon(1e-4));
}

TEST_CASE(
    "a fit is the same for any number of threads, and its intervals hold what made the runs") {
    if (no_nlopt()) return;
    const fit::coefficients c{1500, 10000, 2, 0.4, 0.5, {}};
    const fit::runs all = made_runs(fit::form::chinchilla, c, 0.005);
    fit::fit_request request;
    request.resamples = 40;
    request.threads = 1;
    const fit::group_fit one{"", all.kept, fit::fit_law(all, all.kept, request)};
    request.threads = 3;
    const fit::group_fit three{"", all.kept, fit::fit_law(all, all.kept, request)};
    CHECK(fit::fit_record(all, one, request) == fit::fit_record(all, three, request));
    CHECK(fit::prediction_records(all, one) == fit::prediction_records(all, three));
    const fit::fitted& f = one.found;
    CHECK(*f.alpha.low < 0.4);
    CHECK(*f.alpha.high > 0.4);
    CHECK(*f.e.low < 2);
    CHECK(*f.e.high > 2);
    REQUIRE(f.check);
    CHECK(f.check->of == 5);
    CHECK(f.check->mean_abs_error < 0.01);
    // The prediction is far more certain than A.
    const fit::prediction& p = f.predictions.at(0);
    CHECK(*p.loss.high / *p.loss.low < 1.02);
    CHECK(*f.a.high / *f.a.low > 1.1);
    request.seed = 2;
    const fit::fitted other = fit::fit_law(all, all.kept, request);
    CHECK(other.of.a == f.of.a);
    CHECK(*other.a.low != *f.a.low);
}

TEST_CASE("one diverged run neither moves the law nor goes unnamed") {
    if (no_nlopt()) return;
    const fit::coefficients c{1500, 10000, 2, 0.4, 0.5, {}};
    fit::runs all = made_runs(fit::form::chinchilla, c, 0.001);
    all.kept[7].loss *= 1.05;
    fit::fit_request request;
    request.resamples = 0;
    const fit::fitted f = fit::fit_law(all, all.kept, request);
    CHECK(f.of.alpha == Approx(0.4).epsilon(0.05));
    CHECK(f.residuals[7].far);
    CHECK(std::ranges::count_if(f.residuals, &fit::residual::far) == 1);
    const auto words = fit::fit_summary(all, {{"", all.kept, f}}, request);
    CHECK(std::ranges::any_of(words, [](const std::string& line) {
        return line.find("line 9.") != std::string::npos &&
               line.find("above the law") != std::string::npos;
    }));
}

TEST_CASE("rows that are no runs are left out with their reason") {
    const std::string text =
        "N,D,loss,min_loss,state,P_w\n1e6,1e9,3.5,3.5,finished,4\n1e6,1e9,nan,3,finished,4\n"
        "1e6,1e9,inf,3,finished,4\n0,1e9,3,3,finished,4\n1e6,,3,3,finished,4\n"
        "1e6,1e9,-3,3,finished,4\n1e6,1e9,oops,3,finished,4\n1e6,1e9,3,3,Diverged,4\n"
        "1e6,1e9,3.2,3.1,finished,\n1e6,1e9,9,9,finished,x\n1e6,1e9,,3,finished,4\n";
    const fit::runs plain = runs_in(text);
    CHECK(plain.kept.size() == 3);
    REQUIRE(plain.left.size() == 8);
    CHECK(plain.left[0].reason == "diverged: its loss is not finite");
    CHECK(plain.left[0].line == 3);
    CHECK(plain.left[0].diverged);
    CHECK(plain.left[2].reason == "N is not a positive number");
    CHECK(plain.left[3].reason == "D is not a positive number");
    CHECK(plain.left[4].reason == "the loss is not positive");
    CHECK(plain.left[5].reason == "the loss is not a number");
    CHECK(plain.left[6].reason == "diverged: its column state says so");
    CHECK(plain.left[7].reason == "no loss");
    CHECK(plain.kept[1].rise == Approx(0.1));

    fit::run_request request;
    request.with_bits = true;
    request.most_rise = 0.02;
    request.most_loss = 3.4;
    const fit::runs strict = runs_in(text, request);
    CHECK(strict.kept.empty());
    CHECK(strict.bits == std::vector<std::string>{"P_w"});
    CHECK(strict.left[0].reason == "its loss is above 3.4");
    CHECK(strict.left[8].reason == "diverged: its loss rose by 0.1 from its minimum");
    CHECK(strict.left[9].reason == "P_w is not a positive number");
}

TEST_CASE("columns, rows and groups are chosen by name") {
    const std::string text = "params,tokens,loss,best,kind\n1,2,3,2.5,a\n4,5,6,5.5,b\n";
    fit::run_request request;
    request.columns = {"N=params", "D=tokens", "loss=best"};
    request.where = {"kind=b"};
    request.by = "kind";
    const fit::runs all = runs_in(text, request);
    REQUIRE(all.kept.size() == 1);
    CHECK(all.kept[0].n == 4);
    CHECK(all.kept[0].loss == 5.5);
    CHECK(all.kept[0].group == "b");
    CHECK(all.left.empty());
    request.columns = {"M=params"};
    CHECK_THROWS_AS(runs_in(text, request), mx::base::error);
    request.columns = {"N="};
    CHECK_THROWS_AS(runs_in(text, request), mx::base::error);
    request.columns = {};
    CHECK_THROWS_AS(runs_in(text, request), mx::base::error);
    request = {};
    request.most_rise = 1;
    CHECK_THROWS_AS(runs_in("N,D,loss\n", request), mx::base::error);
}

TEST_CASE("too few runs are refused") {
    if (no_nlopt()) return;
    const fit::runs all = runs_in("N,D,loss\n1e6,1e9,4\n2e6,1e9,3.9\n1e6,2e9,3.8\n");
    CHECK_THROWS_AS(fit::fit_law(all, all.kept, {}), mx::base::error);
    std::string same = "N,D,loss\n";
    for (int i = 0; i < 8; ++i) same += "1e6," + std::to_string(i + 1) + "e9,3\n";
    const fit::runs of_one_size = runs_in(same);
    CHECK_THROWS_AS(fit::fit_law(of_one_size, of_one_size.kept, {}), mx::base::error);
}

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/experiments/findings.hpp"
#include "libmx/experiments/records.hpp"
#include "libmx/lab/training.hpp"
#include "tests/catch.hpp"

namespace mx::experiments {
namespace {

using base::bootstrap, base::power_law, base::ranks_of, base::spearman;

bool near(double a, double b, double within = 1e-12) { return std::abs(a - b) <= within; }

lab::run_request small_request() {
    lab::run_request r;
    r.shape.width = 32;
    r.shape.depth = 1;
    r.batch = 16;
    r.steps = 12;
    r.task = lab::task_kind::teacher;
    return r;
}

lab::run_request language_request() {
    lab::run_request r = lab::request_for("llama", "");
    r.shape.width = 32;
    r.shape.depth = 1;
    r.context = 16;
    r.batch = 32;
    r.steps = 12;
    lab::fit_schedule(r);
    return r;
}

TEST_CASE("ranks share ties, and Spearman is Pearson's of ranks") {
    const std::vector<double> tied{3, 1, 3, 2};
    CHECK(ranks_of(tied) == std::vector<double>{3.5, 1, 3.5, 2});
    const std::vector<double> x{1, 2, 3, 4, 5}, y{2, 1, 4, 3, 50}, down{9, 7, 5, 3, 1};
    REQUIRE(spearman(x, y));
    CHECK(near(*spearman(x, y), 0.8));  // 1 - 6 * 4 / (5 * 24)
    CHECK(near(*spearman(x, down), -1));
    const std::vector<double> four{1, 2, 3, 4};
    CHECK(near(*spearman(tied, four), -1 / std::sqrt(22.5)));
    CHECK_FALSE(spearman(x, std::vector<double>(5, 1.0)));
    CHECK_FALSE(spearman(std::vector<double>{1, 2}, std::vector<double>{1, 2}));
}

TEST_CASE("a power law is the slope of logarithms, without gaps that are not positive") {
    std::vector<double> x{0.1, 0.2, 0.4, 0.3}, y;
    for (const double v : x) y.push_back(3 * std::pow(v, 1.75));
    CHECK(near(*power_law(x, y), 1.75));
    y.back() = -1;
    CHECK(near(*power_law(x, y), 1.75));
    y[0] = 0;
    CHECK_FALSE(power_law(x, y));
}

TEST_CASE("the bootstrap follows from its seed and brackets the statistic") {
    std::vector<double> x, y;
    for (int i = 0; i < 12; ++i) {
        x.push_back(i);
        y.push_back(i % 3 == 0 ? i + 4 : i);
    }
    const auto once = bootstrap(spearman, x, y, 1), again = bootstrap(spearman, x, y, 1);
    REQUIRE((once && again));
    CHECK(once->low == again->low);
    CHECK(once->high == again->high);
    CHECK(bootstrap(spearman, x, y, 2)->low != once->low);
    CHECK(once->low < *spearman(x, y));
    CHECK(*spearman(x, y) < once->high);
    CHECK(near(bootstrap(spearman, x, x, 1)->low, 1));
    CHECK_FALSE(bootstrap(spearman, x, std::vector<double>(12, 0.5), 1));
}

TEST_CASE("a budget is a time, and buys more the longer it is") {
    CHECK(parse_duration("90s") == 90);
    CHECK(parse_duration("10m") == 600);
    CHECK(parse_duration("1.5h") == 5400);
    CHECK(parse_duration("45") == 45);
    for (const char* wrong : {"", "m", "-3m", "0", "10d", "1e12h", "nan"}) {
        CHECK_THROWS_AS(parse_duration(wrong), base::error);
    }
    for (const char* model : {"proxy", "olmo", "llama"}) {
        double before = 0;
        for (const double seconds : {30.0, 60.0, 180.0, 600.0, 3600.0, 36000.0, 3600000.0}) {
            INFO(model << ", " << seconds);
            sized s = size_for(model, 20, seconds);
            const double cost = cost_of(s.request) * 20 * static_cast<double>(s.seeds.size());
            CHECK(cost / model_cores <= seconds);
            CHECK(cost_of(s.request) >= before);
            CHECK(s.seeds.size() >= 2);
            CHECK(s.seeds.size() <= most_seeds);
            CHECK(lab::name_of(s.request.model) == model);
            before = cost_of(s.request);
            lab::fit_schedule(s.request);
            CHECK_NOTHROW(lab::check(s.request));
        }
        CHECK(size_for(model, 20, 180).request == size_for(model, 20, 180).request);
        CHECK_THROWS_AS(size_for(model, 1000, 1), base::error);
    }
    CHECK_THROWS_AS(size_for("prox", 20, 180), base::error);
}

TEST_CASE("the cost of a language model is that of its products and their operands") {
    lab::run_request r = language_request();
    // q, k, v and o; up, gate and down; the head, which meets every token as well.
    const double weights = 4 * 32 * 32 + 3 * 32 * 96 + 256 * 32;
    const double attended = 7 * 32 * 16;
    const double sides = 4 * (32 + 32) + 3 * (32 + 96) + 256 + 32;
    const double flop = 2.0 * 32 * (3 * weights + attended);
    const double elements = 2 * (32 * sides + weights);
    CHECK(near(cost_of(r), 12 * (flop / model_flop + elements / model_elements), 1e-9));
    r.text_file = "nowhere";  // a file changes no cost, and is not opened
    CHECK(near(cost_of(r), 12 * (flop / model_flop + elements / model_elements), 1e-9));
}

TEST_CASE("a fixed loss is reached by the mean of a window") {
    const std::vector<float> losses{4, 2, 4, 2, 1, 1};
    CHECK(first_reach(losses, 1, 2) == 2u);
    CHECK(first_reach(losses, 2, 3) == 2u);
    CHECK(first_reach(losses, 2, 1.5) == 5u);
    CHECK_FALSE(first_reach(losses, 3, 1));
    CHECK_FALSE(first_reach(losses, 9, 9));
}

TEST_CASE("every configuration of every study can be trained, and has one name") {
    for (const study& s : studies()) {
        std::set<std::pair<std::string, std::string>> names;
        const std::vector<configuration> all = s.configurations();
        for (const configuration& c : all) {
            INFO(s.name << ": " << c.group << ", " << c.name << ": " << c.settings);
            CHECK(names.emplace(c.group, c.name).second);
            CHECK_NOTHROW(lab::precision_of(lab::parse_settings(c.settings)));
            CHECK_NOTHROW(lab::precision_of(lab::parse_settings(c.baseline)));
            CHECK(c.settings != c.baseline);
            CHECK((c.from >= 0 && c.from < 1));
            CHECK((c.varied == operand::none) == c.recipe.empty());
        }
        for (const configuration& c : all) {
            CHECK((c.twin.empty() || names.contains({c.group, c.twin})));
        }
    }
    CHECK_THROWS_AS(study_named("correlations"), base::error);
    const std::vector<configuration> weights = study_named("correlation").configurations();
    CHECK(std::ranges::count(weights, "weights", &configuration::group) >= 12);
    // Figures that need the same training share it.
    const std::vector<configuration> shared = study_named("recipes").configurations();
    CHECK(runs_of(shared).size() < shared.size());
}

std::vector<configuration> few() {
    configuration w{"w", "E2M1", "all=bf16 w=mxfp4", "all=bf16"};
    w.varied = operand::weights;
    w.recipe = "mxfp4";
    configuration x{"w", "E2M1, SR", "all=bf16 w=mxfp4:round=stochastic", "all=bf16"};
    x.varied = operand::weights;
    x.recipe = "mxfp4:round=stochastic";
    x.twin = "E2M1";
    configuration plain{"w", "bf16", "all=bf16 w=f32", "all=bf16"};
    plain.varied = operand::weights;
    plain.recipe = "bf16";
    configuration late{"late", "E2M1", "all=mxfp4", "all=bf16"};
    late.from = 0.5;
    return {w, x, plain, late};
}

constexpr study few_study{"few", "few", "", yardstick::steps, few, ""};

findings of_few(int threads, const lab::run_request& request = small_request()) {
    study_plan plan;
    plan.of = &few_study;
    plan.request = request;
    plan.seeds = {3, 4, 5};
    plan.threads = threads;
    return carry_out(plan);
}

std::vector<float> losses_of(const char* settings, std::uint64_t seed) {
    lab::run_request r = small_request();
    r.seed = seed;
    r.settings = lab::parse_settings(settings);
    lab::training t(r, lab::execution_context());
    std::vector<float> losses;
    while (!t.finished()) t.step();
    for (const lab::step_figures& s : t.history()) losses.push_back(s.loss);
    return losses;
}

const finding& named(const findings& f, const std::string& group, const std::string& name) {
    for (const finding& one : f.all) {
        if (one.of.group == group && one.of.name == name) return one;
    }
    FAIL("no " << name);
    return f.all.front();
}

TEST_CASE("gaps are those of trainings made one by one, whatever the threads") {
    const findings f = of_few(1), other = of_few(2);
    REQUIRE(f.all.size() == 6);  // two baselines
    CHECK(f.trained == 15);
    for (std::size_t i = 0; i < f.all.size(); ++i) {
        CHECK(f.all[i].loss == other.all[i].loss);
        CHECK(f.all[i].gaps == other.all[i].gaps);
    }
    const finding& w = named(f, "w", "E2M1");
    REQUIRE(w.gaps.size() == 3);
    for (std::size_t seed = 0; seed < 3; ++seed) {
        const auto own = losses_of("all=bf16 w=mxfp4", 3 + seed);
        const auto before = losses_of("all=bf16", 3 + seed);
        double gap = 0;  // of the last 30 % of 12 steps
        for (std::size_t i = 8; i < 12; ++i) {
            gap += static_cast<double>(own[i]) - static_cast<double>(before[i]);
        }
        CHECK(near(*w.gaps[seed], gap / 4, 1e-9));
    }
    REQUIRE(f.twins.size() == 1);
    CHECK(near(f.twins[0].gap->mean, named(f, "w", "E2M1, SR").gap->mean - w.gap->mean, 1e-12));
}

TEST_CASE("a configuration that begins later shares the baseline's steps before") {
    const findings f = of_few(1);
    const finding& late = named(f, "late", "E2M1");
    CHECK(late.from_step == 6);
    // Its own six steps; the last half is evaluated.
    lab::run_request r = small_request();
    r.seed = 3;
    r.settings = lab::parse_settings("all=bf16");
    r.interventions.push_back(lab::parse_intervention("6 all=mxfp4"));
    lab::training t(r, lab::execution_context());
    while (!t.finished()) t.step();
    const std::vector<float> before = losses_of("all=bf16", 3);
    double gap = 0;
    for (std::size_t i = 9; i < 12; ++i) {
        gap += static_cast<double>(t.history()[i].loss) - static_cast<double>(before[i]);
    }
    CHECK(near(*late.gaps[0], gap / 3, 1e-9));
    CHECK(t.history()[5].loss == before[5]);
    CHECK(t.history()[6].loss != before[6]);
}

// R-MSE / RMS of bfloat16 in the weights of linear layers, mean over seeds 3 to 5, at the last
// step, for all layers to which recipes apply; the mean over tensors, and that of all their
// elements.
struct bf16_error {
    double mean = 0, all = 0;
};

bf16_error error_of_bf16(lab::run_request r) {
    bf16_error sum;
    for (std::uint64_t seed = 3; seed < 6; ++seed) {
        r.seed = seed;
        r.settings = lab::parse_settings("all=bf16");
        lab::training t(r, lab::execution_context());
        while (t.done() + 1 < r.steps) t.step();
        double of_tensors = 0, tensors = 0, all_errors = 0, all_squares = 0;
        for (const lab::parameter& p : t.network().parameters().all()) {
            if (p.kind != lab::parameter_kind::weight || p.name.starts_with("model.embed") ||
                p.name.starts_with("lm_head")) {
                continue;
            }
            double errors = 0, squares = 0;
            for (std::size_t i = 0; i < p.count; ++i) {
                const float value = t.values()[p.first + i];
                const auto bits = std::bit_cast<std::uint32_t>(value);
                const std::uint32_t even = bits + 0x7fffu + ((bits >> 16) & 1u);
                const auto rounded = std::bit_cast<float>(even & 0xffff0000u);
                const double e = static_cast<double>(rounded) - static_cast<double>(value);
                errors += e * e;
                squares += static_cast<double>(value) * static_cast<double>(value);
            }
            of_tensors += std::sqrt(errors / squares);
            tensors += 1;
            all_errors += errors;
            all_squares += squares;
        }
        sum.mean += of_tensors / tensors / 3;
        sum.all += std::sqrt(all_errors / all_squares) / 3;
    }
    return sum;
}

TEST_CASE("errors of operands are those of their values on the baseline's last step") {
    const findings f = of_few(1);
    const finding& plain = named(f, "w", "bf16");
    REQUIRE(plain.error);
    const bf16_error own = error_of_bf16(small_request());
    CHECK(near(plain.error->rmse_over_rms, own.mean, 1e-9));
    CHECK(near(plain.error->rmse_over_rms_all, own.all, 1e-9));
    CHECK(own.all != own.mean);
    const finding& nearest = named(f, "w", "E2M1");
    const finding& drawn = named(f, "w", "E2M1, SR");
    CHECK(nearest.error->rmse_over_rms > 0.08);
    CHECK(nearest.error->rmse_over_rms < 0.15);
    CHECK(drawn.error->rmse_over_rms > 1.2 * nearest.error->rmse_over_rms);
    CHECK(drawn.drawn());
    CHECK_FALSE(nearest.drawn());
}

TEST_CASE(
    "a study of a language model is the same over threads, its errors those of what recipes "
    "reach") {
    const findings f = of_few(1, language_request()), other = of_few(2, language_request());
    REQUIRE(f.all.size() == 6);
    for (std::size_t i = 0; i < f.all.size(); ++i) {
        CHECK(f.all[i].loss == other.all[i].loss);
        CHECK(f.all[i].gaps == other.all[i].gaps);
        CHECK(f.all[i].reached == other.all[i].reached);
    }
    const finding& w = named(f, "w", "E2M1");
    REQUIRE(w.loss);
    CHECK(*w.loss > 3);  // of 12 steps, from log 256 = 5.5
    CHECK(*w.loss < 5.5);
    const finding& plain = named(f, "w", "bf16");
    REQUIRE(plain.error);
    CHECK(near(plain.error->rmse_over_rms, error_of_bf16(language_request()).mean, 1e-9));
    CHECK(named(f, "late", "E2M1").from_step == 6);
}

TEST_CASE("the command line that repeats a study says what differs from the defaults") {
    const auto text = [](const lab::run_request& r, const std::vector<std::uint64_t>& seeds) {
        return report::command_line{
            .command = "study", .files = {}, .options = options_of(r, seeds)}
            .text();
    };
    lab::run_request r = small_request();
    r.noise = 0.25;
    CHECK(text(r, {1, 2, 3, 7, 9, 10}) ==
          "mx study --width 32 --depth 1 --batch 16 --task teacher --noise 0.25 --lr 0.001 --steps "
          "12 "
          "--seeds 1..3,7,9..10");
    r = language_request();
    CHECK(text(r, {1, 2}) ==
          "mx study --width 32 --depth 1 --heads 2 --context 16 --batch 32 --lr 0.004 --steps 12 "
          "--seeds 1..2");
    r.warmup_steps = 5;
    r.text_file = "my word's.txt";
    CHECK(text(r, {1, 2}) ==
          "mx study --width 32 --depth 1 --heads 2 --context 16 --batch 32 "
          "--text 'my word'\\''s.txt' --lr 0.004 --warmup 5 --steps 12 --seeds 1..2");
}

TEST_CASE("kept runs lie in folders named after their settings") {
    CHECK(folder_name({"all=bf16 w=mxfp4:scale=even", "", 0}, 100) ==
          "all=bf16_w=mxfp4_scale=even");
    CHECK(folder_name({"all=mxfp4", "all=bf16", 0.8}, 100) == "all=bf16_at_80_all=mxfp4");
}

}  // namespace
}  // namespace mx::experiments

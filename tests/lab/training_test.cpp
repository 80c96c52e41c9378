// SPDX-License-Identifier: Apache-2.0
// The bits of a training run do not depend on threads, instruction sets and interruptions.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/lab/curves.hpp"
#include "libmx/lab/probe.hpp"
#include "libmx/lab/proxy.hpp"
#include "libmx/lab/run_folder.hpp"
#include "libmx/lab/schemes.hpp"
#include "libmx/lab/training.hpp"
#include "libmx/report/members.hpp"
#include "tests/catch.hpp"
#include "tests/io/scratch_dir.hpp"
#include "tests/lab/same_bits.hpp"

namespace mx::lab {
namespace {

run_request small(const std::string& settings) {
    run_request r;
    r.shape.width = 40;  // no multiple of a block
    r.shape.depth = 2;
    r.batch = 24;
    r.steps = 6;
    r.rate = 0.01;
    r.settings = parse_settings(settings);
    return r;
}

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

std::unique_ptr<training> finished(const run_request& r, int threads = 1,
                                   const std::string& backend = {}) {
    auto t = std::make_unique<training>(r, execution_context(threads, backend));
    while (!t->finished()) t->step();
    return t;
}

std::vector<float> losses_of(const training& t) {
    std::vector<float> losses;
    for (const step_figures& s : t.history()) losses.push_back(s.loss);
    return losses;
}

const char* const mixed =
    "scheme=su.told.e4m3 dgrad-dy=mxfp4:round=stochastic wgrad-x=nvfp4 teacher=quantized";

TEST_CASE("threads and instruction sets do not show in a training") {
    run_request r = small(mixed);
    r.shape.phi = activation::swiglu;
    r.task = task_kind::teacher;
    const auto one = finished(r, 1, "scalar");
    for (const simd::kernels* k : simd::available()) {
        for (const int threads : {1, 2, 7}) {
            INFO(k->name << " " << threads);
            const auto other = finished(r, threads, std::string(k->name));
            CHECK(same_bits(one->values(), other->values()));
            for (std::size_t i = 0; i < one->history().size(); ++i) {
                CHECK(one->history()[i].loss == other->history()[i].loss);
                CHECK(one->history()[i].gradient_norm == other->history()[i].gradient_norm);
            }
        }
    }
}

TEST_CASE("large products on several threads give the bits of one") {
    run_request r = small("all=mxfp8 vector=bf16-even");
    r.shape.width = 160;
    r.batch = 512;
    r.steps = 1;
    CHECK(same_bits(finished(r, 1)->values(), finished(r, 3)->values()));
}

TEST_CASE("a training resumed at any step leaves the same checkpoint") {
    const test::scratch_dir dir;
    run_request r = small(mixed);
    r.interventions = {{3, parse_settings("all=bf16")}};
    r.nudge = 2;
    r.nudge_after = 4;
    r.probe_every = 2;
    training whole(r, execution_context());
    while (!whole.finished()) whole.step();
    const std::string expected = dir / "whole.safetensors";
    whole.save(expected);
    for (std::uint64_t stop = 0; stop <= r.steps; ++stop) {
        const std::string half = dir / "half.safetensors";
        training first(r, execution_context());
        while (first.done() < stop) first.step();
        first.save(half);
        training second(half, execution_context(2));
        while (!second.finished()) second.step();
        const std::string end = dir / "end.safetensors";
        second.save(end);
        INFO("stopped after " << stop);
        CHECK(bytes_of(end) == bytes_of(expected));
    }
}

TEST_CASE("an intervention acts after its step, and on nothing before") {
    run_request r = small("scheme=su.coded.e4m3");
    const auto plain = finished(r);
    r.interventions = {{3, parse_settings("scheme=fp32")}};
    const auto changed = finished(r);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(plain->history()[i].loss == changed->history()[i].loss);
    }
    CHECK(plain->history()[3].loss != changed->history()[3].loss);
    r.interventions = {{3, parse_settings("scheme=su.coded.e4m3")}};
    CHECK(same_bits(finished(r)->values(), plain->values()));
}

TEST_CASE("interventions change the update and the batches after their step") {
    run_request r = small("all=mxfp8");
    r.steps = 8;
    const std::vector<float> plain = losses_of(*finished(r));
    const auto changed = [&](const std::string& text) {
        run_request other = r;
        other.interventions.push_back(parse_intervention(text));
        return losses_of(*finished(other));
    };
    for (const char* text : {"4 lr=0.1", "4 clip=0.001", "4 beta2=0.5", "4 adam-eps=0.1",
                             "4 weight-decay=1", "4 moments=reset"}) {
        INFO(text);
        const std::vector<float> losses = changed(text);
        for (std::size_t i = 0; i < 5; ++i) CHECK(losses[i] == plain[i]);
        CHECK(losses[5] != plain[5]);
    }
    CHECK(changed("4 lr=0.01") == plain);
    // Update 5 uses batch 8: its loss is that of these batches at the same parameters.
    const std::vector<float> skipped = changed("4 skip=3");
    for (std::size_t i = 0; i < 4; ++i) CHECK(skipped[i] == plain[i]);
    CHECK(skipped[4] != plain[4]);
    CHECK(changed("4 skip=2 skip=1") == skipped);
    run_request frozen = r;  // at rate 0 a loss depends on its batch alone
    frozen.rate = 0;
    frozen.settings = {};
    const std::vector<float> of_batches = losses_of(*finished(frozen));
    frozen.steps = 5;
    frozen.interventions.push_back(parse_intervention("4 skip=3"));
    CHECK(losses_of(*finished(frozen)).back() == of_batches[7]);
}

TEST_CASE("moments that are reset are those of a run that begins with the same parameters") {
    const test::scratch_dir dir;
    run_request r = small("ln=bf16");
    r.interventions.push_back(parse_intervention("3 moments=reset"));
    const auto whole = finished(r);
    // Resumed before, at and after the reset.
    for (const std::uint64_t at : {2, 3, 4}) {
        training part(r, execution_context());
        while (part.done() < at) part.step();
        part.save(dir / "part");
        training rest(dir / "part", execution_context());
        while (!rest.finished()) rest.step();
        INFO(at);
        CHECK(same_bits(rest.values(), whole->values()));
    }
    // One update from zero moments moves every parameter by the rate, as the first one does.
    run_request before = r;
    before.steps = 3;
    before.interventions.clear();
    const auto start = finished(before);
    run_request one = r;
    one.steps = 4;
    const auto end = finished(one);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < start->values().size(); ++i) {
        const float step = std::abs(end->values()[i] - start->values()[i]);
        moved += step > 0.9f * 0.01f && step < 1.1f * 0.01f ? 1 : 0;
    }
    CHECK(moved > start->values().size() * 9 / 10);
}

TEST_CASE("seeds of parameters and of data act apart") {
    const auto first_loss = [](std::optional<std::uint64_t> init,
                               std::optional<std::uint64_t> data) {
        run_request r = small("");
        r.steps = 1;
        r.init_seed = init;
        r.data_seed = data;
        const auto t = finished(r);
        return std::pair(losses_of(*t), training(r, execution_context()).values());
    };
    const auto [loss, values] = first_loss({}, {});
    CHECK(first_loss(1, 1).first == loss);
    const auto [other_data, same_values] = first_loss({}, 2);
    CHECK(other_data != loss);
    CHECK(same_bits(same_values, values));
    const auto [other_init, other_values] = first_loss(2, {});
    CHECK(other_init != loss);
    CHECK_FALSE(same_bits(other_values, values));
}

TEST_CASE("a nudge changes weights alone, by a ten-thousandth") {
    run_request r = small("");
    r.rate = 0;
    const auto plain = finished(r);
    r.nudge = 1;
    const auto nudged = finished(r);
    for (const parameter& p : plain->network().parameters().all()) {
        double square = 0;
        for (std::size_t i = 0; i < p.count; ++i) {
            const auto a = static_cast<double>(plain->values()[p.first + i]);
            const auto b = static_cast<double>(nudged->values()[p.first + i]);
            if (a != 0) square += std::pow((b - a) / a, 2);
        }
        const double rms = std::sqrt(square / static_cast<double>(p.count));
        if (p.kind == parameter_kind::weight) {
            CHECK(rms > 0.9e-4);
            CHECK(rms < 1.1e-4);
        } else {
            CHECK(rms == 0);
        }
    }
}

TEST_CASE("every scheme trains, and what is not float32 differs from it") {
    const auto plain = finished(small(""));
    for (const scheme& s : schemes) {
        INFO(s.name);
        const auto done = finished(small(std::string("scheme=").append(s.name)));
        const training& t = *done;
        CHECK(std::isfinite(t.history().back().loss));
        CHECK(t.history().back().loss < 2 * plain->history().back().loss);
        CHECK(same_bits(t.values(), plain->values()) == s.settings.empty());
    }
}

TEST_CASE("every NaN of a checkpoint is written with the same bits") {
    const test::scratch_dir dir;
    const std::string given = dir / "given.safetensors", again = dir / "again.safetensors";
    training(small(""), execution_context()).save(given);
    std::string bytes = bytes_of(given);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::size_t first = sizeof header + header;  // the first number of the first tensor
    const std::uint32_t other = 0xffc00001;
    std::memcpy(bytes.data() + first, &other, sizeof other);
    std::ofstream(given, std::ios::binary) << bytes;
    training(given, execution_context()).save(again);
    const std::uint32_t quiet = 0x7fc00000;
    std::memcpy(bytes.data() + first, &quiet, sizeof quiet);
    CHECK((bytes_of(again) == bytes));
}

TEST_CASE("recipes of every kind make their way through all three products") {
    const auto plain = finished(small(""));
    for (const char* settings :
         {"all=nvfp4", "all=mxfp4:transform=hadamard,transform_size=16",
          "w=mxfp8:transform=hadamard", "all=mxfp8:block=32x32", "all=mxint8", "all=f16",
          "all=tf32", "all=e4m3:scale=tensor", "all=mxfp8 source=requantized",
          "all=mxfp4:transform=hadamard source=requantized", "ln-input=mxfp8 ln-output=mxfp8",
          "accumulate=fp32.fma all=mxfp8", "all=mxfp8 accumulate=sm100.mxf8f6f4"}) {
        INFO(settings);
        run_request r = small(settings);
        r.steps = 2;
        if (std::string(settings).find("sm100") != std::string::npos) {
            r.shape.width = 32;
            r.batch = 32;
        }
        const auto done = finished(r);
        const training& t = *done;
        // Close to float32's; a rotation that does not cancel, or a wrong axis, is far from it.
        const float exact = r.shape.width == 40 ? plain->history()[1].loss : t.history()[1].loss;
        CHECK(std::abs(t.history()[1].loss / exact - 1) < 0.1f);
    }
}

TEST_CASE("the chain model of mx explain accumulators gives the bits of the chain") {
    CHECK(same_bits(finished(small("all=mxfp8 accumulate=fp32.fma"))->values(),
                    finished(small("all=mxfp8"))->values()));
}

TEST_CASE("the loss of the paper's task stays above its floor") {
    run_request r = small("");
    r.shape.width = 32;
    r.batch = 64;
    r.steps = 400;
    r.rate = 0.003;
    const auto done = finished(r);
    const training& t = *done;
    const double floor = 1.0 / 32 + 25e-6;
    double mean = 0, square = 0;
    for (std::size_t i = 200; i < 400; ++i) {
        const auto x = static_cast<double>(t.history()[i].loss);
        mean += x / 200;
        square += x * x / 200;
    }
    const double error = std::sqrt((square - mean * mean) / 200);
    CHECK(mean > floor - 3 * error);
    CHECK(mean < 2 * floor);
}

TEST_CASE("a rate that diverges ends the run in order") {
    const test::scratch_dir dir;
    run_request r = small("");
    r.by = optimizer::sgd;
    r.rate = 1e6;
    r.steps = 100;
    training t(r, execution_context());
    run_plan plan;
    plan.folder = dir / "run";
    plan.head = {{"schema", std::string("mx.run/1")}};
    begin_folder(plan.folder);
    run(t, plan);
    CHECK(t.diverged());
    CHECK(t.done() < 100);
    const std::string json = bytes_of(plan.folder + "/run.json");
    CHECK(json.find("\"status\":\"diverged\"") != std::string::npos);
    CHECK(json.find("\"loss\":null") != std::string::npos);
    CHECK_THROWS_AS(begin_folder(plan.folder), base::error);
}

TEST_CASE(
    "a run that ends because its gradient is not finite is unstable, however finite its losses") {
    run_request r;
    r.shape.width = 16;
    r.shape.depth = 2;
    r.batch = 32;
    r.by = optimizer::sgd;
    r.rate = 100;
    r.steps = 30;
    for (const auto& task : {"paper", "teacher"}) {
        set_key(r, *std::ranges::find(request_keys(), "task", &request_key::name), task);
        training t(r, execution_context());
        run(t, {});
        REQUIRE(t.diverged());
        REQUIRE(std::isfinite(t.history().back().loss));
        const report::record figures = report::written(run_members, figures_of(t));
        CHECK(report::number_of(figures, "unstable_at") == static_cast<double>(t.done()));
        CHECK(report::number_of(figures, "last_loss") ==
              static_cast<double>(t.history().back().loss));
    }
}

TEST_CASE("a curve jumps where it leaves ten times its running median") {
    std::vector<float> losses(60, 1.0f);
    CHECK_FALSE(first_jump(losses));
    losses[5] = 100;  // during the burn-in
    losses[50] = 10.5f;
    CHECK(first_jump(losses) == 51);
    CHECK_FALSE(first_excess(losses));  // one loss is not sustained
    losses[40] = NAN;
    CHECK(first_jump(losses) == 41);
    CHECK(first_excess(losses) == 41);
}

TEST_CASE("an excess is sustained, and larger than the noise around the trend") {
    // Falls, with noise of deviation 0.1.
    std::vector<float> losses(600);
    const auto noise = [](std::size_t i) {
        return 0.1f * (static_cast<float>(base::random_u32({1, 2}, i)) / 2147483648.0f - 1) *
               1.732f;
    };
    for (std::size_t i = 0; i < losses.size(); ++i) {
        losses[i] = 2 + 3 * std::exp(-static_cast<float>(i) / 50) + noise(i);
    }
    CHECK_FALSE(first_excess(losses));
    CHECK(rise_at_end(losses).value() < 0.02);
    std::vector<float> spike = losses, raised = losses, ramp = losses;
    for (std::size_t i = 300; i < 308; ++i) spike[i] += 1;
    CHECK_FALSE(first_excess(spike));
    for (std::size_t i = 300; i < losses.size(); ++i) {
        raised[i] += 0.5f;
        ramp[i] += 0.02f * static_cast<float>(i - 300);
    }
    const auto at = first_excess(raised);
    REQUIRE(at);
    CHECK(*at >= 290);
    CHECK(*at <= 310);
    CHECK_FALSE(first_jump(raised));
    CHECK(rise_at_end(raised).value() > 0.2);
    // The median rises along, the deviation around the trend does not.
    REQUIRE(first_excess(ramp));
    CHECK(*first_excess(ramp) < 360);
    instability_rule blunt;
    blunt.spread = 30;
    CHECK_FALSE(first_excess(raised, blunt));
    // Fewer than two tenths after the burn-in are too few to judge an end.
    CHECK_FALSE(rise_at_end(std::span(losses).first(50)));
    CHECK(rise_at_end(std::vector<float>(100, NAN)) == INFINITY);
}

TEST_CASE("a language model that leaves its task is unstable, and a healthy one is not") {
    run_request r = request_for("olmo", "");
    r.shape.width = 32;
    r.shape.depth = 1;
    r.heads = 2;
    r.context = 16;
    r.batch = 64;
    r.steps = 120;
    for (const double rate : {0.004, 5.0}) {
        r.rate = rate;
        run_request one = r;
        fit_schedule(one);
        training t(one, execution_context());
        while (!t.finished()) t.step();
        const std::vector<float> losses = losses_of(t);
        CHECK(rule_of(one).by == instability_rule::kind::excess);
        CHECK(first_instability(losses, rule_of(one)).has_value() == (rate > 1));
        CHECK_FALSE(first_jump(losses));
    }
    CHECK(rule_of(run_request()).by == instability_rule::kind::jump);
}

TEST_CASE("batches come from a file step by step, and labels from its teacher") {
    run_request r = small("all=mxfp8");
    r.noise = 0;
    const test::scratch_dir dir;
    const std::size_t one = r.batch * r.shape.width, count = one * r.steps;
    const std::vector<float> none;
    const auto losses_with = [&](const std::vector<float>& y, std::uint64_t teacher_seed) {
        execution_context on;
        std::vector<float> x(count);
        on.kernels().normal({r.seed, base::tensor_id("data.x")}, 0, count, x.data());
        parameter_list list;  // of the teacher
        for (std::size_t i = 0; i < r.shape.depth; ++i) {
            for (const char* name : {"fc1", "fc2"}) {
                list.add(fmt::format("teacher.{}.{}.weight", i, name), parameter_kind::weight,
                         {r.shape.width, r.shape.width});
            }
        }
        const std::vector<float> w = initial_values(list, start::pytorch, 1, 1, teacher_seed);
        std::vector<io::planned_array> plan;
        std::vector<const float*> data;
        const auto add = [&](const std::string& name, const tensor::shape& shape, const float* at) {
            plan.push_back({name, tensor::dtype::f32, shape});
            data.push_back(at);
        };
        const tensor::shape batches{r.steps, r.batch, r.shape.width};
        add("x", batches, x.data());
        if (!y.empty()) add("y", batches, y.data());
        if (teacher_seed != 0) {
            for (const parameter& p : list.all()) add(p.name, p.shape, w.data() + p.first);
        }
        const std::string path = dir / fmt::format("{}-{}.safetensors", y.size(), teacher_seed);
        const auto file = io::create_safetensors(path, plan, {});
        for (std::size_t i = 0; i < plan.size(); ++i) {
            std::uint64_t elements = 1;
            for (const auto extent : plan[i].shape) elements *= extent;
            file->write(i, 0, std::as_bytes(std::span(data[i], elements)));
        }
        file->commit();
        run_request with = r;
        with.data_file = path;
        return losses_of(*finished(with));
    };
    const std::vector<float> plain = losses_of(*finished(r));
    CHECK(losses_with(none, 0) == plain);
    CHECK(losses_with(none, r.seed) == plain);
    const std::vector<float> other = losses_with(none, 7);
    CHECK(other != plain);
    // The labels of that teacher, given as such.
    execution_context on;
    teacher seventh(r.shape, 7);
    std::vector<float> x(count), y(count);
    on.kernels().normal({r.seed, base::tensor_id("data.x")}, 0, count, x.data());
    for (std::size_t i = 0; i < count; i += one) {
        seventh.forward(on, x.data() + i, r.batch, y.data() + i);
    }
    CHECK(losses_with(y, 0) == other);
    run_request labelled = r;
    labelled.data_file = dir / fmt::format("{}-0.safetensors", y.size());
    labelled.settings = parse_settings("teacher=quantized");
    CHECK(test::error_of(base::error_kind::input, [&] { finished(labelled); }) ==
          labelled.data_file +
              ": tensor 'y': has labels, which no teacher makes: leave out teacher=quantized");
    run_request longer = r;
    longer.data_file = dir / "0-0.safetensors";
    longer.steps = r.steps + 1;
    CHECK_THROWS_AS(training(longer, execution_context()), base::error);
}

TEST_CASE("probes measure the gradient beside float32's") {
    run_request r = small("scheme=fp32");
    r.probe_every = 1;
    training t(r, execution_context());
    t.step();
    const report::record& exact = t.probes().front();
    CHECK(std::get<double>(*report::find(exact, "zeta")) == 0);
    CHECK(std::get<double>(*report::find(exact, "cosine")) > 1 - 1e-12);
    r.settings = parse_settings("all=mxfp4:round=stochastic");
    r.probe_draws = 8;
    training q(r, execution_context());
    q.step();
    const report::record& p = q.probes().front();
    const double zeta = std::get<double>(*report::find(p, "zeta"));
    CHECK(zeta > 0.05);
    CHECK(zeta < 1);
    const auto& draws = std::get<report::record>(*report::find(p, "redraws"));
    const double bias = std::get<double>(*report::find(draws, "bias"));
    const double spread = std::get<double>(*report::find(draws, "spread"));
    // The mean of eight draws keeps an eighth of their variance.
    CHECK(bias < spread);
    CHECK(bias > spread / 8);
    // A probe's computations do not affect the training.
    training plain(small("all=mxfp4:round=stochastic"), execution_context());
    plain.step();
    CHECK(same_bits(plain.values(), q.values()));
}

TEST_CASE("probes say where gains are beside the clamp zone") {
    run_request r = small("scheme=su.told.e4m3");
    r.probe_every = 1;
    r.least_gain = 0.85f;
    r.most_gain = 0.9f;
    training t(r, execution_context());
    t.step();
    const auto gains_of = [](const training& of) {
        const auto& all = std::get<report::record>(*report::find(of.probes().front(), "gains"));
        return std::get<report::record>(*report::find(all, "layers.0.ln.weight"));
    };
    const report::record gains = gains_of(t);
    CHECK(*report::number_of(gains, "least") >= 0.85f);
    CHECK(*report::number_of(gains, "median") > *report::number_of(gains, "least"));
    CHECK(*report::number_of(gains, "median") < *report::number_of(gains, "largest"));
    CHECK(*report::number_of(gains, "largest") <= 0.9f);
    CHECK(*report::number_of(gains, "clamp_zone_from") == 0.84375);
    // All of them are in the zone and clamp.
    const auto& blocks = std::get<report::record>(*report::find(t.probes().front(), "blocks"));
    const auto& block = std::get<report::record>(*report::find(blocks, "layers.0.ln.weight"));
    CHECK(report::number_of(block, "saturated_share") == 1.0);
    r.settings = parse_settings("ln-gain=mxfp8:scale=rceil");
    training mended(r, execution_context());
    mended.step();
    CHECK_FALSE(report::number_of(gains_of(mended), "clamp_zone_from"));
    // Magnitudes, for either sign; nothing for non-finite values.
    const codec::recipe floor = codec::parse_recipe("mxfp8");
    const std::vector<float> mixed_signs{-4, 1, 2};
    CHECK(gain_sizes_of(floor, mixed_signs).median == 2.0);
    CHECK(gain_sizes_of(floor, mixed_signs).largest == 4.0);
    CHECK_FALSE(gain_sizes_of(floor, std::vector<float>{1, NAN}).least);
    CHECK_FALSE(gain_sizes_of(floor, {}).least);
}

TEST_CASE("requests that contradict themselves are refused") {
    CHECK_THROWS_AS(parse_settings("all=mxfp9"), base::error);
    CHECK_THROWS_AS(parse_settings("al=mxfp8"), base::error);
    CHECK_THROWS_AS(parse_settings("scheme=su.coded.nothing"), base::error);
    CHECK_THROWS_AS(parse_settings("ln=fp16"), base::error);
    CHECK_THROWS_AS(parse_intervention("mxfp8"), base::error);
    CHECK_THROWS_AS(parse_intervention("x all=mxfp8"), base::error);
    for (const char* text :
         {"3 lr=fast", "3 moments=zero", "3 skip=0", "3 steps=9", "3 ln.*:lr=1"}) {
        CHECK_THROWS_AS(parse_intervention(text), base::error);
    }
    run_request low = small("");
    low.cosine_steps = low.steps;
    low.interventions.push_back(parse_intervention("3 lr=1e-9"));
    CHECK_THROWS_AS(check(low), base::error);
    CHECK_THROWS_AS(precision_of(parse_settings("fprop-x=mxfp4:transform=hadamard "
                                                "fprop-w=mxfp4:transform=random-hadamard")),
                    base::error);
    CHECK_THROWS_AS(precision_of(parse_settings("ln-gain=mxfp4:transform=hadamard")), base::error);
    const test::scratch_dir dir;
    const std::string path = dir / "no.safetensors";
    std::ofstream(path) << "nothing";
    CHECK_THROWS_AS(training(path, execution_context()), base::error);
}

TEST_CASE("a request survives its way through text") {
    run_request r = small(mixed);
    r.interventions = {{3, parse_settings("all=bf16 ln=bf16")},
                       {9, parse_settings("fp32")},
                       parse_intervention("9 lr=0.5 all=mxfp4 moments=reset skip=2")};
    r.init_seed = 4;
    r.nudge = 3;
    r.nudge_after = 5;
    r.least_gain = 0.9;
    r.noise = 0.1;
    r.cosine_steps = 12;
    r.probe_every = 7;
    CHECK(from_text(to_text(r)) == r);
}

}  // namespace
}  // namespace mx::lab

// SPDX-License-Identifier: Apache-2.0
// Labels of a quantized teacher, against those of the published code
// (scripts/make-teacher-vectors.py).
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/lab/model.hpp"
#include "libmx/lab/request.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "tests/catch.hpp"
#include "tests/io/scratch_dir.hpp"

namespace mx::lab {
namespace {

std::string recorded_labels(const std::string& file) {
    return fmt::format("{}/datasets/vectors/teacher/{}.safetensors", MX_SOURCE_DIR, file);
}

run_request request_of_labels(const std::string& file, activation phi,
                              const std::string& settings) {
    run_request r;
    r.shape = {64, 2, phi};
    r.batch = 64;
    r.steps = 1;
    r.noise = 0;
    r.data_file = recorded_labels(file);
    r.settings = parse_settings(settings);
    return r;
}

std::vector<float> labels_of(const run_request& r, int threads = 1, std::uint64_t seed = 1) {
    execution_context on(threads);
    run_request seeded = r;
    seeded.seed = seed;
    const auto m = make_model(seeded, on);
    m->make_batch(on, precision_of(r.settings, m->layers()), 1);
    const layer_value y = m->batch()[1];
    return {y.data, y.data + r.batch * r.shape.width};
}

TEST_CASE("labels of a quantized teacher are those of the published code, bit for bit") {
    struct recording {
        const char* file;
        activation phi;
        const char* label;
        const char* scheme;
    };
    for (const auto& [file, phi, label, scheme] : {
             recording{"mlp", activation::gelu, "y.e4m3", "su.coded.e4m3"},
             recording{"mlp", activation::gelu, "y.e4m3", "su.coded.e5m2_bwd"},
             recording{"mlp", activation::gelu, "y.e4m3", "su.coded.no_ln_q"},
             recording{"mlp", activation::gelu, "y.e4m3", "su.coded.no_bp_quant"},
             recording{"mlp", activation::gelu, "y.e2m3", "su.coded.e2m3"},
             recording{"mlp", activation::gelu, "y.e2m1", "su.coded.e2m1"},
             recording{"mlp", activation::gelu, "y.bump_exp", "su.coded.bump_exp"},
             recording{"mlp", activation::gelu, "y.bf16_act", "su.coded.bf16_act"},
             recording{"mlp", activation::relu, "y.relu", "su.coded.e4m3"},
             recording{"swiglu", activation::swiglu, "y.e4m3", "su.coded.e4m3"},
         }) {
        INFO(file << " " << label << " " << scheme);
        const std::vector<float> given = tensor_file(recorded_labels(file)).read(label);
        run_request r =
            request_of_labels(file, phi, fmt::format("scheme={} teacher=quantized", scheme));
        for (const int threads : {1, 2}) {
            const std::vector<float> own = labels_of(r, threads);
            REQUIRE(own.size() == given.size());
            CHECK(std::memcmp(own.data(), given.data(), own.size() * sizeof(float)) == 0);
        }
        // Without the setting, the teacher is that of float32.
        r.settings = parse_settings(fmt::format("scheme={}", scheme));
        const std::vector<float> exact = labels_of(r);
        CHECK(exact == labels_of(request_of_labels(file, phi, "scheme=fp32")));
        CHECK(exact != given);
    }
}

TEST_CASE("a teacher without rounded steps keeps its GELU, and draws by the seed") {
    const auto made = [](const std::string& settings, std::uint64_t seed = 1) {
        return labels_of(request_of_labels("mlp", activation::gelu, settings), 1, seed);
    };
    const std::vector<float> exact = made("");
    CHECK(made("teacher=quantized") == exact);
    CHECK(made("vector=bf16 teacher=quantized") != exact);
    const std::string random = "forward=mxfp4:round=stochastic teacher=quantized";
    CHECK(made(random) == made(random));
    CHECK(made(random) != made(random, 2));
}

TEST_CASE("a scheme that intervenes has the labels of float32, as those of the published code") {
    run_request r =
        request_of_labels("mlp", activation::gelu, "scheme=su.coded.e4m3 teacher=quantized");
    r.interventions = {parse_intervention("2 x=bf16"), parse_intervention("4 su.coded.bf16_act")};
    for (const std::uint64_t done : {0u, 2u, 4u}) {
        INFO(done);
        CHECK(precision_of(settings_after(r, done)).teacher_quantized == (done < 4));
    }
}

TEST_CASE("a quantized teacher is refused where there is none, and for some of the layers") {
    const auto refusal = [](const run_request& r) {
        return test::error_of(base::error_kind::usage, [&] { check(r); });
    };
    CHECK(test::error_of(base::error_kind::usage, [] { parse_settings("teacher=half"); }) ==
          "unknown value for teacher: 'half'; did you mean 'fp32'? (known: quantized, fp32)");
    CHECK(refusal(request_of_labels("mlp", activation::gelu, "layers.0.*:teacher=quantized")) ==
          "teacher=quantized: applies to all layers; leave out 'layers.0.*:'");
    run_request text = request_for("olmo", "");
    fit_schedule(text);
    check(text);
    const std::string none = "teacher=quantized: olmo has no teacher; leave it out";
    text.settings = parse_settings("teacher=quantized");
    CHECK(refusal(text) == none);
    text.settings.clear();
    text.interventions = {parse_intervention("1 teacher=quantized")};
    CHECK(refusal(text) == none);
}

}  // namespace
}  // namespace mx::lab

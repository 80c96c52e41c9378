// SPDX-License-Identifier: Apache-2.0
// Draws of PyTorch, against tensors that PyTorch drew (scripts/make-torch-vectors.py).
#include "libmx/lab/torch_stream.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/lab/model.hpp"
#include "libmx/lab/request.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "tests/catch.hpp"

namespace mx::lab {
namespace {

constexpr std::size_t width = 24, batch = 7, steps = 3;

tensor_file recorded_draws() {
    return tensor_file(std::string(MX_SOURCE_DIR) + "/datasets/vectors/draws/torch.safetensors");
}

run_request request_of_recording() {
    run_request r;
    r.shape.width = width;
    r.shape.depth = 2;
    r.batch = batch;
    r.seed = 1337;
    r.stream = stream_kind::torch;
    r.noise = 0;
    return r;
}

void check_bits(const std::vector<float>& own, const std::vector<float>& recorded) {
    REQUIRE(own.size() == recorded.size());
    CHECK(std::memcmp(own.data(), recorded.data(), own.size() * sizeof(float)) == 0);
}

TEST_CASE("a proxy from torch's stream begins with torch's parameters") {
    const tensor_file file = recorded_draws();
    execution_context on;
    const auto m = make_model(request_of_recording(), on);
    const std::vector<float> values = m->initial_values();
    for (const parameter& p : m->parameters().all()) {
        if (p.kind != parameter_kind::weight && p.kind != parameter_kind::bias) continue;
        INFO(p.name);
        const float* const own = of(values, p);
        check_bits({own, own + p.count}, file.read(p.name, p.shape));
    }
}

TEST_CASE("batches of torch's stream are torch's, in order and after a resume") {
    const tensor_file file = recorded_draws();
    const std::vector<float> x = file.read("x");
    execution_context on(2);
    const run_request r = request_of_recording();
    std::vector<std::vector<float>> labels;
    const auto check_step = [&](model& m, std::uint64_t step) {
        m.make_batch(on, {}, step);
        const layer_value own = m.batch()[0];
        const float* const given = x.data() + (step - 1) * batch * width;
        INFO(step);
        check_bits({own.data, own.data + batch * width}, {given, given + batch * width});
        const layer_value y = m.batch()[1];
        return std::vector<float>(y.data, y.data + batch * width);
    };
    const auto straight = make_model(r, on);
    for (std::uint64_t step = 1; step <= steps; ++step) {
        labels.push_back(check_step(*straight, step));
    }
    const auto resumed = make_model(r, on);
    for (const std::uint64_t step : {3, 1, 2}) {
        CHECK(check_step(*resumed, step) == labels[step - 1]);
    }
}

TEST_CASE("labels of torch's stream are those of torch's teacher") {
    const tensor_file file = recorded_draws();
    execution_context on;
    const auto m = make_model(request_of_recording(), on);
    m->make_batch(on, {}, 1);
    student_shape shape;
    shape.width = width;
    shape.depth = 2;
    teacher given(shape, 0);
    given.read(file);
    std::vector<float> y(batch * width);
    given.forward(on, m->batch()[0].data, batch, y.data());
    check_bits({m->batch()[1].data, m->batch()[1].data + y.size()}, y);
}

TEST_CASE("a million normal numbers are torch's") {
    const tensor_file file = recorded_draws();
    const std::vector<std::byte> stored = file.bytes("checksum", tensor::dtype::u64);
    std::uint64_t checksum = 0, own = 0;
    std::memcpy(&checksum, stored.data(), sizeof checksum);
    torch_stream stream(1337);
    for (int layer = 0; layer < 2; ++layer) {
        std::vector<float> drawn(2 * 4 * width * width + width);
        stream.uniform(1, drawn);
    }
    std::vector<float> drawn(2 * 2 * width * width), x(std::size_t{1} << 20);
    stream.uniform(1, drawn);
    stream.skip_normal(steps, batch * width);
    const execution_context on(2);
    stream.normal(on, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        own += (i + 1) * std::bit_cast<std::uint32_t>(x[i]);
    }
    CHECK(own == checksum);
}

TEST_CASE("requests that torch's stream does not have are refused") {
    run_request r = request_of_recording();
    r.begin = start::xavier;
    CHECK_THROWS_AS(check(r), base::error);
    r = request_of_recording();
    r.shape.width = 4;
    r.batch = 3;
    CHECK_THROWS_AS(check(r), base::error);
}

}  // namespace
}  // namespace mx::lab

// SPDX-License-Identifier: Apache-2.0
// The casts of the CUDA kernel on the host: pieces, copies and draws.
#include <cmath>

#include "libmx/base/cuda/pooled_device.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_caster.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/io/scratch_dir.hpp"
#include "tests/memory_model.hpp"
#include "tests/parity/element_cases.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;
using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;

cuda::element_starter starter() { return cuda::start_on_host; }

host_device& roomy() {
    static host_device device;
    return device;
}

std::unique_ptr<codec::caster> in_pieces(mx::base::notices* notices) {
    return cuda::make_streamed_elements(roomy(), starter(), notices, 1000);
}

const codec::backend& stand_in() {
    static const codec::backend row = [] {
        codec::backend d = codec::backend_named("scalar");
        d.name = "pieces";
        d.make_quantizer = cuda::make_host_quantizer;
        d.make_caster = in_pieces;
        return d;
    }();
    return row;
}

codec::element_cast to_e2m1() {
    const auto* f = mx::format::find_element_format("e2m1");
    mx::format::rounding_mode mode;
    mode.how = mx::format::rounding::stochastic;
    const auto& ocp = codec::row_of(codec::dialect_id::ocp);
    return {codec::conversion_of(ocp, *f, mode, true, false), false};
}

// The results for some numbers: codes and values.
struct outcome {
    std::vector<std::uint8_t> codes;
    std::vector<float> values;
    bool operator==(const outcome&) const = default;
};

outcome cast_by(codec::caster& by, const std::vector<float>& x) {
    outcome o{std::vector<std::uint8_t>(x.size()), std::vector<float>(x.size())};
    const codec::stored_values values{mx::tensor::dtype::f32,
                                      reinterpret_cast<const std::byte*>(x.data()), x.size()};
    by.cast(to_e2m1(), {values, x.size(), 5, {1, 2}}, {o.codes.data(), o.values.data()});
    return o;
}

std::vector<float> some_values(std::size_t count) {
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; ++i) {
        x[i] = static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1000) * 0.009f;
    }
    return x;
}

std::string message_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const mx::base::error& e) {
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("the host casts value by value, with the draw of each") {
    const codec::element_cast to = to_e2m1();
    const std::vector<float> x = some_values(300);
    const outcome got = cast_by(*codec::make_host_caster(), x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint32_t draw = mx::base::random_u32({1, 2}, 5 + i);
        const codec::converted q = codec::convert(to.number, mx::base::bits_of(x[i]), draw);
        CHECK(int{got.codes[i]} == q.code);
        CHECK(mx::base::bits_of(got.values[i]) == mx::base::bits_of(q.value));
    }
}

TEST_CASE("a NaN that arithmetic leaves has the same bits on every processor") {
    // Its log2 rounds to 128, and 0 times Inf is NaN.
    const auto* f = mx::format::find_element_format("e4m3");
    const auto& by = codec::row_of(codec::dialect_id::microxcaling);
    const codec::converted q =
        codec::convert(codec::conversion_of(by, *f, {}, true, false), 0x7f7fffffu, 0);
    CHECK(q.code == 0x7f);
    CHECK(mx::base::bits_of(q.value) == 0x7fc00000u);
}

TEST_CASE("casts in pieces leave the bytes of the host") {
    const auto batch = cuda::make_streamed_elements(roomy(), starter(), nullptr, 1000);
    std::size_t compared = 0;
    const auto on_case = [&](const std::string& what, const std::string& difference) {
        CAPTURE(what);
        CHECK(difference == "");
        ++compared;
    };
    mx::tests::compare_casts(*batch, on_case);
    CHECK(compared > 500);
    mx::tests::compare_long_cast(*batch, 100001, on_case);
}

TEST_CASE("pieces of any size make one run") {
    const std::vector<float> x = some_values(1003);
    const outcome expected = cast_by(*codec::make_host_caster(), x);
    for (const std::size_t piece : {1u, 2u, 7u, 501u, 1002u, 1003u, 4000u}) {
        CAPTURE(piece);
        const auto batch = cuda::make_streamed_elements(roomy(), starter(), nullptr, piece);
        CHECK((cast_by(*batch, x) == expected));
    }
}

TEST_CASE("a device without room for casts leaves them to the host, and says so once") {
    const std::vector<float> x = some_values(5000);
    const outcome expected = cast_by(*codec::make_host_caster(), x);
    // Two slots: pinned memory, memory of the device and a stream for each, in any order.
    for (std::size_t fails = 0; fails < 6; ++fails) {
        CAPTURE(fails);
        host_device device({}, [&](std::size_t number) { return number == fails; });
        std::vector<std::string> said;
        mx::base::notices notices([&](const std::string& line) { said.push_back(line); });
        {
            const auto batch = cuda::make_streamed_elements(device, starter(), &notices, 1000);
            CHECK((cast_by(*batch, x) == expected));
            CHECK(device.held(memory_kind::device) == 0);
            CHECK(device.held(memory_kind::pinned) == 0);
            CHECK((cast_by(*batch, x) == expected));
        }
        REQUIRE(said.size() == 1);
        CHECK(said[0].find("backend cuda: ") == 0);
        CHECK(said[0].find("; continuing with backend " + std::string(codec::best_backend().name) +
                           ", which gives the same bytes") != std::string::npos);

        // Nor is anything kept that another program may need.
        host_device kept({}, [&](std::size_t number) { return number >= fails; });
        mx::base::cuda::pooled_device pool(kept);
        const auto pooled = cuda::make_streamed_elements(pool, starter(), &notices, 1000);
        CHECK((cast_by(*pooled, x) == expected));
        CHECK(kept.held(memory_kind::device) == 0);
        CHECK(kept.held(memory_kind::pinned) == 0);

        host_device other({}, [&](std::size_t number) { return number == fails; });
        const auto batch = cuda::make_streamed_elements(other, starter(), nullptr, 1000);
        CHECK_THROWS_AS(cast_by(*batch, x), mx::base::cuda::out_of_memory);
    }
}

TEST_CASE("files cast in pieces are those of the host, with any number of threads") {
    mx::tests::memory_model model;
    const std::vector<float> floats = some_values(300001);
    std::vector<std::uint16_t> halves(70001);
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i * 31);
    model.add("f32", mx::tensor::dtype::f32, {300001}, floats);
    model.add("bf16", mx::tensor::dtype::bf16, {7, 10000},
              std::vector(halves.begin() + 1, halves.end()));
    model.add("f16", mx::tensor::dtype::f16, {70001}, halves);
    model.add("f64", mx::tensor::dtype::f64, {3}, std::vector<double>{1.0, -3.3, 1e300});
    model.add("none", mx::tensor::dtype::f32, {0, 4}, std::vector<float>{});
    const mx::test::scratch_dir folder;
    const std::string path = folder / "w.safetensors";
    const auto file_by = [&](const codec::backend* d, mx::convert::cast_request request,
                             int threads) {
        mx::engine::run_control control;
        control.backend = d;
        control.threads = threads;
        mx::convert::cast(model.all(), request, path, control);
        return mx::test::slurp(path);
    };
    for (const char* element : {"e4m3", "e3m2", "e2m1", "int5", "e8m0", "ue4m3"}) {
        for (const bool packed : {false, true}) {
            CAPTURE(element, packed);
            mx::convert::cast_request request;
            request.element = element;
            request.packed = packed;
            if (std::string(element) == "e4m3") request.round = mx::format::rounding::stochastic;
            const std::string expected = file_by(nullptr, request, 1);
            for (const int threads : {1, 2, 7}) {
                CAPTURE(threads);
                CHECK(file_by(&stand_in(), request, threads) == expected);
                CHECK(file_by(nullptr, request, threads) == expected);
            }
        }
    }
}

TEST_CASE("a value without a code is named by its place, whoever casts") {
    std::vector<float> values = some_values(5000);
    values[4321] = INFINITY;
    values[4900] = -INFINITY;
    mx::tests::memory_model model;
    model.add("w", mx::tensor::dtype::f32, {5000}, values);
    mx::convert::cast_request request;
    request.element = "e2m1";
    request.packed = true;
    request.by = codec::find_dialect("microxcaling");
    const mx::test::scratch_dir folder;
    const std::string path = folder / "w.safetensors";
    const auto message_by = [&](const codec::backend* d) {
        mx::engine::run_control control;
        control.backend = d;
        return message_of([&] { mx::convert::cast(model.all(), request, path, control); });
    };
    const std::string expected = message_by(nullptr);
    CHECK(expected.find("element 4321 is inf") != std::string::npos);
    CHECK(message_by(&stand_in()) == expected);
}

// SPDX-License-Identifier: Apache-2.0
// Functions of mx/mx.hpp in every mode of the caller: the same bytes, and the mode is as before.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mx/mx.hpp"
#include "tests/catch.hpp"
#include "tests/floating_point_modes.hpp"

namespace {

using namespace mx;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Magnitudes from subnormals to 2^30.
std::vector<float> of_all_sizes(std::size_t count) {
    std::vector<float> x;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t random = i * 2654435761u, exponent = i % 7 == 0 ? 0 : random % 157;
        const std::uint32_t bits = (random & 0x807fffffu) | exponent << 23;
        float value = 0;
        std::memcpy(&value, &bits, sizeof value);
        x.push_back(value);
    }
    return x;
}

}  // namespace

TEST_CASE("results do not depend on the caller's floating-point environment", "[api]") {
    const std::vector<float> x = of_all_sizes(32 * 96);
    std::vector<double> wide;
    for (const float v : x) wide.push_back(static_cast<double>(v) * (1 + 0x1p-30));
    const view of_x(x, 32, 96), of_wide(wide.data(), dtype::f64, {32, 96});
    const recipe fp4 = parse_recipe("nvfp4:transform=hadamard"), fp8 = parse_recipe("mxfp8");
    const blocks q = quantize(of_x, fp4);
    const auto folder = std::filesystem::temp_directory_path();
    const std::string file = (folder / ("mx-api-modes-" + std::to_string(getpid()))).string();
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(x.data()), 4096);
    io::open_options raw;
    raw.shape = "1024", raw.dtype = "F32";

    const std::vector<std::pair<std::string_view, std::function<std::string()>>> functions{
        {"parse_recipe", [] { return to_string(parse_recipe("nvfp4:outer=given:0.1")); }},
        {"values", [&] { return bytes_of(of_wide.values()); }},
        {"quantize",
         [&] {
             const blocks b = quantize(of_x, fp4, {.threads = 2});
             return bytes_of(b.packed_codes()) + bytes_of(b.scales()) +
                    bytes_of(std::vector<float>{b.tensor_scale().value()});
         }},
        {"dequantize", [&] { return bytes_of(dequantize(q, {.threads = 2})); }},
        {"fake_quantize", [&] { return bytes_of(fake_quantize(of_x, fp8, {.threads = 2})); }},
        {"fake_quantize of the reference",
         [&] { return bytes_of(fake_quantize(of_x, fp4, {.backend = "scalar"})); }},
        {"fake_quantize to 16 bits",
         [&] {
             std::vector<std::uint16_t> to(x.size());
             fake_quantize(of_x, fp4, dtype::f16, to.data());
             return bytes_of(to);
         }},
        {"measure",
         [&] {
             return bytes_of(std::vector{measure(of_x, fp8), measure(of_x, fp4)});
         }},
        {"cast", [&] { return bytes_of(cast(of_wide, "e5m2")); }},
        {"multiply",
         [&] { return bytes_of(multiply(of_x, fp8, of_x, fp8, "fp32.fma", {.threads = 2})); }},
        {"open", [&] { return bytes_of(open(file, raw)[0].values()); }},
        {"an error",
         [&]() -> std::string {
             try {
                 quantize(of_x, parse_recipe("mxfp4:axis=5"));
             } catch (const error& e) {
                 return e.what();
             }
             return {};
         }},
    };
    for (const auto& [name, function] : functions) {
        CAPTURE(name);
        const std::string expected = function();
        REQUIRE_FALSE(expected.empty());
        for (const auto& mode : tests::floating_point_modes) {
            CAPTURE(mode.name);
            mode.set();
            const std::uint64_t before = tests::floating_point_state();
            const std::string found = function();
            const std::uint64_t after = tests::floating_point_state();
            tests::reset_floating_point();
            CHECK(found == expected);
            CHECK(after == before);
        }
    }
    std::filesystem::remove(file);
}

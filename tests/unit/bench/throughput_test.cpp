// SPDX-License-Identifier: Apache-2.0
// The arithmetic of `mx bench`: rates, roofs and ratios, of a device that is made up.
#include <vector>

#include "libmx/bench/device_throughput.hpp"
#include "libmx/bench/product_throughput.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/gemm/backends.hpp"
#include "tests/catch.hpp"

using namespace mx;
using namespace mx::bench;

namespace {

// Reads 8 MiB in 2 ms, copies 4 MiB over 4 MiB in 4 ms, gets 1 MiB in 1 ms; half as fast at first.
class made_up_meter final : public codec::device_meter {
  public:
    base::cuda::device_facts facts() const override {
        base::cuda::device_facts f;
        f.name = "made up";
        return f;
    }
    std::span<std::byte> open() override {
        staged_.resize(std::size_t{1} << 20);
        return staged_;
    }
    void spread() override { ++spreads; }
    std::uint64_t resident() const override { return std::uint64_t{8} << 20; }
    double read_once() override { return 0.002 * slow(reads_); }
    double copy_once() override { return 0.004 * slow(copies_); }
    double receive_once() override { return 0.001 * slow(receipts_); }
    void prepare(tensor::dtype, std::uint64_t cols, std::span<const codec::placed_segment> s,
                 const codec::recipe_request& recipe) override {
        prepared.push_back({cols, 0, recipe.wanted});
        for (const codec::placed_segment& one : s) {
            prepared.back().elements += one.place.elements();
        }
        runs_ = 0;
    }
    double run_once() override {
        const bool codes = prepared.back().wanted == codec::detail::codes;
        return (codes ? 0.016 : 0.008) * slow(runs_);
    }

    struct call {
        std::uint64_t cols, elements;
        codec::detail wanted;
    };
    std::vector<call> prepared;
    int spreads = 0;

  private:
    static double slow(int& calls) { return calls++ == 0 ? 2 : 1; }
    std::vector<std::byte> staged_;
    int reads_ = 0, copies_ = 0, receipts_ = 0, runs_ = 0;
};

const codec::backend& some_backend() { return codec::backends().front(); }

}  // namespace

TEST_CASE("a rate below its roof counts the bytes of values and codes", "[throughput]") {
    placed_rate r{};
    r.elements_per_second = 1e9;
    r.writes = pass_output::sums;
    CHECK(rate_below(4e9, 2, r).bytes_per_second == 2e9);
    CHECK(rate_below(4e9, 2, r).fraction == 0.5);
    r.writes = pass_output::codes;
    CHECK(rate_below(4e9, 2, r).bytes_per_second == 3e9);
    CHECK(rate_below(4e9, 2, r).fraction == 0.75);
    for (const roof_row& row : roofs) CHECK(row_of(row.which).name == row.name);
}

TEST_CASE("a device's rates are those of its best passes over all that lies there",
          "[throughput]") {
    made_up_meter meter;
    const auto recipes =
        codec::parse_recipes({"mxfp4", "mxfp4:transform=hadamard", "mxfp8:axis=flat"});
    const device_request request{recipes, some_backend(), tensor::dtype::bf16, 0};
    std::vector<double> shares;
    const device_throughput t =
        measure_device(meter, request, nullptr, [&](double s) { shares.push_back(s); });

    CHECK(t.device.name == "made up");
    CHECK(meter.spreads == 1);
    CHECK(t.memory == std::uint64_t{8} << 20);
    CHECK(t.elements == std::uint64_t{4} << 20);
    CHECK(t.bandwidth.read == Approx(8388608 / 0.002));
    CHECK(t.bandwidth.copy == Approx(8388608 / 0.004));
    CHECK(t.bandwidth.pinned == Approx(1048576 / 0.001));

    // The device does not support the rotated recipe.
    REQUIRE(t.rates.size() == 4);
    REQUIRE(meter.prepared.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        INFO(i);
        const placed_rate& r = t.rates[i];
        const bool codes = i % 2 == 1;
        CHECK(r.recipe == (i < 2 ? 0u : 2u));
        CHECK(r.backend == &some_backend());
        CHECK(r.from == values_place::device);
        CHECK(r.threads == 0);
        CHECK((r.writes == pass_output::codes) == codes);
        CHECK((r.bound == roof::device_copy) == codes);
        CHECK(r.elements_per_second == Approx(4194304 / (codes ? 0.016 : 0.008)));
        CHECK(r.fraction == Approx(codes ? 0.375 : 0.25));
        // All elements, in the recipe's rows.
        CHECK(meter.prepared[i].elements == t.elements);
        CHECK(meter.prepared[i].cols == (i < 2 ? 4096u : t.elements));
    }
    CHECK(shares == std::vector<double>{0.5, 1.0});
}

TEST_CASE("measuring a device stops when it is told to", "[throughput]") {
    made_up_meter meter;
    const auto recipes = codec::parse_recipes({"mxfp4"});
    const device_request request{recipes, some_backend(), tensor::dtype::f32, 100};
    const std::atomic<bool> cancel{true};
    CHECK_THROWS_WITH(measure_device(meter, request, &cancel, {}), "stopped before the end");
}

TEST_CASE("products of a device are compared with two threads of the processor", "[throughput]") {
    const gemm::backend& scalar = gemm::backend_named("scalar");
    gemm::backend device = scalar;
    device.device = true;
    std::vector<product_rate> rates{{0, &scalar, 1, false, 9e9}, {0, &scalar, 2, false, 2e9},
                                    {0, &scalar, 2, true, 4e9},  {1, &scalar, 2, false, 1e9},
                                    {0, &device, 4, true, 8e11}, {1, &device, 4, true, 5e10},
                                    {2, &device, 4, true, 5e10}, {0, &device, 2, true, 4e11}};
    compare_with_processor(rates);
    const std::vector<double> expected{0, 0, 0, 0, 200, 50, 0, 100};
    for (std::size_t i = 0; i < rates.size(); ++i) {
        INFO(i);
        CHECK(rates[i].times_processor == expected[i]);
    }
}

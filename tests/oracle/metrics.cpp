// SPDX-License-Identifier: Apache-2.0
// The oracle's blocks and metrics on tensors small enough to compute by hand.
#include "libmx/oracle/metrics.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/catch.hpp"

namespace {

using mx::oracle::recipe;

recipe mxfp4(std::uint64_t cols) {
    recipe r;
    r.element = mx::format::find_element_format("e2m1");
    r.block_cols = cols;
    return r;
}

}  // namespace

TEST_CASE("oracle: metrics of one MXFP4 block worked out by hand") {
    // amax 7: scale 1; 7 -> 6, 5 -> 4 (tie), 0.2 -> 0, -1 -> -1.
    const std::vector<float> x{7.0f, 5.0f, 0.25f, -1.0f};
    const auto m = mx::oracle::measure({x, 1, 1, 4, 0}, mxfp4(4));
    REQUIRE(m.blocks.size() == 1);
    CHECK(m.blocks[0].scale_code == 127);
    CHECK(m.blocks[0].codes == std::vector<std::uint8_t>{7, 6, 0, 10});
    const auto metrics = mx::oracle::metrics_of(m);
    CHECK(*metrics.at("rmse") == std::sqrt((1 + 1 + 0.0625) / 4));
    CHECK(*metrics.at("nrmse") ==
          Approx(std::sqrt(2.0625 / (49 + 25 + 0.0625 + 1))).epsilon(1e-15));
    CHECK(*metrics.at("sqnr_db") == Approx(10 * std::log10(75.0625 / 2.0625)).epsilon(1e-15));
    CHECK(*metrics.at("max_abs_error") == 1);
    CHECK(*metrics.at("mean_error") == -2.25 / 4);
    CHECK(*metrics.at("gain") == Approx((42 + 20 + 0 + 1) / 75.0625).epsilon(1e-15));
    CHECK(*metrics.at("cosine") == Approx(63 / std::sqrt(75.0625 * 53)).epsilon(1e-15));
    CHECK(*metrics.at("overflow_rate") == 0.25);
    CHECK(*metrics.at("clamp_rate") == 0.25);  // r of 7: the tie of 6 and 8, the even code
    CHECK(*metrics.at("top_code_rate") == 0.25);
    CHECK(*metrics.at("underflow_rate") == 0.25);
    CHECK(*metrics.at("subnormal_rate") == 0);
    CHECK(*metrics.at("eligible_blocks") == 1);
    CHECK(*metrics.at("collapsed_block_rate") == 0);
    CHECK(*metrics.at("bits_per_element") == 4 + 8.0 / 4);
    CHECK(*metrics.at("code_entropy_bits") == 2);
    CHECK(*metrics.at("crest_factor") == Approx(7 / std::sqrt(75.0625 / 4)).epsilon(1e-15));
    CHECK(*metrics.at("squared_error.total") == 2.0625);
    CHECK(*metrics.at("squared_error.clamp") == 1);
    CHECK(*metrics.at("squared_error.underflow") == 0.0625);
    CHECK(*metrics.at("squared_error.grid") == 1);
    CHECK(*metrics.at("underflow_error_share") == Approx(0.0625 / 2.0625).epsilon(1e-15));
}

TEST_CASE("oracle: verdicts on blocks") {
    // Collapsed and saturated: layer-norm gains just under a power of two (floor).
    const std::vector<float> gains{0.97f, 0.98f, 0.99f, -0.96f};
    const auto norm = mx::oracle::measure({gains, 1, 1, 4, 0}, mxfp4(4));
    CHECK(norm.block.eligible == 1);
    CHECK(norm.block.collapsed == 1);
    CHECK(norm.block.saturated == 1);
    CHECK(norm.block.dead == 0);
    CHECK(norm.count.overflow == 4);
    // One large value: the block is neither; zeros are not looked at.
    const std::vector<float> mixed{1.0f, 0.0f, 0.5f, -0.0f};
    const auto plain = mx::oracle::measure({mixed, 1, 1, 4, 0}, mxfp4(4));
    CHECK(plain.block.eligible == 1);
    CHECK(plain.block.collapsed == 0);
    CHECK(plain.count.nonzero == 2);
    // Dead: amax so small that the scale ends first.
    const std::vector<float> dust{0x1p-149f, -0x1p-149f};
    const auto dead = mx::oracle::measure({dust, 1, 1, 2, 0}, mxfp4(32));
    CHECK(dead.block.dead == 1);
    CHECK(dead.count.underflow == 2);
    CHECK(dead.blocks[0].codes == std::vector<std::uint8_t>{0, 8});
    const std::vector<float> zeros{0.0f, -0.0f};
    const auto zero = mx::oracle::measure({zeros, 1, 1, 2, 0}, mxfp4(2));
    CHECK(zero.block.zero == 1);
    CHECK(zero.block.eligible == 0);
    CHECK_FALSE(mx::oracle::metrics_of(zero).at("nrmse").has_value());
    CHECK_FALSE(mx::oracle::metrics_of(zero).at("crest_factor").has_value());
    CHECK_FALSE(mx::oracle::metrics_of(zero).at("grid_error_share").has_value());
    CHECK(*mx::oracle::metrics_of(zero).at("squared_error.grid") == 0);
}

TEST_CASE("oracle: a NaN or Inf poisons its block only") {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> x{1.0f, inf, 2.0f, 3.0f, std::nanf(""), 5.0f};
    recipe r = mxfp4(3);
    const auto m = mx::oracle::measure({x, 1, 1, 6, 0}, r);
    CHECK(m.count.inf == 1);
    CHECK(m.count.nan == 1);
    CHECK(m.count.poisoned == 4);
    CHECK(m.blocks[0].scale_code == 255);
    CHECK_FALSE(mx::oracle::metrics_of(m).at("rmse").has_value());
    r.block_cols = 2;
    const auto narrow = mx::oracle::measure({x, 1, 1, 6, 0}, r);
    CHECK(narrow.count.poisoned == 2);
    CHECK(narrow.blocks[1].scale_code != 255);
}

TEST_CASE("oracle: a binary16 offset is taken off and put back") {
    const std::vector<float> x{1.0f, 1.25f, 1.5f, 2.0f};
    recipe r = mxfp4(4);
    r.has_offset = true;
    const auto m = mx::oracle::measure({x, 1, 1, 4, 0}, r);
    const auto& b = m.blocks[0];
    CHECK(b.offset == 0x3e00);  // 1.5
    CHECK(b.amax == 0.5f);
    CHECK(b.scale_code == 127 - 3);  // z = -0.5 .. 0.5 over 1/8: -4 .. 4
    CHECK(b.codes == std::vector<std::uint8_t>{0xe, 0xc, 0, 6});
    CHECK(mx::oracle::dequantized_f32(b, 0) == 1.0f);
    CHECK(mx::oracle::dequantized_f32(b, 1) == 1.25f);
    CHECK(m.count.underflow == 0);  // 1.5 - O is zero, not lost
    CHECK(m.sum.error2 == 0);
    CHECK(*mx::oracle::metrics_of(m).at("bits_per_element") == 4 + 24.0 / 4);
    // O = 1: 0 stays 0, 2^-30 becomes 0, and 1 + 2^-6 becomes 1.
    const std::vector<float> y{0.0f, 2.0f, 0x1p-30f, 1 + 0x1p-6f};
    CHECK(mx::oracle::measure({y, 1, 1, 4, 0}, r).count.underflow == 1);
}

TEST_CASE("oracle: blocks cover a tensor row by row, short at the edges") {
    std::vector<float> x;
    for (int i = 0; i < 2 * 3 * 5; ++i) x.push_back(static_cast<float>(i));
    recipe r = mxfp4(4);
    r.block_rows = 2;
    const auto m = mx::oracle::measure({x, 2, 3, 5, 0}, r);
    REQUIRE(m.blocks.size() == 8);
    CHECK(m.blocks[0].codes.size() == 8);
    CHECK(m.blocks[1].codes.size() == 2);
    CHECK(m.blocks[2].codes.size() == 4);
    CHECK(m.blocks[3].codes.size() == 1);
    CHECK(m.blocks[0].amax == 8.0f);  // rows 0..1, columns 0..3
    CHECK(m.blocks[1].amax == 9.0f);
    CHECK(m.blocks[3].amax == 14.0f);
    CHECK(m.blocks[4].amax == 23.0f);  // the second matrix starts its own blocks
}

TEST_CASE("oracle: spread bins have the stated edges") {
    const std::vector<float> x{1.0f, 1.0f, 1.0f, 0.5f, 1.0f, 0.51f, 1.0f, 0.96f, 0.0f, 3.0f};
    const auto m = mx::oracle::measure({x, 1, 1, 10, 0}, mxfp4(2));
    // Ratios 1, 0.5, 0.51, 0.96 and 1: -16 log2 is 0, 16, 15.5, 0.94, 0.
    CHECK(m.spread_histogram == std::map<int, std::uint64_t>{{0, 3}, {15, 1}, {16, 1}});
}

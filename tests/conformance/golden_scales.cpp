// SPDX-License-Identifier: Apache-2.0
// Shared scales against torchao's, for thousands of block maxima around every threshold.
#include <cmath>
#include <cstdint>
#include <string>

#include "libmx/base/bits.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"

namespace {

// torchao multiplies by the float32 reciprocal of the maximum. If amax / max is just above 2^-127,
// that product is rounded to 2^-127, and the scale is one code lower. This occurs for one amax per
// format: the float32 above max * 2^-127.
bool lost_in_a_subnormal_product(const mx::scale::scale_rule& rule,
                                 const mx::format::element_format& f, float amax) {
    if (rule.id != mx::scale::rule_id::rceil) return false;
    const double largest = std::ldexp(f.max_significand(), f.emax() - f.mantissa_bits);
    const auto limit = static_cast<float>(std::ldexp(largest, -127));
    return mx::base::bits_of(amax) == mx::base::bits_of(limit) + 1;
}

}  // namespace

TEST_CASE("scales equal those of torchao") {
    const std::vector<std::string> files = mx::tests::vector_files("scales");
    REQUIRE(files.size() == 1);
    const auto v = mx::tests::read_vectors(files[0]);
    const std::vector<float>& amax = v.tensor.at("amax");
    REQUIRE(amax.size() > 5000);
    int tensors = 0;
    std::uint64_t skipped = 0;
    for (const auto& [name, unused] : v.tensor) {
        if (name == "amax") continue;
        const auto part = mx::tests::split(name, '.');  // torchao.RULE.FORMAT
        REQUIRE(part.size() == 3);
        const mx::scale::scale_rule* rule = mx::scale::find_scale_rule(part[1]);
        const mx::format::element_format* f = mx::format::find_element_format(part[2]);
        REQUIRE((rule != nullptr && f != nullptr));
        const std::vector<std::uint8_t> expected = v.codes(name);
        const mx::scale::rule_step step =
            mx::scale::step_under(*rule, *f, mx::scale::int_emax::zero);
        std::uint64_t differences = 0;
        std::uint32_t first = 0;
        for (std::size_t i = 0; i < amax.size(); ++i) {
            const std::uint32_t bits = mx::base::bits_of(amax[i]);
            if (lost_in_a_subnormal_product(*rule, *f, amax[i])) {
                ++skipped;
                continue;
            }
            if (mx::scale::scale_code(step, bits) == expected[i]) continue;
            if (differences++ == 0) first = bits;
        }
        CAPTURE(name, first);
        CHECK(differences == 0);
        ++tensors;
    }
    CHECK(tensors == 20);
    CHECK(skipped <= 5);
}

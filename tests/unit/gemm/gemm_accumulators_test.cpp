// SPDX-License-Identifier: Apache-2.0
// The list of accumulator models: spellings, ranges, accepted formats, claims.
#include <set>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulator_keys.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx::gemm;

const operand_format& format(const char* name) { return *find_operand_format(name); }

void refuses(const std::string& spelling, const std::string& words) {
    CAPTURE(spelling);
    try {
        parse_accumulator(spelling);
        FAIL("not refused");
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == mx::base::error_kind::usage);
        CHECK_THAT(e.what(), Catch::Matchers::Contains(words));
    }
}

}  // namespace

TEST_CASE(
    "every accumulator has a name of its own, ranges that hold and a spelling that reads back") {
    std::set<std::string_view> names;
    for (const accumulator& m : accumulators()) {
        CAPTURE(m.name);
        CHECK(names.insert(m.name).second);
        CHECK_NOTHROW(validate(m));
        CHECK(to_string(m) == m.name);
        CHECK(to_string(parse_accumulator(m.name)) == m.name);
        CHECK_FALSE(m.remark.empty());
        CHECK(m.instruction.empty() == (m.known_from == evidence::definition));
        // Nothing is claimed of operands that the model does not take.
        if (m.known_from != evidence::definition) CHECK((m.compared & ~m.operands) == 0);
    }
}

TEST_CASE("fields of an accumulator are spelt in the order of the list") {
    const accumulator m =
        parse_accumulator("sm100.f8f6f4:c=afterwards,exponent_floor=-10,fraction_bits=24");
    CHECK(m.fraction_bits == 24);
    CHECK(m.exponent_floor == -10);
    CHECK(m.c == entry::afterwards);
    CHECK(to_string(m) == "sm100.f8f6f4:fraction_bits=24,exponent_floor=-10,c=afterwards");
    CHECK(to_string(parse_accumulator("sm90.wgmma.fp8:promote=128")) ==
          "sm90.wgmma.fp8:promote=128");
    CHECK(to_string(parse_accumulator("sm90.wgmma.fp8:fraction_bits=13")) == "sm90.wgmma.fp8");
    for (const accumulator_key& key : accumulator_keys()) {
        const accumulator row = *find_accumulator("sm100.mxf4");
        if (!key.applies(row.how)) continue;
        accumulator again = row;
        key.set(again, key.get(row));
        CHECK(key.get(again) == key.get(row));
    }
}

TEST_CASE("spellings of accumulators that make no sense are refused") {
    refuses("sm100.mxf8", "did you mean 'sm100.mxf4'");
    refuses("sm100.f16:fraction_bit=24", "did you mean 'fraction_bits'");
    refuses("sm100.f16:fraction_bits", "not key=value");
    refuses("sm100.f16:fraction_bits=x", "not an integer");
    refuses("sm100.f16:fraction_bits=49", "give 1 to 48");
    refuses("sm100.f16:fused_length=0", "give 1 to 1024");
    refuses("sm100.f16:convert=rz", "rz-fp32");
    refuses("sm100.f16:group_length=4", "field of accumulator sm100.f16");
    refuses("sm100.mxf4:fused_length=63", "no multiple of group_length");
    refuses("sm100.mxf4:group_length=12,fused_length=24", "does not divide");
    refuses("sm90.wgmma.fp8:promote=100", "no multiple of the 32");
    refuses("exact:promote=4", "accumulator exact has no field to change");
    refuses("cdna3.f16:convert=rne-fp16", "does not apply");
    refuses("cdna3.f16:wide_fraction_bits=20", "give 24 to 48");
}

TEST_CASE("units take two formats at once only among the narrow ones") {
    const accumulator& f8f6f4 = *find_accumulator("sm100.f8f6f4");
    const accumulator& f16 = *find_accumulator("sm100.f16");
    const accumulator& exact = *find_accumulator("exact");
    CHECK(takes(f8f6f4, format("e4m3"), format("e2m1"), 0));
    CHECK_FALSE(takes(f8f6f4, format("e4m3"), format("e2m1"), scales_e8m0_32));
    CHECK_FALSE(takes(f8f6f4, format("e4m3"), format("e4m3fnuz"), 0));
    CHECK(takes(f16, format("bf16"), format("bf16"), 0));
    CHECK_FALSE(takes(f16, format("bf16"), format("f16"), 0));
    CHECK(takes(exact, format("bf16"), format("e2m1"), scales_ue4m3_16));
    CHECK(takes(*find_accumulator("sm100.mxf4"), format("e2m1"), format("e2m1"), scales_e8m0_32));
    CHECK_FALSE(
        takes(*find_accumulator("sm100.mxf4"), format("e2m1"), format("e2m1"), scales_ue4m3_16));
}

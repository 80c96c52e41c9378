// SPDX-License-Identifier: Apache-2.0
// `mx verify` over all of datasets/vectors: no difference, and skipped values are counted.
#include <map>
#include <set>
#include <string>

#include "libmx/conformance/verify/verify.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"

namespace {

struct totals {
    int files = 0;
    std::uint64_t compared = 0;
    std::map<std::string, std::uint64_t> skipped;
};

totals verify_folder(const std::string& folder) {
    totals t;
    for (const std::string& path : mx::tests::vector_files(folder)) {
        const auto file = mx::io::open_model(path);
        const mx::conformance::verify::verification v =
            mx::conformance::verify::verify_vectors(*file, path, {});
        CAPTURE(path, v.by);
        if (!v.first.empty()) {
            const mx::conformance::verify::difference& d = v.first.front();
            CAPTURE(d.tensor, d.index, d.input.hex, d.expected.hex, d.got.hex);
            CHECK(v.differences == 0);
        }
        CHECK(v.differences == 0);
        ++t.files;
        t.compared += v.compared;
        for (const auto& s : v.skipped) t.skipped[s.reason] += s.values;
    }
    return t;
}

}  // namespace

TEST_CASE("every vector file verifies") {
    struct folder {
        std::string name;
        int files;
        std::uint64_t compared;  // at least
    };
    const folder folders[] = {
        {"blocks", 30, 400000},   {"elements", 10, 2000000}, {"scales", 1, 100000},
        {"stochastic", 5, 30000}, {"nvfp4", 4, 20000},       {"dialects", 142, 900000},
        {"search", 2, 38000},     {"mma", 50, 12000},        {"recorded", 16, 3200}};
    std::map<std::string, std::uint64_t> skipped;
    for (const folder& f : folders) {
        const totals t = verify_folder(f.name);
        CAPTURE(f.name);
        CHECK(t.files == f.files);
        CHECK(t.compared >= f.compared);
        for (const auto& [reason, values] : t.skipped) skipped[reason] += values;
    }
    // No value is skipped for a reason that is not listed here.
    std::set<std::string> reasons;
    for (const auto& [reason, values] : skipped) reasons.insert(reason);
    CHECK(reasons ==
          std::set<std::string>{
              "blocks with 0 < amax < 2^-125", "codes outside 0..254, before any cast",
              "codes of NaN elements", "codes of a NaN block in a format without NaN",
              "element codes 255; blocks whose NaN has another payload",
              "element codes of blocks with a NaN", "element codes of the Inf and the NaN row",
              "maxima whose scale is undefined in the original",
              "NaN into a format without NaN, payload-dependent",
              "non-finite inputs outside the contract", "rows that fp32.finite_mask leaves out",
              "sign of code where the input is -0"});
}

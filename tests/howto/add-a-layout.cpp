// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-a-layout.md: tensors of the layout are decoded under its names and others,
// those of another shape are not, and the guide has the rows.
#include <string>
#include <vector>

#include "libmx/quantized/layouts.hpp"
#include "tests/io/model_file.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

TEST_CASE("a layout that was added by one row is decoded") {
    const scratch_dir dir;
    const std::string ones = repeated(0x38, 256), powers = "\x7f\x80\x81\x7e";
    struct names {
        std::string codes, scales, tensor;
    };
    const names written[] = {{"w.codes", "w.powers", "w"}, {"w", "w_scale", "w"}};
    for (const auto& [codes, scales, name] : written) {
        CAPTURE(codes);
        const engine::model m =
            model_of({write_model(dir / "m.safetensors", {{codes, dtype::f8_e4m3, {2, 128}, ones},
                                                          {scales, dtype::u8, {2, 2}, powers}})});
        REQUIRE(info_in(m, name) != nullptr);
        CHECK(info_in(m, name)->layout == "fp8-1x64");
        std::vector<float> expected;
        for (const float scale : {1.0f, 2.0f, 4.0f, 0.5f}) {
            expected.insert(expected.end(), 64, scale);
        }
        CHECK(values_in(m, name) == expected);
    }
}

TEST_CASE("a layout that was added has a shape of scales") {
    const scratch_dir dir;
    const engine::model m = model_of({write_model(
        dir / "m.safetensors", {{"w.codes", dtype::f8_e4m3, {2, 128}, repeated(0x38, 256)},
                                {"w.powers", dtype::u8, {2, 3}, repeated(0x7f, 6)}})});
    REQUIRE(info_in(m, "w.codes") != nullptr);
    has(info_in(m, "w.codes")->remark, "FP8 in runs of 64 calls for scales 2x2");
}

TEST_CASE("the guide has the rows of a layout that was added") {
    const std::string guide = slurp(MX_SCRATCH "/docs/guide/quantized.md");
    for (const io::quantized_layout& l : io::quantized_layouts) {
        has(guide, "| `" + std::string(l.name) + "` |");
    }
    for (const io::quantized_naming& n : io::quantized_namings) {
        has(guide, "`NAME" + std::string(n.codes) + "`");
        has(guide, "`NAME" + std::string(n.scales) + "`");
    }
}

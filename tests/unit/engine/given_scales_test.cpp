// SPDX-License-Identifier: Apache-2.0
// Outer scales in a file, by tensor: above all those of other tensors, which no tensor takes.
#include "libmx/engine/given_scales.hpp"

#include <optional>
#include <string>
#include <vector>

#include "tests/io/model_file.hpp"
#include "tests/memory_model.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

// The scale of a tensor of an input with these names, from a file of one number.
std::optional<float> scale_of(const std::string& tensor, const std::vector<std::string>& input,
                              const std::string& array, const std::string& why = {}) {
    const scratch_dir dir;
    const engine::given_scales given(
        write_model(dir / "scales.safetensors", {{array, dtype::f32, {1}, f32_bytes({0.5F})}}));
    tests::memory_model model;
    for (const std::string& name : input) {
        model.add(name, dtype::f32, {1}, std::vector<float>{1});
    }
    for (const engine::tensor_ref& t : model.all()) {
        if (t.info().name != tensor) continue;
        if (!why.empty()) has(given.why_left_out(), why);
        return given.of(t);
    }
    return -1;
}

}  // namespace

TEST_CASE("the only number of a file is for every tensor unless its name is another's") {
    const std::vector<std::string> both{"layers.0.k", "layers.0.v"};
    for (const char* general : {"scale", "array", "global_scale", "weight_global_scale", "x",
                                "weight_scale_2", "k_scale"}) {
        CAPTURE(general);
        CHECK(scale_of("layers.0.k", both, general) == 0.5F);
    }
    for (const char* own : {"layers.0.v", "layers.0.v_scale", "layers.0.v.scale",
                            "layers.0.v_global_scale", "layers.0.v.weight_scale"}) {
        CAPTURE(own);
        CHECK(scale_of("layers.0.v", both, own) == 0.5F);
    }
    for (const char* another : {"layers.0.v", "layers.0.v_scale", "layers.0.v.scale",
                                "layers.0.v_global_scale", "layers.0.v_scale_2"}) {
        CAPTURE(another);
        CHECK(scale_of("layers.0.k", both, another, another) == std::nullopt);
    }
    // The other tensor need not be in the input, and may have a name without a path.
    CHECK(scale_of("layers.0.k", {"layers.0.k"}, "layers.0.v_scale") == std::nullopt);
    CHECK(scale_of("k", {"k", "v"}, "v_scale") == std::nullopt);
    CHECK(scale_of("k", {"k"}, "v_scale") == 0.5F);
}

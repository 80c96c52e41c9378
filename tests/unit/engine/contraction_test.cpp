// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/contraction.hpp"

#include <deque>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace mx;
using engine::axis_range;

namespace {

// What names alone say about the first tensor.
axis_range named(const std::vector<std::pair<std::string, tensor::shape>>& tensors) {
    std::deque<io::tensor_info> infos;
    std::vector<io::tensor_info*> all;
    for (const auto& [name, shape] : tensors) {
        io::tensor_info& info = infos.emplace_back();
        info.name = name;
        info.shape = shape;
        info.file = "/nowhere/model.safetensors";
        all.push_back(&info);
    }
    engine::state_axes_by_names(all);
    INFO(tensors.front().first << ": " << infos.front().sums_over.why);
    if (!infos.front().sums_over.known()) return {0, 0};
    return engine::axes_along_sums(infos.front());
}

}  // namespace

TEST_CASE("names of known models say which axis products sum over") {
    // GPT-2 has Conv1D, [in, out]; nanoGPT the same names with Linear.
    CHECK(named({{"h.0.attn.c_attn.weight", {64, 192}}}) == axis_range{0, 1});
    CHECK(named({{"transformer.h.0.attn.c_proj.weight", {64, 64}},
                 {"transformer.h.0.attn.c_attn.weight", {64, 192}}}) == axis_range{0, 1});
    CHECK(named({{"h.0.mlp.c_fc.weight", {64, 256}}, {"h.0.attn.c_attn.weight", {64, 192}}}) ==
          axis_range{0, 1});
    CHECK(named({{"transformer.h.0.attn.c_proj.weight", {64, 64}},
                 {"transformer.h.0.attn.c_attn.weight", {192, 64}}}) == axis_range{});
    CHECK(named({{"transformer.h.0.attn.c_attn.weight", {192, 64}}}) == axis_range{});
    CHECK(named({{"h.0.attn.c_attn.bias", {192}}}) == axis_range{});
    // Fused experts: the intermediate extent tells [E, in, out] from [E, out, in].
    CHECK(named({{"layers.0.mlp.experts.gate_up_proj", {4, 64, 96}},
                 {"layers.0.mlp.experts.down_proj", {4, 48, 64}}}) == axis_range{1, 2});
    CHECK(named({{"layers.0.mlp.experts.down_proj", {4, 64, 64}},
                 {"layers.0.mlp.experts.gate_up_proj", {4, 64, 128}}}) == axis_range{1, 2});
    CHECK(named({{"layers.0.mlp.experts.gate_up_proj", {4, 96, 64}},
                 {"layers.0.mlp.experts.down_proj", {4, 64, 48}}}) == axis_range{});
    CHECK(named({{"layers.0.feed_forward.experts.gate_up_proj", {4, 64, 96}}}) == axis_range{1, 2});
    // TransformerLens.
    CHECK(named({{"blocks.0.attn.W_Q", {4, 64, 16}}}) == axis_range{1, 2});
    CHECK(named({{"W_K", {2, 4, 64, 16}}}) == axis_range{2, 3});
    CHECK(named({{"blocks.0.attn.W_O", {4, 16, 64}}}) == axis_range{0, 2});
    CHECK(named({{"blocks.0.mlp.W_in", {64, 256}}}) == axis_range{0, 1});
    CHECK(named({{"unembed.W_U", {64, 100}}}) == axis_range{0, 1});
    // Llama's own names, and those of llama2.c.
    CHECK(named({{"layers.0.attention.wq.weight", {64, 32}}}) == axis_range{1, 2});
    CHECK(named({{"layers.0.feed_forward.w2.weight", {64, 172}}}) == axis_range{1, 2});
    // Keras and Flax.
    CHECK(named({{"dense/dense/kernel:0", {100, 512}}}) == axis_range{0, 1});
    CHECK(named({{"rnn_1/rnn_1/recurrent_kernel:0", {128, 512}}}) == axis_range{0, 1});
    CHECK(named({{"conv2d/kernel:0", {3, 3, 16, 32}}}) == axis_range{0, 3});
    CHECK(named({{"conv1d/kernel", {5, 16, 32}}}) == axis_range{0, 2});
    CHECK(named({{"depthwise_conv2d/depthwise_kernel:0", {3, 3, 16, 1}}}) == axis_range{0, 2});
    CHECK(named({{"conv2d_transpose/kernel:0", {3, 3, 32, 16}}}) == axis_range{3, 4});
    CHECK(named({{"mha/query/kernel:0", {64, 4, 16}}}) == axis_range{0, 1});
    CHECK(named({{"params/attention_output/kernel", {4, 16, 64}}}) == axis_range{0, 2});
    CHECK(named({{"params.Dense_0.kernel", {64, 10}}}) == axis_range{0, 1});
    // PyTorch's transposed convolutions.
    CHECK(named({{"up.conv_transpose.weight", {64, 32, 2, 2}}}) == axis_range{0, 1});
    // Everything else is not said.
    CHECK(named({{"model.layers.0.self_attn.q_proj.weight", {64, 64}}}) == axis_range{});
}

TEST_CASE("without a statement, [out, in] and windows of convolutions are assumed") {
    CHECK(engine::assumed_axes({64, 172}) == axis_range{1, 2});
    CHECK(engine::assumed_axes({8, 64, 172}) == axis_range{2, 3});
    CHECK(engine::assumed_axes({512, 256, 1, 5}) == axis_range{1, 4});
    CHECK(engine::assumed_axes({64, 64, 1, 1}) == axis_range{1, 4});
    CHECK(engine::assumed_axes({512, 1, 3, 3}) == axis_range{1, 4});
    CHECK(engine::assumed_axes({1, 512, 1}) == axis_range{2, 3});
    CHECK(engine::assumed_axes({}) == axis_range{0, 0});

    io::tensor_info info;
    info.shape = {64, 172};
    const engine::summed_axes k = engine::summed_axes_of(info, "weight");
    CHECK(k.assumed);
    CHECK(k.extent == 172);
    CHECK(k.why == "[out, in] assumed");
    for (const char* role : {"norm", "bias", "embedding", "other"}) {
        CHECK_FALSE(engine::summed_axes_of(info, role).any());
    }
    info.sums_over = {0, 1, "the graph"};
    CHECK(engine::summed_axes_of(info, "embedding").extent == 64);
    CHECK_FALSE(engine::summed_axes_of(info, "weight").assumed);
    // A statement about axes that the tensor lacks is none.
    info.sums_over = {1, 3, "a damaged file"};
    CHECK(engine::axes_along_sums(info) == axis_range{1, 2});
    info.sums_over = {};
    info.shape = {1, 172};
    CHECK_FALSE(engine::summed_axes_of(info, "weight").any());
}

TEST_CASE("stated axes follow views of a tensor") {
    io::contraction c{0, 1, "x"};
    engine::transpose_axes(c, 2);
    CHECK((c.first == 1 && c.last == 2));
    c = {1, 2, "x"};
    engine::transpose_axes(c, 3);
    CHECK((c.first == 2 && c.last == 3));
    c = {0, 1, "x"};
    engine::transpose_axes(c, 3);
    CHECK((c.first == 0 && c.last == 1));
    c = {1, 4, "x"};  // the order of a sum does not matter
    engine::transpose_axes(c, 4);
    CHECK((c.first == 1 && c.last == 4));
    c = {0, 3, "x"};
    engine::transpose_axes(c, 4);
    CHECK_FALSE(c.known());
    c = {};
    engine::transpose_axes(c, 2);
    CHECK((c.first == 1 && c.last == 2));
    c = {1, 2, "x"};
    engine::drop_first_axis(c);
    CHECK((c.first == 0 && c.last == 1));
    c = {1, 2, "x"};
    engine::split_last_axis(c, 2);
    CHECK((c.first == 1 && c.last == 3));
}

// SPDX-License-Identifier: Apache-2.0
// The contents of the presets: sizes, names, and the statistics that they demonstrate.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "datasets/generators/checkpoint_plan.hpp"
#include "datasets/generators/tensor_source.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/status.hpp"
#include "tests/catch.hpp"

using namespace mx::synth;
using mx::tensor::dtype;

namespace {

const tensor_spec& named(const std::vector<tensor_spec>& plan, const std::string& name) {
    const auto at = std::find_if(plan.begin(), plan.end(),
                                 [&](const tensor_spec& s) { return s.name == name; });
    REQUIRE(at != plan.end());
    return *at;
}

/// The stored values, widened.
std::vector<float> stored(const tensor_spec& spec) {
    REQUIRE(spec.type == dtype::bf16);
    std::vector<std::byte> bytes(static_cast<std::size_t>(byte_count(spec)));
    tensor_source(spec, 0).fill(0, bytes);
    std::vector<float> values;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        values.push_back(mx::base::float_from_bf16(static_cast<std::uint16_t>(
            static_cast<unsigned>(bytes[i]) | static_cast<unsigned>(bytes[i + 1]) << 8)));
    }
    return values;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

bool is_gain(const tensor_spec& s) { return has(s.name, "model.") && has(s.name, "norm.weight"); }

/// All values in the zone in which a floor scale clamps every E4M3 code of a block, the same zone
/// for all: above 29/32 of one power of two and below it.
bool clamps_everywhere(const std::vector<float>& values) {
    int exponent = 0;
    std::frexp(values.front(), &exponent);
    const float top = std::ldexp(1.0f, exponent);
    return std::all_of(values.begin(), values.end(),
                       [&](float x) { return x > 0.90625f * top && x < top; });
}

/// Root mean square per column.
std::vector<double> column_rms(const tensor_spec& spec) {
    const std::vector<float> values = stored(spec);
    const auto columns = static_cast<std::size_t>(spec.shape.back());
    std::vector<double> sums(columns);
    for (std::size_t i = 0; i < values.size(); ++i) {
        sums[i % columns] += double{values[i]} * double{values[i]};
    }
    for (double& s : sums)
        s = std::sqrt(s * static_cast<double>(columns) / static_cast<double>(values.size()));
    return sums;
}

}  // namespace

TEST_CASE("synth: presets are of the sizes they promise", "[synth]") {
    CHECK(total_bytes(plan_checkpoint(find_preset("tiny"), {})) < (1u << 20) - 16384u);
    const std::uint64_t small = total_bytes(plan_checkpoint(find_preset("small"), {}));
    CHECK(small > 16u << 20);
    CHECK(small < 20u << 20);
    for (const dtype type : {dtype::bf16, dtype::f16, dtype::f32}) {
        for (std::uint64_t size = smallest_size; size <= largest_size; size = size * 7 / 3) {
            const std::uint64_t made =
                total_bytes(plan_checkpoint(find_preset("bulk"), {type, size}));
            INFO(size);
            CHECK(made <= size);
            CHECK(made >= size / 100 * 98);
        }
    }
}

TEST_CASE("synth: every preset holds every kind of tensor under its own name", "[synth]") {
    for (const preset_row& preset : presets) {
        if (preset.what != subject::transformer) continue;
        const std::vector<tensor_spec> plan = plan_checkpoint(preset, {});
        std::set<std::string> names;
        std::set<std::size_t> ranks;
        std::set<dtype> types;
        for (const tensor_spec& spec : plan) {
            CHECK(names.insert(spec.name).second);
            ranks.insert(spec.shape.size());
            types.insert(spec.type);
        }
        INFO(preset.name);
        CHECK(types.count(dtype::boolean) == 1);
        CHECK(types.count(dtype::i64) == 1);
        CHECK(types.count(dtype::bf16) == 1);
        CHECK((ranks.count(0) == 1 && ranks.count(1) == 1 && ranks.count(2) == 1));
        CHECK((ranks.count(3) == 1) == (preset.shape.experts != 0));
        CHECK(names.count("model.layers.0.self_attn.q_proj.weight") == 1);
        CHECK(names.count("activations.layers.0.mlp.input") == 1);
    }
}

TEST_CASE("synth: the tensors of a linear layer fit each other", "[synth]") {
    const std::vector<tensor_spec> plan = plan_checkpoint(find_preset("linear"), {});
    REQUIRE(plan.size() == 3);
    const tensor_spec& x = named(plan, "activations.linear.input");
    const tensor_spec& w = named(plan, "model.linear.weight");
    const tensor_spec& dy = named(plan, "gradients.linear.output");
    CHECK(x.shape[1] == w.shape[1]);
    CHECK(dy.shape[0] == x.shape[0]);
    CHECK(dy.shape[1] == w.shape[0]);
    // Some channels of the input are large, and some tokens' gradients.
    const std::vector<double> channels = column_rms(x);
    const double largest = *std::max_element(channels.begin(), channels.end());
    std::vector<double> sorted = channels;
    std::nth_element(sorted.begin(), sorted.begin() + 128, sorted.end());
    CHECK(largest > 8 * sorted[128]);
    CHECK(dy.row_spread > 0.5);
}

TEST_CASE("synth: some gains sit just under a power of two, others do not", "[synth]") {
    std::size_t clustered = 0;
    std::size_t others = 0;
    for (const tensor_spec& spec : plan_checkpoint(find_preset("tiny"), {})) {
        if (!is_gain(spec)) continue;
        (clamps_everywhere(stored(spec)) ? clustered : others) += 1;
    }
    CHECK(clustered == 2);
    CHECK(others == 5);
    clustered = others = 0;
    std::set<int> tops;
    for (const tensor_spec& spec : plan_checkpoint(find_preset("layernorm"), {})) {
        if (!is_gain(spec)) continue;
        const std::vector<float> values = stored(spec);
        (clamps_everywhere(values) ? clustered : others) += 1;
        if (clamps_everywhere(values)) tops.insert(std::ilogb(values.front()));
    }
    CHECK(clustered == 24);
    CHECK(others == 9);
    CHECK(tops == std::set<int>{-3, -2, -1, 0});
}

TEST_CASE("synth: activations have the same large channels in every layer", "[synth]") {
    const std::vector<tensor_spec> plan = plan_checkpoint(find_preset("small"), {});
    std::set<std::set<std::size_t>> channels;
    for (const int layer : {0, 3, 5}) {
        const std::vector<double> rms =
            column_rms(named(plan, "activations.layers." + std::to_string(layer) + ".mlp.input"));
        std::vector<double> sorted = rms;
        std::nth_element(sorted.begin(), sorted.begin() + 128, sorted.end());
        std::set<std::size_t> large;
        for (std::size_t c = 0; c < rms.size(); ++c) {
            if (rms[c] > 10.0 * sorted[128]) large.insert(c);
        }
        CHECK(large.size() == 2);
        channels.insert(large);
    }
    CHECK(channels.size() == 1);
}

TEST_CASE("synth: the padding token is zero, positive zero", "[synth]") {
    const std::vector<tensor_spec> plan = plan_checkpoint(find_preset("tiny"), {});
    const std::vector<float> values = stored(named(plan, "model.embed_tokens.weight"));
    CHECK(std::all_of(values.begin(), values.begin() + 64,
                      [](float x) { return x == 0.0f && !std::signbit(x); }));
    CHECK(std::none_of(values.begin() + 64, values.end(), [](float x) { return x == 0.0f; }));
}

TEST_CASE("synth: mask, positions and frequencies", "[synth]") {
    const std::vector<tensor_spec> plan = plan_checkpoint(find_preset("tiny"), {});
    const tensor_spec& mask = named(plan, "model.causal_mask");
    std::vector<std::byte> bytes(static_cast<std::size_t>(byte_count(mask)));
    tensor_source(mask, 0).fill(0, bytes);
    const auto side = static_cast<std::size_t>(mask.shape.back());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        REQUIRE(bytes[i] == std::byte{i % side <= i / side ? std::uint8_t{1} : std::uint8_t{0}});
    }
    const tensor_spec& positions = named(plan, "model.position_ids");
    bytes.assign(16, std::byte{});
    tensor_source(positions, 0).fill(3, bytes);
    CHECK(bytes[0] == std::byte{3});
    CHECK(bytes[8] == std::byte{4});
    const tensor_spec& frequencies = named(plan, "model.rotary_emb.inv_freq");
    std::vector<float> values(static_cast<std::size_t>(frequencies.shape[0]));
    tensor_source(frequencies, 0).fill(0, std::as_writable_bytes(std::span(values)));
    CHECK(values[0] == 1.0f);
    CHECK(values[4] == Approx(std::pow(10000.0, -0.5)).epsilon(1e-6));
}

TEST_CASE("synth: impossible plans are refused with a reason", "[synth]") {
    const auto refused = [](const std::string& preset, plan_options options,
                            const std::string& part) {
        try {
            plan_checkpoint(find_preset(preset), options);
        } catch (const mx::base::error& e) {
            return e.kind() == mx::base::error_kind::usage && has(e.what(), part);
        }
        return false;
    };
    CHECK(refused("huge", {}, "tiny, small, layernorm, bulk"));
    CHECK(refused("tiny", {dtype::bf16, 1u << 30}, "--preset bulk"));
    CHECK(refused("bulk", {dtype::bf16, 1000}, "out of range"));
    CHECK(refused("bulk", {dtype::bf16, largest_size + 1}, "out of range"));
    CHECK(refused("tiny", {dtype::i8, {}}, "I8"));
}

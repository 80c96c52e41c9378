// SPDX-License-Identifier: Apache-2.0
#include "datasets/generators/checkpoint_plan.hpp"

#include <algorithm>
#include <string>

#include "datasets/generators/linear_layer.hpp"
#include "datasets/generators/transformer.hpp"
#include "libmx/base/status.hpp"

namespace mx::synth {
namespace {

constexpr std::uint64_t default_size = std::uint64_t{64} << 20;

/// Widths by the size from which on they are used: matrices grow with the file, so that a big file
/// has long rows and a small one still has several layers.
struct width_row {
    std::uint64_t from_bytes;
    std::uint64_t hidden;
    std::uint64_t ffn;
    std::uint64_t heads;
    std::uint64_t kv_heads;
};

constexpr width_row widths[] = {
    {std::uint64_t{64} << 30, 8192, 28672, 64, 8}, {std::uint64_t{12} << 30, 4096, 11008, 32, 8},
    {std::uint64_t{2} << 30, 2048, 5632, 16, 4},   {std::uint64_t{256} << 20, 1024, 2816, 16, 4},
    {std::uint64_t{16} << 20, 256, 688, 8, 4},     {0, 64, 172, 4, 2},
};

/// Layers first, for nine tenths of the size; the vocabulary takes what is left.
architecture scaled(architecture shape, tensor::dtype type, std::uint64_t size) {
    for (const width_row& row : widths) {
        if (size < row.from_bytes) continue;
        shape.hidden = row.hidden;
        shape.ffn = row.ffn;
        shape.heads = row.heads;
        shape.kv_heads = row.kv_heads;
        break;
    }
    const auto bytes = [&](std::uint64_t layers) {
        shape.layers = layers;
        return total_bytes(transformer_tensors(shape, type));
    };
    // From two layers on, each further one adds the same.
    const std::uint64_t two = bytes(2);
    const std::uint64_t each = std::max<std::uint64_t>(1, bytes(3) - two);
    const std::uint64_t wanted = size / 10 * 9;
    shape.layers = wanted > two ? 2 + (wanted - two) / each : 1;
    const std::uint64_t used = bytes(shape.layers);
    const std::uint64_t row =
        shape.hidden * static_cast<std::uint64_t>(tensor::row_of(type).bits) / 8;
    shape.vocab = size > used ? (size - used) / row : 0;
    return shape;
}

}  // namespace

const preset_row& find_preset(std::string_view name) {
    std::string names;
    for (const preset_row& row : presets) {
        if (row.name == name) return row;
        names += names.empty() ? "" : ", ";
        names += row.name;
    }
    base::refuse("unknown preset '" + base::printable(std::string(name)) + "'; there are " + names);
}

std::uint64_t total_bytes(const std::vector<tensor_spec>& plan) {
    std::uint64_t sum = 0;
    for (const tensor_spec& spec : plan) sum += byte_count(spec);
    return sum;
}

std::vector<tensor_spec> plan_checkpoint(const preset_row& preset, const plan_options& options) {
    const tensor::dtype type = options.type;
    if (type != tensor::dtype::bf16 && type != tensor::dtype::f16 && type != tensor::dtype::f32) {
        base::refuse("a synthetic checkpoint is stored as BF16, F16 or F32, not " +
                     std::string(tensor::row_of(type).name));
    }
    if (!preset.scalable) {
        if (options.size) {
            base::refuse("preset '" + std::string(preset.name) +
                         "' has a fixed size; take --preset bulk to choose one");
        }
        return preset.what == subject::linear_layer ? linear_layer_tensors(preset.shape, type)
                                                    : transformer_tensors(preset.shape, type);
    }
    const std::uint64_t size = options.size.value_or(default_size);
    if (size < smallest_size || size > largest_size) {
        base::refuse("size " + std::to_string(size) +
                     " bytes is out of range; choose 1MiB to 16TiB");
    }
    return transformer_tensors(scaled(preset.shape, type, size), type);
}

}  // namespace mx::synth

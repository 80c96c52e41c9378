// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/project/model_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "libmx/base/joined.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/report/members.hpp"

namespace mx::project {
namespace {

// Architectures with gated feed-forward layers and attention only.
constexpr std::array<std::string_view, 13> counted{
    "llama", "mistral", "ministral", "qwen2", "qwen3",   "gemma", "gemma2",
    "olmo",  "olmo2",   "granite",   "phi3",  "smollm3", "glm4"};

constexpr std::array<std::string_view, 4> of_experts{"num_local_experts", "num_experts",
                                                     "n_routed_experts", "moe_intermediate_size"};

std::uint64_t natural(const report::record& r, std::string_view name, const std::string& path,
                      std::optional<std::uint64_t> otherwise = {}) {
    const auto x = report::number_of(r, name);
    if (!x && otherwise) return *otherwise;
    if (x && *x >= 1 && *x <= 4294967296.0 && *x == static_cast<double>(report::whole(*x))) {
        return static_cast<std::uint64_t>(*x);
    }
    throw base::error(base::error_kind::input,
                      fmt::format("{} must be a whole number of 1 to 2^32", name), {path, {}, {}});
}

named_shape read_config(const std::string& path) {
    io::input_stream file(path);
    const report::record r =
        report::read_object([&](std::span<char> out) { return file.read(out); }, path);
    const std::string type = report::text_of(r, "model_type");
    for (const std::string_view name : of_experts) {
        if (report::number_of(r, name)) {
            throw base::error(base::error_kind::input,
                              fmt::format("{}: mixtures of experts are not counted", name),
                              {path, {}, {}});
        }
    }
    if (std::ranges::find(counted, type) == counted.end()) {
        throw base::error(base::error_kind::input,
                          fmt::format("model_type '{}' is not counted; these are: {}", type,
                                      base::joined(counted, ", ")),
                          {path, {}, {}});
    }
    model_shape m;
    m.hidden = natural(r, "hidden_size", path);
    m.feed_forward = natural(r, "intermediate_size", path);
    m.layers = natural(r, "num_hidden_layers", path);
    m.heads = natural(r, "num_attention_heads", path);
    m.kv_heads = natural(r, "num_key_value_heads", path, m.heads);
    m.head_size = natural(r, "head_dim", path, std::max<std::uint64_t>(m.hidden / m.heads, 1));
    m.vocabulary = natural(r, "vocab_size", path);
    const auto* tied = report::member<bool>(r, "tie_word_embeddings");
    m.tied = tied != nullptr && *tied;
    const std::string folder =
        std::filesystem::absolute(path).lexically_normal().parent_path().filename().string();
    return {path == io::standard_input ? type : folder, m};
}

}  // namespace

named_shape find_model(const std::string& text) {
    if (const model_shape* m = base::find_named(model_shapes, text)) return {text, *m};
    std::error_code failure;
    const bool file = text == io::standard_input || text.find('/') != std::string::npos ||
                      text.ends_with(".json") || std::filesystem::exists(text, failure);
    if (!file)
        base::refuse("{}, or a config.json",
                     base::unknown("model", text, base::names_of(model_shapes)));
    return read_config(std::filesystem::is_directory(text, failure)
                           ? (std::filesystem::path(text) / "config.json").string()
                           : text);
}

std::vector<linear_layer> linear_layers(const model_shape& m) {
    const std::uint64_t queries = m.heads * m.head_size, keys = m.kv_heads * m.head_size;
    return {{work::attention, queries + 2 * keys, m.hidden},
            {work::attention, m.hidden, queries},
            {work::mlp, 2 * m.feed_forward, m.hidden},
            {work::mlp, m.hidden, m.feed_forward}};
}

std::array<double, 4> forward_flop(const model_shape& m, double sequence, bool causal) {
    std::array<double, 4> flop{};
    const auto layers = static_cast<double>(m.layers);
    for (const linear_layer& l : linear_layers(m)) {
        flop[static_cast<std::size_t>(l.is)] +=
            2 * layers * static_cast<double>(l.out) * static_cast<double>(l.in);
    }
    const auto width = static_cast<double>(m.heads) * static_cast<double>(m.head_size);
    flop[2] = layers * 4 * sequence * width * (causal ? 0.5 : 1);
    flop[3] = 2 * static_cast<double>(m.hidden) * static_cast<double>(m.vocabulary);
    return flop;
}

double linear_parameters(const model_shape& m) {
    double count = 0;
    for (const linear_layer& l : linear_layers(m)) {
        count += static_cast<double>(l.out) * static_cast<double>(l.in);
    }
    return count * static_cast<double>(m.layers);
}

double parameters(const model_shape& m) {
    const double embedding = static_cast<double>(m.hidden) * static_cast<double>(m.vocabulary);
    return linear_parameters(m) + embedding * (m.tied ? 1 : 2);
}

}  // namespace mx::project

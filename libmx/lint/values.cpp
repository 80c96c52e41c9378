// SPDX-License-Identifier: Apache-2.0
// Rules about tensors themselves: the index, tied tensors, values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "libmx/io/widen.hpp"
#include "libmx/lint/checkpoint.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::lint {
namespace {

constexpr std::size_t step = std::size_t{1} << 20;

}  // namespace

void find_index(const checkpoint& c, std::vector<finding>& out) {
    out.insert(out.end(), c.broken().begin(), c.broken().end());
    if (c.complete() && !c.arrays().empty()) find_missing_layers(c, out);
}

void find_tied(const checkpoint& c, std::vector<finding>& out) {
    const auto stated = [&](const char* key) {
        const auto at = c.config().find(key);
        return at != c.config().end() && at->second == "true";
    };
    if (!stated("tie_word_embeddings") && !stated("text_config.tie_word_embeddings")) return;
    std::optional<std::size_t> head, embedding;
    for (std::size_t i = 0; i < c.arrays().size(); ++i) {
        const std::string& name = c.info(i).name;
        if (name == "lm_head.weight" || name.ends_with(".lm_head.weight")) head = i;
        if (name == "embed_tokens.weight" || name.ends_with(".embed_tokens.weight") ||
            name == "wte.weight" || name.ends_with(".wte.weight")) {
            embedding = i;
        }
    }
    if (!head || !embedding) return;
    const io::tensor_info& h = c.info(*head);
    const io::tensor_info& e = c.info(*embedding);
    std::string differs;
    if (h.shape != e.shape || h.type != e.type) {
        differs = fmt::format("{} and {}", described_array(h), described_array(e));
    } else {
        // A difference is rarely confined to a few rows: a part of each 64th, or with --values all.
        const std::uint64_t stride =
            c.values() ? step : std::max<std::uint64_t>(step / 16, h.bytes / 64);
        for (std::uint64_t at = 0; at < h.bytes && differs.empty(); at += stride) {
            const std::size_t length = c.values() ? step : step / 16;
            if (c.bytes_of(*head, at, length) != c.bytes_of(*embedding, at, length)) {
                differs = fmt::format("bytes differ from byte {} on, or soon after", at);
            }
        }
    }
    if (differs.empty()) return;
    out.push_back(
        finding_at(severity::error, h.name,
                   fmt::format("differs from {}, to which the configuration ties it", e.name),
                   std::move(differs),
                   "engines load one of the two for both: which one differs between engines",
                   "store one of them, or set tie_word_embeddings to false"));
}

namespace {

struct value_summary {
    std::uint64_t nan = 0, inf = 0;
    bool zero = true;
    std::uint64_t digest = 0x9e3779b97f4a7c15u;
};

value_summary value_summary_of(const checkpoint& c, std::size_t array) {
    value_summary s;
    const io::tensor_info& t = c.info(array);
    const auto source = c.open(array);
    const tensor::dtype_row& row = tensor::row_of(t.type);
    const bool numbers = row.to_f32 != tensor::widening::none && row.bits >= 8;
    std::vector<std::byte> bytes;
    std::vector<float> values;
    for (std::uint64_t at = 0; at < t.bytes; at += step) {
        bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(step, t.bytes - at)));
        c.stop_if_cancelled();
        source->read(at, bytes);
        for (std::size_t i = 0; i < bytes.size(); i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
            s.zero = s.zero && word == 0;
            s.digest = (s.digest ^ word) * 0xff51afd7ed558ccdu;
            s.digest ^= s.digest >> 29;
        }
        if (!numbers) continue;
        values.resize(bytes.size() * 8 / static_cast<std::size_t>(row.bits));
        io::widen(t.type, bytes, 0, values);
        for (const float v : values) {
            s.nan += std::isnan(v);
            s.inf += std::isinf(v);
        }
    }
    return s;
}

// Whether two arrays of one size hold the same bytes.
bool same_bytes(const checkpoint& c, std::size_t a, std::size_t b) {
    for (std::uint64_t at = 0; at < c.info(a).bytes; at += step) {
        if (c.bytes_of(a, at, step) != c.bytes_of(b, at, step)) return false;
    }
    return true;
}

}  // namespace

void find_values(const checkpoint& c, std::vector<finding>& out) {
    std::map<std::pair<std::string, std::uint64_t>, std::size_t> experts;
    std::vector<bool> is_scale(c.arrays().size());
    for (const module& m : c.modules()) {
        for (const auto at : {m.scale, m.tensor_scale, m.input_scale}) {
            if (at) is_scale[*at] = true;  // scale-value
        }
    }
    for (std::size_t i = 0; i < c.arrays().size(); ++i) {
        const io::tensor_info& t = c.info(i);
        if (is_scale[i] || !t.note.empty() || t.elements == 0) continue;
        const value_summary s = value_summary_of(c, i);
        const auto tell = [&](std::string message, std::string found, std::string effect) {
            out.push_back(finding_at(severity::error, t.name, std::move(message), std::move(found),
                                     std::move(effect), "take the tensor from a sound checkpoint"));
        };
        if (s.nan + s.inf != 0) {
            tell("has NaN or Inf", fmt::format("{} NaN and {} Inf of {}", s.nan, s.inf, t.elements),
                 "outputs of the layer become NaN");
        }
        const bool matrix = t.shape.size() >= 2 && t.elements > 1;
        const bool weight = matrix && !t.name.ends_with("bias") && !t.name.ends_with("zeros") &&
                            !t.name.ends_with("g_idx") &&
                            t.name.find("lora_B") == std::string::npos;
        if (weight && s.zero) {
            tell("is zero throughout", described_array(t), "its layer computes nothing");
        }
        const bool expert = weight && t.name.find(".experts.") != std::string::npos;
        if (!expert || s.zero || pattern_of(t.name) == t.name) continue;
        // Of one layer: the name with the number after "experts" replaced.
        const std::size_t at = t.name.find(".experts.") + 9;
        const std::size_t end = std::min(t.name.find('.', at), t.name.size());
        const auto [known, added] =
            experts.emplace(std::pair(t.name.substr(0, at) + t.name.substr(end), s.digest), i);
        if (!added && c.info(known->second).bytes == t.bytes && same_bytes(c, known->second, i)) {
            tell(fmt::format("is the same as {}", c.info(known->second).name), described_array(t),
                 "two experts compute the same: one was written over the other");
        }
    }
}

}  // namespace mx::lint

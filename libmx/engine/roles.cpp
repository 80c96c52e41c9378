// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/io/no_product.hpp"

namespace mx::engine {
namespace {

// Prefixes that a dump adds to a weight's name (gradients, optimizer state) are tested before the
// weight's own role. A norm's bias is a bias, because it does not multiply.
constexpr std::array role_rows{
    role_row{
        "gradient", "gradients of weights or activations",
        "*grad.* *grad *grads.* *gradient.* *gradients.* *gradient *dgrad* *wgrad* *.dy *.dx *.dw",
        0},
    role_row{"optimizer", "state of an optimizer: moments",
             "*exp.avg* *optimizer.* optimizer* *optim.* *momentum* *adam.m.* *adam.v.*", 0},
    // Values first: past_key_values.0.value contains both words.
    role_row{"v_cache", "attention values of earlier tokens",
             "*cache.v *cache.v.* *v.cache *v.cache.* *value.cache *value.cache.* *cached.value "
             "*cached.values *past.value *past.value.? *past.value.?? *past.key.values.*.value "
             "*past.key.values.*.values *past.key.values.*.1 *present.*.value *cache*.values",
             2},
    role_row{"k_cache", "attention keys of earlier tokens",
             "*cache.k *cache.k.* *k.cache *k.cache.* *key.cache *key.cache.* *cached.key "
             "*cached.keys *past.key *past.key.? *past.key.?? *past.key.values.*.key "
             "*past.key.values.*.keys *past.key.values.*.0 *present.*.key *cache*.keys",
             2},
    role_row{"activation", "inputs and outputs of layers",
             "*activation.* *activations.* *activation *activations *hidden.states* *hidden.state "
             "*.input *.output *.inputs *.outputs *.x",
             0},
    role_row{"bias", "additive parameters: biases, norm shifts",
             "*bias *bias.* *biases *beta *beta.* *.b *.b.? *.b.?? *.b.in *.b.out *.b.gate *.b.ih "
             "*.b.hh *biasadd* *norm*.add.*",
             0},
    role_row{
        "norm", "gains of layer, RMS and batch norms",
        "*norm.* *norm *norm? *norm?.* *layernorm* *layer.norm* *.rms.* rms.* *.ln.* *.ln *.ln?.* "
        "*.ln? ln.* ln?.* *gamma *gamma.* *.bn?.* *.bn.* *norm.weight* *normalization*",
        0},
    // GGUF calls a gate projection blk.0.ffn_gate.weight, and the router blk.0.ffn_gate_inp.weight.
    role_row{"router", "gates of experts",
             "*router* *mlp.gate.weight *mlp.gate.wg.weight *moe.gate.weight *moe.gate.wg.weight "
             "*layers.*.ffn.gate.weight *feed.forward.gate.weight *shared.expert.gate.weight "
             "*ffn.gate.inp.weight *ffn.gate.inp.shexp.weight",
             0},
    role_row{"embedding", "tables of tokens, positions, times",
             "*embed* *.emb *.emb.* emb.* *wte* *wpe* *.lookup*", 2},
    role_row{"weight", "matrices and convolution kernels", "*", 2},
    role_row{"other", "everything else", "*", 0},
};

// Lower case with one separator, so that patterns need only one spelling.
std::string plain(std::string_view name) {
    std::string text;
    for (const char c : name) {
        const bool separator = c == '/' || c == ':' || c == '_';
        text.push_back(separator ? '.'
                                 : static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
    return text;
}

bool matches_any(std::string_view patterns, std::string_view text) {
    while (!patterns.empty()) {
        const std::size_t end = std::min(patterns.find(' '), patterns.size());
        if (base::glob_match(patterns.substr(0, end), text)) return true;
        patterns.remove_prefix(std::min(patterns.size(), end + 1));
    }
    return false;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool separates(char c) { return c == '.' || c == '/' || c == '_' || c == ':' || c == '-'; }

}  // namespace

std::span<const role_row> roles() { return role_rows; }

role_finder::role_finder(std::vector<role_override> overrides) : overrides_(std::move(overrides)) {
    std::vector<std::string_view> names;
    for (const role_row& r : role_rows) names.push_back(r.name);
    for (const role_override& o : overrides_) {
        if (std::find(names.begin(), names.end(), o.role) == names.end()) {
            base::refuse(base::unknown("role", o.role, names));
        }
    }
}

std::string_view role_finder::role_of(const io::tensor_info& info) const {
    for (const role_override& o : overrides_) {
        if (base::glob_match(o.glob, info.name)) return o.role;
    }
    // Masks and strings are not weights.
    if (tensor::row_of(info.type).to_f32 == tensor::widening::none) return role_rows.back().name;
    const std::string name = plain(info.name);
    const auto axes = std::count_if(info.shape.begin(), info.shape.end(),
                                    [](std::uint64_t extent) { return extent != 1; });
    for (const role_row& r : role_rows) {
        if (axes < r.least_axes || !matches_any(r.patterns, name)) continue;
        // The file's own graph knows better than the pattern that fits every name.
        if (r.name != "weight" || !io::is_in_no_product(info.sums_over)) return r.name;
        if (info.sums_over.first == io::only_looked_up) return "embedding";
    }
    return role_rows.back().name;
}

role_override parse_role_override(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
        base::refuse("--role-pattern {}: give ROLE=GLOB, as in norm='*.scale'",
                     base::printable(text));
    }
    return {text.substr(0, equals), text.substr(equals + 1)};
}

std::optional<layer_place> layer_of(std::string_view name) {
    for (std::size_t at = 0; at < name.size(); ++at) {
        if (!is_digit(name[at]) || (at > 0 && !separates(name[at - 1]))) continue;
        std::size_t end = at;
        while (end < name.size() && is_digit(name[end])) ++end;
        // "name:0" is the number of an output in TensorFlow, not a layer.
        const bool output = end == name.size() && at > 0 && name[at - 1] == ':';
        layer_place place;
        const auto read = std::from_chars(name.data() + at, name.data() + end, place.layer);
        if (!output && (end == name.size() || separates(name[end])) && read.ec == std::errc{}) {
            place.series = fmt::format("{}*{}", name.substr(0, at), name.substr(end));
            return place;
        }
        at = end;
    }
    return std::nullopt;
}

}  // namespace mx::engine

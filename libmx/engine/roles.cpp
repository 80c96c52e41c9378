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
#include "libmx/base/text_tables.hpp"
#include "libmx/io/no_product.hpp"

namespace mx::engine {
namespace {

// Prefixes that a dump adds to a weight's name (gradients, optimizer state) are tested before the
// weight's own role. A norm's bias is a bias, because it does not multiply. The last row has every
// matrix; its patterns say which names are known.
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
    // Relative positions of T5 and Swin are added to the scores. GGUF's ssm_beta is a projection.
    role_row{"bias", "additive parameters: biases, norm shifts",
             "*bias *bias.* *biases *beta *beta.* *.b *.b.? *.b.?? *.b.in *.b.out *.b.gate *.b.ih "
             "*.b.hh *biasadd* *norm*.add.* *attn.rel.b.* *exp.probs.b* "
             "!*ssm.beta.* !*lora.b !*lora.b.*",
             0},
    // A gamma elsewhere scales the output of a layer. AdaLN's projections are named after the norm,
    // DBRX's attention is inside of one.
    role_row{"norm", "gains of layer, RMS and batch norms",
             "*norm.* *norm *norm? *norm?.* *layernorm* *layer.norm* *.rms.* rms.* *.ln.* *.ln "
             "*.ln?.* *.ln? ln.* ln?.* *.ln ln *gamma *gamma.* *.bn?.* *.bn.* bn?.* bn.* "
             "*norm.weight* *normalization* "
             "!*norm*.residual !*norm*.linear.* !*norm*.proj.* !*norm.attn.norm.attn.* !*running.* "
             "!*moving.* "
             "!*.batches.tracked !*.ls?.gamma !*layer.scale* !*.gamma.[12] !*blocks.0.gamma "
             "!*stages.0.0.gamma !*convnext*.gamma* "
             "!*norm*.weight.scale* !*norm*.input.scale* !*.global.scale",
             0},
    // GGUF calls a gate projection blk.0.ffn_gate.weight, and the router blk.0.ffn_gate_inp.weight.
    role_row{"router", "gates of experts",
             "*router* *mlp.gate.weight *moe.gate.weight *mixer.gate.weight *.gate.wg.weight "
             "*ffn.gate.weight *feed.forward.gate.weight *layers.0.gate.weight "
             "*expert.gate.weight *shared.experts.gate.weight *switch.gate.weight *gating.weight "
             "*ffn.gate.inp.weight "
             "*ffn.gate.inp.shexp.weight "
             "!*blk.0.ffn.gate.weight",
             0},
    role_row{
        "head", "the last product, which makes the logits",
        "lm.head* *.lm.head* output.weight *language.model.output.weight *output.layer.weight "
        "embed.out.weight *.embed.out.weight *unembed* *embeddings.for.head* head.weight "
        "*.head.weight head.out.weight *head.fc.weight *shared.head.head.weight "
        "medusa.head.* classifier.weight *.classifier.weight *classifier.out.proj.weight "
        "score.weight *.score.weight *to.logits* "
        "*qa.outputs.weight *seq.relationship.weight *predictions.decoder.weight decoder.weight "
        "*transformer.ff.out.weight *logits.dense.kernel cls.output.weight proj.out.weight "
        "*ctc.out*.weight !*unembed.proj* !pre.classifier*",
        2},
    // Patch embeddings and embedders of numbers are products.
    role_row{
        "embedding", "tables of tokens, positions, times",
        "*embed* *embd* *.emb *.emb.* emb.* *wte* *wpe* *.lookup* *codebook* *token.types* "
        "shared.weight *.shared.weight encoder.weight *position.encoding* *.ape *rel.pos.[hw]* "
        "*.attn.pos.[hw]* "
        "!*patch.embd.weight* !*patch.embedding.weight "
        "!*patch.embeddings.weight !*patch.embed.weight !*embedder.weight !*embed*.linear* "
        "!*emb*.proj* !*embed*.dense* "
        "!*embed*.conv* !*embed*.mlp* !*embed*.layers.0.* !*embed*.layer.0.* !*embed*.blocks.0.* "
        "!*rotary* !*rope.* !*rot.embd* !*inv.freq !*position.ids !*weight.scale* "
        "!*embed*.mapping.in.*",
        2},
    // Among them matrices: decay by state, gains by head, scales by block, depthwise kernels.
    role_row{"other", "everything else: scales, buffers, decays, sinks, depthwise kernels",
             "*scale *scales *scale.inv *.scale.? *.scale.?.weight *.scale.weight *.scales.* "
             "*.scalar *layer.scala* "
             "*layer.scale* *weight.scale* *input.scale* *qscale.* *.ls?.gamma *.ls?.weight "
             "*.ls.?* *convnext*.gamma* *gamma.[12] "
             "*blocks.0.gamma *stages.0.0.gamma "
             "*zero.point* *zeros *amax* *lambda* *magnitude* *coef* *temperature "
             "*rotary* *rope.* *rot.embd* *freqs* *inv.freq* *position.ids *.indices *index "
             "*running.* *moving.* *batches.tracked *mask "
             "*a.log *ssm.a *ssm.a.* *ssm.d *ssm.d.* *mixer.d *mamba.d *layers.0.d *.dt "
             "*ssm.conv1d* *mixer.conv1d.* *mamba.conv1d.* *layers.0.conv1d.* "
             "*linear.attn.conv1d.* *.[qkv].conv1d.* *shortconv.conv.* *short.conv.* "
             "*.conv.conv.* *depthwise* *depth.conv* *dwconv.* *.conv.dw* *.dw.weight "
             "*sinks* *attn.sink *.hc.* *time.first *time.faaaa *.decay *slope.rate "
             "*attention.time.mix.* "
             "*feed.forward.time.mix.* *lerp* *time.maa.? *time.mix.first* "
             "*time.mix.decay.weight *time.mix.?0.* *time.mix.?.?.* *attention.[kr].[ka] "
             "*attention.[avw]0 *feed.forward.x.k "
             "*.token *.tokens *cls.token* *class.emb* *mask.token* *.newline* *seperator* "
             "*separator* *image.sep *.boi* *.eoi* "
             "*image.begin* *image.end* *img.break* *.query.tokens* *resampler.query* *proj.query* "
             "*.query *.probe *version *.mean *.std *.residual",
             0},
    role_row{"weight", "matrices and convolution kernels",
             "*proj* *attn* *attention* *mlp* *ffn* *ffw* *.ff.* *ff? *fc* *dense* *conv* *linear* "
             "*.lin.* *lin? *.lin?.* *kernel* *matmul* *gemm* *qkv* *expert* *feed.forward* "
             "*.moe.* *ssm.* *mixer* *mamba* *time.mix* *channel.mix* *shortconv* *laurel* "
             "*altup* *indexer* *downsample* *encode.out.* *lora* *pooler* *patch.emb* *embedder* "
             "*embed* *query* *.key* "
             "*.value* *receptance* *.[qkvo].* *.w[qkvo12345].* *.w[qkvo12345] *.w.* *w.ih *w.hh "
             "*weight.ih* *weight.hh* *.wi.* *.inp.gate.* *modulation* *adaln* *.down.* *.up.* "
             "*.gate.* *resampler* mm.* *patch.merger* *deepstack* *posnet* *.net.? *.net.?.* "
             "*.kv.weight *classifier* cls.weight *.dt.weight *.l? *.pw?.* *.neck.*",
             2},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool separates(char c) { return c == '.' || c == '/' || c == '_' || c == ':' || c == '-'; }

// Lower case with one separator, so that patterns need only one spelling, and 0 for numbers that
// stand alone but at the end, so that the layers and experts of a model have few names.
std::string plain(std::string_view name) {
    std::string text;
    for (std::size_t at = 0; at < name.size(); ++at) {
        const char c = name[at];
        if (is_digit(c) && (text.empty() || text.back() == '.')) {
            std::size_t end = at;
            while (end < name.size() && is_digit(name[end])) ++end;
            if (end < name.size() && separates(name[end])) {
                text.push_back('0');
                at = end - 1;
                continue;
            }
        }
        const bool separator = c == '/' || c == ':' || c == '_';
        text.push_back(separator ? '.'
                                 : static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
    return text;
}

bool names_match(std::string_view patterns, std::string_view text) {
    bool found = false;
    while (!patterns.empty()) {
        const std::size_t end = std::min(patterns.find(' '), patterns.size());
        const std::string_view one = patterns.substr(0, end);
        if (one.front() == '!') {
            if (found && base::glob_match(one.substr(1), text)) return false;
        } else {
            found = found || base::glob_match(one, text);
        }
        patterns.remove_prefix(std::min(patterns.size(), end + 1));
    }
    return found;
}

found_role find_in_rows(std::string_view text, int axes) {
    bool known = false;  // a vector with the name of a matrix is
    for (const role_row& r : role_rows) {
        if (!names_match(r.patterns, text)) continue;
        if (axes >= r.least_axes) return {r.name, true};
        known = true;
    }
    return {axes < role_rows.back().least_axes ? "other" : role_rows.back().name, known};
}

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

found_role role_by_name(std::string_view tensor, std::span<const std::uint64_t> shape) {
    constexpr std::size_t most_names = 4096;
    // Tens of thousands of tensors have some hundred names but for their numbers.
    static thread_local std::array<base::text_map<found_role>, 3> known;
    const auto axes = std::min<std::ptrdiff_t>(
        2, std::ranges::count_if(shape, [](std::uint64_t extent) { return extent != 1; }));
    auto& here = known[static_cast<std::size_t>(axes)];
    std::string text = plain(tensor);
    const auto at = here.find(text);
    if (at != here.end()) return at->second;
    if (here.size() == most_names) here.clear();
    const found_role found = find_in_rows(text, static_cast<int>(axes));
    here.emplace(std::move(text), found);
    return found;
}

std::string unknown_roles_text(std::size_t tensors, std::string_view example) {
    if (tensors == 0) return {};
    return fmt::format(
        "{} {} no known role ('{}'{}): a matrix counts as a weight, anything else is kept "
        "(--role-pattern ROLE=GLOB).",
        tensors, tensors == 1 ? "tensor has" : "tensors have", example,
        tensors == 1 ? "" : ", ...");
}

found_role role_finder::find(const io::tensor_info& info) const {
    for (const role_override& o : overrides_) {
        if (base::glob_match(o.glob, info.name)) return {o.role, true};
    }
    // Masks and strings are not weights.
    if (tensor::row_of(info.type).to_f32 == tensor::widening::none) return {"other", true};
    const found_role found = role_by_name(info.name, info.shape);
    if (found.name != "weight" || !io::is_in_no_product(info.sums_over)) return found;
    // The file's own graph knows better than a shape, or a pattern that fits every name.
    return {info.sums_over.first == io::only_looked_up ? "embedding" : "other", true};
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

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/plan/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/engine/fused.hpp"
#include "libmx/llm/model_weights.hpp"
#include "libmx/report/members.hpp"

namespace mx::plan {
namespace {

using report::record;
using report::records_in;
using report::text_of;

// All bits of a model and all its elements; sums of them are exact in 64 bits.
constexpr double most_bits = 0x1p58;

// What evaluations of one plan have in common.
constexpr std::array common_members{"model",  "text",      "tokens", "context",
                                    "stride", "precision", "scored", "cross_entropy"};

[[noreturn]] void fail(const std::string& path, std::string why) {
    throw base::error(base::error_kind::input, std::move(why), {path, {}, {}});
}

class divergence_reader {
  public:
    explicit divergence_reader(const divergence_request& request)
        : request_(request), filter_(request.recipes) {}

    void add(const analysis::results_input& input) {
        path_ = input.path;
        const report::results_file& file = input.content;
        if (file.kind != "eval") {
            fail(path_, fmt::format("is mx.{}; a plan by divergence reads results (--json) of mx "
                                    "eval MODEL --each LEVEL",
                                    file.kind));
        }
        const std::vector<record> parts = records_in(file.tail, "parts");
        if (parts.empty()) {
            fail(path_, "has no parts: evaluate with --each layer, block, kind or tensor");
        }
        const bool first = all_.level.empty();
        compare(file.head, text_of(parts.front(), "level"));
        if (first) {
            for (const record& r : records_in(file.tail, "kept")) keep(r);
        }
        std::vector<std::pair<std::string, std::uint32_t>> taken;  // recipe of mx eval, its index
        for (const record& r : file.results) {
            const std::string weights = text_of(r, "weights");
            seen_.push_back(weights);
            if (!filter_.takes(weights)) continue;
            taken.emplace_back(text_of(r, "recipe"), index_of(r, weights));
        }
        for (const record& p : parts) {
            const auto at = std::ranges::find(taken, text_of(p, "recipe"),
                                              &std::pair<std::string, std::uint32_t>::first);
            if (at != taken.end()) add_part(p, at->second);
        }
        for (const record& p : records_in(file.tail, "pairs")) {
            const auto at = std::ranges::find(taken, text_of(p, "recipe"),
                                              &std::pair<std::string, std::uint32_t>::first);
            if (at != taken.end()) add_pair(p);
        }
    }

    measured_divergences finish() {
        filter_.check(seen_);
        candidates& from = all_.from;
        const auto stored = static_cast<std::uint32_t>(from.recipes.size());
        from.recipes.push_back({std::string(engine::stored_choice), {}});
        from.inputs.emplace_back("none");
        if (request_.keep) {
            for (std::size_t t = 0; t < from.tensors.size(); ++t) {
                from.tensors[t].options.push_back(
                    {stored, stored_bits_[t], 0, policy::verdict::evaluate});
            }
        }
        for (const plan_group& g : from.groups) {
            if (!from.options_of(g).empty()) continue;
            base::refuse(
                "'{}': no recipe was measured there in all of its parts; --keep leaves it "
                "as it is stored",
                base::printable(g.name));
        }
        return std::move(all_);
    }

  private:
    // Evaluations differ in their recipes only.
    void compare(const record& head, const std::string& level) {
        if (all_.level.empty()) {
            all_.model = head;
            all_.level = level;
            first_path_ = path_;
            return;
        }
        if (level != all_.level) {
            base::refuse("{}: has parts of --each {}, and {} of --each {}", path_, level,
                         first_path_, all_.level);
        }
        for (const char* name : common_members) {
            if (report::value_of(head, name) == report::value_of(all_.model, name)) continue;
            base::refuse(
                "{}: has another '{}' than {}; plan with evaluations of one model on the "
                "same tokens",
                path_, name, first_path_);
        }
    }

    std::uint32_t index_of(const record& r, const std::string& weights) {
        std::vector<analysis::named_recipe>& recipes = all_.from.recipes;
        if (weights == "mixed" || weights == "none" || weights.empty()) {
            base::refuse("{}: '{}' quantizes {}; a plan chooses among recipes of all weights",
                         path_, base::printable(text_of(r, "recipe")),
                         weights == "mixed" ? "parts of the model differently" : "no weights");
        }
        if (std::ranges::find(recipes, weights, &analysis::named_recipe::name) != recipes.end()) {
            base::refuse(
                "{}: '{}' has the same weights as another recipe of the plan, {}; give "
                "one evaluation of each",
                path_, base::printable(text_of(r, "recipe")), base::printable(weights));
        }
        recipes.push_back({weights, codec::parse_recipe(weights)});
        all_.from.inputs.push_back(text_of(r, "activations"));
        all_.adds_up.recipes.push_back({weights});
        return static_cast<std::uint32_t>(recipes.size() - 1);
    }

    std::uint64_t count_of(const record& r, std::string_view name) {
        const double x = report::number_of(r, name).value_or(-1);
        if (!(x >= 0) || x != std::floor(x))
            fail(path_, fmt::format("'{}' of a tensor is no count", name));
        total_ += x;
        if (total_ > most_bits) fail(path_, "has tensors of more bits than mx adds up");
        return static_cast<std::uint64_t>(x);
    }

    analysis::tensor_identity identity_of(const record& r, std::string role,
                                          std::uint64_t stored) const {
        analysis::tensor_identity of;
        of.file = text_of(all_.model, "model");
        of.tensor = text_of(r, "tensor");
        of.dtype = text_of(r, "dtype");
        of.role = std::move(role);
        of.stored_bytes = static_cast<std::int64_t>(stored / 8);
        if (const auto* const extents = report::member<report::list>(r, "shape")) {
            for (const report::value& n : *extents) {
                of.shape.push_back(static_cast<std::uint64_t>(
                    std::max<std::int64_t>(report::whole(report::number_of(n).value_or(0)), 0)));
            }
        }
        return of;
    }

    // The embedding or the head.
    void keep(const record& r) {
        const bool head = llm::gguf_name(text_of(r, "tensor")) == "output.weight";
        const std::uint64_t elements = count_of(r, "elements"), bits = count_of(r, "stored_bits");
        all_.from.kept.push_back({std::make_shared<const analysis::tensor_identity>(
                                      identity_of(r, head ? "head" : "embedding", bits)),
                                  elements, bits, "no part of an evaluation"});
    }

    void add_part(const record& p, std::uint32_t recipe) {
        const std::string part = text_of(p, "part");
        const auto alone = report::number_of(p, "only_kld");
        if (!alone || !std::isfinite(*alone)) {
            fail(path_, fmt::format("'{}' has no divergence (only_kld)", base::printable(part)));
        }
        const std::vector<record> tensors = records_in(p, "tensors");
        if (tensors.empty()) {
            fail(path_, fmt::format("'{}' has no tensors whose weights it quantizes: evaluate with "
                                    "recipes of weights, by this version of mx",
                                    base::printable(part)));
        }
        additivity::whole& whole = all_.adds_up.recipes[recipe];
        whole.sum += *alone;
        whole.together = report::number_of(p, "all_kld").value_or(NAN);
        // A mean of divergences is below zero by rounding alone.
        double error = std::max(*alone, 0.0);
        for (const record& r : tensors) {
            const std::string name = text_of(r, "tensor");
            const std::uint64_t elements = count_of(r, "elements"), bits = count_of(r, "bits");
            const std::size_t t = tensor_of(part, r, elements, count_of(r, "stored_bits"));
            std::vector<plan_option>& options = all_.from.tensors[t].options;
            if (std::ranges::find(options, recipe, &plan_option::recipe) != options.end()) {
                fail(path_, fmt::format("'{}' is in two parts", base::printable(name)));
            }
            options.push_back({recipe, bits, std::exchange(error, 0.0), policy::verdict::evaluate});
        }
    }

    std::size_t tensor_of(const std::string& part, const record& r, std::uint64_t elements,
                          std::uint64_t stored) {
        candidates& from = all_.from;
        const std::string name = text_of(r, "tensor");
        const auto known = tensors_.find(name);
        if (known != tensors_.end()) {
            const auto& [t, of] = known->second;
            if (of != part || from.tensors[t].elements != elements) {
                fail(path_,
                     fmt::format("'{}' is not as in another part or file", base::printable(name)));
            }
            return t;
        }
        const std::size_t t = from.tensors.size();
        tensors_.emplace(name, std::pair(t, part));
        plan_tensor tensor;
        tensor.of =
            std::make_shared<const analysis::tensor_identity>(identity_of(r, "weight", stored));
        tensor.elements = elements;
        from.tensors.push_back(std::move(tensor));
        stored_bits_.push_back(stored);
        const std::string group = request_.separate ? part : engine::fused_name(layer_of(part));
        const auto [at, is_new] = groups_.emplace(group, from.groups.size());
        if (is_new) {
            from.groups.push_back({group, {}});
            all_.places.emplace_back();
        }
        from.groups[at->second].tensors.push_back(t);
        add_layer(all_.places[at->second].layers, part, name);
        return t;
    }

    // Of --each tensor, parts are named NAME:w.
    std::string layer_of(const std::string& part) const {
        return all_.level == "tensor" ? part.substr(0, part.rfind(':')) : part;
    }

    // A pattern that matches the layers of the part. Those of blocks have no common one.
    void add_layer(std::vector<std::string>& layers, const std::string& part,
                   const std::string& tensor) const {
        constexpr std::string_view ending = ".weight";
        std::string layer = layer_of(part);
        if (all_.level == "block") {
            layer = tensor;
            if (layer.ends_with(ending)) layer.resize(layer.size() - ending.size());
            if (layer.ends_with("_exps")) layer += ".*";  // each expert of a stack is a layer
        }
        if (std::ranges::find(layers, layer) == layers.end()) layers.push_back(std::move(layer));
    }

    void add_pair(const record& p) {
        const double sum = report::number_of(p, "first_kld").value_or(NAN) +
                           report::number_of(p, "second_kld").value_or(NAN);
        const double ratio = report::number_of(p, "both_kld").value_or(NAN) / sum;
        if (!(sum > 0) || !std::isfinite(ratio)) return;
        additivity& a = all_.adds_up;
        a.least_ratio = a.pairs == 0 ? ratio : std::min(a.least_ratio, ratio);
        a.most_ratio = a.pairs == 0 ? ratio : std::max(a.most_ratio, ratio);
        ++a.pairs;
    }

    const divergence_request& request_;
    analysis::recipe_filter filter_;
    measured_divergences all_;
    std::string path_, first_path_;
    std::vector<std::string> seen_;
    std::vector<std::uint64_t> stored_bits_;                              // by tensor
    std::map<std::string, std::pair<std::size_t, std::string>> tensors_;  // by name: index, part
    std::map<std::string, std::size_t> groups_;
    double total_ = 0;
};

}  // namespace

measured_divergences gather_divergences(const std::vector<analysis::results_input>& inputs,
                                        const divergence_request& request) {
    divergence_reader all(request);
    for (const analysis::results_input& input : inputs) all.add(input);
    return all.finish();
}

}  // namespace mx::plan

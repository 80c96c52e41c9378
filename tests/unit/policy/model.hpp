// SPDX-License-Identifier: Apache-2.0
// Tensors for tests of judgements: like normally distributed data unless a test changes them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "libmx/policy/commands.hpp"
#include "libmx/policy/judge.hpp"
#include "libmx/policy/normal.hpp"

namespace mx::policy::testing {

inline const std::vector<std::string> usual{"mxfp8:scale=rceil", "mxfp8", "mxfp6:scale=even",
                                            "mxfp4:scale=even", "nvfp4"};

/// The figures of normal data, computed once per recipe.
inline metrics::row normal_row(const std::string& recipe) {
    static std::map<std::string, metrics::row> known;
    const auto at = known.find(recipe);
    if (at != known.end()) return at->second;
    return known.emplace(recipe, figures_on_normal_data(codec::parse_recipe(recipe))).first->second;
}

/// A tensor with its results, in any number and order.
struct tested_tensor : measured_tensor {
    std::vector<analysis::result> measured;
};

inline analysis::result measured(const std::string& recipe) {
    codec::recipe plain = codec::parse_recipe(recipe);
    analysis::result r;
    r.under = std::make_shared<analysis::named_recipe>(
        analysis::named_recipe{codec::to_string(plain), plain});
    plain.axis = {};
    static_cast<metrics::row&>(r) = normal_row(codec::to_string(plain));
    return r;
}

/// A tensor of normal data stored as float32.
inline tested_tensor normal_tensor(const std::string& name, const std::string& role,
                                   std::vector<std::uint64_t> shape,
                                   const std::vector<std::string>& recipes = usual) {
    tested_tensor t;
    t.file = "model.safetensors";
    t.name = name;
    t.role = role;
    t.dtype = "F32";
    t.elements = 1;
    for (const std::uint64_t n : shape) t.elements *= n;
    t.shape = std::move(shape);
    t.bytes = 4 * t.elements;
    for (const std::string& r : recipes) t.measured.push_back(measured(r));
    t.by =
        std::make_shared<report::given_command>(report::given_command{{"analyze", {t.file}}, {}});
    return t;
}

inline analysis::result& under(tested_tensor& t, const std::string& recipe) {
    for (analysis::result& r : t.measured) {
        if (r.under->name == codec::to_string(codec::parse_recipe(recipe))) return r;
    }
    throw std::out_of_range(recipe);
}

/// Changes a result: `how` receives it.
template <typename How>
void alter(tested_tensor& t, const std::string& recipe, How how) {
    how(under(t, recipe));
}

/// Ten layers of four projections, 4096 elements each.
inline std::vector<tested_tensor> projections(const std::vector<std::string>& recipes = usual) {
    std::vector<tested_tensor> out;
    for (int layer = 0; layer < 10; ++layer) {
        for (const char* name : {"q", "k", "v", "o"}) {
            out.push_back(
                normal_tensor("layers." + std::to_string(layer) + ".attn." + name + ".weight",
                              "weight", {64, 64}, recipes));
        }
    }
    return out;
}

/// Each tensor has a result.
inline measured_model model_of(const std::vector<tested_tensor>& tensors) {
    measured_model m;
    analysis::result_list results;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        analysis::tensor_identity of;
        of.file = std::to_string(i);  // names need not differ
        for (analysis::result r : tensors[i].measured) {
            r.of = std::make_shared<analysis::tensor_identity>(of);
            results.push_back(r);
        }
        m.tensors.push_back(tensors[i]);
    }
    m.table.add(results);
    if (m.table.tensors.size() != tensors.size()) throw std::logic_error("no result");
    return m;
}

inline judgement judge(const std::vector<tested_tensor>& tensors, const policy& by,
                       const target& on, std::span<const score> scores = {}) {
    return mx::policy::judge(model_of(tensors), by, on, scores);
}

inline judgement judged(const std::vector<tested_tensor>& tensors,
                        std::string_view by = "inference", std::string_view on = "any",
                        const std::vector<score>& scores = {}) {
    static std::map<std::string, policy, std::less<>> policies;
    auto at = policies.find(by);
    if (at == policies.end()) at = policies.emplace(by, find_policy(by)).first;
    return judge(tensors, at->second, find_target(on), scores);
}

}  // namespace mx::policy::testing

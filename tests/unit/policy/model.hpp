// SPDX-License-Identifier: Apache-2.0
// Tensors for tests of judgements: like normally distributed data unless a test changes them.
#pragma once

#include <map>
#include <memory>
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

inline measurement measured(const std::string& recipe) {
    codec::recipe plain = codec::parse_recipe(recipe);
    analysis::result r;
    r.under = std::make_shared<analysis::named_recipe>(
        analysis::named_recipe{codec::to_string(plain), plain});
    plain.axis = {};
    static_cast<metrics::row&>(r) = normal_row(codec::to_string(plain));
    return {{r}, 0};
}

/// A tensor of normal data stored as float32.
inline measured_tensor normal_tensor(const std::string& name, const std::string& role,
                                     std::vector<std::uint64_t> shape,
                                     const std::vector<std::string>& recipes = usual) {
    measured_tensor t;
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

inline measurement& under(measured_tensor& t, const std::string& recipe) {
    for (measurement& m : t.measured) {
        if (m.text() == codec::to_string(codec::parse_recipe(recipe))) return m;
    }
    throw std::out_of_range(recipe);
}

/// Changes the measurements: `how` receives the result.
template <typename How>
void alter(measurement& m, How how) {
    analysis::result r = m.result();
    how(r);
    m = measurement({r}, 0);
}
template <typename How>
void alter(measured_tensor& t, const std::string& recipe, How how) {
    alter(under(t, recipe), how);
}

/// Ten layers of four projections, 4096 elements each.
inline std::vector<measured_tensor> projections(const std::vector<std::string>& recipes = usual) {
    std::vector<measured_tensor> out;
    for (int layer = 0; layer < 10; ++layer) {
        for (const char* name : {"q", "k", "v", "o"}) {
            out.push_back(
                normal_tensor("layers." + std::to_string(layer) + ".attn." + name + ".weight",
                              "weight", {64, 64}, recipes));
        }
    }
    return out;
}

inline judgement judged(const std::vector<measured_tensor>& tensors,
                        std::string_view by = "inference", std::string_view on = "any",
                        const std::vector<score>& scores = {}) {
    static std::map<std::string, policy, std::less<>> policies;
    auto at = policies.find(by);
    if (at == policies.end()) at = policies.emplace(by, find_policy(by)).first;
    return judge(tensors, at->second, find_target(on), scores);
}

}  // namespace mx::policy::testing

// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/recipe_generator.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "libmx/base/status.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/format/block_formats.hpp"

namespace mx::tests {
namespace {

using codec::recipe;
using words = std::vector<std::string>;

template <typename Rows>
words names_of(const Rows& rows) {
    words out;
    for (const auto& row : rows) out.emplace_back(row.name);
    return out;
}

words dialects_with_blocks() {
    words out;
    for (const auto& d : codec::dialects()) {
        if (d.blocks) out.emplace_back(d.name);
    }
    return out;
}

// "256, 448; ue5m3: 65536" as 256, 448 and 65536.
words words_of(std::string_view values) {
    words out;
    while (!values.empty()) {
        const std::size_t end = std::min(values.find_first_of(",;"), values.size());
        std::string_view word = values.substr(0, end);
        word.remove_prefix(word.rfind(": ") == std::string_view::npos ? 0 : word.rfind(": ") + 2);
        word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
        out.emplace_back(word);
        values.remove_prefix(std::min(end + 1, values.size()));
    }
    return out;
}

// What a key may be, where its list of values is no list of words.
const std::map<std::string_view, words>& values_of_keys() {
    static const std::map<std::string_view, words> all{
        {"element", names_of(format::element_formats)},
        {"scale", names_of(scale::scale_rules)},
        {"round", names_of(format::roundings)},
        {"dialect", dialects_with_blocks()},
        {"random_bits", {"1", "3", "11", "32"}},
        {"seed", {"1", "18446744073709551615"}},
        {"block", {"1x32", "1x16", "1x2", "1x7", "1x48", "1x128", "32x1", "5x1", "4x4", "3x5"}},
        {"axis", {"sum", "-1", "-2", "0", "flat"}},
        {"outer", {"tensor", "none", "row", "col", "32x32", "given:0.02", "given:30000"}},
        {"reach", {"0", "1", "6", "all"}},
        {"transform", {"none", "hadamard", "random-hadamard"}},
        {"transform_size", {"2", "12", "16", "64"}},
        {"transform_seed", {"1", "77"}},
        {"transform_file", {}},  // one rotation is like another
    };
    return all;
}

// What a key, or one value of it, needs to have an effect.
const std::map<std::string_view, std::string>& needs_of_keys() {
    static const std::map<std::string_view, std::string> all{
        {"range", ",offset=fp16"},
        {"bound", ",four_over_six=mse"},
        {"bound=32768", ",scale_format=ue5m3_inf,four_over_six=mse"},
        {"bound=61440", ",scale_format=ue5m3_inf,four_over_six=mse"},
        {"candidates", ",four_over_six=mae"},
        {"transform_size", ",transform=hadamard"},
        {"transform_seed", ",transform=random-hadamard"},
    };
    return all;
}

words values_of(const codec::recipe_key& key) {
    const auto given = values_of_keys().find(key.name);
    return given != values_of_keys().end() ? given->second : words_of(key.values);
}

class generator {
  public:
    generator() {
        for (const auto& preset : format::block_formats) {
            for (const std::string& by : dialects_with_blocks()) {
                for (const auto& rule : scale::scale_rules) {
                    for (const auto& round : format::roundings) {
                        std::string text = std::string(preset.name) + ":dialect=" + by +
                                           ",scale=" + std::string(rule.name) +
                                           ",round=" + std::string(round.name);
                        if (add(text)) bases_[by].push_back(std::move(text));
                    }
                }
            }
        }
        for (const auto& key : codec::recipe_keys()) {
            for (const std::string& value : values_of(key)) {
                const std::string setting = std::string(key.name) + "=" + value;
                auto needs = needs_of_keys().find(setting);
                if (needs == needs_of_keys().end()) needs = needs_of_keys().find(key.name);
                std::string fixed = "," + setting;
                if (needs != needs_of_keys().end()) fixed += needs->second;
                std::size_t found = count_with(recipes, key, value);
                for (std::size_t i = 0; i < 100000 && found < generated_each; ++i) {
                    if (add(base() + fixed + more(random_() % 4)) &&
                        key.get(recipes.back()) == value) {
                        ++found;
                    }
                }
            }
        }
        while (recipes.size() < generated_count) add(base() + more(1 + random_() % 4));
    }

    std::vector<recipe> recipes;

  private:
    bool add(const std::string& text) {
        try {
            recipe r = codec::parse_recipe(text);
            std::string why_not;
            if (!engine::lay_out({5, 203}, r, why_not)) return false;
            if (!known_.insert(codec::to_string(r)).second) return false;
            recipes.push_back(std::move(r));
            return true;
        } catch (const base::error&) {  // not a valid recipe
            return false;
        }
    }

    const std::string& any_of(const words& list) { return list[random_() % list.size()]; }

    const std::string& base() {
        static const words names = dialects_with_blocks();
        for (;;) {
            const words& of_dialect = bases_[any_of(names)];
            if (!of_dialect.empty()) return any_of(of_dialect);
        }
    }

    std::string more(std::size_t keys) {
        std::string text;
        for (; keys > 0; --keys) {
            const auto all = codec::recipe_keys();
            const auto& key = all[random_() % all.size()];
            const words values = values_of(key);
            if (!values.empty()) text += "," + std::string(key.name) + "=" + any_of(values);
        }
        return text;
    }

    // Another seed, for other recipes: MX_RECIPE_SEED=7 ctest -R generated.
    static std::uint64_t seed() {
        const char* const given = std::getenv("MX_RECIPE_SEED");
        return given == nullptr ? 20261127 : std::strtoull(given, nullptr, 10);
    }

    std::mt19937_64 random_{seed()};
    std::set<std::string> known_;
    std::map<std::string, words> bases_;
};

}  // namespace

const std::vector<recipe>& generated_recipes() {
    static const generator one;
    return one.recipes;
}

words generated_values(const codec::recipe_key& key) { return values_of(key); }

std::size_t count_with(const std::vector<recipe>& recipes, const codec::recipe_key& key,
                       const std::string& value) {
    return static_cast<std::size_t>(
        std::ranges::count_if(recipes, [&](const recipe& r) { return key.get(r) == value; }));
}

}  // namespace mx::tests

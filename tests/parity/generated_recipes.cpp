// SPDX-License-Identifier: Apache-2.0
// Recipes made from the lists of the grammar, under every backend: all that it delivers, byte for
// byte as the reference delivers it.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/archive.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/format/block_formats.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/parity/element_cases.hpp"
#include "tests/parity/segments.hpp"

namespace {

using mx::codec::backend;
using mx::codec::detail;
using mx::codec::recipe;
using mx::tensor::dtype;
using namespace mx::tests;
using words = std::vector<std::string>;

constexpr std::size_t recipe_count = 10000;

template <typename Rows>
words names_of(const Rows& rows) {
    words out;
    for (const auto& row : rows) out.emplace_back(row.name);
    return out;
}

words dialects_with_blocks() {
    words out;
    for (const auto& d : mx::codec::dialects()) {
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
        {"element", names_of(mx::format::element_formats)},
        {"scale", names_of(mx::scale::scale_rules)},
        {"round", names_of(mx::format::roundings)},
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

words values_of(const mx::codec::recipe_key& key) {
    const auto given = values_of_keys().find(key.name);
    return given != values_of_keys().end() ? given->second : words_of(key.values);
}

// Recipes made from the lists, all different: first every preset under every dialect, rule and
// rounding that it takes, then these with more keys, each value of each key in some.
class generator {
  public:
    generator() {
        for (const auto& preset : mx::format::block_formats) {
            for (const std::string& by : dialects_with_blocks()) {
                for (const auto& rule : mx::scale::scale_rules) {
                    for (const auto& round : mx::format::roundings) {
                        std::string text = std::string(preset.name) + ":dialect=" + by +
                                           ",scale=" + std::string(rule.name) +
                                           ",round=" + std::string(round.name);
                        if (add(text)) bases_[by].push_back(std::move(text));
                    }
                }
            }
        }
        for (const auto& key : mx::codec::recipe_keys()) {
            for (const std::string& value : values_of(key)) {
                const std::string setting = std::string(key.name) + "=" + value;
                auto needs = needs_of_keys().find(setting);
                if (needs == needs_of_keys().end()) needs = needs_of_keys().find(key.name);
                std::string fixed = "," + setting;
                if (needs != needs_of_keys().end()) fixed += needs->second;
                std::size_t found = with(key, value);
                for (std::size_t i = 0; i < 100000 && found < enough; ++i) {
                    if (add(base() + fixed + more(random_() % 4)) &&
                        key.get(recipes.back()) == value) {
                        ++found;
                    }
                }
            }
        }
        while (recipes.size() < recipe_count) add(base() + more(1 + random_() % 4));
    }

    std::size_t with(const mx::codec::recipe_key& key, const std::string& value) const {
        return static_cast<std::size_t>(
            std::ranges::count_if(recipes, [&](const recipe& r) { return key.get(r) == value; }));
    }

    static constexpr std::size_t enough = 12;
    std::vector<recipe> recipes;

  private:
    bool add(const std::string& text) {
        try {
            recipe r = mx::codec::parse_recipe(text);
            std::string why_not;
            if (!mx::engine::lay_out({5, 203}, r, why_not)) return false;
            if (!known_.insert(mx::codec::to_string(r)).second) return false;
            recipes.push_back(std::move(r));
            return true;
        } catch (const mx::base::error&) {  // not a valid recipe
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
            const auto all = mx::codec::recipe_keys();
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

const generator& generated() {
    static const generator one;
    return one;
}

constexpr std::array types{dtype::f32, dtype::bf16, dtype::f16};

// A few blocks, of which some are cut.
stored_matrix matrix_for(const recipe& r, std::size_t turn, const std::vector<block_kind>& kinds) {
    const auto high = static_cast<std::uint64_t>(r.block.rows);
    const auto wide = static_cast<std::uint64_t>(r.block.cols);
    return make_matrix(types[turn % types.size()], high == 1 ? 3 : high + 3,
                       wide == 1 ? 37 : std::max<std::uint64_t>(169, wide + 37), kinds, *r.element,
                       turn);
}

std::string nothing_missing() { return {}; }

// The kernels of a device, on the host.
const backend lanes{{"lanes", "the kernels' bodies", nothing_missing, true},
                    mx::codec::cuda::make_host_quantizer,
                    mx::codec::make_host_caster};

struct request {
    detail wanted;
    bool parts, sums;
};

// Each has kernels of its own. The first is all that a backend delivers.
constexpr std::array requests{
    request{detail::stats, true, true}, request{detail::none, false, true},
    request{detail::codes, false, false}, request{detail::scales, false, false}};

// The backends that deliver something else than the reference: for all, and for one other request.
std::string difference(const stored_matrix& m, const recipe& r, std::size_t turn) {
    static const auto backends = backends_here();
    std::string found;
    for (const std::size_t i : {std::size_t{0}, 1 + turn / 3 % (requests.size() - 1)}) {
        const request& q = requests[i];
        const auto by = [&](const backend& b) {
            return everything(b, m, r, q.wanted, q.parts, q.sums);
        };
        const auto expected = by(*backends.front());
        const auto compare = [&](const backend& b) {
            if (by(b) != expected) found += std::string(b.name) + "/" + std::to_string(i) + " ";
        };
        for (const backend* b : backends) {
            if (b != backends.front()) compare(*b);
        }
        if (i != 0 && turn % 5 == 0) compare(lanes);
    }
    return found;
}

// Counts, sums and histograms of a matrix under several recipes at once.
words totals_by(const backend& b, const stored_matrix& m, std::span<const recipe> recipes,
                std::size_t turn) {
    mx::engine::run_control control;
    control.backend = &b;
    control.threads = 1;
    if (turn / 2 % 2 == 0)
        control.counted_elements = 0;  // words of 16 bits are counted, not quantized
    const mx::analysis::matrix whole{m.type, m.bytes.data(), m.rows, m.cols, "m"};
    words out;
    for (const auto& one : mx::analysis::analyze_matrix(whole, recipes, turn / 3 % 2 == 0, control,
                                                        turn / 4 % 2 == 0)) {
        mx::metrics::totals totals = one.totals;
        mx::base::archive text;
        totals.serialize(text);
        out.push_back(text.text());
        if (!one.histograms) continue;
        const auto* bytes = reinterpret_cast<const char*>(one.histograms.get());
        out.back().append(bytes, sizeof *one.histograms);
    }
    return out;
}

}  // namespace

TEST_CASE("generated recipes: every value of every key is in some", "[generated][totals]") {
    CHECK(generated().recipes.size() == recipe_count);
    for (const auto& key : mx::codec::recipe_keys()) {
        for (const std::string& value : values_of(key)) {
            CAPTURE(key.name, value);
            CHECK(generated().with(key, value) >= generator::enough);
        }
    }
    std::set<std::string_view> presets;
    for (const recipe& r : generated().recipes) presets.insert(r.preset);
    CHECK(presets.size() == mx::format::block_formats.size());
}

TEST_CASE("generated recipes: segments by every backend", "[generated][segments]") {
    std::size_t turn = 0;
    for (const recipe& r : generated().recipes) {
        for (const auto* kinds : {&every_kind, &usual_kinds}) {
            const std::string found = difference(matrix_for(r, turn, *kinds), r, turn);
            CAPTURE(mx::codec::to_string(r), turn);
            CHECK(found == "");
            ++turn;
        }
    }
}

TEST_CASE("generated recipes: totals by every backend", "[generated][totals]") {
    constexpr std::size_t together = 20;
    const auto& all = generated().recipes;
    for (std::size_t at = 0; at < all.size(); at += together) {
        const std::span recipes(all.data() + at, std::min(together, all.size() - at));
        const std::size_t turn = at / together;
        const auto m =
            make_matrix(types[turn % types.size()], 5, 203, turn % 5 < 3 ? every_kind : usual_kinds,
                        *recipes.front().element, turn);
        const auto backends = backends_here();
        const words expected = totals_by(*backends.front(), m, recipes, turn);
        for (const backend* b : backends) {
            if (b == backends.front()) continue;
            const words got = totals_by(*b, m, recipes, turn);
            for (std::size_t i = 0; i < recipes.size(); ++i) {
                CAPTURE(b->name, mx::codec::to_string(recipes[i]), turn);
                CHECK(got[i] == expected[i]);
            }
        }
    }
}

TEST_CASE("casts under every dialect by every backend") {
    for (const backend* b : backends_here()) {
        const auto caster = b->make_caster(nullptr);
        std::size_t compared = 0;
        compare_casts(*caster, [&](const std::string& what, const std::string& found) {
            CAPTURE(b->name, what);
            CHECK(found == "");
            ++compared;
        });
        CHECK(compared > 500);
    }
}

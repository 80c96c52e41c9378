// SPDX-License-Identifier: Apache-2.0
// Recipes made from the lists of the grammar, under every backend: all that it delivers, byte for
// byte as the reference delivers it.
#include <algorithm>
#include <set>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/archive.hpp"
#include "libmx/base/status.hpp"
#include "libmx/format/block_formats.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/parity/element_cases.hpp"
#include "tests/parity/recipe_generator.hpp"
#include "tests/parity/segments.hpp"

namespace {

using mx::codec::backend;
using mx::codec::detail;
using mx::codec::recipe;
using mx::tensor::dtype;
using namespace mx::tests;
using words = std::vector<std::string>;

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
    CHECK(generated_recipes().size() == generated_count);
    for (const auto& key : mx::codec::recipe_keys()) {
        for (const std::string& value : generated_values(key)) {
            CAPTURE(key.name, value);
            CHECK(count_with(generated_recipes(), key, value) >= generated_each);
        }
    }
    std::set<std::string_view> presets;
    for (const recipe& r : generated_recipes()) presets.insert(r.preset);
    CHECK(presets.size() == mx::format::block_formats.size());
}

TEST_CASE("generated recipes: segments by every backend", "[generated][segments]") {
    std::size_t turn = 0;
    for (const recipe& r : generated_recipes()) {
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
    const auto& all = generated_recipes();
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

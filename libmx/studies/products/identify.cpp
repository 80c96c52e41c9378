// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/identify.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/products/products.hpp"
#include "libmx/studies/products/quantized_operand.hpp"

namespace mx::products {
namespace {

bool same_output(float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); }

using fitting_model = std::pair<gemm::accumulator, form_pair>;

// The models that multiply the operands without rounding them first.
std::vector<fitting_model> fitting_models(const quantized_operand& x, const quantized_operand& y,
                                          const gemm_request& request) {
    std::vector<fitting_model> fit;
    const std::span<const gemm::accumulator> models =
        request.models.empty() ? gemm::accumulators() : std::span(request.models);
    for (const gemm::accumulator& m : models) {
        if (!takes_codes(m, x, y) && !takes_values(m)) continue;
        form_pair forms = forms_for(m, x, y);
        if (forms.first.inexact != 0 || forms.second.inexact != 0) continue;
        fit.emplace_back(m, std::move(forms));
    }
    if (fit.empty()) {
        base::refuse("no model of those asked for multiplies {} by {} without rounding them first",
                     to_string(request.recipe_a), to_string(request.recipe_b));
    }
    return fit;
}

std::vector<std::vector<float>> products_of(const std::vector<fitting_model>& fit,
                                            std::uint64_t size, std::span<const float> c,
                                            const gemm_request& request,
                                            const engine::run_control& control) {
    product_runner runner(control, request.backend, size * fit.size());
    std::vector<std::vector<float>> d;
    for (const auto& [model, forms] : fit) {
        d.push_back(
            runner.multiply(forms.first.operand, forms.second.operand, c, model, request.how));
    }
    return d;
}

constexpr std::size_t probe_depth = 128;  // two steps of the longest unit
constexpr std::size_t probe_columns = 16, probe_rows = 62, rows_drawn = 2048, columns_drawn = 64;
constexpr std::uint32_t differences_wanted = 2;  // outputs that tell two models apart

std::size_t probe_depth_of(const operand_recipe& r) {
    if (!r.blocks) return probe_depth;
    const auto length = static_cast<std::size_t>(r.blocks->block.cols);
    return (probe_depth + length - 1) / length * length;
}

// The largest value under a scale of the tensor of 1; 0 without such a scale.
float largest_of(const operand_recipe& r) {
    if (!r.blocks) {
        if (!r.tensor_scaled) return 0;
        const format::element_format& f = *r.plain->element;
        return format::decode(f, f.max_code());
    }
    return codec::has_tensor_scale(*r.blocks) ? codec::outer_rule_of(*r.blocks).range : 0;
}

// Draws for one row of A or column of B.
class row_draws {
  public:
    row_draws(const base::random_key& key, std::size_t row, std::size_t depth)
        : key_(key), next_(row * 2 * (depth + 8)) {}
    int below(int n) {
        return static_cast<int>(base::random_u32(key_, next_++) % static_cast<std::uint32_t>(n));
    }
    int one_of(std::initializer_list<int> list) {
        return list.begin()[below(static_cast<int>(list.size()))];
    }

  private:
    base::random_key key_;
    std::uint64_t next_;
};

// Two neighbours, one of which decides a tie of the other; or terms over a span of exponents with a
// large pair that cancels at a distance within a step or across steps. Values that the format
// cannot hold are dropped later.
void draw_row(row_draws draws, std::span<float> x) {
    const int depth = static_cast<int>(x.size());
    const auto at = [&](int k) -> float& { return x[static_cast<std::size_t>(k % depth)]; };
    const int place = draws.below(depth), distance = 1 << draws.below(7);
    if (draws.below(3) == 0) {
        const int even = place - place % 2, top = -draws.below(12);
        const int gap = draws.one_of({10, 13, 23, 24, 25});
        at(even) = std::ldexp(1.0F, top);
        at(even + 1) = std::ldexp(draws.below(2) != 0 ? 1.0F : -1.0F, top - gap);
        return;
    }
    const int scale = draws.one_of({0, 0, 0, 2, -5, -12, -62, -70, 5});
    const int span = draws.one_of({1, 4, 12, 24}), empty = draws.one_of({1, 2, 8});
    const int signs = draws.one_of({1, 2, 2, 2});
    for (float& v : x) {
        const int word = draws.below(1 << 12);
        const float size =
            std::ldexp(1.0F + static_cast<float>(word >> 1) * 0x1p-11F, scale - draws.below(span));
        v = word % empty != 0 ? 0.0F : draws.below(signs) != 0 ? -size : size;
    }
    if (draws.below(4) == 0) return;
    at(place) = std::ldexp(1.0F, scale + draws.below(draws.one_of({8, 16, 32, 48})));
    at(place + distance) = -at(place);
}

// Constant columns keep a pair in A cancelling. Others of two values reach the smallest products of
// f16 whose operands are not both subnormal.
void draw_column(std::size_t index, row_draws draws, std::span<float> x) {
    constexpr std::array exponents{0, -14, 5, -8, -62, -1, -70};
    if (index % 2 != 0) return draw_row(draws, x);
    const std::size_t which = index / 2 % exponents.size();
    const int odd = which % 2 != 0 ? 10 : 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
        x[k] = std::ldexp(1.0F, exponents[which] - (k % 2 != 0 ? odd : 0));
    }
}

matrix matrix_of_rows(std::vector<float> values, std::size_t depth) {
    matrix m;
    m.rows = values.size() / depth;
    m.cols = depth;
    m.shape = {m.rows, m.cols};
    m.values = std::move(values);
    return m;
}

// The first `count` of the drawn rows, after their quantization, that another quantization leaves
// as they are. The first has the largest value alone, so that a scale of the tensor is 1 with any
// choice of the others.
std::vector<float> exact_rows(std::vector<float> drawn, std::size_t count,
                              const operand_recipe& recipe, const engine::run_control& control) {
    const std::size_t depth = probe_depth_of(recipe);
    const float largest = largest_of(recipe);
    if (largest != 0) {
        for (float& x : drawn) x = std::clamp(x, -largest, largest);
    }
    std::fill_n(drawn.begin(), depth, 0.0F);
    drawn.front() = largest != 0 ? largest : 1;
    const auto quantize = [&](std::vector<float> rows) {
        return quantize_operand(matrix_of_rows(std::move(rows), depth), reduction::last, recipe, {},
                                control)
            .values;
    };
    const std::vector<float> once = quantize(std::move(drawn)), twice = quantize(once);
    std::vector<float> kept;
    for (std::size_t at = 0; at < once.size() && kept.size() < count * depth; at += depth) {
        const auto row = std::span(once).subspan(at, depth);
        if (!std::ranges::equal(row, std::span(twice).subspan(at, depth))) continue;
        if (std::ranges::all_of(row, [](float v) { return v == 0; })) continue;
        if (!std::ranges::all_of(row, [](float v) { return std::isfinite(v); })) continue;
        kept.insert(kept.end(), row.begin(), row.end());
    }
    return kept;
}

// Outputs of two models.
struct model_pair {
    std::span<const float> x, y;
    std::uint32_t seen = 0;  // differing outputs of the chosen rows

    std::uint32_t differing(std::size_t row, std::size_t n) const {
        std::uint32_t count = 0;
        for (std::size_t at = row * n; at < (row + 1) * n; ++at) {
            count += same_output(x[at], y[at]) ? 0 : 1;
        }
        return count;
    }
};

// The first row, then those that tell most pairs of models apart, one after the other. `drawn` has
// the outputs of all rows, n each, by model.
std::vector<std::size_t> telling_rows(const std::vector<std::vector<float>>& drawn, std::size_t n) {
    std::vector<model_pair> pairs;
    for (std::size_t i = 0; i < drawn.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) pairs.push_back({drawn[i], drawn[j]});
    }
    std::vector<std::size_t> chosen{0};
    while (chosen.size() < probe_rows) {
        std::size_t best = 0;
        std::uint32_t most = 0;
        for (std::size_t row = 1; row < drawn.front().size() / n; ++row) {
            std::uint32_t gain = 0;
            for (const model_pair& p : pairs) {
                gain += std::min(differences_wanted - p.seen, p.differing(row, n));
            }
            if (gain > most) {
                most = gain;
                best = row;
            }
        }
        if (most == 0) break;
        chosen.push_back(best);
        for (model_pair& p : pairs) p.seen += p.differing(best, n);
        std::erase_if(pairs, [](const model_pair& p) { return p.seen >= differences_wanted; });
    }
    return chosen;
}

constexpr std::array candidate_members = std::to_array<report::declared<candidate_unit>>({
    {"model", "string", "", [](auto& u) { return gemm::to_string(u.model); }},
    {"instruction", "string", "empty: software", [](auto& u) { return u.model.instruction; }},
    {"differing", "count", "outputs that differ from D", [](auto& u) { return u.differing; }},
});

}  // namespace

std::vector<candidate_unit> identify_unit(const matrix& d, const matrix& a, const matrix& b,
                                          const matrix* c, const gemm_request& request,
                                          const engine::run_control& control) {
    require_shapes(a, b, c, request.over_a, request.over_b);
    const transform::rotation rotate = common_rotation(request.recipe_a, request.recipe_b);
    const quantized_operand x =
        quantize_operand(a, request.over_a, request.recipe_a, rotate, control);
    const quantized_operand y =
        quantize_operand(b, request.over_b, request.recipe_b, rotate, control);
    if (d.rows != x.rows || d.cols != y.rows) {
        base::refuse("D is {}x{}, the product {}x{}", d.rows, d.cols, x.rows, y.rows);
    }
    const std::vector<fitting_model> fit = fitting_models(x, y, request);
    const std::span<const float> start =
        c == nullptr ? std::span<const float>() : std::span<const float>(c->values);
    const auto own =
        products_of(fit, std::uint64_t{x.rows} * y.rows * x.depth, start, request, control);
    std::vector<candidate_unit> found;
    for (std::size_t i = 0; i < fit.size(); ++i) {
        found.push_back({fit[i].first, 0});
        for (std::size_t j = 0; j < d.values.size(); ++j) {
            found.back().differing += same_output(own[i][j], d.values[j]) ? 0 : 1;
        }
    }
    std::ranges::stable_sort(found, {}, &candidate_unit::differing);
    return found;
}

unit_probe make_unit_probe(const operand_recipe& recipe, std::uint64_t seed,
                           const engine::run_control& control) {
    if (recipe.blocks &&
        (recipe.blocks->block.rows != 1 || recipe.rotation() != transform::rotation{} ||
         codec::is_channel_scaled(*recipe.blocks) ||
         static_cast<std::size_t>(recipe.blocks->block.cols) > probe_depth)) {
        base::refuse(
            "--probe: recipe '{}': give one with blocks along k of at most {} elements, "
            "and no transform",
            to_string(recipe), probe_depth);
    }
    gemm_request request;
    request.recipe_a = request.recipe_b = recipe;
    const std::size_t depth = probe_depth_of(recipe);
    std::vector<float> rows(rows_drawn * depth), columns(columns_drawn * depth);
    for (std::size_t i = 0; i < rows_drawn; ++i) {
        draw_row({{seed, 0}, i, depth}, std::span(rows).subspan(i * depth, depth));
    }
    for (std::size_t i = 0; i < columns_drawn; ++i) {
        draw_column(i, {{seed, 1}, i, depth}, std::span(columns).subspan(i * depth, depth));
    }
    const auto quantized = [&](const std::vector<float>& x) {
        return quantize_operand(matrix_of_rows(x, depth), reduction::last, recipe, {}, control);
    };
    const std::vector<float> b = exact_rows(std::move(columns), probe_columns, recipe, control);
    rows = exact_rows(std::move(rows), rows_drawn, recipe, control);
    const std::size_t n = b.size() / depth;
    const quantized_operand y = quantized(b);
    const auto outputs_of = [&](const std::vector<fitting_model>& fit, std::size_t m) {
        return products_of(fit, m * n * depth, {}, request, control);
    };
    const auto drawn = outputs_of(fitting_models(quantized(rows), y, request), rows.size() / depth);
    std::vector<float> a;
    for (const std::size_t row : telling_rows(drawn, n)) {
        const auto chosen = std::span(rows).subspan(row * depth, depth);
        a.insert(a.end(), chosen.begin(), chosen.end());
    }

    const quantized_operand x = quantized(a);
    if (x.values != a || y.values != b) {
        base::refuse("--probe: recipe '{}' changes its own values when it quantizes them again",
                     to_string(recipe));
    }
    unit_probe made{x.rows, n, depth, a, reduction_last(b, n, depth, reduction::first), {}};
    const std::vector<fitting_model> models = fitting_models(x, y, request);
    const auto own = outputs_of(models, x.rows);
    std::vector<std::size_t> firsts;  // of each class
    for (std::size_t i = 0; i < models.size(); ++i) {
        const auto same = std::ranges::find_if(
            firsts, [&](std::size_t j) { return std::ranges::equal(own[i], own[j], same_output); });
        const auto at = static_cast<std::size_t>(same - firsts.begin());
        if (same == firsts.end()) {
            firsts.push_back(i);
            made.classes.emplace_back();
        }
        made.classes[at].push_back(models[i].first);
    }
    return made;
}

report::record candidate_record(const candidate_unit& u) {
    return report::written(candidate_members, u);
}

report::document_schema identity_schema() {
    return report::document_schema("mx.gemm-identity/1", "mx gemm --identify",
                                   "The accumulator models that give the outputs D of a product.")
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"recipe_a", "string", ""})
        .member({"recipe_b", "string", ""})
        .member({"arrangement", "@common#arrangement", ""})
        .member({"results", "[#result]", "a model each, the best first"})
        .define("result", candidate_members);
}

}  // namespace mx::products

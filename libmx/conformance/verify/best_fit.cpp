// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/best_fit.hpp"

#include <algorithm>
#include <atomic>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/gemm/accumulator_keys.hpp"
#include "libmx/gemm/accumulators.hpp"

namespace mx::conformance::verify {
namespace {

using gemm::accumulator;

// Tiles compared during the search; its result is then compared with all of them.
constexpr std::size_t searched_tiles = 160;
constexpr int most_changes = 6;
constexpr std::size_t most_equals = 8;

std::uint64_t differences(const vectors::mma_case& what, std::span<const recorded_tile> tiles,
                          std::size_t stride, const accumulator& model) {
    std::atomic<std::uint64_t> count = 0;
    base::parallel_for((tiles.size() + stride - 1) / stride, 0, nullptr, [&](std::uint64_t i, int) {
        const recorded_tile& t = tiles[i * stride];
        const auto got = vectors::multiply_tile(what, t.inputs, t.accumulate, model);
        count += differences_in(got, t.outputs);
    });
    return count;
}

bool is_sound(const accumulator& model) {
    try {
        gemm::validate(model);
        return true;
    } catch (const base::error&) {
        return false;
    }
}

// The row with steps that are no longer than the instruction and divide it.
accumulator shortened(accumulator row, std::size_t instruction_k) {
    const auto k = static_cast<int>(instruction_k);
    if (row.fused_length > k && row.how != gemm::algorithm::grouped) row.fused_length = k;
    return row;
}

std::vector<accumulator> rows_for(const vectors::mma_case& what) {
    const std::uint32_t scaling = what.scale == nullptr ? 0u : std::uint32_t{what.scale->bit};
    std::vector<accumulator> rows;
    for (const accumulator& row : gemm::accumulators()) {
        if (!has_steps(row.how) || gives_f16(row) != what.f16) continue;
        if (!takes(row, *what.a, *what.b, scaling)) continue;
        rows.push_back(shortened(row, what.instruction_k));
    }
    return rows;
}

// Models that differ from `m` in one field.
std::vector<accumulator> neighbours(const accumulator& m, const vectors::mma_case& what) {
    std::vector<accumulator> list;
    const auto add = [&](auto change) {
        accumulator n = m;
        change(n);
        const bool whole =
            n.fused_length * steps_at_once(n.enters) <= static_cast<int>(what.instruction_k);
        if (whole && gives_f16(n) == what.f16 && to_string(n) != to_string(m) && is_sound(n)) {
            list.push_back(n);
        }
    };
    for (const int by : {-1, 1, -2, 2}) {
        add([&](accumulator& n) { n.fraction_bits += by; });
        add([&](accumulator& n) { n.exponent_floor += by; });
    }
    add([](accumulator& n) { n.exponent_floor = -1000; });
    add([](accumulator& n) { n.fused_length /= 2; });
    add([](accumulator& n) { n.fused_length *= 2; });
    const auto add_words = [&](auto field, const auto& words) {
        for (const auto& word : words) add([&](accumulator& n) { n.*field = word.value; });
    };
    add_words(&accumulator::convert, gemm::conversion_words);
    add_words(&accumulator::subnormals, gemm::subnormal_words);
    add_words(&accumulator::zero, gemm::zero_words);
    add_words(&accumulator::underflow, gemm::zero_words);
    add_words(&accumulator::c, gemm::entry_words);
    return list;
}

}  // namespace

std::optional<model_fit> best_fit(const vectors::mma_case& what,
                                  std::span<const recorded_tile> tiles,
                                  const std::optional<accumulator>& model) {
    const std::size_t stride = std::max<std::size_t>(1, tiles.size() / searched_tiles);
    std::vector<accumulator> starts = rows_for(what);
    if (model) starts.insert(starts.begin(), *model);
    if (starts.empty() || tiles.empty()) return {};
    accumulator best = starts.front();
    std::uint64_t fewest = differences(what, tiles, stride, best);
    const auto take_better = [&](const std::vector<accumulator>& list) {
        bool better = false;
        for (const accumulator& m : list) {
            const std::uint64_t count = differences(what, tiles, stride, m);
            if (count >= fewest) continue;
            fewest = count;
            best = m;
            better = true;
        }
        return better;
    };
    take_better(starts);
    for (int i = 0; i < most_changes && fewest != 0; ++i) {
        if (!take_better(neighbours(best, what))) break;
    }
    model_fit fit;
    fit.model = to_string(best);
    fit.compared = tiles.size() * vectors::mma_tile_outputs;
    fit.differences = differences(what, tiles, 1, best);
    for (const accumulator& m : neighbours(best, what)) {
        if (fit.equally.size() == most_equals) break;
        if (differences(what, tiles, stride, m) != fewest) continue;
        if (differences(what, tiles, 1, m) <= fit.differences) fit.equally.push_back(to_string(m));
    }
    return fit;
}

}  // namespace mx::conformance::verify

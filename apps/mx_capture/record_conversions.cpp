// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <numeric>

#include "apps/mx_capture/parts.hpp"

namespace mx::capture {
namespace {

using namespace conformance::vectors;

template <typename Row>
void note(recording& to, std::string_view list, const Row& row, const amounts& a) {
    to.metadata["kind"] = "cvt";
    to.metadata["list"] = list;
    to.metadata["conversion"] = row.name;
    to.metadata["instruction"] = row.instruction;
    to.metadata["format"] = row.format;
    to.note_generator(conversion_inputs_version, a.seed);
}

std::vector<std::uint32_t> words_of(const std::vector<std::uint8_t>& bytes) {
    return {bytes.begin(), bytes.end()};
}

bool has_hashes(const narrowing& row) { return row.from == conversion_input::f32 && !row.relu; }

std::uint64_t bytes_of(const narrowing& row, const amounts& a) {
    std::uint64_t bytes = 65536;
    if (row.from == conversion_input::f32) bytes += stratified_floats(a.seed).size();
    if (has_hashes(row)) bytes += float_cells * sizeof(std::uint64_t);
    return bytes;
}

void record(const narrowing& row, const amounts& a, device& d, recording& to) {
    note(to, "narrowing", row, a);
    std::vector<std::uint32_t> halves(65536);
    if (row.from == conversion_input::f32) {
        halves = all_halves(row.from);
    } else {
        std::iota(halves.begin(), halves.end(), 0u);
    }
    to.add("all.code", tensor::dtype::u8, {halves.size()}, words_of(d.narrow(row, halves)));
    if (row.from == conversion_input::f32) {
        const auto x = stratified_floats(a.seed);
        to.add("strata.code", tensor::dtype::u8, {x.size()}, words_of(d.narrow(row, x)));
        if (has_hashes(row)) {
            to.add_words64("cells.hash", d.hash_cells(row, a.cell_stride));
            to.note("cell_stride", a.cell_stride);
        }
    }
}

std::uint64_t bytes_of(const widening& row, const amounts&) { return 2 * row.codes(); }

void record(const widening& row, const amounts& a, device& d, recording& to) {
    const auto values = d.widen(row, row.codes());
    to.add("codes.value", tensor::dtype::u16, {values.size()},
           std::vector<std::uint32_t>(values.begin(), values.end()));
    note(to, "widening", row, a);
}

// The plain conversions show how random bits are used; a part of the others is enough.
std::size_t random_inputs(const stochastic_narrowing& row, const amounts& a) {
    const bool plain = !row.relu && row.saturate == (row.values == 4);
    return plain ? a.stochastic : a.stochastic / 16;
}

std::uint64_t bytes_of(const stochastic_narrowing& row, const amounts& a) {
    return 4 * (stochastic_inputs(row, a.seed, 0).size() + random_inputs(row, a));
}

void record(const stochastic_narrowing& row, const amounts& a, device& d, recording& to) {
    const std::size_t count = random_inputs(row, a);
    const auto inputs = stochastic_inputs(row, a.seed, count);
    const auto results = d.narrow_stochastically(row, inputs);
    note(to, "stochastic", row, a);
    to.note("random_inputs", count);
    to.add("results.word", tensor::dtype::u32, {results.size()}, results);
}

bool has(const chip& c, conversion_since since) {
    return since == conversion_since::sm89 ? c.fp8 : c.narrow_cvt;
}

}  // namespace

void append_conversions(std::vector<part>& parts, const chip& c, const amounts& a) {
    const auto append = [&](std::string_view before, const auto& row) {
        parts.push_back({fmt::format("cvt/{}{}.safetensors", before, row.name), bytes_of(row, a),
                         [&row, a](device& d, recording& to) { record(row, a, d, to); }});
    };
    for (const narrowing& row : narrowings()) {
        if (has(c, row.since)) append("", row);
    }
    for (const widening& row : widenings) {
        if (has(c, row.since)) append("widen.", row);
    }
    for (const stochastic_narrowing& row : stochastic_narrowings) {
        if (c.stochastic_cvt) append("", row);
    }
}

}  // namespace mx::capture

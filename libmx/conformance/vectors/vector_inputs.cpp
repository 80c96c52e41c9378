// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/vector_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/vectors/input_categories.hpp"
#include "libmx/format/decode.hpp"

namespace mx::conformance::vectors {
namespace {

input_facts facts_of(const codec::recipe& r, bool moderate) {
    const format::element_format& f = *r.element;
    input_facts facts;
    facts.emax = f.emax();
    facts.mantissa_bits = f.mantissa_bits;
    facts.max_mantissa = f.max_f32_mantissa();
    for (int code = 0; code < f.codes(); ++code) {
        const float value = format::decode(f, static_cast<std::uint32_t>(code));
        if (!std::isfinite(value)) continue;
        facts.values.push_back(value);
        if (!std::signbit(value)) facts.magnitudes.push_back(value);
    }
    std::sort(facts.magnitudes.begin(), facts.magnitudes.end());
    if (moderate) {
        facts.low = 120;
        facts.high = 130;
    }
    return facts;
}

// The bfloat16 with the same leading bits; a NaN stays one.
float cut_to_bf16(float x) {
    const std::uint32_t bits = base::bits_of(x) & 0xffff0000u;
    return base::float_from_bits(std::isnan(x) ? bits | 0x00400000u : bits);
}

}  // namespace

vector_inputs generate_inputs(const codec::recipe& r, std::size_t blocks, std::uint64_t seed) {
    const bool shared = codec::needs_tensor_facts(r);
    const input_facts facts = facts_of(r, shared);
    word_stream words({seed, base::tensor_id("mx vectors")});
    const std::size_t n = conformance::vectors::elements_of_block(r);
    vector_inputs out;
    out.values.resize(blocks * n);
    std::size_t next = 0;
    for (std::size_t b = 0; b < blocks; ++b, ++next) {
        while (shared && input_categories[next % input_categories.size()].extreme) ++next;
        const std::size_t category = next % input_categories.size();
        const std::span<float> block(out.values.data() + b * n, n);
        input_categories[category].fill(facts, words, block);
        const bool is_bf16 = b % 3 == 2;
        if (is_bf16) std::transform(block.begin(), block.end(), block.begin(), cut_to_bf16);
        out.category.push_back(static_cast<std::uint8_t>(category));
        out.is_bf16.push_back(is_bf16 ? 1 : 0);
    }
    return out;
}

std::string category_words() {
    std::string words;
    for (std::size_t i = 0; i < input_categories.size(); ++i) {
        words += fmt::format("{}{} {}", i == 0 ? "" : "; ", i, input_categories[i].name);
    }
    return words;
}

}  // namespace mx::conformance::vectors

// SPDX-License-Identifier: Apache-2.0
// Files of kind `blocks`: `input` contains blocks along its last axis; the contract names the
// tensors computed from them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "libmx/base/bits.hpp"
#include "libmx/base/named.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/verify/vector_recipe.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/format/decode.hpp"

namespace mx::conformance::verify {
namespace {

// The content of a contract tensor.
enum class block_content : std::uint8_t {
    scale_code,
    scale,
    offset,
    code,
    dequant,
    plain_dequant,
    value,
    tensor_scale,
    row_amax,
    pick,
};

struct block_tensor {
    std::string_view name;
    block_content holds;
};
constexpr std::array known_tensors{
    block_tensor{"scale_code", block_content::scale_code},
    block_tensor{"scale", block_content::scale},
    block_tensor{"offset", block_content::offset},
    block_tensor{"code", block_content::code},
    block_tensor{"dequant", block_content::dequant},
    block_tensor{"dequant_nobump", block_content::plain_dequant},
    block_tensor{"element_value", block_content::value},
    block_tensor{"per_tensor_scale", block_content::tensor_scale},
    block_tensor{"global_encode_scale", block_content::tensor_scale},
    block_tensor{"outer_amax", block_content::row_amax},
    block_tensor{"pick", block_content::pick},
};

bool nan_bits(std::uint32_t x) { return (x & base::f32_magnitude_mask) > base::f32_infinity; }

// What `skip` in the metadata excludes from the contract: whole blocks, by their largest magnitude,
// and codes and values of elements.
struct skip_rule {
    std::string_view words;  // the start of the text
    bool (*block)(std::uint32_t amax);
    bool (*codes)(std::uint32_t amax);  // of all elements of a block
    bool (*element)(std::uint32_t x, bool is_code, std::uint32_t expected);
};
constexpr std::uint32_t usual_nan = 0x7fc00000u;
constexpr std::array skip_rules{
    skip_rule{"blocks with 0 < amax < 2^-125",
              [](std::uint32_t amax) { return amax != 0 && amax < (2u << 23); }, nullptr, nullptr},
    skip_rule{"element codes of blocks with a NaN", nullptr, nan_bits, nullptr},
    skip_rule{"element codes of the Inf and the NaN row", nullptr,
              [](std::uint32_t amax) { return amax >= base::f32_infinity; }, nullptr},
    skip_rule{"codes of NaN elements", nullptr, nullptr,
              [](std::uint32_t x, bool, std::uint32_t) { return nan_bits(x); }},
    // 255 marks Inf and NaN, which have no code.
    skip_rule{"element codes 255; blocks whose NaN has another payload",
              [](std::uint32_t amax) { return nan_bits(amax) && amax != usual_nan; }, nullptr,
              [](std::uint32_t, bool is_code, std::uint32_t expected) {
                  return is_code && expected == 255;
              }},
    skip_rule{"sign of code where the input is -0", nullptr, nullptr,
              [](std::uint32_t x, bool, std::uint32_t) { return x == base::f32_sign_mask; }},
};

// A tensor of a contract; in a searched file, its name is preceded by the measure.
struct contract_tensor {
    std::string name;
    block_content holds;
};

// One run over a file.
struct block_file {
    const vector_file& file;
    codec::recipe recipe;
    int threads;
    std::vector<float> input;
    std::size_t block_elements;
    std::size_t row_blocks;
    vectors::block_vectors ours{};
    std::vector<bool> skipped{}, codes_skipped{};  // by block
    std::string skip_reason{};
    const skip_rule* skips = nullptr;
};

// The tensors to compare whose names begin with `prefix`.
std::vector<contract_tensor> contract_of(const vector_file& file, const std::string& prefix) {
    std::vector<contract_tensor> tensors;
    const std::string* text = file.find("contract");
    if (text == nullptr) {
        for (const block_tensor& t : known_tensors) {
            std::string name = prefix + std::string(t.name);
            if (t.holds == block_content::tensor_scale || !file.has(name)) continue;
            tensors.push_back({std::move(name), t.holds});
        }
        return tensors;
    }
    for (const std::string_view word : words_of(*text, ' ')) {
        if (!word.starts_with(prefix)) continue;
        const block_tensor* t = base::find_named(known_tensors, word.substr(prefix.size()));
        if (t == nullptr) {
            file.fail("its contract names '{}', which this version cannot compare", word);
        }
        // quantize_input compares the tensor scale.
        if (t->holds != block_content::tensor_scale) {
            tensors.push_back({std::string(word), t->holds});
        }
    }
    return tensors;
}

block_file open_blocks(const vector_file& file, codec::recipe recipe, int threads) {
    block_file f{file, std::move(recipe), threads, {}, 0, 1};
    f.block_elements = vectors::elements_of_block(f.recipe);
    const tensor::shape& shape = file.info("input").shape;
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 || shape[1] % f.block_elements != 0) {
        file.fail_in("input", "is {}; blocks of {} want rows of a multiple of that",
                     tensor::to_string(shape), f.block_elements);
    }
    f.row_blocks = static_cast<std::size_t>(shape[1]) / f.block_elements;
    if (const std::string* text = file.find("blocks_per_row")) {
        const auto stated = base::parsed<std::size_t>(*text);
        if (!stated || *stated == 0 || *stated % f.row_blocks != 0 ||
            shape[0] % (*stated / f.row_blocks) != 0) {
            file.fail("its metadata has {} blocks_per_row, which its blocks do not fill", *text);
        }
        f.row_blocks = *stated;
    }
    f.input = file.floats("input", vector_file::any_count);
    return f;
}

void mark_skipped(block_file& f) {
    f.skipped.resize(f.input.size() / f.block_elements);
    f.codes_skipped.resize(f.skipped.size());
    const std::string* text = f.file.find("skip");
    if (text == nullptr) return;
    const auto* rule = std::ranges::find_if(
        skip_rules, [&](const skip_rule& r) { return text->starts_with(r.words); });
    if (rule == skip_rules.end()) {
        f.file.fail("its metadata skips rows in words that this version does not know");
    }
    f.skip_reason = rule->words;
    f.skips = &*rule;
    for (std::size_t b = 0; b < f.skipped.size(); ++b) {
        std::uint32_t amax = 0;
        for (std::size_t i = 0; i < f.block_elements; ++i) {
            amax = std::max(
                amax, base::bits_of(f.input[b * f.block_elements + i]) & base::f32_magnitude_mask);
        }
        if (rule->block != nullptr) f.skipped[b] = rule->block(amax);
        if (rule->codes != nullptr) f.codes_skipped[b] = rule->codes(amax);
    }
}

void compare_scales(const block_file& f, const contract_tensor& t, comparison& found) {
    const std::size_t blocks = f.ours.blocks();
    const auto each = [&](auto&& check) {
        for (std::size_t b = 0; b < blocks; ++b) {
            if (f.skipped[b]) {
                found.skip(f.skip_reason, 0, 1);
            } else {
                check(b, vector_place{b, b, {}, {}});
            }
        }
    };
    if (t.holds == block_content::scale) {
        const auto expected = f.file.f32(t.name, blocks);
        each([&](std::size_t b, vector_place at) {
            found.check_f32(at, expected[b], f.ours.scale[b]);
        });
    } else if (t.holds == block_content::offset) {
        const auto expected = f.file.f16(t.name, blocks);
        each([&](std::size_t b, vector_place at) {
            found.check_integer(at, expected[b], f.ours.offset[b]);
        });
    } else if (t.holds == block_content::pick) {
        if (f.ours.pick.empty()) f.file.fail_in(t.name, "wants a recipe with four_over_six");
        const auto expected = f.file.u8(t.name, blocks);
        each([&](std::size_t b, vector_place at) {
            found.check_integer(at, expected[b], f.ours.pick[b]);
        });
    } else {
        const format::scale_format& format = *f.recipe.scale_format;
        if (format.kind == format::scale_kind::float32) {
            f.file.fail_in(t.name, "holds codes, but the recipe's scales are float32");
        }
        const code_table codes = format.power_of_two() ? e8m0_codes() : codes_of(format.number);
        const auto expected = f.file.u8(t.name, blocks);
        each([&](std::size_t b, vector_place at) {
            found.check_code(at, codes, expected[b], f.ours.scale_code[b]);
        });
    }
}

// torchao's FP4 and FP6 codes of a block with a NaN scale depend on the NaN's payload; their values
// are NaN in any case.
constexpr std::string_view nan_block_reason = "codes of a NaN block in a format without NaN";

bool codes_follow_payload(const block_file& f, std::size_t block) {
    return codec::family_of(*f.recipe.by) == "torchao" && f.recipe.element->nan_code() < 0 &&
           std::isnan(base::float_from_bits(f.ours.scale[block]));
}

// Whether each block differs anywhere by bits, which need not be a difference: all NaNs are equal.
template <typename T>
std::vector<std::uint8_t> differing_blocks(const block_file& f, const std::vector<T>& expected,
                                           const std::vector<T>& got) {
    std::vector<std::uint8_t> differs(f.ours.blocks());
    constexpr std::size_t group = 4096;
    const std::size_t width = f.block_elements;
    base::parallel_for(
        (differs.size() + group - 1) / group, f.threads, nullptr, [&](std::uint64_t g, int) {
            const std::size_t first = static_cast<std::size_t>(g) * group;
            for (std::size_t b = first; b < std::min(differs.size(), first + group); ++b) {
                differs[b] =
                    std::memcmp(&expected[b * width], &got[b * width], width * sizeof(T)) != 0;
            }
        });
    return differs;
}

// Compares codes (T is a byte) or float32 bits.
template <typename T, typename Check>
void compare_elements(const block_file& f, const std::vector<T>& expected,
                      const std::vector<T>& got, comparison& found, Check&& check) {
    constexpr bool is_code = sizeof(T) == 1;
    const std::vector<std::uint8_t> differs = differing_blocks(f, expected, got);
    const bool skips_elements = f.skips != nullptr && f.skips->element != nullptr;
    for (std::size_t b = 0; b < f.ours.blocks(); ++b) {
        if (f.skipped[b]) {
            found.skip(f.skip_reason, 0, f.block_elements);
            continue;
        }
        if (is_code && f.codes_skipped[b]) {
            found.skip(f.skip_reason, 1, f.block_elements);
            continue;
        }
        if (is_code && codes_follow_payload(f, b)) {
            found.skip(nan_block_reason, 1, f.block_elements);
            continue;
        }
        if (!differs[b] && !skips_elements) {
            found.agree(f.block_elements);
            continue;
        }
        for (std::size_t k = 0; k < f.block_elements; ++k) {
            const std::size_t i = b * f.block_elements + k;
            const std::uint32_t x = base::bits_of(f.input[i]);
            if (skips_elements && f.skips->element(x, is_code, expected[i])) {
                found.skip(f.skip_reason, 1, 1);
            } else {
                check(vector_place{i, b, k, x}, expected[i], got[i]);
            }
        }
    }
}

void compare_codes(const block_file& f, const contract_tensor& t, comparison& found) {
    const code_table codes = codes_of(*f.recipe.element);
    compare_elements(f, f.file.u8(t.name, f.input.size()), f.ours.code, found,
                     [&](const vector_place& at, std::uint8_t expected, std::uint8_t got) {
                         found.check_code(at, codes, expected, got);
                     });
}

void compare_values(const block_file& f, const contract_tensor& t, comparison& found) {
    std::vector<std::uint32_t> other;
    if (t.holds == block_content::plain_dequant) {
        codec::recipe r = f.recipe;
        r.rule = scale::find_scale_rule("floor");
        other = vectors::quantize_blocks(r, f.input, f.row_blocks, {}, f.threads).dequant;
    } else if (t.holds == block_content::value) {
        for (const std::uint8_t c : f.ours.code) {
            other.push_back(base::bits_of(format::decode(*f.recipe.element, c)));
        }
    }
    compare_elements(f, f.file.f32(t.name, f.input.size()),
                     t.holds == block_content::dequant ? f.ours.dequant : other, found,
                     [&](const vector_place& at, std::uint32_t expected, std::uint32_t got) {
                         found.check_f32(at, expected, got);
                     });
}

void compare_rows(const block_file& f, const contract_tensor& t, comparison& found) {
    if (f.ours.row_amax.empty()) f.file.fail_in(t.name, "wants a recipe with outer=row");
    const auto expected = f.file.f32(t.name, f.ours.row_amax.size());
    for (std::size_t row = 0; row < expected.size(); ++row) {
        found.check_f32({row, {}, {}, {}}, expected[row], f.ours.row_amax[row]);
    }
}

// Quantizes with the tensor scale stored in the file, after comparing it with the one computed from
// the whole input.
void quantize_input(block_file& f, comparison& found, const std::string& by) {
    f.ours = vectors::quantize_blocks(f.recipe, f.input, f.row_blocks, {}, f.threads);
    if (!f.ours.tensor_scale) return;
    for (const block_tensor& t : known_tensors) {
        if (t.holds != block_content::tensor_scale || !f.file.has(t.name)) continue;
        const std::uint32_t stated = f.file.f32(t.name, 1)[0];
        found.about(std::string(t.name), by);
        found.check_f32({}, stated, *f.ours.tensor_scale);
        const bool usable = stated < base::f32_infinity;  // neither negative nor NaN or Inf
        if (usable && stated != *f.ours.tensor_scale) {
            f.ours = vectors::quantize_blocks(f.recipe, f.input, f.row_blocks,
                                              base::float_from_bits(stated), f.threads);
            return;
        }
    }
}

// Compares the contract tensors with that prefix.
std::string verify_under(const codec::recipe& recipe, const std::string& prefix,
                         const vector_file& file, int threads, comparison& found) {
    block_file f = open_blocks(file, recipe, threads);
    mark_skipped(f);
    const std::vector<contract_tensor> contract = contract_of(file, prefix);
    if (contract.empty()) {
        file.fail("holds none of the {}tensors that blocks are compared by", prefix);
    }
    std::string by = codec::to_string(f.recipe);
    quantize_input(f, found, by);
    for (std::size_t b = 0; b < f.skipped.size(); ++b) {
        if (f.skipped[b]) found.skip(f.skip_reason, 1, 0);
    }
    for (const contract_tensor& t : contract) {
        found.about(t.name, by);
        switch (t.holds) {
            case block_content::code:
                compare_codes(f, t, found);
                break;
            case block_content::dequant:
            case block_content::plain_dequant:
            case block_content::value:
                compare_values(f, t, found);
                break;
            case block_content::row_amax:
                compare_rows(f, t, found);
                break;
            default:
                compare_scales(f, t, found);
        }
    }
    return by;
}

}  // namespace

std::string verify_blocks(const vector_file& file, const verify_options& options,
                          comparison& found) {
    if (!is_searched(file)) {
        return verify_under(options.recipe ? *options.recipe : recipe_of(file), "", file,
                            options.threads, found);
    }
    std::string by;
    for (const std::string measure : {"mse", "mae"}) {
        const codec::recipe r =
            options.recipe ? *options.recipe : searched_recipe_of(file, measure);
        const std::string under = verify_under(r, measure + ".", file, options.threads, found);
        if (by != under) by += by.empty() ? under : ", " + under;
    }
    return by;
}

}  // namespace mx::conformance::verify

// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/mma_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "libmx/base/parsed.hpp"
#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/gemm/accumulator_keys.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/multiply.hpp"

namespace mx::conformance::verify {
namespace {

// Terms of vector files and the corresponding policies.
struct conversion_spelling {
    std::string_view theirs;
    gemm::conversion ours;
};
constexpr std::array conversions{
    conversion_spelling{"RZ-FP32", gemm::conversion::rz_fp32},
    conversion_spelling{"RZ-E8M13", gemm::conversion::rz_e8m13},
    conversion_spelling{"RNE-FP16", gemm::conversion::rne_fp16},
    conversion_spelling{"RNE-FP32", gemm::conversion::rne_fp32},
};

// Prefixes of instruction names in the list, and the corresponding substrings in files.
struct instruction_path {
    std::string_view part;
    std::string_view begins;
};
constexpr std::array paths{
    instruction_path{"tcgen05", "tcgen05"},
    instruction_path{"wgmma", "wgmma"},
    instruction_path{"mma.sync", "mma.sync"},
    instruction_path{"mfma", "v_mfma"},
};

const gemm::operand_format* operand_format_named(const vector_file& file, std::string_view key) {
    const std::string& name = file.at(key);
    const gemm::operand_format* f = gemm::find_operand_format(name);
    if (f == nullptr) file.fail("its metadata says {}={}, which is no operand format", key, name);
    return f;
}

// Maps sm100a and sm100f, the compilation targets for sm100, to sm100.
std::string without_variant(std::string chip) {
    const bool variant = chip.starts_with("sm") && (chip.back() == 'a' || chip.back() == 'f');
    if (variant) chip.pop_back();
    return chip;
}

// Parses "sm_90, sm_100a (and a remark)" to sm90 and sm100.
std::vector<std::string> chips_in(const std::string& text) {
    std::string list = text.substr(0, text.find('('));
    std::erase(list, '_');
    std::ranges::replace(list, ',', ' ');
    std::vector<std::string> chips;
    for (const std::string_view chip : words_of(list, ' ')) {
        chips.push_back(without_variant(std::string(chip)));
    }
    return chips;
}

std::vector<std::string> chips_of(const vector_file& file) {
    const std::string& text = file.at("architecture");
    std::vector<std::string> chips = chips_in(text);
    if (chips.empty()) file.fail("its metadata says architecture={}, which names no chip", text);
    return chips;
}

// The words after each "kind::".
std::vector<std::string_view> kinds_in(std::string_view instruction) {
    constexpr std::string_view mark = "kind::";
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
    std::vector<std::string_view> kinds;
    for (std::size_t at = instruction.find(mark); at != std::string_view::npos;
         at = instruction.find(mark, at)) {
        at += mark.size();
        const std::size_t end =
            std::min(instruction.find_first_not_of(letters, at), instruction.size());
        kinds.push_back(instruction.substr(at, end - at));
    }
    return kinds;
}

bool is_instruction(const gemm::accumulator& row, const std::string& instruction) {
    const auto path = std::ranges::find_if(paths, [&](const instruction_path& p) {
        return instruction.find(p.part) != std::string::npos;
    });
    if (path == paths.end() || !row.instruction.starts_with(path->begins)) return false;
    const std::vector<std::string_view> ours = kinds_in(row.instruction);
    const std::vector<std::string_view> theirs = kinds_in(instruction);
    if (ours.empty() || theirs.empty()) return true;
    return std::ranges::find(theirs, ours[0]) != theirs.end();
}

bool fits(const gemm::accumulator& row, const vectors::mma_case& what, gemm::entry c) {
    const std::uint32_t scaling = what.scale != nullptr ? std::uint32_t{what.scale->bit} : 0u;
    return (scaling != 0) == (row.scales != 0) && gives_f16(row) == what.f16 && row.c == c &&
           takes(row, *what.a, *what.b, scaling);
}

const gemm::accumulator* row_for(const std::string& chip, const std::string& instruction,
                                 const vectors::mma_case& what, gemm::entry c) {
    const gemm::accumulator* found = nullptr;
    for (const gemm::accumulator& row : gemm::accumulators()) {
        if (!row.name.starts_with(chip + ".")) continue;
        if (!is_instruction(row, instruction) || !fits(row, what, c)) continue;
        if (static_cast<std::size_t>(row.fused_length) == what.instruction_k) return &row;
        if (found == nullptr) found = &row;
    }
    return found;
}

void require_agreement(const vector_file& file, std::string_view key, const gemm::accumulator& row,
                       int ours) {
    if (file.find(key) == nullptr) return;
    const int stated = integer_of(file, key, -10000, 10000);
    if (stated == ours) return;
    file.fail("its metadata says {}={}, but accumulator {} has {}", key, stated, row.name, ours);
}

// Statements of a file about the model must be correct. Recordings from chips contain none.
void require_agreement(const vector_file& file, std::string_view conversion_key,
                       const gemm::accumulator& row) {
    require_agreement(file, "F", row, row.fraction_bits);
    require_agreement(file, "exponent_floor", row, row.exponent_floor);
    const std::string* conversion = file.find(conversion_key);
    if (conversion == nullptr) return;
    for (const conversion_spelling& c : conversions) {
        if (c.theirs == *conversion && c.ours == row.convert) return;
    }
    file.fail("its metadata says {}={}, but accumulator {} has {}", conversion_key, *conversion,
              row.name, word_of(gemm::conversion_words, row.convert).name);
}

// An instruction with fewer products than the row's step is one step: mma.sync m16n8k8 compared
// with m16n8k16.
gemm::accumulator of_length(const gemm::accumulator& row, std::size_t instruction_k) {
    const auto k = static_cast<int>(instruction_k);
    gemm::accumulator m = row;
    const bool shorter = k > 0 && k < row.fused_length;
    if (shorter && row.how != gemm::algorithm::grouped) m.fused_length = k;
    return m;
}

}  // namespace

bool is_recording(const vector_file& file) {
    return file.find("recorded_from_hardware") != nullptr;
}

bool is_placed(const vector_file& file) {
    const std::string* where = file.find("placement");
    return where == nullptr || *where != no_placement;
}

bool has_generated_inputs(const vector_file& file) {
    const std::string* inputs = file.find("inputs");
    return inputs != nullptr && *inputs == "generated";
}

std::uint64_t generator_seed(const vector_file& file, std::string_view version) {
    const std::string& made = file.at("generator");
    if (made != version) {
        file.fail(
            "its inputs are of generator '{}'; this program has '{}'. Verify it with the mx that "
            "it was recorded with",
            made, version);
    }
    const std::string& text = file.at("seed");
    const auto seed = base::parsed<std::uint64_t>(text);
    if (!seed) file.fail("its metadata says seed={}; a whole number is expected", text);
    return *seed;
}

std::vector<std::uint64_t> words64(const vector_file& file, const std::string& tensor,
                                   std::uint64_t count) {
    const auto halves = file.u32(tensor, 2 * count);
    std::vector<std::uint64_t> words(halves.size() / 2);
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = halves[2 * i] | std::uint64_t{halves[2 * i + 1]} << 32;
    }
    return words;
}

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::size_t size_of(const vector_file& file, std::string_view key, int low, int high) {
    return static_cast<std::size_t>(integer_of(file, key, low, high));
}

int integer_of(const vector_file& file, std::string_view key, int low, int high) {
    const std::string& text = file.at(key);
    const std::optional<int> n = base::parsed<int>(text);
    if (!n || *n < low || *n > high) {
        file.fail("its metadata says {}={}; an integer from {} to {} is expected", key, text, low,
                  high);
    }
    return *n;
}

vectors::mma_case mma_case_of(const vector_file& file) {
    vectors::mma_case what;
    what.a = operand_format_named(file, "a_format");
    what.b = operand_format_named(file, "b_format");
    const std::string* scale = file.find("scale_format");
    if (scale == nullptr || *scale == "none") return what;
    // PTX calls E8M0 ue8m0.
    const std::string_view name = *scale == "ue8m0" ? "e8m0" : std::string_view(*scale);
    const int block = integer_of(file, "scale_block", 1, 1 << 20);
    what.scale = gemm::find_operand_scale(name, static_cast<std::size_t>(block));
    if (what.scale == nullptr) {
        file.fail("its metadata says scales {} per {}, which no matrix unit takes", *scale, block);
    }
    return what;
}

gemm::accumulator mma_model_of(const vector_file& file, const vectors::mma_case& what,
                               std::string_view conversion_key, gemm::entry c) {
    const std::string& instruction = file.at("instruction");
    const gemm::accumulator* first = nullptr;
    for (const std::string& chip : chips_of(file)) {
        const gemm::accumulator* row = row_for(chip, instruction, what, c);
        if (row == nullptr) {
            file.fail(
                "no accumulator model is for {} '{}' of {} x {}{}{}; 'mx explain accumulators' "
                "lists those "
                "there are, --accumulate names one",
                chip, instruction, what.a->name, what.b->name, what.scale ? ", scaled" : "",
                what.f16 ? ", giving f16" : "");
        }
        require_agreement(file, conversion_key, *row);
        if (first == nullptr) first = row;
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the loop runs at least once
    return of_length(*first, what.instruction_k);
}

std::optional<gemm::accumulator> captured_model_of(const std::string& architecture,
                                                   const std::string& instruction,
                                                   const vectors::mma_case& what) {
    for (const std::string& chip : chips_in(architecture)) {
        for (const gemm::entry c : {gemm::entry::term, gemm::entry::afterwards}) {
            const gemm::accumulator* row = row_for(chip, instruction, what, c);
            if (row != nullptr) return of_length(*row, what.instruction_k);
        }
    }
    return {};
}

std::optional<gemm::accumulator> captured_model_of(const vector_file& file,
                                                   const vectors::mma_case& what) {
    return captured_model_of(file.at("architecture"), file.at("instruction"), what);
}

void require_result(const vector_file& file, const gemm::accumulator& model, bool f16) {
    if (gives_f16(model) == f16) return;
    file.fail("holds results in {}; accumulator {} gives {}", f16 ? "f16" : "float32",
              to_string(model), f16 ? "float32" : "f16");
}

std::vector<std::uint32_t> mma_codes(const vector_file& file, const std::string& tensor,
                                     const gemm::operand_format& format) {
    const int bits = format.code_bits();
    std::vector<std::uint32_t> codes = file.words(tensor, bits, vector_file::any_count);
    const auto beyond = std::ranges::find_if(
        codes, [&](std::uint32_t code) { return std::uint64_t{code} >> bits != 0; });
    if (beyond != codes.end()) {
        file.fail_in(tensor, "entry {} is {:#x}, no code of {}", beyond - codes.begin(), *beyond,
                     format.name);
    }
    return codes;
}

gemm::operand operand_stack::tile(std::size_t t) const {
    gemm::operand x = one;
    const auto part = [t](const auto& all, std::size_t size) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(t * size);
        return std::decay_t<decltype(all)>(begin, begin + static_cast<std::ptrdiff_t>(size));
    };
    x.codes = part(codes, x.rows * x.depth);
    if (x.scaling != 0) {
        x.scales = part(scales, x.rows * ((x.depth + x.scale_block - 1) / x.scale_block));
    }
    return x;
}

void compare_tiles(const operand_stack& a, const operand_stack& b,
                   const std::vector<std::uint32_t>& c, const std::vector<std::uint32_t>& d,
                   const gemm::accumulator& model, comparison& found) {
    const std::size_t outputs = a.one.rows * b.one.rows;
    for (std::size_t tile = 0; tile < d.size() / outputs; ++tile) {
        const std::span<const std::uint32_t> start(c.data() + tile * outputs, outputs);
        const auto got = vectors::accumulated(a.tile(tile), b.tile(tile), start, model);
        for (std::size_t i = 0; i < outputs; ++i) {
            const std::size_t at = tile * outputs + i;
            found.check_bits({at, {}, {}, {}}, gives_f16(model) ? 16 : 32, d[at], got[i]);
        }
    }
}

}  // namespace mx::conformance::verify

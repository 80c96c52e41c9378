// SPDX-License-Identifier: Apache-2.0
// What names say about arrays that no layout confirms, and what a tensor lacks that others have.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "libmx/quantized/candidate.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// Words of a name in small letters: between any other characters, and where "aB" begins a word.
std::vector<std::string> words_of(std::string_view name) {
    std::vector<std::string> words(1);
    char before = '.';
    for (const char c : name) {
        const bool in_word = is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (!in_word || (is_upper(c) && is_letter(before) && !is_upper(before))) {
            words.emplace_back();
        }
        if (in_word) {
            words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        before = c;
    }
    std::erase(words, "");
    return words;
}

// Words that do not tell what an array belongs to.
constexpr std::array<std::string_view, 36> common_words{
    "weight", "weights", "kernel", "w",     "data",      "qdata", "qweight", "packed",  "codes",
    "code",   "blocks",  "block",  "quant", "quantized", "q",     "values",  "value",   "tensor",
    "int8",   "uint8",   "int4",   "uint4", "i8",        "u8",    "i4",      "u4",      "fp8",
    "fp4",    "nf4",     "f8",     "inv",   "global",    "per",   "param",   "inverse", "e4m3"};
// Words besides those with "scale" that name one.
constexpr std::array<std::string_view, 3> scale_words{"absmax", "amax", "scb"};

struct name_facts {
    std::string owner;  ///< what remains without common words
    bool scale = false;
};

name_facts facts_of(std::string_view name) {
    constexpr std::string_view scale = "scale";
    name_facts f;
    bool after_scale = false;
    for (std::string word : words_of(name)) {
        const std::size_t at = word.find(scale);
        bool said = std::ranges::find(scale_words, word) != scale_words.end();
        if (said) word.clear();
        if (at != std::string::npos) {
            said = true;
            word.erase(at, scale.size() + (word.compare(at + scale.size(), 1, "s") == 0 ? 1 : 0));
        }
        f.scale = f.scale || said;
        const bool numbered = after_scale && word == "2";  // weight_scale_2
        after_scale = said;
        if (word.empty() || numbered || std::ranges::find(common_words, word) != common_words.end())
            continue;
        f.owner += word + '\n';
    }
    return f;
}

bool is_coded_number(dtype t) { return tensor::row_of(t).bits <= 8 && !is_integer(t); }

bool may_be_scales(const tensor_info& t) {
    return t.layout.empty() && t.elements != 0 &&
           (t.type == dtype::f32 || t.type == dtype::bf16 || t.type == dtype::f16 ||
            t.type == dtype::f64 || t.type == dtype::u8 || t.type == dtype::f8_e8m0 ||
            t.type == dtype::f8_e4m3);
}

// The layer of a numbered variable of Keras, and the number: "layers/dense/vars/" and "0".
std::pair<std::string_view, std::string_view> keras_variable(std::string_view name) {
    constexpr std::string_view folder = "/vars/";
    const std::size_t at = name.rfind(folder);
    if (at == std::string_view::npos) return {};
    const std::string_view number = name.substr(at + folder.size());
    const bool digits = !number.empty() && std::ranges::all_of(number, [](unsigned char c) {
        return std::isdigit(c) != 0;
    });
    return digits ? std::pair(name.substr(0, at + folder.size()), number)
                  : std::pair<std::string_view, std::string_view>{};
}

// The last part of a name, and what is before it.
std::pair<std::string_view, std::string_view> split_name(std::string_view name) {
    const std::size_t at = name.find_last_of("./");
    if (at == std::string_view::npos) return {std::string_view(), name};
    return {name.substr(0, at), name.substr(at + 1)};
}

// The name that `other` has for `of`, which is called `array` for `sibling`: both end alike.
std::string renamed_for(std::string_view of, std::string_view sibling, std::string_view array) {
    const auto same =
        static_cast<std::size_t>(std::ranges::mismatch(sibling, array).in1 - sibling.begin());
    const std::size_t dropped = std::min(sibling.size() - same, of.size());
    return std::string(of.substr(0, of.size() - dropped)) + std::string(array.substr(same));
}

std::string which_others(std::size_t count) {
    return count == 1 ? "which a tensor like it has"
                      : fmt::format("which {} tensors like it have", count);
}

// Arrays of the pairings that a sibling may lack.
struct optional_part {
    std::optional<std::size_t> pairing::*member;
    bool harmless;
};
constexpr std::array<optional_part, 2> optional_parts{optional_part{&pairing::tensor_scale, false},
                                                      optional_part{&pairing::input_scale, true}};

}  // namespace

std::vector<refused_pairing> codes_and_scales_by_name(const array_index& arrays,
                                                      const std::vector<bool>& taken) {
    std::map<std::string, std::vector<std::size_t>> scales;          // by owner
    std::map<std::string_view, std::vector<std::size_t>> variables;  // numbers of a layer of Keras
    std::vector<name_facts> facts(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (taken[i]) continue;
        const tensor_info& t = arrays.info(i);
        facts[i] = facts_of(t.name);
        if (facts[i].scale && may_be_scales(t)) scales[facts[i].owner].push_back(i);
        const auto [layer, number] = keras_variable(t.name);
        if (!layer.empty() && may_be_scales(t) && !is_integer(t.type))
            variables[layer].push_back(i);
    }
    std::vector<refused_pairing> found;
    std::vector<bool> told(arrays.size());
    const auto tell = [&](std::size_t codes, const std::vector<std::size_t>& beside,
                          std::string_view ending) {
        refused_pairing r{codes, beside.front(),
                          fmt::format("{} next to {}{}", described(arrays.info(codes)),
                                      described(arrays.info(beside.front())), ending)};
        told[codes] = true;
        for (const std::size_t s : beside) {
            if (s != beside.front()) r.others.push_back(s);
            told[s] = true;
        }
        found.push_back(std::move(r));
    };
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        const tensor_info& t = arrays.info(i);
        if (taken[i] || facts[i].scale || !t.layout.empty() || t.elements == 0) continue;
        if (!is_integer(t.type) && !is_coded_number(t.type)) continue;
        const auto owned = scales.find(facts[i].owner);
        const auto layer = variables.find(keras_variable(t.name).first);
        if (owned != scales.end()) {
            tell(i, owned->second, ": codes of a layout that mx does not know");
        } else if (t.type == dtype::i8 && layer != variables.end()) {
            tell(i, {layer->second.back()},
                 ": quantized by Keras in a way that mx does not decode");
        }
    }
    // Bytes with the name of scales, whose codes are in no file.
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        const tensor_info& t = arrays.info(i);
        if (taken[i] || told[i] || !facts[i].scale || !t.layout.empty() || t.elements == 0)
            continue;
        if (t.type != dtype::u8 && t.type != dtype::f8_e8m0) continue;
        found.push_back(
            {i,
             std::nullopt,
             fmt::format("{} has the name of scales, but no file has their codes", described(t)),
             {},
             "scales without codes"});
    }
    return found;
}

std::vector<missing_partner> find_missing(const array_index& arrays,
                                          const std::vector<pairing>& found,
                                          const std::vector<bool>& taken) {
    std::vector<missing_partner> missing;
    // Of the same dtype and naming, those whose names end alike, or that have one parent.
    using kind = std::tuple<dtype, const quantized_naming*, bool, std::string_view>;
    std::map<kind, std::size_t> scaled;
    for (const pairing& p : found) {
        const tensor_info& codes = arrays.info(p.codes);
        const auto [parent, end] = split_name(codes.name);
        ++scaled[{codes.type, p.naming, false, end}];
        ++scaled[{codes.type, p.naming, true, parent}];
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        const tensor_info& t = arrays.info(i);
        if (taken[i] || t.shape.size() < 2 || t.elements == 0 || !t.layout.empty()) continue;
        if (facts_of(t.name).scale) continue;
        const auto [parent, end] = split_name(t.name);
        for (const quantized_naming& n : quantized_namings) {
            if (!t.name.ends_with(n.codes)) continue;
            const auto alike = scaled.find({t.type, &n, false, end});
            const auto beside = scaled.find({t.type, &n, true, parent});
            const std::size_t count = alike != scaled.end()    ? alike->second
                                      : beside != scaled.end() ? beside->second
                                                               : 0;
            if (count == 0) continue;
            const std::string stem = t.name.substr(0, t.name.size() - n.codes.size());
            missing.push_back({i, stem + std::string(n.scales), which_others(count)});
            break;
        }
    }
    // Of the same layout and naming.
    for (const optional_part& part : optional_parts) {
        std::map<std::pair<std::string_view, const quantized_naming*>, std::vector<const pairing*>>
            with;
        for (const pairing& p : found) {
            if (p.*part.member) with[{p.layout->name, p.naming}].push_back(&p);
        }
        for (const pairing& p : found) {
            const auto like = with.find({p.layout->name, p.naming});
            if (p.*part.member || like == with.end()) continue;
            const pairing& sibling = *like->second.front();
            const std::string& array = arrays.info(*(sibling.*part.member)).name;
            missing.push_back({p.codes, renamed_for(p.name, sibling.name, array),
                               which_others(like->second.size()), part.harmless});
        }
    }
    return missing;
}

}  // namespace mx::io

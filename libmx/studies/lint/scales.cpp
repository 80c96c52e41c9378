// SPDX-License-Identifier: Apache-2.0
// Scales that are missing, left over, of no value that an engine can use, or of no shape.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "libmx/base/text_tables.hpp"
#include "libmx/engine/views.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/report/text.hpp"
#include "libmx/studies/lint/parts.hpp"

namespace mx::lint {
namespace {

using io::pairing;
using io::scale_array;
using tensor::dtype;

constexpr std::uint64_t most_of_codes = 1 << 16;  // bytes read to see whether any is not 0

void missing_scales(inspection& at) {
    for (const io::missing_partner& m : at.of.pairs.missing) {
        at.add("missing-scale", severity::error, m.codes,
               fmt::format("there is no {}, {}", m.array, m.why),
               "engines refuse it, or take what memory holds as the scale",
               "quantize the tensor again, or take the scale from the source");
    }
    // A static scale of activations that siblings have: those of one naming and layout.
    std::map<std::pair<std::string_view, const io::quantized_naming*>, std::size_t> with, all;
    for (const pairing& p : at.of.pairs.found) {
        ++all[{p.layout->name, p.naming}];
        with[{p.layout->name, p.naming}] += p.input_scale ? 1u : 0u;
    }
    for (const pairing& p : at.of.pairs.found) {
        const std::size_t have = with[{p.layout->name, p.naming}];
        if (p.input_scale || have == 0) continue;
        at.add("missing-scale", severity::error, p.codes,
               fmt::format("there is no input scale, which {} of {} tensors like it have", have,
                           all[{p.layout->name, p.naming}]),
               "engines quantize its activations with a scale of 1, or of what memory holds",
               "calibrate the layer, or state dynamic activations for it");
    }
    // compressed-tensors' NVFP4 has a tensor scale always, also where no sibling tells so.
    const bool any = std::ranges::any_of(at.of.pairs.found, [](const pairing& p) {
        return p.tensor_scale && p.layout->name == "nvfp4";
    });
    for (const pairing& p : at.of.pairs.found) {
        const bool stated = p.naming->codes == "_packed" && p.layout->name == "nvfp4";
        if (!stated || any) continue;
        at.add("missing-scale", severity::error, p.codes,
               fmt::format("there is no {}_global_scale, and no tensor has one", p.name),
               "engines refuse it, or take what memory holds as the scale",
               "quantize the tensors again");
    }
    std::set<std::string_view> endings;
    for (const pairing& p : at.of.pairs.found) {
        if (p.naming->codes != p.naming->tensor && !p.naming->codes.empty()) {
            endings.insert(p.naming->codes);
        }
    }
    std::set<std::size_t> told;
    for (const io::missing_partner& m : at.of.pairs.missing) told.insert(m.codes);
    for (const io::refused_pairing& r : at.of.pairs.refused) {
        // Words of a packing whose tensors are decoded where they have scales.
        const std::string& name = at.info(r.codes).name;
        const bool words =
            r.is == io::refusal::unknown && !r.scales &&
            std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
        if ((r.is != io::refusal::no_scales && !words) || told.contains(r.codes)) continue;
        at.add("missing-scale", severity::error, r.codes,
               words ? std::string("there are no scales, which tensors like it have") : r.why,
               "engines refuse it", "quantize the tensor again, or add the file with its scales");
    }
}

// What scales are called in this checkpoint: the last word of names, such as "weight_scale".
std::set<std::string> scale_words(const inspection& at) {
    std::set<std::string> words{"weight_scale", "weight_scale_2", "weight_scale_inv",
                                "weight_global_scale"};
    const auto add = [&](std::size_t array) {
        const std::string& name = at.info(array).name;
        words.insert(name.substr(name.find_last_of("./") + 1));
    };
    for (const pairing& p : at.of.pairs.found) {
        if (p.layout->family == "keras") continue;  // numbered variables
        add(p.scales);
        if (p.tensor_scale) add(*p.tensor_scale);
        if (p.input_scale) add(*p.input_scale);
    }
    return words;
}

void orphan_scales(inspection& at) {
    std::vector<bool> used(at.of.arrays.size()), bytes(at.of.arrays.size());
    for (const pairing& p : at.of.pairs.found) {
        for (const std::size_t part : p.parts()) used[part] = true;
    }
    for (const io::refused_pairing& r : at.of.pairs.refused) {
        if (r.is == io::refusal::no_codes) {
            bytes[r.codes] = true;
            continue;
        }
        used[r.codes] = true;
        if (r.scales) used[*r.scales] = true;
        for (const std::size_t other : r.others) used[other] = true;
    }
    base::view_set names;
    for (const io::tensor_ref& t : at.of.arrays) names.insert(t.info().name);
    const std::set<std::string> words = scale_words(at);
    for (std::size_t i = 0; i < at.of.arrays.size(); ++i) {
        const std::string& name = at.info(i).name;
        const std::size_t dot = name.find_last_of("./") + 1;
        const std::string word = name.substr(dot);
        if (used[i] || (!words.contains(word) && !bytes[i])) continue;
        std::string codes;
        bool ends = words.contains(word);
        for (const io::quantized_naming& n : io::quantized_namings) {
            if (n.scales.empty() || !name.ends_with(n.scales)) continue;
            ends = true;
            const std::string stem = name.substr(0, name.size() - n.scales.size());
            if (names.contains(stem + std::string(n.codes))) codes = stem + std::string(n.codes);
        }
        if (!ends) continue;
        if (codes.empty() && names.contains(name.substr(0, dot) + "weight")) {
            codes = name.substr(0, dot) + "weight";
        }
        at.add("orphan-scale", severity::error, i,
               codes.empty() ? std::string("its codes are in no file")
                             : fmt::format("'{}' is not quantized", codes),
               codes.empty() ? "engines refuse it, or leave the weight as it was initialized"
                             : "engines that expect codes read the weight as such",
               codes.empty() ? "add the codes, or delete the scale"
                             : "delete the scale, or quantize the weight");
    }
}

void scale_shapes(inspection& at) {
    for (const io::refused_pairing& r : at.of.pairs.refused) {
        if (r.is != io::refusal::misfit) continue;
        at.add("scale-shape", severity::error, r.codes, r.why,
               "engines refuse it, or multiply blocks by the scales of others",
               "store scales of the grid of its blocks");
    }
}

// Counts of what a scale should not be.
struct value_counts {
    std::uint64_t nan = 0, inf = 0, negative = 0, subnormal = 0;
    std::vector<std::uint64_t> zeros;  // the first ones' indices
    float least = INFINITY, most = 0;
};

value_counts count(const std::vector<float>& values, bool wide) {
    constexpr std::size_t kept = 16;
    value_counts n;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float x = values[i];
        if (std::isnan(x)) {
            ++n.nan;
        } else if (std::isinf(x)) {
            ++n.inf;
        } else if (x == 0) {
            if (n.zeros.size() < kept) n.zeros.push_back(i);
        } else {
            if (x < 0) ++n.negative;
            if (wide && std::fabs(x) < 0x1p-126f) ++n.subnormal;
            n.least = std::min(n.least, std::fabs(x));
            n.most = std::max(n.most, std::fabs(x));
        }
    }
    return n;
}

bool any_bit(inspection& at, const pairing& p, std::uint64_t first, std::uint64_t bytes) {
    const io::tensor_info& codes = at.info(p.codes);
    if (first >= codes.bytes) return false;
    std::vector<std::byte> read(std::min({bytes, codes.bytes - first, most_of_codes}));
    const io::tensor_ref& t = at.of.arrays[p.codes];
    t.file->open(t.index)->read(first, read);
    // Codes of -0 are zeros, too.
    const bool fp4 = p.code_bits == 4 && p.element != nullptr;
    const bool fp8 = p.code_bits == 8 && p.element != nullptr;
    const auto sign = static_cast<std::byte>(fp4 ? 0x88 : fp8 ? 0x80 : 0);
    return std::ranges::any_of(read, [&](std::byte b) { return (b & ~sign) != std::byte{0}; });
}

// Whether the codes under a scale of 0 are values that it deletes: of blocks along rows.
bool deletes_values(inspection& at, const pairing& p, const value_counts& n) {
    const bool plain = !p.down && !p.swizzled && p.grid.block_rows == 1 && p.element != nullptr &&
                       p.grid.over.cols % p.grid.block_cols == 0;
    if (!plain) return p.grid.blocks() == 1 && any_bit(at, p, 0, most_of_codes);
    const std::uint64_t bytes = p.grid.block_cols * static_cast<std::uint64_t>(p.code_bits) / 8;
    return std::ranges::any_of(
        n.zeros, [&](std::uint64_t block) { return any_bit(at, p, block * bytes, bytes); });
}

std::string of_all(std::uint64_t n, std::size_t all) { return fmt::format("{} of {}", n, all); }

void scale_values(inspection& at, const pairing& p, std::size_t array, bool of_blocks) {
    const std::vector<float> values = at.numbers(array, checkpoint::most_scale_bytes);
    const io::tensor_info& info = at.info(array);
    const bool wide = tensor::row_of(info.type).bits >= 16;
    const value_counts n = count(values, wide && !of_blocks);
    const auto bad = [&](std::uint64_t times, const char* what, const char* effect) {
        if (times == 0) return;
        at.add(
            "scale-value", severity::error, array,
            fmt::format("{} {} {}", of_all(times, values.size()), times == 1 ? "is" : "are", what),
            effect, "quantize the tensor again");
    };
    bad(n.nan, "NaN", "each makes its block NaN, and with it every output");
    bad(n.inf, "Inf", "each makes its block Inf or NaN");
    const bool signed_scales =
        p.layout->codes == io::code_array::int_words || p.layout->codes == io::code_array::int8;
    if (!signed_scales) bad(n.negative, "negative", "its values have the wrong sign");
    bad(n.subnormal, "subnormal",
        "GPUs that flush subnormals take it for 0, and the tensor with it");
    if (n.zeros.empty()) return;
    const bool deletes = of_blocks ? deletes_values(at, p, n)
                                   : array != p.input_scale && any_bit(at, p, 0, most_of_codes);
    if (deletes) {
        bad(n.zeros.size(), "0 beside codes that are not", "its values become 0");
    } else if (p.input_scale && array == *p.input_scale) {
        bad(n.zeros.size(), "0", "activations are divided by it");
    }
}

// A scale with the largest magnitude of its tensor under it, and under its inverse.
struct reach {
    std::size_t scale;
    double here, inverse;
    bool divides;
};

std::optional<reach> reach_of(const pairing& p, std::size_t scale, double factor, double block,
                              bool divides) {
    if (!(factor > 0) || !std::isfinite(factor) || !(block > 0) || p.element == nullptr) return {};
    const format::element_format& f = *p.element;
    const double unit = block * std::ldexp(f.max_significand(), f.emax() - f.mantissa_bits);
    return reach{scale, divides ? unit / factor : unit * factor,
                 divides ? unit * factor : unit / factor, divides};
}

// Scales that only their inverse makes plausible: by the values of any weight, or by those of the
// other tensors.
void inverted(inspection& at, const std::vector<reach>& all) {
    constexpr double most = 16384, least = 0x1p-24, far = 1024, near = 32;
    constexpr std::size_t enough = 4;
    std::vector<double> sorted;
    for (const reach& r : all) sorted.push_back(r.here);
    std::ranges::sort(sorted);
    const double median = sorted.empty() ? 1 : sorted[sorted.size() / 2];
    const auto apart = [](double x, double y) { return std::max(x / y, y / x); };
    for (const reach& r : all) {
        const auto plausible = [](double x) { return x >= least && x <= most; };
        const bool alone = !plausible(r.here) && plausible(r.inverse);
        const bool among =
            all.size() >= enough && apart(r.here, median) > far && apart(r.inverse, median) < near;
        if (!alone && !among) continue;
        at.add("scale-value", severity::error, r.scale,
               fmt::format("under it values reach {:.3g}, under its inverse {:.3g}: it seems to be "
                           "stored as a {}",
                           r.here, r.inverse,
                           r.divides ? "factor, where its name states a divisor"
                                     : "divisor, where its name states a factor"),
               fmt::format("every value is off by a factor of {:.3g}", apart(r.here, r.inverse)),
               "store its inverse");
    }
}

}  // namespace

std::vector<float> inspection::numbers(std::size_t array, std::uint64_t most) {
    const io::tensor_info& t = info(array);
    const io::tensor_ref& ref = of.arrays[array];
    const auto bits = static_cast<std::uint64_t>(tensor::row_of(t.type).bits);
    dtype as = t.type;
    std::uint64_t count = t.elements;
    if (!request.values && t.bytes > most) {
        all_scales = false;
        count = std::min(count, most * 8 / bits);
    }
    if (tensor::row_of(as).to_f32 == tensor::widening::none) return {};
    std::vector<float> out(count);
    std::vector<std::byte> scratch;
    const auto source = ref.file->open(ref.index);
    constexpr std::uint64_t piece = 1 << 16;
    for (std::uint64_t first = 0; first < count; first += piece) {
        const std::uint64_t n = std::min(piece, count - first);
        io::read_f32(*source, as, first, std::span(out).subspan(first, n), scratch);
    }
    return out;
}

std::optional<float> inspection::number(std::size_t array) {
    if (info(array).elements != 1) return std::nullopt;
    const std::vector<float> one = numbers(array, checkpoint::most_scale_bytes);
    return one.empty() ? std::nullopt : std::optional(one.front());
}

std::string module_of(const pairing& p) {
    constexpr std::string_view end = ".weight";
    return p.name.ends_with(end) ? p.name.substr(0, p.name.size() - end.size()) : p.name;
}

void check_scales(inspection& at) {
    missing_scales(at);
    orphan_scales(at);
    scale_shapes(at);
    std::map<std::string_view, std::vector<reach>> reaches;  // by layout
    for (const pairing& p : at.of.pairs.found) {
        const bool bytes = at.info(p.scales).type == dtype::u8;
        const bool codes = p.layout->scales != scale_array::real || p.outer_scales;
        if (bytes && codes && p.layout->scales == scale_array::e8m0) {
            // E8M0 in U8: code 255 is NaN, and there are no other special ones.
            const std::vector<float> blocks = at.numbers(p.scales, checkpoint::most_scale_bytes);
            const auto nan = static_cast<std::uint64_t>(std::ranges::count(blocks, 255.0f));
            if (nan > 0) {
                at.add("scale-value", severity::error, p.scales,
                       fmt::format("{} {} 255, NaN", of_all(nan, blocks.size()),
                                   nan == 1 ? "is" : "are"),
                       "each makes its block NaN, and with it every output",
                       "quantize the tensor again");
            }
        } else if (!bytes) {
            scale_values(at, p, p.scales, p.layout->block_cols != io::whole_matrix);
        }
        if (p.tensor_scale) scale_values(at, p, *p.tensor_scale, false);
        if (p.input_scale) scale_values(at, p, *p.input_scale, false);
        // The largest scale of a block tells which way the tensor scale goes.
        if (bytes) continue;
        double largest = 0;
        for (const float x : at.numbers(p.scales, checkpoint::most_scale_bytes)) {
            if (std::isfinite(x)) largest = std::max(largest, static_cast<double>(x));
        }
        std::optional<reach> r;
        if (p.tensor_scale) {
            const std::optional<float> one = at.number(*p.tensor_scale);
            if (one) r = reach_of(p, *p.tensor_scale, *one, largest, p.divides);
        } else if (p.layout->scales == scale_array::real) {
            r = reach_of(p, p.scales, largest, 1, p.layout->scale_divides);
        }
        if (r) reaches[p.layout->name].push_back(*r);
    }
    for (const auto& [layout, all] : reaches) inverted(at, all);
}

}  // namespace mx::lint

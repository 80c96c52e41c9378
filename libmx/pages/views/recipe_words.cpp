// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/recipe_words.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "libmx/codec/clamp_zone.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/saturation_zone.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/pages/views/format_facts.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::pages {
namespace {

std::string preset_text(const codec::recipe& r) {
    const format::block_format* b = format::find_block_format(r.preset);
    return b == nullptr ? std::string(r.preset) : fmt::format("{}: {}", b->name, b->summary);
}

std::string element_text(const codec::recipe& r) {
    const format::element_format& f = *r.element;
    std::string text = fmt::format("{}: {}; largest value {}", f.name, layout_text(f),
                                   exact_decimal(format::decode(f, f.max_code())));
    if (f.floating()) {
        text += fmt::format(", smallest normal {}", exact_decimal(std::ldexp(1.0, f.emin())));
    }
    if (f.has_subnormals()) {
        text += fmt::format(", smallest subnormal {}", exact_decimal(std::ldexp(1.0, f.quantum())));
    }
    if (!f.floating()) {
        text += fmt::format(", step {}", exact_decimal(std::ldexp(1.0, f.quantum())));
        text += r.minimum == codec::int_min::full
                    ? fmt::format("; the code of {} is used (int_min=full)",
                                  exact_decimal(format::decode(f, f.sign_bit())))
                    : "; the code below the negative of the largest is not used "
                      "(int_min=symmetric)";
    }
    return text;
}

int effective_emax(const codec::recipe& r) { return scale::facts_of(*r.element, r.emax).emax; }

std::string rule_text(const codec::recipe& r) {
    std::string text = fmt::format("{}: {} ({})", r.rule->name, r.rule->definition, r.rule->source);
    if (scale::is_search(r.rule->id)) {
        const bool squares = r.measure == codec::search_measure::mse;
        text += fmt::format("; error: the sum of {}, elements rounded to nearest; tried: ",
                            squares ? "(x - d)^2 (search=mse)" : "|x - d| (search=mae)");
        if (r.reach == codec::all_codes) return text + "every code (reach=all)";
        return text + fmt::format("codes up to {} from that of {} (reach={})", r.reach,
                                  r.scale_format->power_of_two() ? "floor" : "amax / max", r.reach);
    }
    if (!r.scale_format->power_of_two()) {
        return text + fmt::format("; max = {}",
                                  exact_decimal(format::decode(*r.element, r.element->max_code())));
    }
    if (r.emax == scale::int_emax::log2max && !r.element->floating()) {
        return text + "; log2 of the largest value takes the place of emax (int_emax=log2max)";
    }
    return text + fmt::format("; emax = {}, max = {}", effective_emax(r),
                              exact_decimal(format::decode(*r.element, r.element->max_code())));
}

// How the dialect differs from the definition of the rule.
std::string dialect_rule_text(const codec::recipe& r) {
    using scale::rule_id;
    if (r.by->id == codec::dialect_id::ocp) return {};
    std::string_view column = r.scale_format->power_of_two() ? "log2" : "two_level";
    if (r.rule->id == rule_id::even) column = "even";
    if (r.rule->id == rule_id::rceil) column = "rceil";
    if (r.rule->id == rule_id::amax || r.rule->id == rule_id::amax_pow2) return {};
    const auto a = codec::find_dialect_column(column)->answer(*r.by);
    if (!a.applies) return {};
    return fmt::format("; {} ({}): {}", r.by->name, column, a.words.meaning);
}

std::string dialect_text(const codec::recipe& r) {
    return fmt::format("{}: {} ({})", r.by->name, r.by->summary, r.by->source);
}

std::string roundings_text(const codec::recipe& r) {
    const auto& row = format::row_of(r.round);
    std::string text = fmt::format("{}: {}", row.name, row.summary);
    if (r.round == format::rounding::rtne && r.element->floating() &&
        r.element->mantissa_bits == 0) {
        text += r.ties == format::tie_rule::up ? "; ties at 1.5 x 2^k go up (ties=up)"
                                               : "; ties at 1.5 x 2^k go to the even code "
                                                 "(ties=even)";
    }
    if (r.round == format::rounding::stochastic) {
        text += fmt::format("; k = {} random bits, seed {}", r.random_bits, r.seed);
    }
    return text;
}

std::string blocks_text(const codec::recipe& r) {
    const auto [rows, cols] = r.block;
    std::string text = fmt::format("{}x{}: {} elements share a scale, ", rows, cols, rows * cols);
    using kind = codec::axis_choice::kind;
    if (r.axis.what == kind::flat) {
        text += "counted through the flattened tensor";
    } else if (r.axis.what == kind::index) {
        text += fmt::format("along axis {}", r.axis.value);
    } else if (rows == 1) {
        text += "along the axis that products sum over (K)";
    } else if (cols == 1) {
        text += "along the axis before the one that products sum over (K)";
    } else {
        text += "tiles with their columns along the axis that products sum over (K)";
    }
    return text + "; a short last block is scaled by its own elements";
}

std::string offset_text(const codec::recipe& r) {
    if (r.offset == codec::offset_kind::none) return "none: the grid is symmetric about zero";
    return fmt::format("fp16: (max + min) / 2 of the block is taken off first; the scale sees {}",
                       r.range == codec::range_kind::max ? "the largest |x - offset| (range=max)"
                                                         : "(max - min) / 2 (range=half)");
}

std::string transform_text(const codec::recipe& r) {
    using transform::kind;
    const int n = r.rotate.size;
    const bool down = r.block.cols == 1;
    std::string along = down ? "axis before K" : "axis K that products sum over";
    if (r.axis.what == codec::axis_choice::kind::flat) along = "flattened tensor";
    if (r.axis.what == codec::axis_choice::kind::index) {
        along = fmt::format("axis {}", r.axis.value);
    }
    if (r.rotate.what == kind::matrix) {
        return fmt::format(
            "matrix: {} neighbours along the {} are multiplied by the {}x{} matrix of {} in "
            "double, "
            "rounded to float32, first; a shorter end stays as it is; figures are of the rotated "
            "values, dequantized values are rotated back",
            n, along, n, n, r.rotate.file);
    }
    return fmt::format(
        "{} {} neighbours along the {} are multiplied by a {}x{} Hadamard matrix / sqrt({}) in "
        "float32 first, a shorter end in powers of two; figures are of the rotated values, "
        "dequantized values are rotated back",
        r.rotate.what == kind::hadamard
            ? "hadamard:"
            : fmt::format("random-hadamard: with random signs (transform_seed={}),", r.rotate.seed),
        n, along, n, n, n);
}

std::string bits_text(const codec::recipe& r) {
    const double bits = codec::bits_per_element(r);
    std::string parts;
    if (codec::has_blocks(r) || codec::bits_per_block(r) != 0) {
        const int own = codec::bits_per_block(r) - (r.offset == codec::offset_kind::fp16 ? 16 : 0);
        parts = fmt::format("{} + {}/{}", r.element->bits(), own, r.block.rows * r.block.cols);
        if (r.offset == codec::offset_kind::fp16) {
            parts += fmt::format(" + 16/{}", r.block.rows * r.block.cols);
        }
        parts += " = ";
    }
    return fmt::format("{}{} per element: {} % of bf16, {} % of f32", parts, bits,
                       report::significant_text(100 * bits / 16, 3),
                       report::significant_text(100 * bits / 32, 3));
}

// Probabilities without knowledge of the tensor.
std::string share_text(double share) {
    return fmt::format("{} % of the blocks where the logarithms of their maxima are uniform",
                       report::percent_text(share));
}

std::string overflow_text(const codec::clamp_zone& zone) {
    if (zone.empty()) return "never: the scaled block maximum stays within the largest value";
    return fmt::format(
        "when the block maximum is in ({}, {}) x 2^k, k an integer: scaled, it lies beyond the "
        "largest value and becomes it; {}",
        exact_decimal(zone.from), exact_decimal(zone.to), share_text(zone.share()));
}

// Overflow that rounding alone would not remove.
std::string clamped_text(const codec::recipe& r, const codec::clamp_zone& zone) {
    if (zone.empty()) return "never";
    if (r.round == format::rounding::stochastic) {
        return "where chance rounds what overflows away from the largest value";
    }
    if (zone.clamped_share() == 0) return "never: what overflows rounds to the largest value";
    return fmt::format(
        "when the block maximum is in ({}, {}) x 2^k: rounded, it would lie beyond the largest "
        "value; {}",
        exact_decimal(zone.clamps_from), exact_decimal(zone.to), share_text(zone.clamped_share()));
}

std::string interval_text(const engine::saturation_threshold& t) {
    return fmt::format("{} {}", t.including ? "from" : "above", exact_decimal(t.at));
}

// The range in which all elements of a block become one value.
std::string saturation_text(const engine::block_judge& judge) {
    if (const std::optional<engine::saturation_zone> zone = judge.zone()) {
        return fmt::format(
            "when all magnitudes of the block are in {}{}, 1) x 2^n, 2^n being the power of two "
            "above its maximum{}: each becomes {} x 2^n",
            zone->including ? '[' : '(', exact_decimal(zone->from),
            zone->to < 1 ? fmt::format(", and this is below {} x 2^n", exact_decimal(zone->to))
                         : std::string(),
            exact_decimal(zone->becomes));
    }
    std::string text =
        fmt::format("scaled magnitudes {} become {}, the largest value",
                    interval_text(judge.positive()), exact_decimal(judge.positive().largest));
    if (judge.signs_matter()) {
        text += fmt::format("; of negative elements those {}, {}", interval_text(judge.negative()),
                            exact_decimal(judge.negative().largest));
    }
    return text;
}

// The scale that all blocks share, by the dialect's convention.
std::string tensor_scale_text(const codec::recipe& r) {
    const bool inverse = r.by->two_level.value == codec::two_level_kind::te ||
                         r.by->two_level.value == codec::two_level_kind::compressed_tensors;
    using kind = codec::outer_choice::kind;
    if (r.outer.what == kind::given) {
        return fmt::format("{}, as given{}",
                           r.outer.file.empty() ? exact_decimal(r.outer.value)
                                                : fmt::format("from '{}'", r.outer.file),
                           inverse ? "; values are multiplied with its reciprocal" : "");
    }
    const float largest = format::decode(*r.element, r.element->max_code());
    const std::string span = fmt::format(
        "{} x {}", exact_decimal(codec::outer_rule_of(r).range / largest), exact_decimal(largest));
    return fmt::format("{} in float32 from the largest finite magnitude of the {}",
                       inverse ? span + " / amax" : "amax / (" + span + ")",
                       codec::has_outer_areas(r) ? codec::area_word(r)
                                                 : "tensor, found by a pass that goes first");
}

std::string select_text(const codec::recipe& r) {
    std::string_view measure = "the sum of squared errors";
    if (r.select == codec::four_over_six::mae) measure = "the sum of absolute errors";
    if (r.select == codec::four_over_six::abs_max) measure = "the largest absolute error";
    std::string_view where;
    if (r.by->id == codec::dialect_id::te) {
        where = r.candidates == codec::candidate_kind::fp16
                    ? ", in float32 and before the outer scale,"
                    : ", in float32,";
    }
    return fmt::format(
        "a block scale that makes the largest element 4 instead of 6 is taken where "
        "{}{} is smaller",
        measure, where);
}

std::string special_text(const codec::recipe& r) {
    const std::string rest =
        "; its finite elements are counted as poisoned and stay out of every rate and sum";
    if (r.by->id != codec::dialect_id::ocp && r.scale_format->power_of_two()) {
        const auto says = [&](std::string_view column) {
            return codec::find_dialect_column(column)->answer(*r.by).words.meaning;
        };
        return fmt::format(
            "the scale of a block with an Inf: {}; with a NaN: {}; of zeros only: {}",
            says("inf_amax"), says("nan_amax"), says("zero_block"));
    }
    if (r.by->id != codec::dialect_id::ocp) {
        return fmt::format("as dialect {} treats them; where the block's scale becomes NaN{}",
                           r.by->name, rest.substr(1));
    }
    if (r.scale_format->power_of_two()) return "the block's scale is 255 (NaN)" + rest;
    return (r.scale_format->is_number()
                ? fmt::format("the block's scale is {} (NaN)", r.scale_format->number.nan_code())
                : "the block's scale is NaN") +
           rest;
}

struct recipe_part {
    std::string_view name;
    std::string meaning;
};
constexpr std::array part_members = std::to_array<report::declared<recipe_part>>({
    {"part", "string", "", [](auto& p) { return p.name; }},
    {"meaning", "string", "", [](auto& p) { return p.meaning; }},
});

}  // namespace

report::document_schema recipe_schema() {
    return report::document_schema("mx.recipe/1", "mx explain RECIPE", "A recipe in words.")
        .member({"results", "[#part]", "a part of the recipe each"})
        .define("part", part_members);
}

std::vector<report::record> recipe_words(const codec::recipe& r) {
    const auto part = [](std::string_view name, std::string meaning) {
        return report::written(part_members, {name, std::move(meaning)});
    };
    if (!codec::has_blocks(r) && codec::bits_per_block(r) != 0) {
        return {part("recipe", codec::to_string(r)),
                part("element", std::string(r.element->summary)),
                part("block", fmt::format("{} elements along the axis that products sum over; one "
                                          "with NaN or Inf becomes NaN",
                                          r.block.cols)),
                part("codes", "none: mx computes the values that the format's authors publish"),
                part("bits", bits_text(r))};
    }
    if (!codec::has_blocks(r)) {
        const bool scaled = r.scope == codec::scale_scope::tensor;
        return {
            part("recipe", codec::to_string(r)),
            part("element", element_text(r)),
            part("scale", scaled ? "one of the tensor: amax / largest value in float32, amax its "
                                   "largest finite magnitude, found by a pass that goes first"
                                 : "none"),
            part("rounding", roundings_text(r)),
            part("block",
                 "none: NaN and Inf affect themselves only, and figures of blocks are "
                 "undefined"),
            part("bits", bits_text(r))};
    }
    std::vector<report::record> parts{
        part("recipe", codec::to_string(r)),
        part("preset", preset_text(r)),
        part("element", element_text(r)),
        part("scale format", fmt::format("{}: {}", r.scale_format->name, r.scale_format->summary)),
        part("scale rule", rule_text(r) + dialect_rule_text(r)),
        part("rounding", roundings_text(r)),
        part("block", blocks_text(r)),
        part("offset", offset_text(r)),
        part("bits", bits_text(r)),
    };
    if (r.rotate.what != transform::kind::none) {
        parts.push_back(part("transform", transform_text(r)));
    }
    if (codec::has_tensor_scale(r) || codec::has_outer_areas(r)) {
        parts.push_back(part(
            fmt::format("{} scale", codec::has_outer_areas(r) ? codec::area_word(r) : "tensor"),
            tensor_scale_text(r)));
    }
    if (r.select != codec::four_over_six::none) {
        parts.push_back(part("four over six", select_text(r)));
    }
    if (r.scale_format->power_of_two()) {
        const codec::clamp_zone zone = codec::clamp_zone_of(r);
        parts.push_back(part("overflow", overflow_text(zone)));
        parts.push_back(part("clamped", clamped_text(r, zone)));
    }
    if (const auto judge = engine::block_judge::of(r)) {
        const std::string chance = r.round == format::rounding::stochastic
                                       ? "; that much is certain, chance may do so to more"
                                       : "";
        parts.push_back(part("saturation", saturation_text(*judge) + chance));
    }
    parts.push_back(part("NaN and Inf", special_text(r)));
    parts.push_back(part("dialect", dialect_text(r)));
    return parts;
}

}  // namespace mx::pages

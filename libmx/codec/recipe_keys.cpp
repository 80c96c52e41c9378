// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/recipe_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/shared_formats.hpp"
#include "libmx/format/wide_formats.hpp"

namespace mx::codec {
namespace {

[[noreturn]] void fail(std::string message) {
    throw base::error(base::error_kind::usage, std::move(message));
}

template <typename Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
    std::vector<std::string_view> names;
    for (const auto& row : rows) {  // two rules may share a name
        if (std::ranges::find(names, row.name) == names.end()) names.push_back(row.name);
    }
    return names;
}

template <typename T>
T integer(std::string_view key, std::string_view text, T low, T high) {
    T n{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (status != std::errc{} || end != text.data() + text.size() || n < low || n > high) {
        fail(fmt::format("{}={}: give an integer from {} to {}", key, text, low, high));
    }
    return n;
}

// One of several words.
template <typename T>
struct word {
    std::string_view name;
    T value;
};
template <typename T>
word(std::string_view, T) -> word<T>;

template <typename T, std::size_t N>
T read_word(std::string_view key, std::string_view text, const std::array<word<T>, N>& words) {
    for (const word<T>& w : words) {
        if (w.name == text) return w.value;
    }
    fail(base::unknown(fmt::format("value for {}:", key), text, names_of(words)));
}

template <typename T, std::size_t N>
std::string print_word(T value, const std::array<word<T>, N>& words) {
    for (const word<T>& w : words) {
        if (w.value == value) return std::string(w.name);
    }
    return {};
}

constexpr std::array tie_words{word{"up", format::tie_rule::up},
                               word{"even", format::tie_rule::even}};
constexpr std::array offset_words{word{"none", offset_kind::none}, word{"fp16", offset_kind::fp16}};
constexpr std::array range_words{word{"max", range_kind::max}, word{"half", range_kind::half}};
constexpr std::array int_min_words{word{"full", int_min::full},
                                   word{"symmetric", int_min::symmetric}};
constexpr std::array int_emax_words{word{"0", scale::int_emax::zero},
                                    word{"log2max", scale::int_emax::log2max},
                                    word{"1", scale::int_emax::one}};
constexpr std::array select_words{word{"none", four_over_six::none},
                                  word{"mse", four_over_six::mse}, word{"mae", four_over_six::mae},
                                  word{"abs_max", four_over_six::abs_max}};
constexpr std::array candidate_words{word{"exact", candidate_kind::exact},
                                     word{"fp16", candidate_kind::fp16}};
constexpr std::array measure_words{word{"mse", search_measure::mse},
                                   word{"mae", search_measure::mae}};
constexpr std::array flag_words{word{"false", false}, word{"true", true}};
constexpr std::array transform_words{word{"none", transform::kind::none},
                                     word{"hadamard", transform::kind::hadamard},
                                     word{"random-hadamard", transform::kind::random_hadamard},
                                     word{"matrix", transform::kind::matrix}};

// The block's extent along the rotated axis if it is 16, 32, 64 or 128, else 32.
int default_transform_size(const recipe& r) {
    const int extent = r.block.cols > 1 ? r.block.cols : r.block.rows;
    return extent == 16 || extent == 64 || extent == 128 ? extent : 32;
}

void set_transform_size(recipe& r, std::string_view text) {
    r.rotate.size = integer<int>("transform_size", text, 2, transform::largest_size);
}

std::string get_transform_size(const recipe& r) {
    return fmt::format("{}", r.rotate.size != 0 ? r.rotate.size : default_transform_size(r));
}

void set_element(recipe& r, std::string_view text) {
    const format::element_format* f = format::find_element_format(text);
    if (f == nullptr)
        fail(base::unknown("element format", text, names_of(format::element_formats)));
    r.element = f;
    r.minimum = default_int_min(*f, *r.by);
}

// The roundings of a dialect for a scale format, its default first.
std::string_view roundings_of(const dialect& by, const format::scale_format& scale) {
    const bool own = scale.is_number() && !by.two_level_roundings.empty();
    return own ? by.two_level_roundings : by.roundings;
}

void set_dialect(recipe& r, std::string_view text) {
    const dialect* by = find_dialect(text);
    if (by == nullptr) fail(base::unknown("dialect", text, names_of(dialects())));
    if (!by->blocks) {
        fail(
            fmt::format("dialect={}: it converts single values only, in recipes without blocks; "
                        "'mx explain dialects' lists those with blocks",
                        text));
    }
    const scale::scale_rule* rule = default_rule(*by, r.scale_format->name);
    if (rule == nullptr) {
        fail(fmt::format("dialect={}: it has no scale rule for {} scales", text,
                         r.scale_format->name));
    }
    // A preset's settings for its own dialect remain.
    if (by != r.by) r.rule = rule;
    r.by = by;
    r.round = format::find_rounding(first_of(roundings_of(*by, *r.scale_format)))->id;
    r.minimum = default_int_min(*r.element, *by);
    r.random_bits = default_random_bits(*r.by, *r.element);
}

void set_scale(recipe& r, std::string_view text) {
    const scale::scale_rule* rule = scale::find_scale_rule(text, r.scale_format->name);
    if (rule == nullptr) fail(base::unknown("scale rule", text, names_of(scale::scale_rules)));
    r.rule = rule;
}

void set_scale_format(recipe& r, std::string_view text) {
    const format::scale_format* f = format::find_scale_format(text);
    if (f == nullptr) fail(base::unknown("scale format", text, names_of(format::scale_formats)));
    if (f == r.scale_format) return;
    r.scale_format = f;
    r.rule = default_rule(*r.by, f->name);
}

// The largest block scale under a bound.
int bound_of(const recipe& r, scale_bound bound) {
    if (!r.scale_format->is_number()) return 0;
    const format::element_format& f = r.scale_format->number;
    if (bound == scale_bound::power_of_two) return 1 << f.emax();
    return static_cast<int>(format::decode(f, f.max_code()));
}

void set_bound(recipe& r, std::string_view text) {
    const int n = integer<int>("bound", text, 0, 1 << 20);
    for (const scale_bound b : {scale_bound::power_of_two, scale_bound::largest}) {
        if (bound_of(r, b) != n) continue;
        r.bound = b;
        return;
    }
    if (!r.scale_format->is_number()) {
        fail(fmt::format("bound={}: only with four_over_six, under scales that are numbers", n));
    }
    fail(fmt::format("bound={}: give {} or {} with {} scales", n,
                     bound_of(r, scale_bound::power_of_two), bound_of(r, scale_bound::largest),
                     r.scale_format->name));
}

constexpr std::array outer_words{
    word{"tensor", outer_choice::kind::tensor}, word{"none", outer_choice::kind::none},
    word{"row", outer_choice::kind::row}, word{"col", outer_choice::kind::column}};
constexpr std::string_view given_prefix = "given:";

// Whether `text` begins like ROWSxCOLS.
bool is_tile(std::string_view text) {
    return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
           text.find('x') != std::string_view::npos;
}

void set_tile(recipe& r, std::string_view text) {
    const std::size_t cross = text.find('x');
    r.outer.rows = integer<int>("outer", text.substr(0, cross), 1, 1 << 24);
    r.outer.cols = integer<int>("outer", text.substr(cross + 1), 1, 1 << 24);
    r.outer.what = outer_choice::kind::tile;
}

void set_outer(recipe& r, std::string_view text) {
    r.outer = {};
    if (text.substr(0, given_prefix.size()) != given_prefix) {
        for (const auto& w : outer_words) {
            if (w.name == text) r.outer.what = w.value;
        }
        if (r.outer.what != outer_choice::kind::by_rule) return;
        if (is_tile(text)) return set_tile(r, text);
        fail(fmt::format(
            "outer={}: give tensor, none, row, col, ROWSxCOLS, given:NUMBER or given:FILE", text));
    }
    const std::string_view what = text.substr(given_prefix.size());
    if (what.empty()) fail("outer=given: give a number or a file behind the colon");
    r.outer.what = outer_choice::kind::given;
    const char* const end = what.data() + what.size();
    const auto [rest, status] = std::from_chars(what.data(), end, r.outer.value);
    if (rest == end && status != std::errc::invalid_argument) {
        if (status == std::errc{} && std::isfinite(r.outer.value) && r.outer.value > 0) return;
        fail(fmt::format("outer={}: give a positive float32", text));
    }
    r.outer.value = 1;
    r.outer.file = what;
}

std::string get_outer(const recipe& r) {
    if (r.outer.what == outer_choice::kind::row) return "row";
    if (r.outer.what == outer_choice::kind::column) return "col";
    if (r.outer.what == outer_choice::kind::tile) {
        return fmt::format("{}x{}", r.outer.rows, r.outer.cols);
    }
    if (r.outer.what != outer_choice::kind::given) {
        return scale::has_tensor_scale(r.rule->id) ? "tensor" : "none";
    }
    return std::string(given_prefix) +
           (r.outer.file.empty() ? fmt::format("{}", r.outer.value) : r.outer.file);
}

void set_round(recipe& r, std::string_view text) {
    const format::rounding_row* row = format::find_rounding(text);
    if (row == nullptr) fail(base::unknown("rounding", text, names_of(format::roundings)));
    r.round = row->id;
}

void set_block(recipe& r, std::string_view text) {
    const std::size_t cross = text.find('x');
    if (cross == std::string_view::npos) {
        fail(fmt::format("block={}: give rows x columns, as in 1x32, 32x1 or 16x16", text));
    }
    const int rows = integer<int>("block", text.substr(0, cross), 1, max_block_elements);
    const int cols = integer<int>("block", text.substr(cross + 1), 1, max_block_elements);
    const std::int64_t elements = std::int64_t{rows} * cols;
    if (elements < 2 || elements > max_block_elements) {
        fail(fmt::format("block={}: a block has 2 to {} elements", text, max_block_elements));
    }
    r.block = {rows, cols};
}

std::string get_block(const recipe& r) { return fmt::format("{}x{}", r.block.rows, r.block.cols); }

void set_axis(recipe& r, std::string_view text) {
    using kind = axis_choice::kind;
    r.axis = text == "sum"    ? axis_choice{}
             : text == "flat" ? axis_choice{kind::flat, 0}
                              : axis_choice{kind::index, integer<int>("axis", text, -64, 63)};
}

void set_reach(recipe& r, std::string_view text) {
    r.reach = text == "all" ? all_codes : integer<int>("reach", text, 0, 255);
}

std::string get_reach(const recipe& r) {
    return r.reach == all_codes ? "all" : fmt::format("{}", r.reach);
}

std::string get_axis(const recipe& r) {
    if (r.axis.what == axis_choice::kind::last) return "sum";
    if (r.axis.what == axis_choice::kind::flat) return "flat";
    return fmt::format("{}", r.axis.value);
}

constexpr std::array keys{
    recipe_key{"element", "an element format", "format of the elements", set_element,
               [](const recipe& r) { return std::string(r.element->name); }},
    recipe_key{"scale", "a scale rule (mx explain rules)", "how the shared scale is chosen",
               set_scale, [](const recipe& r) { return std::string(r.rule->name); }},
    recipe_key{"scale_format", "e8m0, ue4m3, ue5m3, ue5m3_inf, f32", "format of the shared scale",
               set_scale_format, [](const recipe& r) { return std::string(r.scale_format->name); }},
    recipe_key{"round", "a rounding (mx explain rules)", "how an element is rounded", set_round,
               [](const recipe& r) { return std::string(row_of(r.round).name); }},
    recipe_key{"ties", "up, even", "e3m0 under rtne: how 1.5 * 2^k is rounded",
               [](recipe& r, std::string_view v) { r.ties = read_word("ties", v, tie_words); },
               [](const recipe& r) { return print_word(r.ties, tie_words); }},
    recipe_key{"random_bits", "1 to 32", "width of the random number of stochastic rounding",
               [](recipe& r, std::string_view v) {
                   r.random_bits = integer<int>("random_bits", v, 1, 32);
               },
               [](const recipe& r) { return fmt::format("{}", r.random_bits); }},
    recipe_key{"seed", "0 to 2^64-1", "seed of stochastic rounding",
               [](recipe& r, std::string_view v) {
                   r.seed = integer<std::uint64_t>("seed", v, 0, ~std::uint64_t{0});
               },
               [](const recipe& r) { return fmt::format("{}", r.seed); }},
    recipe_key{"block", "RxC", "rows x columns that share a scale: 1x32, 32x1, 16x16, ...",
               set_block, get_block},
    recipe_key{"axis", "sum, N or flat",
               "axis that blocks run along: the one products sum over, axis N (-1: last), or the "
               "flattened tensor",
               set_axis, get_axis},
    recipe_key{
        "offset", "none, fp16", "fp16: asymmetric, the block's centre is subtracted",
        [](recipe& r, std::string_view v) { r.offset = read_word("offset", v, offset_words); },
        [](const recipe& r) { return print_word(r.offset, offset_words); }},
    recipe_key{"range", "max, half",
               "with an offset, the scale is chosen from max |x-O| or (max-min)/2",
               [](recipe& r, std::string_view v) { r.range = read_word("range", v, range_words); },
               [](const recipe& r) { return print_word(r.range, range_words); }},
    recipe_key{
        "int_min", "full, symmetric", "integers: whether the code -2^(n-1) is used",
        [](recipe& r, std::string_view v) { r.minimum = read_word("int_min", v, int_min_words); },
        [](const recipe& r) { return print_word(r.minimum, int_min_words); }},
    recipe_key{
        "int_emax", "0, log2max, 1", "integers: the exponent that scale rules subtract",
        [](recipe& r, std::string_view v) { r.emax = read_word("int_emax", v, int_emax_words); },
        [](const recipe& r) { return print_word(r.emax, int_emax_words); }},
    recipe_key{"four_over_six", "none, mse, mae, abs_max",
               "nvfp4: whether the block's largest element becomes 4 if that has less error",
               [](recipe& r, std::string_view v) {
                   r.select = read_word("four_over_six", v, select_words);
               },
               [](const recipe& r) { return print_word(r.select, select_words); }},
    recipe_key{"bound", "256, 448; ue5m3: 65536, 114688; ue5m3_inf: 32768, 61440",
               "four_over_six: the largest block scale that the outer scale leaves room for",
               set_bound, [](const recipe& r) { return fmt::format("{}", bound_of(r, r.bound)); }},
    recipe_key{"candidates", "exact, fp16",
               "four_over_six of dialect te: how the errors of the two candidates are computed",
               [](recipe& r, std::string_view v) {
                   r.candidates = read_word("candidates", v, candidate_words);
               },
               [](const recipe& r) { return print_word(r.candidates, candidate_words); }},
    recipe_key{"outer", "tensor, row, col, ROWSxCOLS, none, given:NUMBER, given:FILE",
               "what shares the outer scale of two-level scales (none: scale=single-level)",
               set_outer, get_outer},
    recipe_key{
        "search", "mse, mae", "scale=search: the error of a block to minimise",
        [](recipe& r, std::string_view v) { r.measure = read_word("search", v, measure_words); },
        [](const recipe& r) { return print_word(r.measure, measure_words); }},
    recipe_key{"reach", "all, 0 to 255",
               "scale=search: codes tried on either side of that of floor, or of amax / max",
               set_reach, get_reach},
    recipe_key{"transform", "none, hadamard, random-hadamard, matrix",
               "rotation along the block axis before quantization",
               [](recipe& r, std::string_view v) {
                   r.rotate.what = read_word("transform", v, transform_words);
               },
               [](const recipe& r) { return print_word(r.rotate.what, transform_words); }},
    recipe_key{"transform_size", "2 to 1024 by powers of two, 12 2^k, 20 2^k to 1280",
               "number of neighbours that are rotated together; any number for a matrix",
               set_transform_size, get_transform_size},
    recipe_key{"transform_file", "a path without ',' and ':'",
               "transform=matrix: text of transform_size rows of as many numbers",
               [](recipe& r, std::string_view v) { r.rotate.file = std::string(v); },
               [](const recipe& r) { return r.rotate.file; }},
    recipe_key{"transform_seed", "0 to 2^64-1", "seed of the signs of random-hadamard",
               [](recipe& r, std::string_view v) {
                   r.rotate.seed =
                       integer<std::uint64_t>("transform_seed", v, 0, ~std::uint64_t{0});
               },
               [](const recipe& r) { return fmt::format("{}", r.rotate.seed); }},
    recipe_key{"flush_subnormals", "false, true",
               "dialect microxcaling: blocks of float32 subnormals become zero",
               [](recipe& r, std::string_view v) {
                   r.flush_subnormals = read_word("flush_subnormals", v, flag_words);
               },
               [](const recipe& r) { return print_word(r.flush_subnormals, flag_words); }},
    recipe_key{"dialect", "a dialect (mx explain dialects)", "implementation to reproduce exactly",
               set_dialect, [](const recipe& r) { return std::string(r.by->name); }},
};

// A named axis replaces the orientation of a 1-D block: 1xN and Nx1 become 1xN.
void normalize_axis(recipe& r) {
    using kind = axis_choice::kind;
    if (r.axis.what == kind::last) return;
    if (r.block.rows > 1 && r.block.cols > 1) {
        // The last two axes as they are stored, whatever products sum over.
        if (r.axis == axis_choice{kind::index, -1}) return;
        fail(
            fmt::format("block={} with axis={}: a tile lies along two axes; leave axis out, give "
                        "axis=-1 for the last two as they are stored, or use a 1-D block",
                        get_block(r), get_axis(r)));
    }
    r.block = {1, r.block.rows * r.block.cols};
}

}  // namespace

const scale::scale_rule* default_rule(const dialect& by, std::string_view scale_format) {
    for (std::string_view rest = by.rules; !rest.empty();) {
        const std::string_view name = first_of(rest);
        const scale::scale_rule* rule = scale::find_scale_rule(name);
        const bool has = !format::find_scale_format(scale_format)->is_number() ||
                         lists(by.float_scales, scale_format);
        if (has && lists(rule->scale_format, scale_format)) return rule;
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    return nullptr;
}

std::span<const recipe_key> recipe_keys() { return keys; }

namespace {

// The words of a list, joined with another separator.
std::string words_joined(std::string_view list, std::string_view between) {
    std::string out;
    while (!list.empty()) {
        const std::string_view word = first_of(list);
        out += fmt::format("{}{}", out.empty() ? "" : between, word);
        list.remove_prefix(std::min(list.size(), word.size() + 1));
    }
    return out;
}

// Checks that blocks are inside the areas that share an outer scale.
void check_areas(const recipe& r, std::string_view key) {
    using kind = outer_choice::kind;
    const auto require = [&](bool fits, std::string_view where) {
        if (fits) return;
        fail(fmt::format("{}: blocks lie {}; this recipe has blocks of {}{}", key, where,
                         get_block(r),
                         r.axis.what == axis_choice::kind::last ? "" : " and an axis of its own"));
    };
    const bool last = r.axis.what == axis_choice::kind::last;
    if (r.outer.what == kind::row) {
        require(r.block.rows == 1, "along rows");
    } else if (r.outer.what == kind::column) {
        require(r.block.cols == 1 && last, "along columns, as with block=16x1");
    } else if (r.outer.what == kind::tile) {
        require((last || r.axis == axis_choice{axis_choice::kind::index, -1}) &&
                    r.outer.rows % r.block.rows == 0 && r.outer.cols % r.block.cols == 0,
                "in tiles of a whole number of blocks");
    }
}

// Outer scales: a choice that another key can express becomes that key.
void normalize_outer(recipe& r) {
    using kind = outer_choice::kind;
    if (r.outer.what == kind::by_rule) return;
    std::string key = "outer=" + get_outer(r);
    for (const auto& w : outer_words) {
        if (w.value == r.outer.what) key = fmt::format("outer={}", w.name);
    }
    if (!r.scale_format->is_number() && r.outer.what == kind::none) {
        r.outer = {};
        return;
    }
    if (!r.scale_format->is_number()) {
        fail(fmt::format("{}: only with scales that are numbers; this recipe has {} scales", key,
                         r.scale_format->name));
    }
    const bool none = r.outer.what == kind::none;
    if (!scale::is_search(r.rule->id)) {
        r.rule = scale::find_scale_rule(none ? "single-level" : "two-level");
    } else {
        r.rule =
            scale::find_scale_rule(none ? "search-single-level" : "search", r.scale_format->name);
    }
    if (none || r.outer.what == kind::tensor) r.outer = {};
    check_areas(r, key);
    const bool te_select = r.select != four_over_six::none && r.by->id == dialect_id::te;
    if (r.outer.what == kind::given && te_select) {
        fail(fmt::format("{}: four_over_six of dialect te looks at the tensor's maximum", key));
    }
}

// Throws an error that names a setting without support in the dialect or the scale format.
void check_dialect(const recipe& r) {
    const dialect& by = *r.by;
    if (!lists(r.rule->scale_format, r.scale_format->name)) {
        fail(fmt::format("scale={}: that rule chooses {} scales; this recipe has {} scales",
                         r.rule->name, words_joined(r.rule->scale_format, " or "),
                         r.scale_format->name));
    }
    if (r.scale_format->is_number() && !lists(by.float_scales, r.scale_format->name)) {
        fail(fmt::format("scale_format={}: dialect {} does not have it; it has {}",
                         r.scale_format->name, by.name, by.float_scales));
    }
    const auto require = [&](std::string_view key, std::string_view list, std::string_view value) {
        if (list.empty() || lists(list, value)) return;
        fail(fmt::format("{}={}: dialect {} does not have it; it has {}", key, value, by.name,
                         list));
    };
    require("scale", by.rules, r.rule->name);
    require("round", roundings_of(by, *r.scale_format), row_of(r.round).name);
    require("element", by.elements, r.element->name);
    if (bumps_positions(r) && r.block.rows != 1) {
        fail(fmt::format("block={}: dialect {} raises exponents along rows of 1xN blocks",
                         get_block(r), by.name));
    }
    if (by.id != dialect_id::ocp && r.offset != offset_kind::none) {
        fail(fmt::format("offset=fp16: dialect {} does not have it", by.name));
    }
}

// Formats with scales that are not powers of two have no offsets, and dialects support one element
// each.
void check_float_scale(const recipe& r) {
    if (r.offset != offset_kind::none && !r.scale_format->power_of_two()) {
        fail(fmt::format("offset=fp16: only with e8m0 scales; this recipe has {} scales",
                         r.scale_format->name));
    }
    if (r.offset != offset_kind::none && scale::is_search(r.rule->id)) {
        fail("offset=fp16: not with scale=search; take a rule that looks at the block's maximum");
    }
    if (r.by->id != dialect_id::ocp) {
        const bool four_bits = r.element->name == "e2m1";
        if (r.scale_format->is_number() && !four_bits) {
            fail(fmt::format("element={}: dialect {} has {} scales for e2m1 only", r.element->name,
                             r.by->name, r.scale_format->name));
        }
        if (!r.scale_format->has_codes() && four_bits) {
            fail(fmt::format("element=e2m1: dialect {} has {} scales for e4m3 and e5m2 only",
                             r.by->name, r.scale_format->name));
        }
    }
    if (r.select == four_over_six::none) return;
    const std::string key = fmt::format("four_over_six={}", print_word(r.select, select_words));
    if (r.rule->id != scale::rule_id::two_level || r.element->name != "e2m1") {
        fail(fmt::format("{}: only for nvfp4 with scale=two-level", key));
    }
    const bool te = r.by->id == dialect_id::te;
    if (!te && r.by->id != dialect_id::ocp) {
        fail(fmt::format("{}: dialect {} does not have it", key, r.by->name));
    }
    if (!te && r.candidates == candidate_kind::fp16) {
        fail(fmt::format("candidates=fp16: only under dialect te; this is {}", r.by->name));
    }
    if (!te) return;
    if (r.select == four_over_six::abs_max) {
        fail(fmt::format("{}: dialect te has mse and mae", key));
    }
    if (r.round != format::rounding::rtne) {
        fail(fmt::format("{}: dialect te has it with round=rtne only", key));
    }
    if (r.block.rows > 16) {
        fail(fmt::format("{}: dialect te has it for blocks of at most 16 rows; this recipe has {}",
                         key, get_block(r)));
    }
    if (r.candidates == candidate_kind::fp16 && r.scale_format->name == "ue5m3") {
        fail("candidates=fp16: not with ue5m3 scales, whose values FP16 does not hold");
    }
}

void check_rotation(const transform::rotation& r) {
    if (r.what == transform::kind::matrix && r.file.empty()) {
        fail("transform=matrix: give its file, transform_file=PATH, and transform_size");
    }
    if (r.what == transform::kind::none || transform::is_size(r.what, r.size)) return;
    fail(fmt::format(
        "transform_size={}: there is no Hadamard matrix of that size here; give a power "
        "of two from 2 to 1024, or 12 or 20 times one up to {}",
        r.size, transform::largest_size));
}

// The preset for the scale format, element and block, so that each behaviour has one spelling: a
// row with the scale format, preferably with the same element, then with the same block.
std::string_view preset_of(const recipe& r) {
    // For elements without a row, and for UE5M3 under an outer scale.
    std::string_view best = r.scale_format->is_number() ? "nvfp4" : "mxint8";
    int best_score = r.scale_format->has_codes() ? 1 : -1;
    for (const format::block_format& f : format::block_formats) {
        if (f.scale != r.scale_format->name) continue;
        if (!f.rule.empty() && f.rule != r.rule->name) continue;
        const int score = (f.element == r.element->name ? 2 : 0) +
                          (block_shape{f.block_rows, f.block_cols} == r.block ? 1 : 0);
        if (score <= best_score) continue;
        best = f.name;
        best_score = score;
    }
    return best;
}

}  // namespace

void normalize(recipe& r) {
    if (has_blocks(r)) {
        normalize_axis(r);
        normalize_outer(r);
        check_dialect(r);
        check_float_scale(r);
    }
    const bool random = r.round == format::rounding::stochastic || scale::is_random(*r.rule);
    if (!random) {
        r.seed = 0;
        r.random_bits = default_random_bits(*r.by, *r.element);
    }
    const bool has_tie_choice = r.element->floating() && r.element->mantissa_bits == 0;
    if (!has_tie_choice || r.round != format::rounding::rtne) r.ties = format::tie_rule::up;
    const bool searches = scale::is_search(r.rule->id);
    if (!searches) {
        r.measure = search_measure::mse;
        r.reach = all_codes;
    }
    if (r.offset == offset_kind::none) r.range = range_kind::max;
    if (r.select == four_over_six::none) {
        r.bound = scale_bound::power_of_two;
        r.candidates = candidate_kind::exact;
    }
    // microxcaling clamps integers at +-max_norm on both of its paths.
    if (r.element->floating() || r.by->integers.value == int_range::symmetric) {
        r.minimum = int_min::symmetric;
    }
    if (r.element->floating() || searches || r.rule->id == scale::rule_id::rceil ||
        !r.scale_format->power_of_two()) {
        r.emax = scale::int_emax::zero;
    }
    if (r.by->id != dialect_id::microxcaling) r.flush_subnormals = false;
    if (r.rotate.what == transform::kind::none) r.rotate = {};
    if (r.rotate.what != transform::kind::random_hadamard) r.rotate.seed = 0;
    if (r.rotate.what != transform::kind::none && r.rotate.size == 0) {
        r.rotate.size = default_transform_size(r);
    }
    if (r.rotate.what != transform::kind::matrix) r.rotate.file.clear();
    check_rotation(r.rotate);

    r.preset = has_blocks(r) ? preset_of(r) : r.element->name;
}

int_min default_int_min(const format::element_format& f, const dialect& by) {
    const bool full = f.name == "int8" && by.integers.value == int_range::ocp;
    return full ? int_min::full : int_min::symmetric;
}

bool scales_have_codes(const recipe& r) {
    return r.scale_format->has_codes() && r.by->storage.value == scale_storage::code;
}

bool bumps_positions(const recipe& r) {
    return r.by->id == dialect_id::systems_scaling && r.rule->id == scale::rule_id::floor_bump;
}

int default_random_bits(const dialect& by, const format::element_format& f) {
    const int bits = by.random_bits.value;
    return bits != 0 ? bits : 23 - f.mantissa_bits;
}

const format::element_format* find_format(std::string_view name) {
    if (const format::element_format* f = format::find_element_format(name)) return f;
    if (const format::shared_format* f = format::find_shared_format(name)) return &f->element;
    return name == "none" ? nullptr : format::find_wide_format(name);
}

recipe format_recipe(const format::element_format& f) {
    recipe r;
    r.scope = scale_scope::none;
    r.element = &f;
    r.scale_format = format::find_scale_format("f32");
    r.rule = scale::find_scale_rule("amax");
    r.minimum = default_int_min(f, *r.by);
    if (f.name == "tf32") r.round = format::rounding::zero;
    if (const format::shared_format* const shared = format::find_shared_format(f.name)) {
        r.block = {1, shared->block};
        if (shared->range != 0) r.scope = scale_scope::tensor;
    }
    normalize(r);
    return r;
}

std::span<const std::string_view> keys_without_blocks() {
    static constexpr std::array<std::string_view, 5> names{"round", "ties", "random_bits", "seed",
                                                           "int_min"};
    return names;
}

void set_without_blocks(recipe& r, const recipe_setting& s,
                        std::span<const std::string_view> also) {
    if (format::find_shared_format(r.element->name) != nullptr) {
        fail("a format of values only takes no keys");
    }
    if (r.element->bits() > 8) fail("a format without blocks and codes takes no keys");
    if (s.key == "scale") {
        if (s.value != "tensor") {
            fail("without blocks an element format has scale=tensor, scale=channel or none");
        }
        r.scope = scale_scope::tensor;
        return;
    }
    const auto shared = keys_without_blocks();
    if (std::ranges::count(shared, s.key) == 0) {
        std::vector<std::string_view> known(shared.begin(), shared.end());
        known.emplace_back("scale");
        known.insert(known.end(), also.begin(), also.end());
        fail(base::unknown("key without blocks", s.key, known));
    }
    std::ranges::find(keys, s.key, &recipe_key::name)->set(r, s.value);
}

std::string format_string(const recipe& r) {
    std::string out(r.element->name);
    if (format::find_shared_format(r.element->name) != nullptr) return out;
    char separator = ':';
    const auto add = [&](std::string_view key, std::string_view value) {
        out += fmt::format("{}{}={}", std::exchange(separator, ','), key, value);
    };
    if (r.scope == scale_scope::tensor) add("scale", "tensor");
    const recipe plain = format_recipe(*r.element);
    for (const std::string_view name : keys_without_blocks()) {
        const auto key = std::ranges::find(keys, name, &recipe_key::name);
        if (const std::string value = key->get(r); value != key->get(plain)) add(name, value);
    }
    return out;
}

recipe preset_recipe(std::string_view name) {
    const format::block_format* f = format::find_block_format(name);
    if (f == nullptr) {
        std::vector<std::string_view> names;
        for (const format::block_format& row : format::block_formats) {
            names.push_back(row.name);
            if (!row.alias.empty()) names.push_back(row.alias);
        }
        fail(base::unknown("recipe preset", name, names));
    }
    recipe r;
    r.preset = f->name;
    set_scale_format(r, f->scale);
    set_element(r, f->element);
    if (!f->rule.empty()) r.rule = scale::find_scale_rule(f->rule);
    r.block = {f->block_rows, f->block_cols};
    normalize(r);
    return r;
}

}  // namespace mx::codec

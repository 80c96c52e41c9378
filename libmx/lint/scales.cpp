// SPDX-License-Identifier: Apache-2.0
// Rules about scales: missing, without codes, of wrong value or shape, different among partners.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "libmx/engine/fused.hpp"
#include "libmx/lint/checkpoint.hpp"

namespace mx::lint {
namespace {

using tensor::dtype;

constexpr std::size_t piece = std::size_t{1} << 16;

struct scale_kind {
    std::optional<std::size_t> module::*member;
    std::string_view name;
    std::string_view without;  ///< what an engine does
};
constexpr std::array scale_kinds{
    scale_kind{&module::scale, "scale", "an engine refuses the tensor or reads codes as values"},
    scale_kind{&module::tensor_scale, "tensor scale",
               "an engine refuses the tensor or takes an arbitrary factor for all of it"},
    scale_kind{&module::input_scale, "input scale",
               "an engine refuses the layer or quantizes its activations by an arbitrary scale"}};

// What modules that are stored alike have in common.
struct tally {
    std::size_t all = 0;
    std::array<std::size_t, scale_kinds.size()> with{};
    std::array<std::size_t, scale_kinds.size()> example{};  ///< 1 + a module that has it
    void add(const module& m, std::size_t index) {
        ++all;
        for (std::size_t k = 0; k < scale_kinds.size(); ++k) {
            if (!(m.*scale_kinds[k].member)) continue;
            ++with[k];
            example[k] = index + 1;
        }
    }
};

bool is_fp8(dtype t) {
    return t == dtype::f8_e4m3 || t == dtype::f8_e5m2 || t == dtype::f8_e4m3fnuz ||
           t == dtype::f8_e5m2fnuz;
}

// Codes whose values are in the same array, as in GGUF, need no other.
bool needs_scale(const checkpoint& c, const module& m) {
    return m.coded && c.info(*m.codes).layout.empty();
}

bool two_levels_stated(const checkpoint& c) {
    for (const auto& [key, value] : c.quantization()) {
        if (value == "nvfp4-pack-quantized" || value == "NVFP4") return true;
    }
    return false;
}

// FP4 codes with block scales of E4M3: NVFP4, whose tensor scale brings them into their range.
bool is_nvfp4(const checkpoint& c, const module& m) {
    if (!m.codes || !m.scale) return false;
    const dtype codes = c.info(*m.codes).type;
    return (codes == dtype::u8 || codes == dtype::f4 || codes == dtype::i8) &&
           c.info(*m.scale).type == dtype::f8_e4m3;
}

}  // namespace

void find_missing_scales(const checkpoint& c, std::vector<finding>& out) {
    base::text_map<tally> fused, alike, stored;
    const auto storage = [&](const module& m) {
        const io::tensor_info& t = c.info(*m.codes);
        return fmt::format("{} {}", tensor::row_of(t.type).name, t.layout);
    };
    // The same matrix of other layers, or experts, stored the same way.
    const auto pattern = [&](const module& m) { return pattern_of(m.name) + ' ' + storage(m); };
    const auto partners = [&](const module& m) {
        return engine::fused_name(m.name, engine::expert_fusion::apart) + ' ' + storage(m);
    };
    std::size_t index = 0;
    for (const module& m : c.modules()) {
        if (m.coded) {
            fused[partners(m)].add(m, index);
            alike[pattern(m)].add(m, index);
            stored[storage(m)].add(m, index);
        }
        ++index;
    }
    const bool described = !c.quantization().empty();
    for (const module& m : c.modules()) {
        if (!m.coded) continue;
        for (std::size_t k = 0; k < scale_kinds.size(); ++k) {
            const scale_kind& kind = scale_kinds[k];
            if (m.*kind.member) continue;
            const tally& f = fused.at(partners(m));
            const tally& a = alike.at(pattern(m));
            const tally& s = stored.at(storage(m));
            const tally* like = nullptr;
            if (f.with[k] > 0) like = &f;
            if (like == nullptr && 2 * a.with[k] >= a.all) like = &a;
            // All others have it, and they are enough to make a rule.
            if (like == nullptr && needs_scale(c, m) && s.with[k] + 1 == s.all && s.all >= 4)
                like = &s;
            const bool always = (k == 0 && needs_scale(c, m) &&
                                 (!is_fp8(c.info(*m.codes).type) || described || s.with[0] > 0)) ||
                                (k == 1 && is_nvfp4(c, m) && two_levels_stated(c));
            if (like == nullptr && !always) continue;
            std::string found = described_array(c.info(*m.codes));
            if (like != nullptr && like->with[k] > 0) {
                const module& example = c.modules()[like->example[k] - 1];
                found += fmt::format("; {} of {} like it have one, such as {}", like->with[k],
                                     like->all, c.info(*(example.*kind.member)).name);
            }
            out.push_back({{},
                           severity::error,
                           c.info(*m.codes).name,
                           fmt::format("has no {}", kind.name),
                           std::move(found),
                           std::string(kind.without),
                           "quantize the layer again, or copy the array from the run that wrote "
                           "the codes"});
        }
    }
}

void find_orphan_scales(const checkpoint& c, std::vector<finding>& out) {
    for (const module& m : c.modules()) {
        if (m.coded) continue;
        for (const scale_kind& kind : scale_kinds) {
            const auto at = m.*kind.member;
            if (!at) continue;
            out.push_back(
                {{},
                 severity::error,
                 c.info(*at).name,
                 m.codes ? fmt::format("is a {} of a tensor that is not quantized", kind.name)
                         : fmt::format("is a {} without codes", kind.name),
                 m.codes ? described_array(c.info(*m.codes)) : described_array(c.info(*at)),
                 m.codes ? "an engine that goes by names quantizes or scales the tensor wrongly"
                         : "an engine refuses the array, or leaves its matrix as it was allocated",
                 m.codes ? "remove the scale, or store the codes"
                         : "write the codes, or remove the scale"});
        }
    }
}

namespace {

// Of the values of one array of scales.
struct scale_summary {
    std::uint64_t nan = 0, inf = 0, negative = 0, zero = 0, subnormal = 0, other = 0;
    double sum_log2 = 0;
    std::vector<std::uint64_t> zeros;  ///< where the first are
    float least = std::numeric_limits<float>::infinity(), most = 0;

    void add(float v, std::uint64_t at) {
        if (std::isnan(v))
            ++nan;
        else if (std::isinf(v))
            ++inf;
        else if (v < 0)
            ++negative;
        else if (v == 0) {
            ++zero;
            if (zeros.size() < 4096) zeros.push_back(at);
        } else {
            ++other;
            if (v < std::numeric_limits<float>::min()) ++subnormal;
            sum_log2 += std::log2(static_cast<double>(v));
            least = std::min(least, v);
            most = std::max(most, v);
        }
    }
    double mean_log2() const { return sum_log2 / static_cast<double>(other); }
};

bool is_e8m0(const checkpoint& c, std::size_t scale, const module& m) {
    const dtype t = c.info(scale).type;
    if (t == dtype::f8_e8m0) return true;
    const io::pairing* const p = c.pairing_of(m);
    const bool four_bits = p == nullptr || p->layout->scales == io::scale_array::e8m0;
    return t == dtype::u8 && m.scale == scale && four_bits && m.others.empty();
}

// An array of scales that are numbers; none for indices into a table and packed integers.
struct scale_numbers {
    std::size_t array;
    bool e8m0;
};
std::optional<scale_numbers> numbers_of(const checkpoint& c, const module& m,
                                        const scale_kind& kind) {
    const auto at = m.*kind.member;
    if (!at) return {};
    const dtype t = c.info(*at).type;
    if (t == dtype::i32 || t == dtype::i64) return {};
    const bool e8m0 = kind.member == &module::scale && is_e8m0(c, *at, m);
    if (t == dtype::u8 && !e8m0) return {};
    return scale_numbers{*at, e8m0};
}

scale_summary summarize(const checkpoint& c, std::size_t array, bool e8m0) {
    scale_summary s;
    const io::tensor_info& t = c.info(array);
    for (std::uint64_t at = 0; at < t.elements; at += piece) {
        std::uint64_t i = at;
        for (const float v : c.values_of(array, at, piece)) {
            float value = v;
            if (e8m0 && t.type == dtype::u8) {
                value = v == 255 ? std::numeric_limits<float>::quiet_NaN()
                                 : std::ldexp(1.0F, static_cast<int>(v) - 127);
            }
            // 2^-127 is a normal value of E8M0.
            if (e8m0 && value > 0) value = std::max(value, std::numeric_limits<float>::min());
            s.add(value, i++);
        }
    }
    return s;
}

// Whether codes in these bytes are other than zeros of either sign.
bool any_code(std::span<const std::byte> bytes, bool nibbles) {
    return std::ranges::any_of(bytes, [&](std::byte b) {
        const auto u = std::to_integer<unsigned>(b);
        return nibbles ? (u & 0x77u) != 0 : (u & 0x7fu) != 0;
    });
}

// The number of zero scales, of those looked at, whose codes are not all zero.
std::uint64_t zeros_that_count(const checkpoint& c, const module& m, std::size_t scale,
                               const scale_summary& s) {
    if (!m.codes || !m.coded) return 0;
    const io::tensor_info& codes = c.info(*m.codes);
    const io::tensor_info& scales = c.info(scale);
    const bool nibbles = !is_fp8(codes.type);
    if (scales.elements == 1) {
        for (std::uint64_t at = 0; at < codes.bytes; at += piece) {
            if (any_code(c.bytes_of(*m.codes, at, piece), nibbles)) return 1;
        }
        return 0;
    }
    // Blocks along rows follow one another as their scales do; other layouts are left to --values.
    const io::pairing* const p = c.pairing_of(m);
    if (p == nullptr || p->swizzled || p->down || p->grid.block_rows != 1 ||
        codes.bytes % scales.elements != 0 || (is_fp8(codes.type) == nibbles)) {
        return 0;
    }
    const std::uint64_t block = codes.bytes / scales.elements;
    std::uint64_t count = 0;
    for (const std::uint64_t at : s.zeros) {
        count +=
            any_code(c.bytes_of(*m.codes, at * block, static_cast<std::size_t>(block)), nibbles);
    }
    return count;
}

struct summarized {
    const module* of;
    std::size_t array;
    scale_summary s;
};

// Scales that are the inverse of what their siblings are.
void find_inverted(const checkpoint& c, std::vector<summarized>& group, std::string_view kind,
                   std::vector<finding>& out) {
    std::vector<double> logs;
    for (const summarized& g : group) {
        if (g.s.other != 0) logs.push_back(g.s.mean_log2());
    }
    if (logs.size() < 3) return;
    std::ranges::nth_element(logs, logs.begin() + static_cast<std::ptrdiff_t>(logs.size() / 2));
    const double median = logs[logs.size() / 2];
    for (const summarized& g : group) {
        if (g.s.other == 0) continue;
        const double own = g.s.mean_log2();
        if (std::abs(own - median) < 8 || std::abs(own + median) > std::abs(own - median) / 4) {
            continue;
        }
        out.push_back(
            {{},
             severity::error,
             c.info(g.array).name,
             fmt::format("is the inverse of what its siblings suggest of a {}", kind),
             fmt::format("2^{:.1f}; {} siblings have about 2^{:.1f}", own, logs.size() - 1, median),
             fmt::format("values are wrong by a factor of about 2^{:.0f}", own - median),
             "store its reciprocal"});
    }
}

}  // namespace

void find_scale_values(const checkpoint& c, std::vector<finding>& out) {
    std::map<std::string, std::vector<summarized>> kinds;
    for (const module& m : c.modules()) {
        for (const scale_kind& kind : scale_kinds) {
            const auto scales = numbers_of(c, m, kind);
            if (!scales) continue;
            const std::size_t array = scales->array;
            const bool e8m0 = scales->e8m0;
            const io::tensor_info& t = c.info(array);
            summarized g{&m, array, summarize(c, array, e8m0)};
            const scale_summary& s = g.s;
            const auto tell = [&](severity level, std::uint64_t count, std::string_view what,
                                  std::string_view effect) {
                if (count == 0) return;
                out.push_back({{},
                               level,
                               t.name,
                               fmt::format("has {}", what),
                               fmt::format("{} of {} scales", count, t.elements),
                               std::string(effect),
                               "quantize the tensor again"});
            };
            tell(severity::error, s.nan, e8m0 ? "scales of 255, which E8M0 reads as NaN" : "NaN",
                 "every value of these blocks is NaN");
            tell(severity::error, s.inf, "Inf", "values of these blocks are Inf or NaN");
            // Of integers with zero points, signs are free.
            const bool signed_ok = !m.others.empty() || (m.generic && !e8m0);
            if (!signed_ok) {
                tell(severity::error, s.negative, "negative scales",
                     "values have the wrong sign, or an engine reads the scale without it");
            }
            if (s.zero != 0) {
                tell(
                    severity::error,
                    kind.member == &module::input_scale ? s.zero : zeros_that_count(c, m, array, s),
                    kind.member == &module::input_scale ? "zero" : "zeros beside other codes",
                    kind.member == &module::input_scale
                        ? "activations are divided by zero"
                        : "the values of these blocks are lost: they read as 0");
            }
            if (t.type == dtype::f32) {
                tell(severity::error, s.subnormal, "subnormal values",
                     "engines that flush subnormals read them as 0");
            }
            if (s.other != 0 && is_nvfp4(c, m) && kind.member != &module::scale) {
                // The largest value that a tensor scale stands for is 6 * 448 times the factor.
                const bool divides = t.name.ends_with("global_scale");
                const bool weight = kind.member == &module::tensor_scale;
                const double factor = divides ? 1.0 / s.least : s.most;
                if (factor > (weight ? 1.0 : 32.0) && factor != 1.0) {
                    out.push_back({{},
                                   severity::error,
                                   t.name,
                                   fmt::format("is {}: it must be the inverse",
                                               divides ? "a factor where its name means a divisor"
                                                       : "a divisor where its name means a factor"),
                                   fmt::format("{:.4g}, for values up to {:.4g}",
                                               divides ? s.least : s.most, 2688 * factor),
                                   fmt::format("values are wrong by a factor of about {:.2g}",
                                               factor * factor),
                                   "store its reciprocal"});
                    continue;
                }
            }
            if (s.other != 0 && t.type != dtype::f8_e4m3 && !m.generic) {
                kinds[fmt::format("{}|{}", t.name.substr(m.name.size()),
                                  pattern_of(m.name).find("experts") != std::string::npos)]
                    .push_back(std::move(g));
            }
        }
    }
    for (auto& [kind, group] : kinds) {
        const std::string ending = kind.substr(0, kind.find('|'));
        find_inverted(c, group, "'" + ending.substr(1) + "'", out);
    }
}

namespace {

std::uint64_t extent(const io::tensor_info& t, std::size_t from_end) {
    return t.shape.size() < from_end ? 1 : t.shape[t.shape.size() - from_end];
}

// Grids that a scale of this module may have; none if its layout says nothing.
std::string grid_problem(const checkpoint& c, const module& m) {
    const io::tensor_info& codes = c.info(*m.codes);
    const io::tensor_info& scale = c.info(*m.scale);
    if (is_nvfp4(c, m) && codes.type != dtype::i8 && codes.shape.size() >= 2) {
        const std::uint64_t cols = extent(codes, 1) * (codes.type == dtype::f4 ? 1 : 2);
        const std::uint64_t rows = extent(codes, 2);
        const std::uint64_t want = (cols + 15) / 16;
        const bool plain = extent(scale, 1) == want && extent(scale, 2) == rows;
        const bool padded = scale.elements % (512) == 0 && scale.elements >= rows * want &&
                            extent(scale, 1) == (want + 3) / 4 * 4 &&
                            extent(scale, 2) == (rows + 127) / 128 * 128;
        if (!plain && !padded && c.pairing_of(m) == nullptr) {
            return fmt::format("{}x{} are expected, a scale for 16 values", rows, want);
        }
    }
    return {};
}

}  // namespace

void find_scale_shapes(const checkpoint& c, std::vector<finding>& out) {
    std::set<std::size_t> told;
    const auto tell = [&](std::size_t array, std::string message, std::string found) {
        if (!told.insert(array).second) return;
        out.push_back({{},
                       severity::error,
                       c.info(array).name,
                       std::move(message),
                       std::move(found),
                       "an engine refuses the tensor, or scales blocks by the scales of others",
                       "write the scales in the shape of the grid of blocks"});
    };
    base::view_map<const module*> by_codes;
    for (const module& m : c.modules()) {
        if (m.codes) by_codes.emplace(c.info(*m.codes).name, &m);
    }
    for (const io::refused_pairing& r : c.pairings().refused) {
        if (!r.scales) continue;
        const auto at = by_codes.find(c.info(r.codes).name);
        // Only where names say that the two belong together.
        if (at == by_codes.end() || at->second->scale != r.scales || !at->second->coded) continue;
        const std::string problem = grid_problem(c, *at->second);
        tell(*r.scales, "does not fit its codes",
             problem.empty() ? r.why
                             : fmt::format("{} for {}: {}", described_array(c.info(*r.scales)),
                                           described_array(c.info(r.codes)), problem));
    }
    // One shape among siblings: blocks of another size.
    std::map<std::string, std::map<std::string, std::vector<const module*>>> layouts;
    for (const module& m : c.modules()) {
        if (!m.scale || !m.coded) continue;
        const io::tensor_info& codes = c.info(*m.codes);
        if (const std::string p = grid_problem(c, m); !p.empty()) {
            tell(*m.scale, "does not fit its codes",
                 fmt::format("{} for {}: {}", described_array(c.info(*m.scale)),
                             described_array(codes), p));
        }
        for (const auto at : {m.tensor_scale, m.input_scale}) {
            if (!at || c.info(*at).elements == 1) continue;
            const std::uint64_t n = c.info(*at).elements;
            const bool per_matrix = codes.shape.size() >= 3 && n % codes.shape.front() == 0;
            if (per_matrix || (at == m.input_scale && n == extent(codes, 1))) continue;
            tell(*at, "is neither one number nor one for each matrix",
                 fmt::format("{} for {}", described_array(c.info(*at)), described_array(codes)));
        }
        const io::pairing* const p = c.pairing_of(m);
        if (p == nullptr || !codes.layout.empty()) continue;
        const auto length = [](std::uint64_t block, std::uint64_t all) {
            return block >= all ? std::string("all") : fmt::format("{}", block);
        };
        layouts[pattern_of(m.name) + ' ' + std::string(tensor::row_of(codes.type).name) +
                tensor::to_string(codes.shape)]
               [fmt::format("{} blocks of {}x{}", p->layout->title,
                            length(p->grid.block_rows, p->grid.over.rows),
                            length(p->grid.block_cols, p->grid.over.cols))]
                   .push_back(&m);
    }
    for (const auto& [pattern, kinds] : layouts) {
        if (kinds.size() < 2) continue;
        const auto most =
            std::ranges::max_element(kinds, {}, [](const auto& k) { return k.second.size(); });
        for (const auto& [kind, members] : kinds) {
            if (kind == most->first || members.size() * 2 > most->second.size()) continue;
            for (const module* m : members) {
                tell(
                    *m->scale, "has another grid than its siblings",
                    fmt::format("{}; {} siblings have {}", kind, most->second.size(), most->first));
            }
        }
    }
}

namespace {

// What becomes of a partner whose scale the engine replaces.
struct partner_scales {
    std::optional<std::size_t> module::*member;
    std::string_view name;
};
constexpr std::array partner_kinds{
    partner_scales{&module::tensor_scale, "tensor scale"},
    partner_scales{&module::scale, "scale"},
    partner_scales{&module::input_scale, "input scale"},
};

}  // namespace

void find_fused_scales(const checkpoint& c, std::vector<finding>& out) {
    struct member {
        const module* of;
        float value;
    };
    // One tile each is no scale of the tensor.
    const bool tiles = c.quantization().contains("weight_block_size.0");
    for (const partner_scales& kind : partner_kinds) {
        if (tiles && kind.member == &module::scale) continue;
        std::map<std::string, std::vector<member>> groups;
        for (const module& m : c.modules()) {
            const auto at = m.*kind.member;
            if (!at || !m.coded || c.info(*at).elements != 1) continue;
            const std::string fused = engine::fused_name(m.name, engine::expert_fusion::apart);
            if (fused == m.name || c.info(*at).type == dtype::u8) continue;
            const float v = c.values_of(*at, 0, 1).at(0);
            if (std::isfinite(v) && v > 0) groups[fused].push_back({&m, v});
        }
        for (const auto& [fused, members] : groups) {
            const auto [least, most] = std::ranges::minmax_element(members, {}, &member::value);
            if (least->value == most->value) continue;
            std::vector<std::string> values;
            for (const member& p : members) {
                values.push_back(fmt::format(
                    "{} {:.6g}", p.of->name.substr(p.of->name.rfind('.') + 1), p.value));
            }
            const bool weights = kind.member == &module::tensor_scale;
            const io::tensor_info& odd = c.info(*(least->of->*kind.member));
            const bool divides = odd.name.ends_with("global_scale");
            // All take the largest stored number: as a divisor it makes values smaller.
            const double ratio = static_cast<double>(most->value) / least->value;
            const double error = divides ? 1 - 1 / ratio : ratio - 1;
            // The partner that differs from the majority, else the one that changes most.
            std::map<float, std::size_t> counts;
            for (const member& p : members) ++counts[p.value];
            const member* named = &*least;
            for (const member& p : members) {
                if (members.size() > 2 && counts.size() == 2 && counts[p.value] == 1) named = &p;
            }
            const auto effect = [&]() -> std::string {
                if (weights) {
                    return fmt::format(
                        "vLLM takes the largest for all of them: values of {} are {} by a factor "
                        "of {:.4g}, a relative error of {:.3g}",
                        least->of->name, divides ? "smaller" : "larger", ratio, error);
                }
                if (kind.member == &module::scale) {
                    return "vLLM and SGLang quantize the others again under the largest: values "
                           "are rounded twice";
                }
                return fmt::format(
                    "vLLM takes the largest for all of them: activations of {} are quantized "
                    "under a scale that is {:.4g} times its own",
                    least->of->name, ratio);
            };
            out.push_back(
                {{},
                 weights ? severity::error : severity::warning,
                 c.info(*(named->of->*kind.member)).name,
                 fmt::format("differs from the {} of matrices that are loaded as one", kind.name),
                 fmt::format("{}", fmt::join(values, ", ")),
                 effect(),
                 "quantize the partners under one tensor scale"});
        }
    }
}

void find_default_scales(const checkpoint& c, std::vector<finding>& out) {
    for (const module& m : c.modules()) {
        if (!m.coded) continue;
        for (const scale_kind& kind : scale_kinds) {
            const auto scales = numbers_of(c, m, kind);
            if (!scales) continue;
            const std::size_t array = scales->array;
            const bool e8m0 = scales->e8m0;
            const io::tensor_info& t = c.info(array);
            if (t.elements == 0) continue;
            bool all = true;
            for (std::uint64_t first = 0; all && first < t.elements; first += piece) {
                for (const float v : c.values_of(array, first, piece)) {
                    all = all && v == (e8m0 && t.type == dtype::u8 ? 127.0F : 1.0F);
                }
            }
            if (!all) continue;
            out.push_back(
                {{},
                 severity::warning,
                 t.name,
                 fmt::format("is 1 throughout: a default, not a calibrated {}", kind.name),
                 fmt::format("{} scale{}", t.elements, t.elements == 1 ? "" : "s"),
                 "values use as much of the format's range as happens to fit, or clamp",
                 "calibrate with data that reaches this layer; rare experts need more"});
        }
    }
}

}  // namespace mx::lint

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
#include "libmx/io/widen.hpp"
#include "libmx/lint/checkpoint.hpp"

namespace mx::lint {
namespace {

using tensor::dtype;

constexpr std::size_t piece = std::size_t{1} << 16;
constexpr std::size_t most_zeros = 4096;  // whose codes are read

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
            out.push_back(finding_at(
                severity::error, c.info(*m.codes).name, fmt::format("has no {}", kind.name),
                std::move(found), std::string(kind.without),
                "quantize the layer again, or copy the array from the run that wrote "
                "the codes"));
        }
    }
}

void find_orphan_scales(const checkpoint& c, std::vector<finding>& out) {
    for (const module& m : c.modules()) {
        if (m.coded) continue;
        for (const scale_kind& kind : scale_kinds) {
            const auto at = m.*kind.member;
            if (!at) continue;
            out.push_back(finding_at(
                severity::error, c.info(*at).name,
                m.codes ? fmt::format("is a {} of a tensor that is not quantized", kind.name)
                        : fmt::format("is a {} without codes", kind.name),
                m.codes ? described_array(c.info(*m.codes)) : described_array(c.info(*at)),
                m.codes ? "an engine that goes by names quantizes or scales the tensor wrongly"
                        : "an engine refuses the array, or leaves its matrix as it was allocated",
                m.codes ? "remove the scale, or store the codes"
                        : "write the codes, or remove the scale"));
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

    void add(float v, std::uint64_t count) {
        if (std::isnan(v))
            nan += count;
        else if (std::isinf(v))
            inf += count;
        else if (v < 0)
            negative += count;
        else if (v == 0)
            zero += count;
        else {
            other += count;
            if (v < std::numeric_limits<float>::min()) subnormal += count;
            sum_log2 += std::log2(static_cast<double>(v)) * static_cast<double>(count);
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
    std::array<float, 256> values{};  // of scales of one byte
    std::array<std::uint64_t, 256> counts{};
    const bool bytes = t.bytes == t.elements;
    for (std::size_t code = 0; bytes && code < values.size(); ++code) {
        const std::byte byte{static_cast<unsigned char>(code)};
        io::widen(e8m0 ? dtype::f8_e8m0 : t.type, std::span(&byte, 1), 0,
                  std::span(&values[code], 1));
    }
    for (const checkpoint::element_run& p : c.sample_of(array)) {
        std::uint64_t at = p.first;
        const auto note_zero = [&](float v) {
            if (v == 0 && s.zeros.size() < most_zeros) s.zeros.push_back(at);
            ++at;
        };
        if (!bytes) {
            for (const float v : c.values_of(array, p.first, p.count)) {
                s.add(v, 1);
                note_zero(v);
            }
            continue;
        }
        for (const std::byte b : c.bytes_of(array, p.first, p.count)) {
            const auto code = std::to_integer<std::size_t>(b);
            ++counts[code];
            note_zero(values[code]);
        }
    }
    for (std::size_t code = 0; code < counts.size(); ++code) {
        // 2^-127 is a normal value of E8M0.
        const bool small = e8m0 && values[code] < std::numeric_limits<float>::min();
        const float v = small ? std::numeric_limits<float>::min() : values[code];
        if (counts[code] != 0) s.add(v, counts[code]);
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
    const std::uint64_t at_once = std::max<std::uint64_t>(1, piece / block);
    for (std::size_t i = 0; i < s.zeros.size();) {
        std::size_t end = i + 1;  // neighbours share a read
        while (end < s.zeros.size() && s.zeros[end] == s.zeros[end - 1] + 1 && end - i < at_once) {
            ++end;
        }
        const auto bytes = c.bytes_of(*m.codes, s.zeros[i] * block, (end - i) * block);
        for (; i < end; ++i) {
            const std::size_t from = bytes.size() - (end - i) * block;
            count += any_code(std::span(bytes).subspan(from, block), nibbles);
        }
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
        out.push_back(finding_at(
            severity::error, c.info(g.array).name,
            fmt::format("is the inverse of what its siblings suggest of a {}", kind),
            fmt::format("2^{:.1f}; {} siblings have about 2^{:.1f}", own, logs.size() - 1, median),
            fmt::format("values are wrong by a factor of about 2^{:.0f}", own - median),
            "store its reciprocal"));
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
                out.push_back(finding_at(level, t.name, fmt::format("has {}", what),
                                         fmt::format("{} of {}", count, c.counted_scales(array)),
                                         std::string(effect), "quantize the tensor again"));
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
                    out.push_back(
                        finding_at(severity::error, t.name,
                                   fmt::format("is {}: it must be the inverse",
                                               divides ? "a factor where its name means a divisor"
                                                       : "a divisor where its name means a factor"),
                                   fmt::format("{:.4g}, for values up to {:.4g}",
                                               divides ? s.least : s.most, 2688 * factor),
                                   fmt::format("values are wrong by a factor of about {:.2g}",
                                               factor * factor),
                                   "store its reciprocal"));
                    continue;
                }
            }
            if (s.other != 0 && t.type != dtype::f8_e4m3 && !m.generic) {
                g.s.zeros = {};
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
    find_block_scales(c, out);
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
        out.push_back(
            finding_at(severity::error, c.info(array).name, std::move(message), std::move(found),
                       "an engine refuses the tensor, or scales blocks by the scales of others",
                       "write the scales in the shape of the grid of blocks"));
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

struct partner_scales {
    std::optional<std::size_t> module::*member;
    std::string_view name;
};
constexpr std::array partner_kinds{
    partner_scales{&module::tensor_scale, "tensor scale"},
    partner_scales{&module::scale, "scale"},
    partner_scales{&module::input_scale, "input scale"},
};

// What engines do with the different scales of partners, by their loaders; docs/guide/lint.md has
// the files and commits. An engine whose loader was not read is not in the table.
enum class loading : std::uint8_t { largest, again, refuses, own };
enum class writer : std::uint8_t { compressed_tensors, modelopt_nvfp4, modelopt_fp8, other };
struct engine_row {
    writer of;
    std::optional<std::size_t> module::*member;
    std::string_view engines;
    loading does;
};
constexpr std::array engine_rows{
    engine_row{writer::compressed_tensors, &module::tensor_scale, "vLLM and SGLang take",
               loading::largest},
    engine_row{writer::modelopt_nvfp4, &module::tensor_scale, "vLLM and SGLang take",
               loading::largest},
    engine_row{writer::modelopt_nvfp4, &module::tensor_scale, "TensorRT-LLM", loading::refuses},
    engine_row{writer::modelopt_nvfp4, &module::tensor_scale, "llama.cpp", loading::own},
    engine_row{writer::modelopt_fp8, &module::scale, "vLLM, SGLang and TensorRT-LLM quantize",
               loading::again},
    engine_row{writer::modelopt_fp8, &module::scale, "llama.cpp", loading::own},
    engine_row{writer::other, &module::scale, "engines that keep one scale quantize",
               loading::again},
    engine_row{writer::compressed_tensors, &module::input_scale, "vLLM and SGLang take",
               loading::largest},
    engine_row{writer::modelopt_nvfp4, &module::input_scale, "vLLM and SGLang take",
               loading::largest},
    engine_row{writer::modelopt_nvfp4, &module::input_scale, "TensorRT-LLM", loading::refuses},
    engine_row{writer::modelopt_nvfp4, &module::input_scale, "llama.cpp", loading::own},
    engine_row{writer::modelopt_fp8, &module::input_scale, "vLLM, SGLang and TensorRT-LLM take",
               loading::largest},
    engine_row{writer::other, &module::input_scale, "engines that keep one scale take",
               loading::largest},
};

struct partner {
    const module* of;
    float value;
};

writer writer_of(const checkpoint& c, const partner& p) {
    const auto at = p.of->tensor_scale ? p.of->tensor_scale : p.of->input_scale;
    if (at && c.info(*at).name.ends_with("global_scale")) return writer::compressed_tensors;
    if (is_nvfp4(c, *p.of)) return writer::modelopt_nvfp4;
    const auto algorithm = c.quantization().find("quant_algo");
    const bool fp8 = algorithm != c.quantization().end() && algorithm->second == "FP8";
    return fp8 ? writer::modelopt_fp8 : writer::other;
}

// The nearest number of E4M3, ties to the even code.
double rounded_to_e4m3(double x) {
    static const std::array<float, 127> numbers = [] {
        std::array<std::byte, 127> codes;
        std::array<float, 127> all;
        for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = std::byte(i);
        io::widen(dtype::f8_e4m3, codes, 0, all);
        return all;
    }();
    const double size = std::min<double>(std::abs(x), numbers.back());
    auto at = static_cast<std::size_t>(std::ranges::lower_bound(numbers, size) - numbers.begin());
    const double above = numbers[at], below = numbers[at == 0 ? 0 : at - 1];
    if (size - below < above - size || (size - below == above - size && at % 2 == 1)) --at;
    return std::copysign(numbers[at], x);
}

// The R-MSE of the weights of partners as an engine computes them, of a sample; none where values
// are not read.
std::optional<double> loaded_rmse(const checkpoint& c, const std::vector<partner>& members,
                                  loading does, bool divides, float most) {
    if (!c.values() && !c.has_original()) return {};
    double error = 0, energy = 0;
    for (const partner& p : members) {
        const double ratio = static_cast<double>(p.value) / most;
        for (const float v : decoded_sample(c, *p.of)) {
            const double x = v;
            const double y = does == loading::again ? rounded_to_e4m3(x / most) * most
                             : divides              ? x * ratio
                                                    : x / ratio;
            error += (y - x) * (y - x);
            energy += x * x;
        }
    }
    return energy > 0 ? std::optional(std::sqrt(error / energy)) : std::nullopt;
}

std::string effect_on(const checkpoint& c, const std::vector<partner>& members,
                      const partner_scales& kind, bool divides) {
    const auto [least, most] = std::ranges::minmax_element(members, {}, &partner::value);
    const double ratio = static_cast<double>(most->value) / least->value;
    const bool weights = kind.member != &module::input_scale;
    std::vector<std::string> effects;
    for (const engine_row& e : engine_rows) {
        if (e.member != kind.member || e.of != writer_of(c, *least)) continue;
        const auto rmse = weights && (e.does == loading::largest || e.does == loading::again)
                              ? loaded_rmse(c, members, e.does, divides, most->value)
                              : std::nullopt;
        const std::string measured =
            rmse ? fmt::format(", R-MSE {:.3g} of them together", *rmse) : "";
        switch (e.does) {
            case loading::largest:
                effects.push_back(
                    weights
                        ? fmt::format("{} the largest for all of them: values of {} are {} by a "
                                      "factor of {:.4g}, a relative error of {:.3g}{}",
                                      e.engines, least->of->name, divides ? "smaller" : "larger",
                                      ratio, divides ? 1 - 1 / ratio : ratio - 1, measured)
                        : fmt::format("{} the largest for all of them: activations of {} are "
                                      "quantized under a {} that is {:.4g} times its own",
                                      e.engines, least->of->name, divides ? "divisor" : "scale",
                                      ratio));
                break;
            case loading::again:
                effects.push_back(
                    fmt::format("{} the others again under the largest: values are "
                                "rounded twice{}",
                                e.engines, measured));
                break;
            case loading::refuses:
                effects.push_back(fmt::format("{} refuses the layer", e.engines));
                break;
            case loading::own:
                effects.push_back(fmt::format("{} keeps each, without an error", e.engines));
                break;
        }
    }
    return fmt::format("{}", fmt::join(effects, "; "));
}

}  // namespace

void find_fused_scales(const checkpoint& c, std::vector<finding>& out) {
    // One tile each is no scale of the tensor.
    const bool tiles = c.quantization().contains("weight_block_size.0");
    for (const partner_scales& kind : partner_kinds) {
        if (tiles && kind.member == &module::scale) continue;
        std::map<std::string, std::vector<partner>> groups;
        for (const module& m : c.modules()) {
            const auto at = m.*kind.member;
            if (!at || !m.coded || c.info(*at).elements != 1) continue;
            if (!c.info(*m.codes).layout.empty()) continue;  // ggml multiplies each by its own
            const std::string fused = engine::fused_name(m.name, engine::expert_fusion::apart);
            if (fused == m.name || c.info(*at).type == dtype::u8) continue;
            const float v = c.values_of(*at, 0, 1).at(0);
            if (std::isfinite(v) && v > 0) groups[fused].push_back({&m, v});
        }
        for (const auto& [fused, members] : groups) {
            const auto [least, most] = std::ranges::minmax_element(members, {}, &partner::value);
            if (least->value == most->value) continue;
            std::vector<std::string> values;
            for (const partner& p : members) {
                values.push_back(fmt::format(
                    "{} {:.6g}", p.of->name.substr(p.of->name.rfind('.') + 1), p.value));
            }
            const bool weights = kind.member == &module::tensor_scale;
            const io::tensor_info& odd = c.info(*(least->of->*kind.member));
            const bool divides = odd.name.ends_with("global_scale");
            // The partner that differs from the majority, else the one that changes most.
            std::map<float, std::size_t> counts;
            for (const partner& p : members) ++counts[p.value];
            const partner* named = &*least;
            for (const partner& p : members) {
                if (members.size() > 2 && counts.size() == 2 && counts[p.value] == 1) named = &p;
            }
            out.push_back(finding_at(
                weights ? severity::error : severity::warning,
                c.info(*(named->of->*kind.member)).name,
                fmt::format("differs from the {} of matrices that are loaded as one", kind.name),
                fmt::format("{}", fmt::join(values, ", ")), effect_on(c, members, kind, divides),
                "quantize the partners under one tensor scale"));
        }
    }
}

namespace {

// One number for the same matrix of several layers, whose weights have other maxima.
void find_constant_scales(const checkpoint& c, std::vector<finding>& out) {
    constexpr std::size_t enough = 3;
    std::map<std::string, std::vector<partner>> groups;
    for (const module& m : c.modules()) {
        for (const auto member : {&module::scale, &module::tensor_scale}) {
            const auto at = m.*member;
            if (!m.coded || !at || c.info(*at).elements != 1) continue;
            const std::vector<float> v = c.values_of(*at, 0, 1);
            if (v.empty() || !std::isfinite(v.front()) || v.front() == 1) continue;
            // Experts of one layer may share a scale: only the number of the layer is left out.
            const std::size_t number = m.name.find_first_of("0123456789");
            if (number == std::string::npos) continue;
            const std::size_t end = std::min(m.name.find('.', number), m.name.size());
            groups[c.info(*at).name.substr(m.name.size()) + m.name.substr(0, number) + '*' +
                   m.name.substr(end)]
                .push_back({&m, v.front()});
        }
    }
    for (const auto& [pattern, members] : groups) {
        const float first = members.front().value;
        const bool equal =
            std::ranges::all_of(members, [&](const partner& p) { return p.value == first; });
        if (members.size() < enough || !equal) continue;
        float least = std::numeric_limits<float>::infinity(), most = 0;
        for (const partner& p : members) {
            const float largest = largest_decoded(c, *p.of);
            least = std::min(least, largest);
            most = std::max(most, largest);
        }
        if (least == most) continue;
        const module& m = *members.front().of;
        out.push_back(finding_at(
            severity::warning, c.info(m.tensor_scale ? *m.tensor_scale : *m.scale).name,
            "is the same in all layers, whose weights have other maxima: a constant, "
            "not a calibrated scale",
            fmt::format("{:.6g} in {} layers, whose largest weights are {:.4g} to {:.4g}", first,
                        members.size(), least, most),
            "values use as much of the format's range as happens to fit, or clamp",
            "quantize each matrix under the scale of its own maximum"));
    }
}

}  // namespace

void find_default_scales(const checkpoint& c, std::vector<finding>& out) {
    if (c.values() || c.has_original()) find_constant_scales(c, out);
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
            for (const checkpoint::element_run& p : c.sample_of(array)) {
                if (!all) break;
                for (const float v : c.values_of(array, p.first, p.count)) {
                    all = all && v == (e8m0 && t.type == dtype::u8 ? 127.0F : 1.0F);
                }
            }
            if (!all) continue;
            out.push_back(finding_at(
                severity::warning, t.name,
                fmt::format("is 1 throughout: a default, not a calibrated {}", kind.name),
                c.counted_scales(array),
                "values use as much of the format's range as happens to fit, or clamp",
                "calibrate with data that reaches this layer; rare experts need more"));
        }
    }
}

}  // namespace mx::lint

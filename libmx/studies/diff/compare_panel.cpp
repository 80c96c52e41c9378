// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/compare_panel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "libmx/base/bits.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::diff {
namespace {

constexpr std::size_t lane_count = 8;

struct lanes {
    double a2[lane_count]{}, b2[lane_count]{}, ab[lane_count]{};
    double difference2[lane_count]{}, difference[lane_count]{}, largest[lane_count]{};
    std::uint64_t compared[lane_count]{}, changed[lane_count]{}, zero_signs[lane_count]{};

    void add(float from, float to, std::size_t lane) {
        const std::uint32_t bits_a = base::bits_of(from);
        const std::uint32_t bits_b = base::bits_of(to);
        const std::uint32_t size_a = bits_a & base::f32_magnitude_mask;
        const std::uint32_t size_b = bits_b & base::f32_magnitude_mask;
        const bool finite = size_a < base::f32_infinity && size_b < base::f32_infinity;
        const bool nans = size_a > base::f32_infinity && size_b > base::f32_infinity;
        const double a = finite ? static_cast<double>(from) : 0.0;
        const double b = finite ? static_cast<double>(to) : 0.0;
        const double d = b - a;
        a2[lane] += a * a;
        b2[lane] += b * b;
        ab[lane] += a * b;
        difference2[lane] += d * d;
        difference[lane] += d;
        largest[lane] = std::max(largest[lane], std::abs(d));
        compared[lane] += finite ? 1u : 0u;
        const bool differ = bits_a != bits_b && !nans;
        const bool zeros = (size_a | size_b) == 0;
        changed[lane] += differ && !zeros ? 1u : 0u;
        zero_signs[lane] += differ && zeros ? 1u : 0u;
    }
};

double sum(double (&x)[lane_count]) {
    for (std::size_t distance = lane_count / 2; distance > 0; distance /= 2) {
        for (std::size_t i = 0; i < distance; ++i) x[i] += x[i + distance];
    }
    return x[0];
}

// Adds a segment, `rows` x `cols` values with rows `stride` apart in both dumps. Its sums are
// doubles: column c of the segment is added to lane c mod 8, row by row; the lanes are then added
// pairwise at distance 4, 2, 1.
void add_values(const float* a, const float* b, std::uint64_t rows, std::uint64_t cols,
                std::uint64_t stride, value_figures& to) {
    lanes l;
    for (std::uint64_t r = 0; r < rows; ++r) {
        const float* const from = a + r * stride;
        const float* const next = b + r * stride;
        std::uint64_t c = 0;
        for (; c + lane_count <= cols; c += lane_count) {
            for (std::size_t i = 0; i < lane_count; ++i) l.add(from[c + i], next[c + i], i);
        }
        for (std::size_t i = 0; c + i < cols; ++i) l.add(from[c + i], next[c + i], i);
    }
    to.elements += rows * cols;
    for (std::size_t i = 0; i < lane_count; ++i) {
        to.compared += l.compared[i];
        to.changed += l.changed[i];
        to.zero_signs += l.zero_signs[i];
        to.max_difference = std::max(to.max_difference, l.largest[i]);
    }
    to.a2.add(sum(l.a2));
    to.b2.add(sum(l.b2));
    to.ab.add(sum(l.ab));
    to.difference2.add(sum(l.difference2));
    to.difference.add(sum(l.difference));
}

// The blocks of one dump, kept until the next two have been compared.
struct kept_blocks {
    std::vector<std::uint8_t> codes, scale_code;
    std::vector<std::uint16_t> offset;
    std::vector<float> scale;  // for recipes with scales without codes
    std::vector<std::uint32_t> maxima;
    std::size_t stride = 0;

    void keep(const codec::block_results& d, const codec::block_params& params) {
        stride = d.stride;
        maxima.assign(d.amax, d.amax + d.blocks);
        // -0 and 0 are one value: one code.
        std::array<std::uint8_t, 256> one_zero{};
        for (std::size_t c = 0; c < one_zero.size(); ++c) {
            one_zero[c] = params.value[c] == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(c);
        }
        codes.resize(d.blocks * d.stride);
        std::transform(d.codes, d.codes + codes.size(), codes.begin(),
                       [&](std::uint8_t c) { return one_zero[c]; });
        scale_code.assign(d.scale_code, d.scale_code + d.blocks);
        offset.assign(d.offset, d.offset + d.blocks);
        scale.clear();
        if (codec::scales_have_codes(params)) return;
        for (std::size_t b = 0; b < d.blocks; ++b) {
            scale.push_back(codec::scale_of_block(params, d, b));
        }
    }
};

std::uint64_t different(const std::uint8_t* a, const std::uint8_t* b, std::size_t n) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += a[i] != b[i] ? 1u : 0u;
    return count;
}

// The number of elements whose code changes from dump `a` to `b` and back in `c`.
std::uint64_t back_again(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
                         std::size_t n) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
        count +=
            static_cast<std::uint32_t>(a[i] != b[i]) & static_cast<std::uint32_t>(a[i] == c[i]);
    }
    return count;
}

// The data that add_dump compares: the blocks of a dump, or of a dump before it.
bool same_scale(const kept_blocks& a, const kept_blocks& b, std::size_t block) {
    if (a.offset[block] != b.offset[block]) return false;
    if (a.scale.empty()) return a.scale_code[block] == b.scale_code[block];
    const float x = a.scale[block];
    const float y = b.scale[block];
    return base::bits_of(x) == base::bits_of(y) || (std::isnan(x) && std::isnan(y));
}

void add_moves(const codec::segment_place& place, const kept_blocks& a, const kept_blocks& b,
               move_figures& to) {
    for (std::size_t k = 0; k < place.blocks(); ++k) {
        const std::size_t n = codec::extent_of(place, k).size();
        const std::size_t at = k * a.stride;
        const std::uint64_t moved = different(a.codes.data() + at, b.codes.data() + at, n);
        to.codes_moved += moved;
        if (same_scale(a, b, k)) {
            to.elements_at_equal_scale += n;
            to.moved_at_equal_scale += moved;
        } else {
            ++to.scales_moved;
        }
    }
    to.blocks += place.blocks();
    to.elements += place.elements();
}

void add_flips(const codec::segment_place& place, const kept_blocks& a, const kept_blocks& b,
               const kept_blocks& c, move_figures& to) {
    for (std::size_t k = 0; k < place.blocks(); ++k) {
        const std::size_t at = k * a.stride;
        to.flipped_back += back_again(a.codes.data() + at, b.codes.data() + at, c.codes.data() + at,
                                      codec::extent_of(place, k).size());
    }
    to.followed += place.elements();
}

// A block maximum other than zero and Inf, as its exponent and its mantissa in [1, 2).
struct split_maximum {
    double mantissa = 0;
    int exponent = 0;

    static std::optional<split_maximum> of(std::uint32_t bits) {
        if (bits == 0 || bits >= base::f32_infinity) return std::nullopt;
        split_maximum s;
        s.mantissa = 2 * std::frexp(static_cast<double>(base::float_from_bits(bits)), &s.exponent);
        return s;
    }
    double level() const { return std::log2(mantissa) + exponent; }
};

// Compares block maxima with the clamp zone; the logarithms of a segment are added in the order of
// its blocks.
void add_maxima(const codec::block_results& d, const codec::clamp_zone& zone, dump_figures& to) {
    double sum = 0, level = 0, falling = 0;
    for (std::size_t k = 0; k < d.blocks; ++k) {
        const auto maximum = split_maximum::of(d.amax[k]);
        if (!maximum) continue;
        const double m = maximum->mantissa;
        ++to.maxima;
        to.in_clamp_zone += zone.from < m && m < zone.to ? 1u : 0u;
        sum += std::log2(m / zone.from);
        level += maximum->level();
        falling += std::log2(zone.to / m) - (m <= zone.from ? 1 : 0);
    }
    to.distance.add(sum);
    to.level.add(level);
    to.falling.add(falling);
}

// Counts maxima that approach the next power of two from above: those above the zone of their
// binade, or below it, for which the next zone is that of the binade below.
void add_falls(const kept_blocks& a, const kept_blocks& b, const codec::clamp_zone& zone,
               move_figures& to) {
    for (std::size_t k = 0; k < b.maxima.size(); ++k) {
        const auto before = split_maximum::of(a.maxima[k]);
        const auto now = split_maximum::of(b.maxima[k]);
        if (!before || !now) continue;
        ++to.maxima;
        const bool in_zone = zone.from < now->mantissa && now->mantissa < zone.to;
        const double fallen = before->level() - now->level();
        if (in_zone || fallen <= 0) continue;
        const double left =
            std::log2(now->mantissa / zone.to) + (now->mantissa <= zone.from ? 1 : 0);
        if (left >= falls_ahead * fallen) continue;
        ++to.falling_blocks;
        to.fastest_fall = std::max(to.fastest_fall, fallen / (fallen + left));
    }
}

void add_counts(const block::segment_stats& s, dump_figures& to) {
    to.counted += s.count.elements - s.count.nan - s.count.inf - s.count.poisoned;
    to.overflow += s.count.overflow;
    to.clamp += s.count.clamp;
    to.eligible_blocks += s.block.eligible;
    to.saturated_blocks += s.block.saturated;
}

// Compares a panel of all dumps: values with values, codes and scales of each dump with those of
// the previous one.
class panel_comparison final : public engine::panel_visitor {
  public:
    panel_comparison(const engine::run_panel& p, shared_values& values,
                     std::span<const std::unique_ptr<shared_codes>> codes)
        : panel_(p), jobs_(p.jobs.size()) {
        for (std::size_t i = 0; i < jobs_.size(); ++i) {
            jobs_[i].to = codes[p.jobs[i]].get();
            jobs_[i].figures = code_figures(jobs_[i].to->figures.dumps.size());
        }
        if (p.rows != nullptr) compare_values(p, values);
    }

    void segment(const engine::quantized_segment& s,
                 std::span<const std::size_t> members) override {
        for (std::size_t i = 0; i < members.size(); ++i) {
            add_dump(s.place, s.by_recipe[i], s.model, *panel_.job(members[i]).params[s.model],
                     jobs_[members[i]]);
        }
    }

    void end() override {
        for (job& j : jobs_) {
            const std::lock_guard lock(j.to->guard);
            j.to->figures.merge(j.figures);
        }
    }

  private:
    struct job {
        shared_codes* to = nullptr;
        code_figures figures;
        std::array<kept_blocks, 3> recent;  // of a dump and the two before it, by dump number mod 3
    };

    static void compare_values(const engine::run_panel& p, shared_values& to) {
        std::vector<value_figures> found(p.values.size() - 1);
        const auto values_of = [&](std::size_t dump) {
            return reinterpret_cast<const float*>(p.values[dump].data);
        };
        engine::for_each_segment(*p.rows, p.where, [&](const engine::segment_in_panel& s) {
            const std::uint64_t stride = p.where.cols;
            const std::uint64_t at = (s.batch * p.where.rows + s.row) * stride + s.col;
            for (std::size_t k = 0; k < found.size(); ++k) {
                add_values(values_of(k) + at, values_of(k + 1) + at, s.rows, s.cols, stride,
                           found[k]);
            }
        });
        const std::lock_guard lock(to.guard);
        for (std::size_t k = 0; k < found.size(); ++k) to.figures[k].merge(found[k]);
    }

    static void add_dump(const codec::segment_place& place, const codec::segment_result& result,
                         std::size_t dump, const codec::block_params& params, job& j) {
        code_figures& to = j.figures;
        add_counts(*result.stats, to.dumps[dump]);
        if (!j.to->zone.empty()) add_maxima(result.of_blocks, j.to->zone, to.dumps[dump]);
        kept_blocks& now = j.recent[dump % 3];
        now.keep(result.of_blocks, params);
        if (dump == 0) return;
        const kept_blocks& before = j.recent[(dump - 1) % 3];
        add_moves(place, before, now, to.moves[dump - 1]);
        if (!j.to->zone.empty()) add_falls(before, now, j.to->zone, to.moves[dump - 1]);
        if (dump == 1) return;
        add_flips(place, j.recent[(dump - 2) % 3], before, now, to.moves[dump - 2]);
    }

    engine::run_panel panel_;
    std::vector<job> jobs_;
};

}  // namespace

std::unique_ptr<engine::panel_visitor> compare_panel(
    const engine::run_panel& p, shared_values& values,
    std::span<const std::unique_ptr<shared_codes>> codes) {
    return std::make_unique<panel_comparison>(p, values, codes);
}

}  // namespace mx::diff

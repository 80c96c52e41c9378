// SPDX-License-Identifier: Apache-2.0
// Stored rows to consecutive blocks, with their extremes and random draws. Compiled once per
// instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/load.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "libmx/base/half.hpp"
#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/vectors.inc"
#include "libmx/codec/simd/widening.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

template <class From>
HWY_ATTR void widen_run(const std::byte* bytes, std::size_t count, float* HWY_RESTRICT to) {
    using stored = typename From::stored;
    const stored* const from = reinterpret_cast<const stored*>(bytes);
    std::size_t i = 0;
    for (; i + float_lanes <= count; i += float_lanes) {
        hn::StoreU(From::widen(from + i), float_tag(), to + i);
    }
    for (; i < count; ++i) to[i] = From::widen_one(from[i]);
}

HWY_ATTR void widen_run(tensor::dtype type, const std::byte* bytes, std::size_t count, float* to) {
    if (type == tensor::dtype::bf16) return widen_run<from_bf16>(bytes, count, to);
    if (type == tensor::dtype::f16) return widen_run<from_f16>(bytes, count, to);
    std::memcpy(to, bytes, count * sizeof(float));
}

// Columns [0, cols) of `rows` rows become runs of `rows` numbers, `stride` apart.
HWY_ATTR void transpose(const float* HWY_RESTRICT from, std::size_t from_stride, std::size_t rows,
                        std::size_t cols, float* HWY_RESTRICT to, std::size_t stride) {
    const float_tag df;
    const hn::Full128<float> d4;
    const hn::RepartitionToWide<float_tag> dw;
    const std::size_t whole_rows = rows / 4 * 4;
    const std::size_t whole_cols = cols / float_lanes * float_lanes;
    HWY_ALIGN float four[4 * float_lanes];
    for (std::size_t c = 0; c < whole_cols; c += float_lanes) {
        for (std::size_t r = 0; r < whole_rows; r += 4) {
            const float* at = from + r * from_stride + c;
            const floats r0 = hn::LoadU(df, at);
            const floats r1 = hn::LoadU(df, at + from_stride);
            const floats r2 = hn::LoadU(df, at + 2 * from_stride);
            const floats r3 = hn::LoadU(df, at + 3 * from_stride);
            // 4x4 in each 128-bit block.
            const auto low01 = hn::BitCast(dw, hn::InterleaveLower(df, r0, r1));
            const auto low23 = hn::BitCast(dw, hn::InterleaveLower(df, r2, r3));
            const auto high01 = hn::BitCast(dw, hn::InterleaveUpper(df, r0, r1));
            const auto high23 = hn::BitCast(dw, hn::InterleaveUpper(df, r2, r3));
            const auto put = [&](auto v, std::size_t j) HWY_ATTR {
                hn::Store(hn::BitCast(df, v), df, four + j * float_lanes);
            };
            put(hn::InterleaveLower(dw, low01, low23), 0);
            put(hn::InterleaveUpper(dw, low01, low23), 1);
            put(hn::InterleaveLower(dw, high01, high23), 2);
            put(hn::InterleaveUpper(dw, high01, high23), 3);
            for (std::size_t i = 0; i < float_lanes; ++i) {
                const float* piece = four + i % 4 * float_lanes + i / 4 * 4;
                hn::StoreU(hn::Load(d4, piece), d4, to + (c + i) * stride + r);
            }
        }
        for (std::size_t r = whole_rows; r < rows; ++r) {
            for (std::size_t i = c; i < c + float_lanes; ++i) {
                to[i * stride + r] = from[r * from_stride + i];
            }
        }
    }
    for (std::size_t i = whole_cols; i < cols; ++i) {
        for (std::size_t r = 0; r < rows; ++r) to[i * stride + r] = from[r * from_stride + i];
    }
}

// `rows` pieces of `cols` numbers, one after the other.
template <std::size_t cols>
HWY_INLINE void gather_whole(const float* from, std::size_t from_stride, std::size_t rows,
                             float* HWY_RESTRICT to) {
    constexpr std::size_t lanes = cols < float_lanes ? cols : float_lanes;
    const hn::CappedTag<float, lanes> d;
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < cols; c += lanes) {
            hn::StoreU(hn::LoadU(d, from + r * from_stride + c), d, to + r * cols + c);
        }
    }
}

// The same for `blocks` adjacent tiles; loops over 4x4 tiles have constant lengths.
template <std::size_t cols>
HWY_INLINE void gather_tiles(const float* from, std::size_t from_stride, std::size_t rows,
                             std::size_t blocks, std::size_t stride, float* HWY_RESTRICT to) {
    for (std::size_t b = 0; b < blocks; ++b) {
        if (cols == 4 && rows == 4) {
            gather_whole<cols>(from + b * cols, from_stride, 4, to + b * stride);
        } else {
            gather_whole<cols>(from + b * cols, from_stride, rows, to + b * stride);
        }
    }
}

HWY_INLINE void gather_tile(const float* from, std::size_t from_stride, std::size_t rows,
                            std::size_t cols, float* HWY_RESTRICT to) {
    switch (cols) {
        case 4:
            return gather_whole<4>(from, from_stride, rows, to);
        case 8:
            return gather_whole<8>(from, from_stride, rows, to);
        case 16:
            return gather_whole<16>(from, from_stride, rows, to);
        case 32:
            return gather_whole<32>(from, from_stride, rows, to);
        case 64:
            return gather_whole<64>(from, from_stride, rows, to);
        case 128:
            return gather_whole<128>(from, from_stride, rows, to);
        default:
            for (std::size_t r = 0; r < rows; ++r) {
                std::copy_n(from + r * from_stride, cols, to + r * cols);
            }
    }
}

// Rows of float32 to the blocks of one grid row.
HWY_ATTR void arrange(const float* from, std::size_t from_stride, const segment_place& place,
                      std::size_t grid_row, std::size_t stride, float* HWY_RESTRICT to) {
    const auto across = static_cast<std::size_t>(place.grid_cols());
    const block_extent first = extent_of(place, grid_row * across);
    const auto rows = static_cast<std::size_t>(first.rows);
    if (place.block_cols == 1) {
        transpose(from, from_stride, rows, across, to, stride);
        if (rows == stride) return;
        for (std::size_t b = 0; b < across; ++b) {
            std::fill(to + b * stride + rows, to + (b + 1) * stride, 0.0f);
        }
        return;
    }
    const auto wide = static_cast<std::size_t>(place.block_cols);
    const auto cols = static_cast<std::size_t>(place.cols);
    std::size_t done = 0;
    if (wide == 4 && rows * wide == stride) {
        done = cols / wide;
        gather_tiles<4>(from, from_stride, rows, done, stride, to);
        to += done * stride;
    }
    for (std::size_t b = done; b < across; ++b, to += stride) {
        const std::size_t col = b * wide;
        const std::size_t count = std::min(wide, cols - col);
        gather_tile(from + col, from_stride, rows, count, to);
        const std::size_t size = rows * count;
        if (size != stride) std::fill(to + size, to + stride, 0.0f);
    }
}

// Lays out the values as block_run requires: in `room`, or without a copy.
HWY_ATTR const float* lay_out(const stored_values& values, const segment_place& place,
                              std::size_t stride, base::aligned_buffer<float>& to_buffer,
                              base::aligned_buffer<float>& rows_buffer) {
    const auto rows = static_cast<std::size_t>(place.rows);
    const auto cols = static_cast<std::size_t>(place.cols);
    const auto across = static_cast<std::size_t>(place.grid_cols());
    const bool is_float = values.type == tensor::dtype::f32;
    if (place.block_rows == 1) {
        const bool dense = place.block_cols == stride && cols == across * stride;
        if (is_float && dense && (rows == 1 || values.stride == cols)) {
            return reinterpret_cast<const float*>(values.data);
        }
        float* const to = to_buffer.reserve(place.blocks() * stride);
        for (std::size_t r = 0; r < rows; ++r) {
            float* const row = to + r * across * stride;
            const auto block = static_cast<std::size_t>(place.block_cols);
            if (block == stride) {
                widen_run(values.type, values.from(r * values.stride).data, cols, row);
                std::fill(row + cols, row + across * stride, 0.0f);
                continue;
            }
            for (std::size_t b = 0; b < across; ++b) {
                const std::size_t count = std::min(block, cols - b * block);
                widen_run(values.type, values.from(r * values.stride + b * block).data, count,
                          row + b * stride);
                std::fill(row + b * stride + count, row + (b + 1) * stride, 0.0f);
            }
        }
        return to;
    }
    float* const to = to_buffer.reserve(place.blocks() * stride);
    const auto block = static_cast<std::size_t>(place.block_rows);
    // An odd number of cache lines, so that rows do not map to the same cache sets.
    const std::size_t wide = is_float ? 0 : (cols / 16 | 1) * 16 + 16;
    float* const buffer = is_float ? nullptr : rows_buffer.reserve(block * wide);
    for (std::size_t g = 0; g * block < rows; ++g) {
        const std::size_t tall = std::min(block, rows - g * block);
        const stored_values from = values.from(g * block * values.stride);
        for (std::size_t r = 0; r < tall && !is_float; ++r) {
            const std::byte* const row = from.from(r * values.stride).data;
            widen_run(values.type, row, cols, buffer + r * wide);
            // The next segment is to the right.
            for (std::size_t c = 0; c < 2 * cols; c += 64) hwy::Prefetch(row + 2 * cols + c);
        }
        arrange(is_float ? reinterpret_cast<const float*>(from.data) : buffer,
                is_float ? static_cast<std::size_t>(values.stride) : wide, place, g, stride,
                to + g * across * stride);
    }
    return to;
}

// Extremes and non-zero elements of chunks of `chunk` elements.
template <std::size_t chunk>
HWY_ATTR void survey(block_run& run) {
    const bits_tag du;
    constexpr std::size_t vectors = chunk / float_lanes;
    const std::size_t per_block = run.stride / chunk;
    const words mask = hn::Set(du, base::f32_magnitude_mask);
    const words one = hn::Set(du, 1);
    HWY_ALIGN std::uint32_t most[batch * float_lanes];
    HWY_ALIGN std::uint32_t least[batch * float_lanes];
    HWY_ALIGN std::uint32_t few[batch];
    const std::size_t padded = (run.blocks + batch - 1) / batch * batch;
    std::uint32_t* const amax = run.amax.data();
    std::uint32_t* const amin = run.amin.data();
    std::uint32_t* const nonzero = run.nonzero.data();
    for (std::size_t first = 0; first < padded; first += batch) {
        for (std::size_t i = 0; i < batch; ++i) {
            words top = hn::Zero(du);
            words bottom = hn::Set(du, ~0u);
            std::size_t count = 0;
            const bool live = first + i < run.blocks;
            const float* x = run.x + (first + i) * run.stride;
            for (std::size_t c = 0; live && c < per_block; ++c, x += chunk) {
                for (std::size_t v = 0; v < vectors; ++v) {
                    const words bits =
                        hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(x) + v * float_lanes);
                    const words a = hn::And(bits, mask);
                    top = hn::Max(top, a);
                    // Zero wraps to the largest number and is never the minimum.
                    bottom = hn::Min(bottom, hn::Sub(a, one));
                    count += hn::CountTrue(du, hn::Ne(a, hn::Zero(du)));
                }
            }
            hn::Store(top, du, most + i * float_lanes);
            hn::Store(bottom, du, least + i * float_lanes);
            nonzero[first + i] = static_cast<std::uint32_t>(count);
        }
        fold_batch<max_op>(du, most, amax + first);
        fold_batch<min_op>(du, least, few);
        for (std::size_t i = 0; i < batch; ++i) amin[first + i] = few[i] + 1;
    }
}

// Widens consecutive bfloat16 chunks and finds their extremes in the same pass, two elements to a
// lane.
HWY_ATTR void widen_and_survey(const std::uint16_t* HWY_RESTRICT from, block_run& run) {
    const bits_tag du;
    const hn::Repartition<std::uint16_t, bits_tag> ds;
    constexpr std::size_t chunk = 32;
    constexpr std::size_t short_lanes = 2 * float_lanes;
    const auto mask = hn::Set(ds, std::uint16_t{0x7fff});
    const auto one = hn::Set(ds, std::uint16_t{1});
    const words upper = hn::Set(du, 0xffff0000u);
    HWY_ALIGN std::uint32_t most[batch * float_lanes];
    HWY_ALIGN std::uint32_t least[batch * float_lanes];
    HWY_ALIGN std::uint32_t few[batch];
    float* HWY_RESTRICT to = run.x_buffer.reserve(run.blocks * chunk);
    run.x = to;
    const std::size_t padded = (run.blocks + batch - 1) / batch * batch;
    for (std::size_t first = 0; first < padded; first += batch) {
        for (std::size_t i = 0; i < batch; ++i) {
            auto top = hn::Zero(ds);
            auto bottom = hn::Set(ds, std::uint16_t{0xffff});
            std::size_t count = 0;
            if (first + i < run.blocks) {
                for (std::size_t v = 0; v < chunk; v += short_lanes) {
                    const auto bits = hn::LoadU(ds, from + v);
                    const auto a = hn::And(bits, mask);
                    top = hn::Max(top, a);
                    bottom = hn::Min(bottom, hn::Sub(a, one));
                    count += hn::CountTrue(ds, hn::Ne(a, hn::Zero(ds)));
                }
                for (std::size_t v = 0; v < chunk; v += float_lanes) {
                    hn::StoreU(from_bf16::widen(from + v), float_tag(), to + v);
                }
                from += chunk;
                to += chunk;
            }
            const words tops = hn::BitCast(du, top);
            const words bottoms = hn::BitCast(du, bottom);
            hn::Store(hn::Max(hn::ShiftLeft<16>(tops), hn::And(tops, upper)), du,
                      most + i * float_lanes);
            hn::Store(hn::Min(hn::ShiftLeft<16>(bottoms), hn::And(bottoms, upper)), du,
                      least + i * float_lanes);
            run.nonzero.data()[first + i] = static_cast<std::uint32_t>(count);
        }
        fold_batch<max_op>(du, most, run.amax.data() + first);
        fold_batch<min_op>(du, least, few);
        for (std::size_t i = 0; i < batch; ++i) run.amin.data()[first + i] = few[i] + 0x10000u;
    }
}

// Whether the elements of a segment are contiguous and form whole blocks.
bool is_dense(const stored_values& values, const segment_place& place, std::size_t stride) {
    return place.block_rows == 1 && place.block_cols == stride && place.cols % stride == 0 &&
           (place.rows == 1 || values.stride == place.cols);
}

}  // namespace

int lanes() { return static_cast<int>(float_lanes); }

HWY_ATTR void load(const stored_values& values, const segment_place& place, block_run& run) {
    run.place = place;
    run.stride = block_stride(place.block_size());
    run.blocks = place.blocks();
    run.draws = nullptr;
    run.has_sums = false;
    run.whole = block_run::run_sums::unknown;
    run.precision = values.type == tensor::dtype::bf16  ? 8
                    : values.type == tensor::dtype::f16 ? 11
                                                        : 24;
    const std::size_t padded = (run.blocks + batch - 1) / batch * batch;
    run.amax.reserve(padded);
    run.amin.reserve(padded);
    run.nonzero.reserve(padded);
    const bool dense = is_dense(values, place, run.stride);
    // The next segment of a dense panel follows this one; prefetching after the last one is
    // harmless.
    run.next = dense ? values.from(place.elements()).data : nullptr;
    run.next_step = static_cast<std::size_t>(tensor::row_of(values.type).bits / 8);
    if (dense && run.stride == 32 && values.type == tensor::dtype::bf16) {
        return widen_and_survey(reinterpret_cast<const std::uint16_t*>(values.data), run);
    }
    run.x = lay_out(values, place, run.stride, run.x_buffer, run.rows_buffer);
    if (run.stride < 32) {
        survey<16>(run);
    } else {
        survey<32>(run);
    }
}

namespace {

// Philox4x32-10 (base/random.hpp) of consecutive counters, one per 64-bit lane. Four vectors of
// counters at a time hide the latency of the multiplications.
class philox {
  public:
    HWY_INLINE philox(std::uint64_t seed, std::uint64_t tensor) : tensor_(tensor) {
        auto key0 = static_cast<std::uint32_t>(seed);
        auto key1 = static_cast<std::uint32_t>(seed >> 32);
        for (std::size_t round = 0; round < rounds; ++round) {
            hn::Store(hn::Set(bits_tag(), key0), bits_tag(), key0_ + round * float_lanes);
            hn::Store(hn::Set(bits_tag(), key1), bits_tag(), key1_ + round * float_lanes);
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
    }

    static constexpr std::size_t words_at_once = 16 * double_lanes;

    // The words of the counters from `first` on.
    HWY_INLINE void fill(std::uint64_t first, std::uint32_t* to) const {
        const bits_tag du;
        const wide_tag dw;
        // Even lanes take the first half of the counters, so that interleaving restores the order.
        HWY_ALIGN std::uint64_t order[double_lanes];
        for (std::size_t i = 0; i < double_lanes; ++i) {
            order[i] = i / 2 + i % 2 * (double_lanes / 2);
        }
        const auto counter = hn::Add(hn::Set(dw, first), hn::Load(dw, order));
        const auto step = hn::Set(dw, std::uint64_t{double_lanes});
        const auto second = hn::Add(counter, step);
        const auto third = hn::Add(second, step);
        state a = begin(counter);
        state b = begin(second);
        state c = begin(third);
        state d = begin(hn::Add(third, step));
        for (std::size_t round = 0; round < rounds; ++round) {
            const words key0 = hn::Load(du, key0_ + round * float_lanes);
            const words key1 = hn::Load(du, key1_ + round * float_lanes);
            advance(a, key0, key1);
            advance(b, key0, key1);
            advance(c, key0, key1);
            advance(d, key0, key1);
        }
        store(a, to);
        store(b, to + words_at_once / 4);
        store(c, to + words_at_once / 2);
        store(d, to + words_at_once / 4 * 3);
    }

  private:
    static constexpr std::size_t rounds = 10;
    using wide_tag = hn::RepartitionToWide<bits_tag>;
    // Words of a counter in the lower halves of 64-bit lanes; the upper halves are arbitrary.
    struct state {
        words c0, c1, c2, c3;
    };

    HWY_INLINE state begin(hn::Vec<wide_tag> counter) const {
        const bits_tag du;
        return {hn::BitCast(du, counter), hn::BitCast(du, hn::ShiftRight<32>(counter)),
                hn::Set(du, static_cast<std::uint32_t>(tensor_)),
                hn::Set(du, static_cast<std::uint32_t>(tensor_ >> 32))};
    }
    static HWY_INLINE void advance(state& s, words key0, words key1) {
        const bits_tag du;
        const auto p0 = hn::MulEven(hn::Set(du, 0xD2511F53u), s.c0);
        const auto p1 = hn::MulEven(hn::Set(du, 0xCD9E8D57u), s.c2);
        s.c0 = hn::Xor3(hn::BitCast(du, hn::ShiftRight<32>(p1)), s.c1, key0);
        s.c2 = hn::Xor3(hn::BitCast(du, hn::ShiftRight<32>(p0)), s.c3, key1);
        s.c1 = hn::BitCast(du, p1);
        s.c3 = hn::BitCast(du, p0);
    }
    static HWY_INLINE void store(const state& s, std::uint32_t* to) {
        const bits_tag du;
        const wide_tag dw;
        const auto join = [&](words low, words high) HWY_ATTR {
            const auto up = hn::ShiftLeft<32>(hn::BitCast(dw, high));
            return hn::BitCast(dw, hn::OddEven(hn::BitCast(du, up), low));
        };
        const auto low = join(s.c0, s.c1);
        const auto high = join(s.c2, s.c3);
        hn::StoreU(hn::BitCast(du, hn::InterleaveLower(dw, low, high)), du, to);
        hn::StoreU(hn::BitCast(du, hn::InterleaveUpper(dw, low, high)), du, to + words_at_once / 8);
    }

    std::uint64_t tensor_;
    HWY_ALIGN std::uint32_t key0_[rounds * float_lanes];
    HWY_ALIGN std::uint32_t key1_[rounds * float_lanes];
};

HWY_ATTR void draw_row(const base::random_key& key, const philox& generator, std::uint64_t first,
                       std::size_t count, std::uint32_t* to) {
    std::size_t i = 0;
    for (; i < count && (first + i) % 4 != 0; ++i) to[i] = base::random_u32(key, first + i);
    for (; i + philox::words_at_once <= count; i += philox::words_at_once) {
        generator.fill((first + i) / 4, to + i);
    }
    if (i >= count) return;
    HWY_ALIGN std::uint32_t last[philox::words_at_once];
    generator.fill((first + i) / 4, last);
    std::copy(last, last + (count - i), to + i);
}

}  // namespace

HWY_ATTR void draw(block_run& run, std::uint64_t seed) {
    if (run.draws != nullptr && run.draw_seed == seed) return;
    const segment_place& place = run.place;
    const philox generator(seed, place.tensor_id);
    const base::random_key key{seed, place.tensor_id};
    const auto cols = static_cast<std::size_t>(place.cols);
    float* const rows = run.draw_rows.reserve(static_cast<std::size_t>(place.elements()));
    for (std::size_t r = 0; r < place.rows; ++r) {
        draw_row(key, generator, place.first + r * place.row_stride, cols,
                 reinterpret_cast<std::uint32_t*>(rows + r * cols));
    }
    // Draws are laid out like the elements, as bits.
    const stored_values values{tensor::dtype::f32, reinterpret_cast<const std::byte*>(rows), cols};
    run.draws = reinterpret_cast<const std::uint32_t*>(
        lay_out(values, place, run.stride, run.draw_buffer, run.rows_buffer));
    run.draw_seed = seed;
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();

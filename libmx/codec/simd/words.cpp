// SPDX-License-Identifier: Apache-2.0
// Counts the words of blocks. Compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/words.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "libmx/codec/simd/words.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Blocks counted in parallel, so that an increment seldom waits for the previous one.
constexpr std::size_t side_by_side = 4;
// Larger blocks are cut into parts, which are counted in parallel.
constexpr std::size_t largest_small = 256;

template <std::size_t width>
struct pass {
    using tag = hn::CappedTag<std::uint16_t, width>;
    using vec = hn::Vec<tag>;
    static constexpr std::size_t lanes = hn::MaxLanes(tag());

    struct extremes {
        vec largest, least;  // least: minus one, so that zero is never the minimum

        HWY_INLINE extremes() : largest(hn::Zero(tag())), least(hn::Set(tag(), 0xffff)) {}
        HWY_INLINE void add(vec magnitude) {
            const tag d;
            largest = hn::Max(largest, magnitude);
            least = hn::Min(least, hn::Sub(magnitude, hn::Set(d, 1)));
        }
        HWY_INLINE std::uint16_t greatest() const {
            return static_cast<std::uint16_t>(~least_lane(hn::Not(largest)));
        }
        HWY_INLINE std::uint16_t smallest() const {
            return static_cast<std::uint16_t>(least_lane(least) + 1u);
        }

      private:
        // There is an instruction for the smallest lane; the complement of the largest lane is
        // smallest.
        static HWY_INLINE std::uint16_t least_lane(vec v) { return fold(tag(), v); }
        template <class D>
        static HWY_INLINE std::uint16_t fold(D d, hn::Vec<D> v) {
            if constexpr (hn::MaxLanes(D()) > 8) {
                const hn::Half<D> half;
                return fold(half, hn::Min(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
            } else {
                return hn::GetLane(hn::MinOfLanes(d, v));
            }
        }
    };

    static HWY_INLINE vec magnitude_of(vec words) { return hn::And(words, hn::Set(tag(), 0x7fff)); }
    // Counters of words; `at`: the index of the first one, which gives zeros their lane.
    static HWY_INLINE vec counters_of(vec words, vec magnitude, std::size_t at) {
        const tag d;
        const vec counter = hn::Or(hn::ShiftLeft<1>(words), hn::ShiftRight<15>(words));
        const vec zeros =
            hn::Iota(d, static_cast<std::uint16_t>(word_counters::zeros + at % width));
        return hn::IfThenElse(hn::Eq(magnitude, hn::Zero(d)), zeros, counter);
    }

    // Fewer words than a vector has, then zeros.
    static HWY_INLINE vec load_rest(const std::uint16_t* x, std::size_t count) {
        HWY_ALIGN std::uint16_t words[lanes] = {};
        std::copy_n(x, count, words);
        return hn::Load(tag(), words);
    }

    // Counters of a block, padded to whole vectors.
    static HWY_INLINE std::size_t load(const std::uint16_t* HWY_RESTRICT x, std::size_t size,
                                       std::uint16_t* HWY_RESTRICT counters, extremes& e) {
        const tag d;
        std::size_t i = 0;
        for (; i + lanes <= size; i += lanes) {
            const vec words = hn::LoadU(d, x + i);
            const vec magnitude = magnitude_of(words);
            e.add(magnitude);
            hn::StoreU(counters_of(words, magnitude, i), d, counters + i);
        }
        if (i < size) {
            const vec words = load_rest(x + i, size - i);
            const vec magnitude = magnitude_of(words);
            e.add(magnitude);
            const vec padding = hn::Iota(d, static_cast<std::uint16_t>(word_counters::padding));
            hn::StoreU(
                hn::IfThenElse(hn::FirstN(d, size - i), counters_of(words, magnitude, i), padding),
                d, counters + i);
            i += lanes;
        }
        return i;
    }

    struct group {
        HWY_ALIGN std::uint16_t counters[side_by_side][largest_small];
        std::uint32_t* to[side_by_side];
    };

    static HWY_INLINE void count_all(const group& g, std::size_t size) {
        std::uint32_t *a = g.to[0], *b = g.to[1], *c = g.to[2], *d = g.to[3];
        for (std::size_t i = 0; i < size; ++i) {
            ++a[g.counters[0][i]];
            ++b[g.counters[1][i]];
            ++c[g.counters[2][i]];
            ++d[g.counters[3][i]];
        }
    }
    static HWY_INLINE void count_one(const std::uint16_t* counters, std::size_t size,
                                     std::uint32_t* to) {
        for (std::size_t i = 0; i < size; ++i) ++to[counters[i]];
    }

    // The table of a block, or null if the block was passed to attend().
    static HWY_INLINE std::uint32_t* table_of(const std::uint16_t* x, std::size_t size,
                                              const extremes& e, word_tables& to) {
        const std::uint16_t largest = e.greatest(), least = e.smallest();
        word_table& t = to.tables[to.table_of[largest]];
        if (least >= t.near) {
            to.attend(x, size);
            return nullptr;
        }
        t.add_block(largest, least);
        return t.count;
    }

    // Blocks of `size` counters that wait to be counted: those of one group are, while those of the
    // next are loaded.
    class queue {
      public:
        HWY_INLINE std::uint16_t* room(std::size_t i) {
            return groups_[loading_].counters[loaded_ + i];
        }
        HWY_INLINE void put(std::uint32_t* to, std::size_t size) {
            groups_[loading_].to[loaded_] = to;
            if (++loaded_ < side_by_side) return;
            if (waiting_) count_all(groups_[1 - loading_], size);
            waiting_ = true;
            loading_ = 1 - loading_;
            loaded_ = 0;
        }
        void finish(std::size_t size) {
            if (waiting_) count_all(groups_[1 - loading_], size);
            const group& rest = groups_[loading_];
            for (std::size_t i = 0; i < loaded_; ++i) count_one(rest.counters[i], size, rest.to[i]);
        }

      private:
        group groups_[2];
        std::size_t loading_ = 0, loaded_ = 0;
        bool waiting_ = false;
    };

    static void small(const std::uint16_t* x, std::size_t size, std::size_t blocks,
                      word_tables& to) {
        queue waiting;
        std::size_t padded = 0;
        for (std::size_t b = 0; b < blocks; ++b, x += size) {
            extremes e;
            padded = load(x, size, waiting.room(0), e);
            std::uint32_t* const counts = table_of(x, size, e, to);
            if (counts != nullptr) waiting.put(counts, padded);
        }
        waiting.finish(padded);
    }

    static void joint(const std::uint16_t* x, std::size_t blocks, joint_tables& to) {
        constexpr std::size_t half = joint_tables::half_size;
        queue waiting;
        for (std::size_t b = 0; b < blocks; ++b, x += joint_tables::block_size) {
            std::uint16_t largest[2], least[2];
            std::uint32_t* counters[2];
            for (std::size_t h = 0; h < 2; ++h) {
                extremes e;
                load(x + h * half, half, waiting.room(h), e);
                largest[h] = e.greatest();
                least[h] = e.smallest();
            }
            if (!to.enter(x, largest, least, counters)) continue;
            for (std::uint32_t* const counts : counters) waiting.put(counts, half);
        }
        waiting.finish(half);
    }

    static void large(const std::uint16_t* x, std::size_t size, std::size_t blocks,
                      word_tables& to) {
        const tag d;
        for (std::size_t b = 0; b < blocks; ++b, x += size) {
            extremes e;
            std::size_t i = 0;
            for (; i + lanes <= size; i += lanes) e.add(magnitude_of(hn::LoadU(d, x + i)));
            if (i < size) e.add(magnitude_of(load_rest(x + i, size - i)));
            std::uint32_t* const counts = table_of(x, size, e, to);
            if (counts == nullptr) continue;
            group g;
            std::fill(g.to, g.to + side_by_side, counts);
            constexpr std::size_t part = 64;
            i = 0;
            for (; i + side_by_side * part <= size; i += side_by_side * part) {
                for (std::size_t k = 0; k < side_by_side; ++k) {
                    extremes unused;
                    load(x + i + k * part, part, g.counters[k], unused);
                }
                count_all(g, part);
            }
            if (i == size) continue;
            extremes unused;
            const std::size_t rest = load(x + i, size - i, g.counters[0], unused);
            count_one(g.counters[0], rest, counts);
        }
    }
};

}  // namespace

void count(const std::uint16_t* words, std::size_t size, std::size_t blocks, word_tables& to) {
    if (size > largest_small) return pass<32>::large(words, size, blocks, to);
    if (size <= 16) return pass<16>::small(words, size, blocks, to);
    pass<32>::small(words, size, blocks, to);
}

void count_joint(const std::uint16_t* words, std::size_t blocks, joint_tables& to) {
    pass<16>::joint(words, blocks, to);
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mx::codec::simd {

word_passes word_passes_for(base::simd::target t) {
    using base::simd::target;
    switch (t) {
#if HWY_TARGETS & HWY_SSE4
        case target::sse4:
            return {N_SSE4::count, N_SSE4::count_joint};
#endif
#if HWY_TARGETS & HWY_AVX2
        case target::avx2:
            return {N_AVX2::count, N_AVX2::count_joint};
#endif
#if HWY_TARGETS & HWY_AVX3
        case target::avx512:
            return {N_AVX3::count, N_AVX3::count_joint};
#endif
#if HWY_TARGETS & HWY_NEON
        case target::neon:
            return {N_NEON::count, N_NEON::count_joint};
#endif
        default:
            return {};
    }
}

}  // namespace mx::codec::simd
#endif

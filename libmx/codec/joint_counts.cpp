// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/joint_counts.hpp"

#include "libmx/base/parallel.hpp"

namespace mx::codec {
namespace {

// Normally distributed values under nine recipes and nvfp4 have about ninety. The counters of many
// more do not fit the cache, and counting twice is as fast.
constexpr std::size_t most_joint = 256;

}  // namespace

void count_jointly(const std::uint16_t* words, std::size_t blocks, joint_tables& to) {
    constexpr std::size_t half = joint_tables::half_size;
    for (std::size_t b = 0; b < blocks; ++b, words += joint_tables::block_size) {
        std::uint16_t largest[2], least[2];
        std::uint32_t* counters[2];
        for (std::size_t h = 0; h < 2; ++h) {
            const word_range r = range_of(words + h * half, half);
            largest[h] = r.largest;
            least[h] = r.least;
        }
        if (!to.enter(words, largest, least, counters)) continue;
        for (std::size_t i = 0; i < joint_tables::block_size; ++i) {
            ++counters[i / half][word_counters::of(words[i], i)];
        }
    }
}

joint_counts::joint_counts(joint_pass pass)
    : pass_(pass), found_(tables_at_most * tables_at_most), counters_(most_joint) {
    found = found_.data();
}

void joint_counts::begin(word_counts& of_blocks, word_counts& of_halves) {
    blocks_ = &of_blocks;
    halves_ = &of_halves;
    blocks = &of_blocks;
    halves = &of_halves;
}

bool joint_counts::full() const {
    return tables_.size() >= most_joint || blocks_->full() || halves_->full();
}

void joint_counts::add(const value_rectangle& values, std::span<const placed_segment> segments,
                       const std::atomic<bool>* cancel) {
    for (const placed_segment& s : segments) {
        base::stop_if(cancel);
        const stored_values from = values.values.from(s.row * values.values.stride + s.col);
        const auto* at = reinterpret_cast<const std::uint16_t*>(from.data);
        const auto whole = static_cast<std::size_t>(s.place.cols / block_size);
        const auto rest = static_cast<std::size_t>(s.place.cols % block_size);
        if (rest == 0 && s.place.cols == from.stride) {
            pass_(at, whole * static_cast<std::size_t>(s.place.rows), *this);
        } else {
            for (std::uint64_t row = 0; row < s.place.rows; ++row, at += from.stride) {
                if (whole != 0) pass_(at, whole, *this);
                blocks_->add_row(at + whole * block_size, rest, block_size);
                halves_->add_row(at + whole * block_size, rest, half_size);
            }
        }
        for (word_counts* const c : {blocks_, halves_}) c->elements_ += s.place.elements();
    }
}

bool joint_counts::find(std::uint16_t block, const std::uint16_t (&largest)[2],
                        std::uint32_t* (&counters)[2]) {
    for (std::size_t h = 0; h < 2; ++h) {
        const std::uint16_t half = halves->table_of[largest[h]];
        std::uint32_t*& at = found_[block * tables_at_most + half];
        if (at == nullptr) {
            if (tables_.size() == most_joint) return false;
            at = counters_.table(tables_.size());
            tables_.push_back({block, half, at});
        }
        counters[h] = at;
    }
    return true;
}

void joint_counts::count_apart(const std::uint16_t* words) {
    blocks_->add_row(words, block_size, block_size);
    halves_->add_row(words, block_size, half_size);
}

void joint_counts::settle() {
    for (const joint_table& t : tables_) {
        const word_table &block = blocks->tables[t.block], &half = halves->tables[t.half];
        const auto add = [&](std::size_t first, std::size_t end) {
            for (std::size_t i = first; i < end; ++i) {
                block.count[i] += t.count[i];
                half.count[i] += t.count[i];
                t.count[i] = 0;
            }
        };
        const std::size_t least = std::max(block.least, half.least);
        const std::size_t largest = std::min(block.largest, half.largest);
        if (least <= largest) add(2 * least, 2 * largest + 2);
        add(word_counters::zeros, word_counters::all);
        found_[t.block * tables_at_most + t.half] = nullptr;
    }
    tables_.clear();
    blocks_ = halves_ = nullptr;
}

}  // namespace mx::codec

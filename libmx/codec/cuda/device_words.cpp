// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/device_words.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/batch_layout.hpp"

namespace mx::codec::cuda {
namespace {

using base::cuda::device;
using base::cuda::held_memory;
using base::cuda::memory_kind;
using base::cuda::no_room;

// Magnitudes of a table, from the largest one on: 32 binades of bf16, 16 of f16. Blocks with
// smaller numbers are rare.
constexpr std::size_t window_of(tensor::dtype type) {
    return type == tensor::dtype::bf16 ? 4096 : 16384;
}

// Offsets in the memory of a slot, on the device and in pinned memory.
struct word_layout {
    std::size_t tables, table_of, words, left, bytes;
    word_layout(std::size_t table_count, std::size_t word_bytes, std::size_t left_bytes)
        : tables(0),
          table_of(padded(table_count * sizeof(counted_table))),
          words(table_of + 0x8000 * sizeof(std::uint16_t)),
          left(words + padded(word_bytes)),
          bytes(left + padded(left_bytes)) {}
};

struct word_slot {
    explicit word_slot(device& on)
        : pinned(on, memory_kind::pinned), card(on, memory_kind::device) {}

    template <typename T>
    T* there(std::size_t offset) const {
        return reinterpret_cast<T*>(pinned.data() + offset);
    }
    template <typename T>
    T* on_card(std::size_t offset) const {
        return reinterpret_cast<T*>(card.data() + offset);
    }

    // The stream is destroyed first: it waits before the memory of its copies is freed.
    held_memory pinned, card;
    std::unique_ptr<base::cuda::stream> work;
    std::size_t blocks = 0;  // packed
    bool under_way = false;  // and queued
    std::size_t tables = 0;  // that its part of the device knows
};

class device_words final : public word_device {
  public:
    device_words(device& on, const word_queue& by, tensor::dtype type, word_pass host,
                 base::notices* notices, const word_limits& limits)
        : queue_(by),
          host_(host),
          notices_(notices),
          limits_(limits),
          window_(window_of(type)),
          width_(2 * window_),
          most_(limits.counters / width_),
          at_(most_ + 1, std::max(limits.slice, 2 * width_) * sizeof(std::uint16_t),
              limits.slice / lane_words / 8 + sizeof(std::uint32_t)),
          counters_(on, memory_kind::device),
          slots_{word_slot(on), word_slot(on)},
          device_(on) {}

    void count(const std::uint16_t* words, std::size_t size, std::size_t blocks,
               word_tables& to) override {
        if (size_ == 0) size_ = size;
        if (size != size_) return host_(words, size, blocks, to);
        if (first_ < limits_.first) {
            const std::size_t some = std::min(blocks, (limits_.first - first_ + size - 1) / size);
            host_(words, size, some, to);
            first_ += some * size;
            words += some * size;
            blocks -= some;
        }
        const std::size_t most = std::max<std::size_t>(1, limits_.slice / size);
        while (blocks != 0) {
            if (instead_ || !open()) return host_(words, size, blocks, to);
            word_slot& s = slots_[turn_];
            finish(s, to);
            const std::size_t some = std::min(blocks, most - s.blocks);
            std::copy_n(words, some * size, s.there<std::uint16_t>(at_.words) + s.blocks * size);
            s.blocks += some;
            words += some * size;
            blocks -= some;
            if (s.blocks == most) start(s, to);
        }
    }

    void settle(word_tables& to) override {
        if (word_slot& s = slots_[turn_]; s.blocks != 0 && !s.under_way) start(s, to);
        collect(to);
        size_ = first_ = 0;
    }

    bool full() const override { return known_.size() == most_; }

  private:
    // Allocates memory and clears the counters, unless that is done; false: the host counts.
    bool open() {
        if (open_) return true;
        try {
            counters_.room_for(most_ * (width_ + 1) * sizeof(std::uint32_t));
            open(slots_[0]);
            queue_.clear(counters(), static_cast<std::uint32_t>(most_ * (width_ + 1)),
                         *slots_[0].work);
            slots_[0].work->wait();
        } catch (const no_room& short_of) {
            give_up(short_of);
            return false;
        }
        try {
            open(slots_[1]);
            slots_in_use_ = 2;
        } catch (const no_room&) {
            slots_[1].card.release();
            slots_[1].pinned.release();
            slots_in_use_ = 1;
        }
        turn_ = 0;
        open_ = true;
        return true;
    }

    void open(word_slot& s) {
        s.pinned.room_for(at_.bytes);
        s.card.room_for(at_.bytes);
        if (!s.work) s.work = device_.make_stream();
    }

    void give_up(const no_room& short_of) {
        for (word_slot& s : slots_) {
            s.work.reset();
            s.card.release();
            s.pinned.release();
        }
        counters_.release();
        if (notices_ == nullptr) throw short_of;
        notices_->once("quantizing", base::cuda::went_elsewhere(short_of, best_backend().name));
        instead_ = true;
    }

    // Of the device: the blocks of each table, then the counters of each.
    std::uint32_t* counters() const { return reinterpret_cast<std::uint32_t*>(counters_.data()); }

    // Queues a slice.
    void start(word_slot& s, word_tables& to) {
        s.under_way = true;
        turn_ = (turn_ + 1) % slots_in_use_;
        try {
            find_tables(to);
            if (known_.empty()) return count_all(s, to);
            const bool news = s.tables != known_.size();
            if (news) describe_tables(s, to);
            const std::size_t first = news ? at_.tables : at_.words;
            const std::size_t end = at_.words + s.blocks * size_ * sizeof(std::uint16_t);
            s.work->copy_there(s.card.data() + first, s.pinned.data() + first, end - first);
            queue_.count(
                {s.on_card<std::uint16_t>(at_.words), static_cast<std::uint32_t>(s.blocks),
                 static_cast<std::uint32_t>(size_), s.on_card<std::uint16_t>(at_.table_of),
                 s.on_card<counted_table>(at_.tables),
                 static_cast<std::uint32_t>(known_.size() + 1), static_cast<std::uint32_t>(width_),
                 counters() + most_, counters(), s.on_card<std::uint32_t>(at_.left)},
                *s.work);
            const std::size_t parts = s.blocks * size_ / lane_words;
            s.work->copy_back(s.pinned.data() + at_.left, s.card.data() + at_.left,
                              (parts + 31) / 32 * sizeof(std::uint32_t));
        } catch (const no_room& short_of) {
            s.work->wait();
            count_all(s, to);
            collect(to);
            give_up(short_of);
        }
    }

    // Adds the tables that have blocks since the last call. Others, of former values, take no
    // memory of the device.
    void find_tables(const word_tables& to) {
        numbers_.resize(to.table_count);
        for (std::size_t i = 1; i < to.table_count && known_.size() < most_; ++i) {
            const word_table& t = to.tables[i];
            if (numbers_[i] != 0 || t.near == 0 || t.largest == 0) continue;
            known_.push_back(static_cast<std::uint16_t>(i));
            numbers_[i] = static_cast<std::uint16_t>(known_.size());
        }
    }

    void describe_tables(word_slot& s, const word_tables& to) const {
        auto* const tables = s.there<counted_table>(at_.tables);
        auto* const table_of = s.there<std::uint16_t>(at_.table_of);
        tables[0] = {};
        std::fill_n(table_of, 0x8000, std::uint16_t{0});
        for (std::size_t i = 0; i < known_.size(); ++i) {
            const word_table& t = to.tables[known_[i]];
            const std::size_t floor = t.last < window_ ? 0 : t.last - window_ + 1;
            const std::size_t span = t.near < floor ? 0 : t.near - floor;
            tables[i + 1] = {t.last, static_cast<std::uint16_t>(floor),
                             static_cast<std::uint16_t>(span)};
            std::fill(table_of + t.first, table_of + t.last + 1, static_cast<std::uint16_t>(i + 1));
        }
        s.tables = known_.size();
    }

    // Waits for a slice and counts the blocks that were left out, which frees the slot.
    void finish(word_slot& s, word_tables& to) {
        if (!s.under_way) return;
        s.work->wait();
        const auto* const left = s.there<std::uint32_t>(at_.left);
        const auto* const words = s.there<std::uint16_t>(at_.words);
        const std::size_t group = size_ / lane_words;
        const auto is_left = [&](std::size_t block) {
            const std::size_t bit = block * group;
            return (left[bit / 32] >> bit % 32 & 1u) != 0;
        };
        for (std::size_t b = 0; b < s.blocks;) {
            std::size_t end = b;
            while (end < s.blocks && is_left(end)) ++end;
            if (end != b) host_(words + b * size_, size_, end - b, to);
            b = end + 1;
        }
        free(s);
    }

    void count_all(word_slot& s, word_tables& to) {
        host_(s.there<std::uint16_t>(at_.words), size_, s.blocks, to);
        free(s);
    }

    static void free(word_slot& s) {
        s.under_way = false;
        s.blocks = 0;
    }

    // Finishes all slices and adds the counters of the device to the tables.
    void collect(word_tables& to) {
        for (word_slot& s : slots_) finish(s, to);
        if (!known_.empty()) {
            // Through the memory of a slot.
            word_slot& s = slots_.front();
            const auto* const received = s.there<std::uint32_t>(at_.words);
            const auto receive = [&](std::size_t first, std::size_t count) {
                s.work->copy_back(s.pinned.data() + at_.words,
                                  reinterpret_cast<const std::byte*>(counters() + first),
                                  count * sizeof(std::uint32_t));
                s.work->wait();
            };
            receive(0, known_.size());
            const std::vector<std::uint32_t> blocks(received, received + known_.size());
            for (std::size_t i = 0; i < known_.size(); ++i) {
                receive(most_ + i * width_, width_);
                add(received, blocks[i], to.tables[known_[i]]);
            }
        }
        known_.clear();
        numbers_.clear();
        for (word_slot& s : slots_) s.tables = 0;
        open_ = false;
    }

    void add(const std::uint32_t* counters, std::uint32_t blocks, word_table& to) const {
        const std::size_t top = 2 * std::size_t{to.last} + 1;
        std::uint64_t elements = 0;
        for (std::size_t i = 0; i < width_ && i + 1 < top; ++i) {
            const std::uint32_t n = counters[i];
            if (n == 0) continue;
            elements += n;
            to.count[top - i] += n;
            const auto magnitude = static_cast<std::uint16_t>((top - i) / 2);
            to.largest = std::max(to.largest, magnitude);
            to.least = std::min(to.least, magnitude);
        }
        to.blocks += blocks;
        to.count[word_counters::zeros] +=
            static_cast<std::uint32_t>(std::uint64_t{blocks} * size_ - elements);
    }

    word_queue queue_;
    word_pass host_;
    base::notices* notices_;
    word_limits limits_;
    std::size_t window_, width_;  // magnitudes and counters of a table
    std::size_t most_;            // tables on the device
    word_layout at_;
    held_memory counters_;
    std::array<word_slot, 2> slots_;
    device& device_;
    std::size_t slots_in_use_ = 0, turn_ = 0;
    bool open_ = false;                   // memory is allocated and cleared
    bool instead_ = false;                // the host counts
    std::size_t size_ = 0;                // of the blocks that the device counts; 0: none yet
    std::size_t first_ = 0;               // words that the host counted before
    std::vector<std::uint16_t> known_;    // numbers of the tables on the device
    std::vector<std::uint16_t> numbers_;  // on the device, from 1 on, by number; 0: not there
};

}  // namespace

std::unique_ptr<word_device> make_word_device(base::cuda::device& on, const word_queue& by,
                                              tensor::dtype type, word_pass host,
                                              base::notices* notices, const word_limits& limits) {
    return std::make_unique<device_words>(on, by, type, host, notices, limits);
}

}  // namespace mx::codec::cuda

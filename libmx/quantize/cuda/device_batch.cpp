// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/cuda/device_batch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "libmx/base/aligned.hpp"
#include "libmx/quantize/cuda/batch_layout.hpp"
#include "libmx/quantize/driver_batch.hpp"
#include "libmx/quantize/drivers.hpp"

namespace mx::quantize::cuda {
namespace {

using base::cuda::device;
using base::cuda::held_memory;
using base::cuda::memory_kind;
using base::cuda::no_room;

// What came back of a slice, until the next run.
struct piece {
    slice what;
    batch_layout layout;
    base::aligned_buffer<std::byte> back;
};

// What a slice takes of the device.
struct slot {
    explicit slot(device& on) : pinned(on, memory_kind::pinned), card(on, memory_kind::device) {}

    // The stream comes last: it waits before the memory goes that its copies need.
    held_memory pinned, card;
    std::unique_ptr<base::cuda::stream> work;
    piece* under_way = nullptr;
};

class device_batch final : public segment_batch {
  public:
    device_batch(device& on, starter kernel, const slice_limits& limits)
        : device_(on), start_(kernel), limits_(limits) {}

    void run(const value_rectangle& values, std::span<const batch_segment> segments,
             std::span<const batch_recipe> recipes) override {
        while (!instead_) {
            try {
                return run_slices(values, segments, recipes);
            } catch (const no_room& short_of) {
                abandon();
                make_do(short_of);
            } catch (...) {
                abandon();
                throw;
            }
        }
        instead_->steer(notices(), cancel());
        instead_->run(values, segments, recipes);
    }

    batch_result result(std::size_t segment, std::size_t recipe) const override {
        if (instead_) return instead_->result(segment, recipe);
        const place& at = places_[segment];
        const piece& p = *pieces_[at.piece + recipe / at.recipes];
        return result_of(p.layout, segment - p.what.segment, recipe - p.what.recipe, p.back.data());
    }

  private:
    // Where the results of a segment are: recipes by so many, a piece after the other.
    struct place {
        std::size_t piece, recipes;
    };

    void run_slices(const value_rectangle& values, std::span<const batch_segment> segments,
                    std::span<const batch_recipe> recipes) {
        places_.clear();
        used_ = 0;
        if (recipes.empty()) return;
        const slicer cuts(values, segments, recipes, limits_);
        while (places_.size() < segments.size()) {
            slice s = cuts.from(places_.size());
            places_.insert(places_.end(), s.segments, {used_, s.recipes});
            const slice_values part = cut_out(values, segments.subspan(s.segment, s.segments));
            for (const std::size_t together = s.recipes; s.recipe < recipes.size();
                 s.recipe += together) {
                s.recipes = std::min(together, recipes.size() - s.recipe);
                stop_if_cancelled();
                slot& next = slots_[used_ % slots_in_use_];
                finish(next);
                start(next, s, part, recipes.subspan(s.recipe, s.recipes));
            }
        }
        for (slot& s : slots_) finish(s);
    }

    piece& next_piece() {
        if (used_ == pieces_.size()) pieces_.push_back(std::make_unique<piece>());
        return *pieces_[used_++];
    }

    // Packs a slice and queues it.
    void start(slot& to, const slice& what, const slice_values& part,
               std::span<const batch_recipe> recipes) {
        piece& p = next_piece();
        p.what = what;
        p.layout = lay_out(part.values, part.segments, recipes);
        const batch_layout& l = p.layout;  // its pieces end where anything may begin
        asked_ = {l.there_bytes + l.back_bytes + l.scratch_bytes,
                  what.segments == 1 && what.recipes == 1};
        grow(to.pinned, l.there_bytes + l.back_bytes);
        grow(to.card, asked_.bytes);
        if (!to.work) to.work = device_.make_stream();
        std::byte* const there = to.pinned.data();
        std::byte* const device_there = to.card.data();
        std::byte* const device_back = device_there + l.there_bytes;
        const launch kernel = fill(l, part.values, part.segments, recipes, there, device_there,
                                   device_back, device_back + l.back_bytes);
        to.under_way = &p;
        to.work->copy_there(device_there, there, l.there_bytes);
        start_(kernel, *to.work);
        to.work->copy_back(there + l.there_bytes, device_back, l.back_bytes);
    }

    // Waits for what is under way, and makes room for the next.
    void finish(slot& s) {
        if (s.under_way == nullptr) return;
        s.work->wait();
        piece& p = *s.under_way;
        s.under_way = nullptr;
        const std::size_t bytes = p.layout.back_bytes;
        std::memcpy(p.back.room_for(bytes), s.pinned.data() + p.layout.there_bytes, bytes);
    }

    // Slices differ in size: whole powers of two, so that memory is seldom taken anew.
    void grow(held_memory& m, std::size_t bytes) const {
        if (bytes <= m.size()) return;
        m.room_for(std::max(bytes, std::min(limits_.bytes, std::bit_ceil(bytes))));
    }

    // The slots are free afterwards, whatever was under way.
    void abandon() noexcept {
        for (slot& s : slots_) {
            if (s.under_way == nullptr) continue;
            s.under_way = nullptr;
            try {
                s.work->wait();
            } catch (const std::exception&) {
                // There is an error on its way already.
            }
        }
    }

    // The next attempt asks for half; in the end for a slot less; in the end for nothing.
    void make_do(const no_room& short_of) {
        for (slot& s : slots_) {
            s.card.release();
            s.pinned.release();
        }
        limits_.bytes = std::min(limits_.bytes, asked_.bytes) / 2;
        if (!asked_.least) return;
        if (slots_in_use_ > 1) {
            slots_in_use_ = 1;
            return;
        }
        if (notices() == nullptr) throw short_of;
        for (slot& s : slots_) s.work.reset();
        const driver& other = best_driver();
        notices()->once("quantizing", base::cuda::went_elsewhere(short_of, other.name));
        instead_ = std::make_unique<driver_batch>(other);
    }

    device& device_;
    starter start_;
    slice_limits limits_;
    std::array<slot, 2> slots_{slot(device_), slot(device_)};
    std::size_t slots_in_use_ = slots_.size();
    std::vector<place> places_;                   // by segment
    std::vector<std::unique_ptr<piece>> pieces_;  // the first used_ of them
    std::size_t used_ = 0;
    // The slice that was started last: bytes on the device, and whether it cannot be cut.
    struct {
        std::size_t bytes = 0;
        bool least = false;
    } asked_;
    std::unique_ptr<segment_batch> instead_;  // once the device had no room
};

}  // namespace

std::unique_ptr<segment_batch> make_device_batch(device& on, starter start,
                                                 const slice_limits& limits) {
    return std::make_unique<device_batch>(on, start, limits);
}

}  // namespace mx::quantize::cuda

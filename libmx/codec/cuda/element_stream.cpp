// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/element_stream.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/batch_layout.hpp"

namespace mx::codec::cuda {
namespace {

// A piece in contiguous memory, with the same layout on host and device. The sent and the received
// data share the index of the first result without a code, which the kernel lowers.
struct piece_layout {
    std::size_t without_code, there_end, codes, values, end;

    piece_layout(const element_run& of, std::size_t count, const element_results& wanted) {
        const auto width = static_cast<std::size_t>(tensor::row_of(of.values.type).bits / 8);
        without_code = padded(count * width);
        there_end = without_code + sizeof(std::uint32_t);
        codes = padded(there_end);
        values = codes + (wanted.codes != nullptr ? padded(count) : 0);
        end = values + (wanted.values != nullptr ? padded(count * sizeof(float)) : 0);
    }
};

// A piece that is being processed.
class stream_slot : public base::cuda::lane {
  public:
    using base::cuda::lane::lane;

    void reserve(std::size_t bytes) {
        pinned.reserve(bytes);
        card.reserve(bytes);
    }

    // Queues values [at, at + count) of `from`.
    void start(element_starter kernel, element_launch& l, const element_run& from, std::size_t at,
               std::size_t count, const element_results& results) {
        const piece_layout p(from, count, results);
        std::byte* const here = pinned.data();
        std::byte* const there = card.data();
        const stored_values values = from.values.from(at);
        const auto width = static_cast<std::size_t>(tensor::row_of(values.type).bits / 8);
        std::memcpy(here, values.data, count * width);
        l.x = there;
        l.type = values.type;
        l.count = static_cast<std::uint32_t>(count);
        l.first = from.first + at;
        l.without_code = reinterpret_cast<std::uint32_t*>(there + p.without_code);
        l.codes = nullptr;
        l.values = nullptr;
        if (results.codes != nullptr) l.codes = reinterpret_cast<std::uint8_t*>(there + p.codes);
        if (results.values != nullptr) l.values = reinterpret_cast<float*>(there + p.values);
        std::memcpy(here + p.without_code, &l.count, sizeof l.count);
        busy_ = true;
        work().copy_there(there, here, p.there_end);
        kernel(l, work());
        work().copy_back(here + p.without_code, there + p.without_code, p.end - p.without_code);
        at_ = at;
        count_ = count;
    }

    // Waits for the started piece, if any. Returns the index of its first result without a code
    // among all values, or `none`.
    std::size_t finish(const element_run& from, const element_results& results, std::size_t none) {
        if (!busy_) return none;
        work().wait();
        busy_ = false;
        const piece_layout p(from, count_, results);
        const std::byte* const here = pinned.data();
        if (results.codes != nullptr) std::memcpy(results.codes + at_, here + p.codes, count_);
        if (results.values != nullptr) {
            std::memcpy(results.values + at_, here + p.values, count_ * sizeof(float));
        }
        std::uint32_t place;
        std::memcpy(&place, here + p.without_code, sizeof place);
        return place < count_ ? at_ + place : none;
    }

    void abandon() noexcept {
        busy_ = false;
        release();
    }

  private:
    bool busy_ = false;
    std::size_t at_ = 0, count_ = 0;
};

class streamed_elements final : public caster {
  public:
    streamed_elements(base::cuda::device& device, element_starter kernel, base::notices* notices,
                      std::size_t piece)
        : device_(device),
          start_(kernel),
          notices_(notices),
          piece_(piece),
          slots_{stream_slot(device), stream_slot(device)} {}

    std::size_t cast(const element_cast& to, const element_run& from,
                     const element_results& results) override {
        if (!host_) {
            try {
                return by_device(to, from, results);
            } catch (const base::cuda::out_of_memory& short_of) {
                abandon();
                device_.trim();
                if (notices_ == nullptr) throw;
                notices_->once("casting",
                               base::cuda::went_elsewhere(short_of, best_backend().name));
                host_ = make_host_caster();
            } catch (...) {
                abandon();
                throw;
            }
        }
        return host_->cast(to, from, results);
    }

  private:
    void abandon() noexcept {
        for (stream_slot& s : slots_) s.abandon();
    }

    std::size_t by_device(const element_cast& to, const element_run& from,
                          const element_results& results) {
        element_launch l{};
        l.work = {to, *to.number.by, from.key};
        l.work.to.number.by = nullptr;  // the host's pointer is not valid there
        const std::size_t pieces = (from.count + piece_ - 1) / piece_;
        for (std::size_t i = 0; i < std::min(pieces, slots_.size()); ++i) {
            slots_[i].reserve(piece_layout(from, std::min(piece_, from.count), results).end);
        }
        std::size_t without_code = from.count;
        const auto finish = [&](stream_slot& s) {
            without_code = std::min(without_code, s.finish(from, results, from.count));
        };
        for (std::size_t i = 0; i < pieces; ++i) {
            stream_slot& s = slots_[i % slots_.size()];
            finish(s);
            const std::size_t at = i * piece_;
            s.start(start_, l, from, at, std::min(piece_, from.count - at), results);
        }
        for (stream_slot& s : slots_) finish(s);
        return without_code;
    }

    base::cuda::device& device_;
    element_starter start_;
    base::notices* notices_;
    std::size_t piece_;
    std::array<stream_slot, 2> slots_;
    std::unique_ptr<caster> host_;  // set once the device was out of memory
};

}  // namespace

std::unique_ptr<caster> make_streamed_elements(base::cuda::device& device, element_starter start,
                                               base::notices* notices, std::size_t piece) {
    return std::make_unique<streamed_elements>(device, start, notices, piece);
}

}  // namespace mx::codec::cuda

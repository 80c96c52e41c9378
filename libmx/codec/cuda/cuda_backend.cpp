// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/cuda_backend.hpp"

#include <algorithm>
#include <optional>

#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/cuda/batch_layout.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/codec/cuda/element_body.hpp"
#include "libmx/codec/cuda/element_stream.hpp"
#include "libmx/codec/cuda/meter_kernels.hpp"
#include "libmx/codec/cuda/row_kernels.hpp"

namespace mx::codec::cuda {

namespace {

void start(const launch& l, base::cuda::stream& on) {
    launch own = l;
    own.by_instruction = bodies_by_instruction();
    base::cuda::check(enqueue(own, on.handle()), "starting the kernel");
}

void start_without_instructions(const launch& l, base::cuda::stream& on) {
    base::cuda::check(enqueue(l, on.handle()), "starting the kernel");
}

void start_elements(const element_launch& l, base::cuda::stream& on) {
    base::cuda::check(enqueue(l, on.handle()), "starting the kernel");
}

using base::cuda::check;
using base::cuda::held_memory;
using base::cuda::memory_kind;

// Much more than a GPU's cache, but at most a quarter of the free memory: results need memory, too.
constexpr std::uint64_t most_resident = std::uint64_t{1} << 30;
// Much more than a panel, so that the time to start a copy is negligible.
constexpr std::uint64_t most_staged = std::uint64_t{256} << 20;
constexpr std::uint64_t step = std::uint64_t{2} << 20;

class cuda_meter final : public device_meter {
  public:
    base::cuda::device_facts facts() const override { return base::cuda::facts_of_device(); }

    std::span<std::byte> open() override {
        stream_ = device_.make_stream();
        watch_.emplace();
        resident_ = std::min(most_resident, device_.memory().free / 4) / step * step;
        if (resident_ == 0) {
            throw base::error(base::error_kind::unavailable,
                              "backend cuda: the GPU has less than 8 MiB of memory left; end "
                              "other programs on it");
        }
        staged_ = std::min(most_staged, resident_);
        values_.reserve(resident_);
        const std::span<std::byte> staged(pinned_.reserve(staged_), staged_);
        std::fill_n(staged.begin(), sizeof(std::uint32_t), std::byte{0});
        stream_->copy_there(sum_.reserve(sizeof(std::uint32_t)), staged.data(),
                            sizeof(std::uint32_t));
        stream_->wait();
        return staged;
    }

    void spread() override {
        for (std::uint64_t at = 0; at < resident_; at += staged_) {
            stream_->copy_there(values_.data() + at, pinned_.data(),
                                std::min(staged_, resident_ - at));
        }
        stream_->wait();
    }

    std::uint64_t resident() const override { return resident_; }

    double read_once() override {
        return seconds_of([&] {
            check(enqueue_read(values_.data(), resident_,
                               reinterpret_cast<std::uint32_t*>(sum_.data()), stream_->handle()),
                  "starting a read kernel");
        });
    }

    double copy_once() override {
        const std::uint64_t half = resident_ / 2;
        return seconds_of([&] {
            check(enqueue_copy(values_.data() + half, values_.data(), half, stream_->handle()),
                  "starting a copy kernel");
        });
    }

    double receive_once() override {
        return seconds_of([&] { stream_->copy_there(values_.data(), pinned_.data(), staged_); });
    }

    void prepare(tensor::dtype type, std::uint64_t cols, std::span<const placed_segment> segments,
                 const recipe_request& recipe) override {
        // A batch with a rectangle of no rows: all the data of a batch but the values, which are
        // already on the device.
        const value_rectangle none{{type, pinned_.data(), cols}, 0, cols};
        const std::span<const recipe_request> recipes(&recipe, 1);
        const batch_layout layout = lay_out(none, segments, recipes);
        there_.reserve(layout.sent_bytes);
        std::byte* const device_there =
            card_.reserve(layout.there_bytes + layout.back_bytes + layout.scratch_bytes);
        std::byte* const device_back = device_there + layout.there_bytes;
        launch_ = fill(layout, none, segments, recipes, there_.data(), device_there, device_back,
                       device_back + layout.back_bytes);
        launch_.values = {values_.data(), cols, type};
        launch_.by_instruction = bodies_by_instruction();
        stream_->copy_there(device_there, there_.data(), layout.sent_bytes);
        stream_->wait();
    }

    double run_once() override {
        return seconds_of(
            [&] { check(enqueue(launch_, stream_->handle()), "starting the kernel"); });
    }

  private:
    template <typename Queue>
    double seconds_of(Queue&& queue) {
        watch_->start(stream_->handle());
        queue();
        return watch_->stop(stream_->handle());
    }

    base::cuda::device& device_ = base::cuda::first_device();
    std::uint64_t resident_ = 0, staged_ = 0;
    held_memory values_{device_, memory_kind::device}, sum_{device_, memory_kind::device};
    held_memory card_{device_, memory_kind::device};
    held_memory pinned_{device_, memory_kind::pinned}, there_{device_, memory_kind::pinned};
    launch launch_{};
    // The stream is declared last, so that it is destroyed first: it waits before the memory is
    // freed. It is created on demand: reading facts only takes no memory from the device and works
    // without free memory.
    std::unique_ptr<base::cuda::stream> stream_;
    std::optional<base::cuda::stopwatch> watch_;
};

}  // namespace

array_starters starters_for(int ordinal) {
    // Instructions are compared with the emulator on the first device only.
    return {ordinal == 0 ? start : start_without_instructions, start_elements,
            [](const array_work& what, base::cuda::stream& on) {
                check(enqueue(what, on.handle()), "starting the kernel");
            }};
}

void with_stream(const device_stream& at, const std::function<void(array_quantizer&)>& work) {
    const base::cuda::current_device current(at.ordinal);
    const auto memory = base::cuda::device_of_stream(at.ordinal, at.stream);
    base::cuda::lane lane(*memory);
    array_quantizer by(*memory, lane, starters_for(at.ordinal));
    work(by);
}

std::unique_ptr<quantizer> make_quantizer() {
    return make_device_quantizer(base::cuda::first_device(), start);
}

std::unique_ptr<caster> make_caster(base::notices* notices) {
    return make_streamed_elements(base::cuda::first_device(), start_elements, notices);
}

std::unique_ptr<device_meter> make_meter() { return std::make_unique<cuda_meter>(); }

}  // namespace mx::codec::cuda

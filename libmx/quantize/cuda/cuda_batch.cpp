// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/quantize/cuda/batch_layout.hpp"
#include "libmx/quantize/cuda/cuda_driver.hpp"
#include "libmx/quantize/cuda/row_kernels.hpp"

namespace mx::quantize::cuda {
namespace {

using base::cuda::check;
using base::cuda::grown_memory;

// One for each thread, with a stream and buffers of its own: while one waits for its copy, the
// kernels of others run.
class cuda_batch final : public segment_batch {
  public:
    void run(const value_rectangle& values, std::span<const batch_segment> segments,
             std::span<const batch_recipe> recipes) override {
        layout_ = lay_out(values, segments, recipes);
        std::byte* const there = there_.room_for(layout_.there_bytes);
        std::byte* const back = back_.room_for(layout_.back_bytes);
        std::byte* const device_there = device_there_.room_for(layout_.there_bytes);
        std::byte* const device_back = device_back_.room_for(layout_.back_bytes);
        launch l = fill(layout_, values, segments, recipes, there, device_there, device_back,
                        scratch_.room_for(layout_.scratch_bytes));
        l.by_instruction = bodies_by_instruction();
        stream_.copy_there(device_there, there, layout_.there_bytes);
        check(enqueue(l, stream_.handle()), "starting the kernel");
        stream_.copy_back(back, device_back, layout_.back_bytes);
        stream_.wait();
    }
    batch_result result(std::size_t segment, std::size_t recipe) const override {
        return result_of(layout_, segment, recipe, back_.data());
    }

  private:
    using where = grown_memory::where;
    batch_layout layout_;
    grown_memory there_{where::pinned_host}, back_{where::pinned_host};
    grown_memory device_there_{where::device}, device_back_{where::device}, scratch_{where::device};
    base::cuda::stream stream_;
};

// Asked once.
const std::string& obstacle() {
    static const std::string found = base::cuda::obstacle(has_code_for_device);
    return found;
}

}  // namespace

bool available() { return obstacle().empty(); }
std::string missing() { return obstacle(); }
std::unique_ptr<segment_batch> make_batch() { return std::make_unique<cuda_batch>(); }

}  // namespace mx::quantize::cuda

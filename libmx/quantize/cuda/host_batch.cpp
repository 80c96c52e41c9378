// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/cuda/host_batch.hpp"

#include "libmx/base/aligned.hpp"
#include "libmx/quantize/cuda/batch_layout.hpp"
#include "libmx/quantize/cuda/instruction_stand_in.hpp"
#include "libmx/quantize/cuda/plain_on_host.hpp"

namespace mx::quantize::cuda {
namespace {

class host_batch final : public segment_batch {
  public:
    explicit host_batch(void (*work)(const launch&)) : work_(work) {}
    void run(const value_rectangle& values, std::span<const batch_segment> segments,
             std::span<const batch_recipe> recipes) override {
        layout_ = lay_out(values, segments, recipes);
        std::byte* const there = there_.room_for(layout_.there_bytes);
        std::byte* const back = back_.room_for(layout_.back_bytes);
        const launch l = fill(layout_, values, segments, recipes, there, there, back,
                              scratch_.room_for(layout_.scratch_bytes));
        work_(l);
    }
    batch_result result(std::size_t segment, std::size_t recipe) const override {
        return result_of(layout_, segment, recipe, back_.data());
    }

  private:
    void (*work_)(const launch&);
    batch_layout layout_;
    base::aligned_buffer<std::byte> there_, back_, scratch_;
};

}  // namespace

std::unique_ptr<segment_batch> make_host_batch() {
    return std::make_unique<host_batch>(plain_on_host<grid_converter>);
}

std::unique_ptr<segment_batch> make_instruction_batch() {
    return std::make_unique<host_batch>(plain_on_host<instruction_stand_in>);
}

}  // namespace mx::quantize::cuda

// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/block_table.hpp"

#include "libmx/base/bits.hpp"
#include "libmx/engine/run_buffer.hpp"

namespace mx::analysis {

std::vector<io::planned_array> block_arrays(const std::string& group, const tensor::shape& grid) {
    using tensor::dtype;
    const auto array = [&](const char* name, dtype type) {
        return io::planned_array{group + "/" + name, type, grid};
    };
    return {array("scale_code", dtype::u8),    array("offset", dtype::f16),
            array("amax", dtype::f32),         array("nonzero", dtype::u32),
            array("overflow", dtype::u32),     array("clamp", dtype::u32),
            array("top_code", dtype::u32),     array("underflow", dtype::u32),
            array("squared_error", dtype::f64)};
}

struct block_rows::columns {
    engine::run_buffer<std::uint8_t> scale_code;
    engine::run_buffer<std::uint16_t> offset;
    engine::run_buffer<float> amax;
    engine::run_buffer<std::uint32_t> nonzero, overflow, clamp, top_code, underflow;
    engine::run_buffer<double> squared_error;
};

block_rows::block_rows(io::array_writer& w, std::size_t first)
    : columns_(new columns{{w, first},
                           {w, first + 1},
                           {w, first + 2},
                           {w, first + 3},
                           {w, first + 4},
                           {w, first + 5},
                           {w, first + 6},
                           {w, first + 7},
                           {w, first + 8}}) {}

block_rows::~block_rows() = default;

void block_rows::put(std::uint64_t block, const block::block_stats& s) {
    columns_->scale_code.put(block, s.scale_code);
    columns_->offset.put(block, s.offset);
    columns_->amax.put(block, base::float_from_bits(s.amax));
    columns_->nonzero.put(block, s.count.nonzero);
    columns_->overflow.put(block, s.count.overflow);
    columns_->clamp.put(block, s.count.clamp);
    columns_->top_code.put(block, s.count.top_code);
    columns_->underflow.put(block, s.count.underflow);
    columns_->squared_error.put(block, s.sum.error2);
}

void block_rows::flush() {
    columns_->scale_code.flush();
    columns_->offset.flush();
    columns_->amax.flush();
    columns_->nonzero.flush();
    columns_->overflow.flush();
    columns_->clamp.flush();
    columns_->top_code.flush();
    columns_->underflow.flush();
    columns_->squared_error.flush();
}

}  // namespace mx::analysis

// SPDX-License-Identifier: Apache-2.0
// Vectors from a checkpoint: whole blocks of its tensors.
#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/vectors/export_vectors.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/io/widen.hpp"

namespace mx::conformance::vectors {
namespace {

[[noreturn]] void refuse(const io::tensor_info& info, const std::string& why) {
    base::refuse(why, {info.file, info.name, {}});
}

// The blocks of a grid that do not extend beyond the end of an axis.
struct whole_blocks {
    block::grid grid;
    std::uint64_t rows() const { return grid.over.rows / grid.block_rows; }
    std::uint64_t cols() const { return grid.over.cols / grid.block_cols; }
    std::uint64_t count() const { return grid.over.batch * rows() * cols(); }
    /// Index of the first element of block `b`.
    std::uint64_t first(std::uint64_t b) const {
        const std::uint64_t col = b % cols();
        const std::uint64_t row = b / cols() % rows();
        const std::uint64_t batch = b / cols() / rows();
        return (batch * grid.over.rows + row * grid.block_rows) * grid.over.cols +
               col * grid.block_cols;
    }
};

whole_blocks blocks_of(const io::tensor_info& info, const codec::recipe& r) {
    if (!info.note.empty() || tensor::row_of(info.type).to_f32 == tensor::widening::none) {
        refuse(info, "is not numeric; choose other tensors with --tensor");
    }
    std::string reason;
    const auto lies = engine::lay_out(info, r, reason);
    if (!lies) refuse(info, reason);
    const whole_blocks blocks{lies->grid};
    const bool whole = blocks.grid.block_rows * blocks.grid.block_cols == elements_of_block(r);
    if (!whole || blocks.count() == 0) {
        refuse(info, fmt::format("has no whole block of {} elements", elements_of_block(r)));
    }
    return blocks;
}

void append_block(const io::byte_source& source, const io::tensor_info& info,
                  const whole_blocks& blocks, std::uint64_t b, std::vector<float>& out,
                  std::vector<std::byte>& scratch) {
    const std::uint64_t first = blocks.first(b);
    for (std::uint64_t row = 0; row < blocks.grid.block_rows; ++row) {
        const std::size_t at = out.size();
        out.resize(at + static_cast<std::size_t>(blocks.grid.block_cols));
        const std::span<float> line(out.data() + at, out.size() - at);
        io::read_f32(source, info.type, first + row * blocks.grid.over.cols, line, scratch);
    }
}

}  // namespace

vector_source tensor_source_of(const std::vector<engine::tensor_ref>& tensors,
                               const vector_request& request) {
    const codec::recipe& r = request.recipe;
    const std::uint64_t row = row_blocks_of(r);
    const std::uint64_t requested = request.blocks != 0 ? request.blocks : default_vector_blocks(r);
    const std::uint64_t each = (requested + tensors.size() - 1) / tensors.size();
    vector_source out;
    std::vector<std::byte> scratch;
    std::uint64_t taken = 0;
    for (const engine::tensor_ref& t : tensors) {
        const whole_blocks blocks = blocks_of(t.info(), r);
        const auto source = t.file->open(t.index);
        std::uint64_t count = std::min({each, blocks.count(), requested - taken});
        count -= count % row;
        for (std::uint64_t k = 0; k < count; ++k) {
            // Blocks of the same row stay adjacent.
            const std::uint64_t groups = blocks.count() / row;
            const std::uint64_t b = (k / row) * groups / (count / row) * row + k % row;
            append_block(*source, t.info(), blocks, b, out.inputs.values, scratch);
        }
        taken += count;
        out.words += fmt::format("{}{} blocks of {}", out.words.empty() ? "" : ", ", count,
                                 base::printable(t.info().name));
    }
    if (taken == 0) base::refuse("the chosen tensors give no block; ask for more --blocks");
    return out;
}

}  // namespace mx::conformance::vectors

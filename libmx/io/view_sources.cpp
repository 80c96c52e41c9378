// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/view_sources.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "libmx/io/strided.hpp"
#include "libmx/io/widen.hpp"

namespace mx::io {
namespace {

constexpr std::size_t unpacked_piece = std::size_t{1} << 16;  // elements at a time
// Threads work on neighbouring matrices; more would only hold memory.
constexpr std::size_t kept_matrices = 3;

// Runs of `run` bytes, `stride` bytes apart, the first at `start`.
class runs_of_source final : public byte_source {
  public:
    runs_of_source(shared_source source, std::uint64_t start, std::uint64_t run,
                   std::uint64_t stride)
        : source_(std::move(source)), start_(start), run_(run), stride_(stride) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        std::vector<std::byte> span;
        while (!out.empty()) {
            const std::uint64_t inside = offset % run_;
            const std::uint64_t at = start_ + offset / run_ * stride_ + inside;
            std::size_t done =
                static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), run_ - inside));
            // Whole short runs: read across the gaps, which costs less than a call for each.
            const std::uint64_t runs = inside != 0 || stride_ > widest_gap
                                           ? 0
                                           : std::min(out.size() / run_, bulk / stride_);
            if (runs > 1) {
                span.resize(static_cast<std::size_t>((runs - 1) * stride_ + run_));
                source_->read(at, span);
                for (std::uint64_t i = 0; i < runs; ++i) {
                    std::memcpy(out.data() + i * run_, span.data() + i * stride_, run_);
                }
                done = static_cast<std::size_t>(runs * run_);
            } else {
                source_->read(at, out.first(done));
            }
            out = out.subspan(done);
            offset += done;
        }
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        if (run_ == 0) return;
        const std::uint64_t first = offset / run_;
        const std::uint64_t runs = std::min(bytes, bulk) / run_ + 1;
        source_->expect(start_ + first * stride_, runs * stride_);
    }

  private:
    static constexpr std::uint64_t widest_gap = 32 << 10;
    static constexpr std::uint64_t bulk = 1 << 20;

    shared_source source_;
    std::uint64_t start_, run_, stride_;
};

}  // namespace

std::unique_ptr<byte_source> unpacked(shared_source source, tensor::dtype type) {
    return make_element_source(sizeof(float), [=](std::uint64_t first, std::span<std::byte> bytes) {
        std::vector<float> values;
        std::vector<std::byte> scratch;
        while (!bytes.empty()) {
            values.resize(std::min(bytes.size() / sizeof(float), unpacked_piece));
            read_f32(*source, type, first, values, scratch);
            std::memcpy(bytes.data(), values.data(), values.size() * sizeof(float));
            bytes = bytes.subspan(values.size() * sizeof(float));
            first += values.size();
        }
    });
}

std::unique_ptr<byte_source> part_of_axis(shared_source source, const tensor::shape& shape,
                                          std::size_t axis, std::uint64_t begin,
                                          std::uint64_t count, std::size_t width) {
    std::uint64_t inner = width;
    for (std::size_t k = axis + 1; k < shape.size(); ++k) inner *= shape[k];
    return std::make_unique<runs_of_source>(std::move(source), begin * inner, count * inner,
                                            shape[axis] * inner);
}

std::unique_ptr<byte_source> transposed(shared_source source, const tensor::shape& shape,
                                        std::size_t width) {
    const std::uint64_t rows = shape[shape.size() - 2];
    const std::uint64_t cols = shape.back();
    const std::uint64_t size = rows * cols * width;
    // A matrix in C order is its transpose with the first axis fastest.
    const auto matrices =
        std::make_shared<source_cache>(kept_matrices, [=](std::uint64_t index) -> shared_source {
            return from_fortran_order(source_window(source, index * size), {cols, rows}, width);
        });
    return make_source([=](std::uint64_t offset, std::span<std::byte> out) {
        while (!out.empty()) {
            const std::uint64_t inside = offset % size;
            const auto count =
                static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size - inside));
            matrices->get(offset / size)->read(inside, out.first(count));
            offset += count;
            out = out.subspan(count);
        }
    });
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/strided.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "libmx/io/spool.hpp"
#include "libmx/io/widen.hpp"

namespace mx::io {
namespace {

using strides = std::vector<std::uint64_t>;

// Bytes of a box; the largest spool in memory and a box together stay within a source's bound.
constexpr std::uint64_t box_bytes = 16 << 20;
// Steps along the last axis up to which reading the gaps is cheaper than rearranging.
constexpr std::uint64_t small_step = 16;
constexpr std::uint64_t piece_bytes = 1 << 20;

struct layout {
    tensor::shape shape;
    strides steps;
};

// The same view with as few axes as possible, none of extent 1.
layout joined(const tensor::shape& shape, const strides& steps) {
    layout out;
    for (std::size_t k = 0; k < shape.size(); ++k) {
        if (shape[k] == 1) continue;
        if (!out.shape.empty() && out.steps.back() == steps[k] * shape[k]) {
            out.shape.back() *= shape[k];
            out.steps.back() = steps[k];
        } else {
            out.shape.push_back(shape[k]);
            out.steps.push_back(steps[k]);
        }
    }
    return out;
}

// Copies `count` elements, `step` apart at `from`, to `to`, `to_step` apart.
template <class T>
void spread_as(const std::byte* from, std::uint64_t step, std::byte* to, std::uint64_t to_step,
               std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(to, from, sizeof(T));
        from += step * sizeof(T);
        to += to_step * sizeof(T);
    }
}
void spread(std::size_t width, const std::byte* from, std::uint64_t step, std::byte* to,
            std::uint64_t to_step, std::uint64_t count) {
    switch (width) {
        case 1:
            return spread_as<std::uint8_t>(from, step, to, to_step, count);
        case 2:
            return spread_as<std::uint16_t>(from, step, to, to_step, count);
        case 4:
            return spread_as<std::uint32_t>(from, step, to, to_step, count);
        case 8:
            return spread_as<std::uint64_t>(from, step, to, to_step, count);
        default:
            return spread_as<std::pair<std::uint64_t, std::uint64_t>>(from, step, to, to_step,
                                                                      count);
    }
}

// A view whose last axis has steps of at most `small_step`: its runs are read in place.
class in_place {
  public:
    in_place(shared_source source, layout view, std::size_t width)
        : source_(std::move(source)), view_(std::move(view)), width_(width) {}

    void operator()(std::uint64_t first, std::span<std::byte> out) const {
        std::vector<std::byte> scratch;
        const std::uint64_t row = view_.shape.back();
        while (!out.empty()) {
            const std::uint64_t column = first % row;
            std::uint64_t rest = first / row;
            std::uint64_t place = column * view_.steps.back();
            for (std::size_t k = view_.shape.size() - 1; k-- > 0;) {
                place += rest % view_.shape[k] * view_.steps[k];
                rest /= view_.shape[k];
            }
            const std::uint64_t count = std::min<std::uint64_t>(row - column, out.size() / width_);
            const auto bytes = static_cast<std::size_t>(count) * width_;
            read_run(place, count, out.first(bytes), scratch);
            out = out.subspan(bytes);
            first += count;
        }
    }

  private:
    void read_run(std::uint64_t place, std::uint64_t count, std::span<std::byte> out,
                  std::vector<std::byte>& scratch) const {
        const std::uint64_t step = view_.steps.back();
        if (step == 1) return source_->read(place * width_, out);
        const std::uint64_t most =
            step == 0 ? count : std::max<std::uint64_t>(1, piece_bytes / (step * width_));
        for (std::uint64_t done = 0; done < count;) {
            const std::uint64_t part = std::min(most, count - done);
            const std::uint64_t span = step == 0 ? 1 : (part - 1) * step + 1;
            scratch.resize(static_cast<std::size_t>(span) * width_);
            source_->read((place + done * step) * width_, scratch);
            spread(width_, scratch.data(), step, out.data() + done * width_, 1, part);
            done += part;
        }
    }

    shared_source source_;
    layout view_;
    std::size_t width_;
};

// Copies one box: every contiguous run of the source is read at once and its elements are placed in
// C order; then every run along the trailing axes is written at once.
class box_mover {
  public:
    box_mover(const byte_source& from, spool& to, const layout& view,
              const std::vector<std::size_t>& reading, std::size_t width)
        : from_(from),
          to_(to),
          shape_(view.shape),
          in_stride_(view.steps),
          reading_(reading),
          axes_(shape_.size()),
          width_(width),
          out_stride_(axes_, 1) {
        for (std::size_t k = axes_ - 1; k-- > 0;) {
            out_stride_[k] = out_stride_[k + 1] * shape_[k + 1];
        }
    }

    void move(const tensor::shape& origin, const tensor::shape& extents) {
        strides stride(axes_, 1);  // of C order inside the box
        for (std::size_t k = axes_ - 1; k-- > 0;) stride[k] = stride[k + 1] * extents[k + 1];
        box_.resize(static_cast<std::size_t>(stride[0] * extents[0]) * width_);
        gather(origin, extents, stride);
        scatter(origin, extents, stride);
    }

  private:
    // Axes from the fastest on whose box continues where the one before ends make one run.
    void gather(const tensor::shape& origin, const tensor::shape& extents, const strides& stride) {
        const std::size_t fastest = reading_[0];
        const std::uint64_t step = in_stride_[fastest];
        std::size_t run_axes = 1;
        std::uint64_t run = extents[fastest];
        while (run_axes < axes_ && step != 0 && in_stride_[reading_[run_axes]] == run * step) {
            run *= extents[reading_[run_axes++]];
        }
        const bool whole = step != 0 && step <= small_step;
        run_.resize(static_cast<std::size_t>(whole ? (run - 1) * step + 1 : 1) * width_);
        const auto begin = reading_.begin() + static_cast<std::ptrdiff_t>(run_axes);
        for_each(std::span(begin, reading_.end()), extents, [&](const tensor::shape& at) {
            std::uint64_t place = 0;
            std::uint64_t box_place = 0;
            for (std::size_t k = 0; k < axes_; ++k) {
                place += (origin[k] + at[k]) * in_stride_[k];
                box_place += at[k] * stride[k];
            }
            if (whole) from_.read(place * width_, run_);
            place_run(run_axes, extents, stride, place, box_place, whole);
        });
    }

    void place_run(std::size_t run_axes, const tensor::shape& extents, const strides& stride,
                   std::uint64_t place, std::uint64_t box_place, bool whole) {
        const std::size_t fastest = reading_[0];
        const std::uint64_t step = in_stride_[fastest];
        const std::uint64_t count = extents[fastest];
        std::uint64_t read = 0;  // elements of the run's first axis that were placed
        const auto inner = std::span(reading_).subspan(1, run_axes - 1);
        for_each(inner, extents, [&](const tensor::shape& at) {
            std::uint64_t to = box_place;
            for (const std::size_t k : inner) to += at[k] * stride[k];
            std::byte* const out = box_.data() + to * width_;
            if (whole) {
                spread(width_, run_.data() + read * step * width_, step, out, stride[fastest],
                       count);
            } else {
                place_singly(place + read * step, step, count, out, stride[fastest]);
            }
            read += count;
        });
    }
    // Elements too far apart to read the gaps, or one element repeated.
    void place_singly(std::uint64_t place, std::uint64_t step, std::uint64_t count, std::byte* out,
                      std::uint64_t out_step) {
        for (std::uint64_t i = 0; i < count; ++i) {
            if (i == 0 || step != 0) from_.read((place + i * step) * width_, run_);
            std::memcpy(out + i * out_step * width_, run_.data(), width_);
        }
    }

    void scatter(const tensor::shape& origin, const tensor::shape& extents, const strides& stride) {
        std::size_t first = axes_ - 1;
        while (first > 0 && extents[first] == shape_[first]) --first;
        const auto run = static_cast<std::size_t>(stride[first] * extents[first]) * width_;
        const std::byte* next = box_.data();
        std::vector<std::size_t> outer(first);  // the last one fastest
        for (std::size_t k = 0; k < first; ++k) outer[k] = first - 1 - k;
        for_each(outer, extents, [&](const tensor::shape& at) {
            std::uint64_t place = 0;
            for (std::size_t k = 0; k < axes_; ++k) place += (origin[k] + at[k]) * out_stride_[k];
            to_.write(place * width_, std::span(next, run));
            next += run;
        });
    }

    // Calls `body` for all indices of `axes`, the first of them fastest; others stay 0.
    template <class Body>
    static void for_each(std::span<const std::size_t> axes, const tensor::shape& extents,
                         const Body& body) {
        tensor::shape at(extents.size(), 0);
        while (true) {
            body(at);
            std::size_t k = 0;
            while (k < axes.size() && ++at[axes[k]] == extents[axes[k]]) at[axes[k++]] = 0;
            if (k >= axes.size()) return;
        }
    }

    const byte_source& from_;
    spool& to_;
    const tensor::shape& shape_;
    const strides& in_stride_;
    const std::vector<std::size_t>& reading_;
    std::size_t axes_;
    std::size_t width_;
    strides out_stride_;
    std::vector<std::byte> run_;
    std::vector<std::byte> box_;
};

std::unique_ptr<spool> rearrange(const byte_source& source, const layout& view, std::size_t width) {
    const tensor::shape& shape = view.shape;
    auto out = std::make_unique<spool>(*tensor::element_count(shape) * width);
    // The order of the elements in the source: smallest steps first, repeats last.
    std::vector<std::size_t> reading(shape.size());
    std::iota(reading.begin(), reading.end(), std::size_t{0});
    std::ranges::stable_sort(reading, {}, [&](std::size_t k) { return view.steps[k] - 1; });
    const tensor::shape box = rearranging_box(shape, reading, box_bytes / width);
    box_mover mover(source, *out, view, reading, width);
    tensor::shape origin(shape.size(), 0);
    while (true) {
        tensor::shape extents(shape.size());
        for (std::size_t k = 0; k < extents.size(); ++k) {
            extents[k] = std::min(box[k], shape[k] - origin[k]);
        }
        mover.move(origin, extents);
        std::size_t k = shape.size();
        while (k > 0) {
            origin[k - 1] += box[k - 1];
            if (origin[k - 1] < shape[k - 1]) break;
            origin[--k] = 0;
        }
        if (k == 0) return out;
    }
}

// Whole short runs are read across gaps of up to `widest_gap`, `bulk` bytes at a time.
constexpr std::uint64_t widest_gap = 32 << 10;
constexpr std::uint64_t bulk = 1 << 20;
constexpr std::size_t unpacked_piece = std::size_t{1} << 16;  // elements at a time
// Threads work on neighbouring matrices; more would only use memory.
constexpr std::size_t kept_matrices = 3;

}  // namespace

tensor::shape rearranging_box(const tensor::shape& shape, const std::vector<std::size_t>& reading,
                              std::uint64_t budget) {
    const auto side = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(budget)));
    tensor::shape box(shape.size(), 1);
    std::uint64_t taken = 1;
    for (const std::size_t k : reading) {
        box[k] = std::min(shape[k], std::max<std::uint64_t>(1, side / taken));
        taken *= box[k];
        if (box[k] < shape[k]) break;
    }
    for (std::size_t k = shape.size(); k-- > 0;) {
        const std::uint64_t others = taken / box[k];
        box[k] = std::max(box[k], std::min(shape[k], std::max<std::uint64_t>(1, budget / others)));
        taken = others * box[k];
        if (box[k] < shape[k]) break;
    }
    return box;
}

std::unique_ptr<byte_source> from_strided(shared_source source, const tensor::shape& shape,
                                          const std::vector<std::uint64_t>& strides,
                                          std::size_t width) {
    const bool empty = std::ranges::any_of(shape, [](auto n) { return n == 0; });
    layout view = joined(shape, strides);
    if (empty || view.shape.empty() || (view.shape.size() == 1 && view.steps[0] == 1)) {
        return source_window(std::move(source), 0);
    }
    if (view.steps.back() <= small_step) {
        return make_element_source(width, in_place(std::move(source), std::move(view), width));
    }
    return spooled([=] { return rearrange(*source, view, width); });
}

std::unique_ptr<byte_source> from_fortran_order(shared_source source, const tensor::shape& shape,
                                                std::size_t width) {
    std::vector<std::uint64_t> strides(shape.size(), 1);
    for (std::size_t k = 1; k < shape.size(); ++k) strides[k] = strides[k - 1] * shape[k - 1];
    return from_strided(std::move(source), shape, strides, width);
}

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
    // Runs of `run` bytes, `stride` bytes apart, the first at `start`.
    const std::uint64_t start = begin * inner;
    const std::uint64_t run = count * inner;
    const std::uint64_t stride = shape[axis] * inner;
    return make_source(
        [=](std::uint64_t offset, std::span<std::byte> out) {
            std::vector<std::byte> span;
            while (!out.empty()) {
                const std::uint64_t inside = offset % run;
                const std::uint64_t at = start + offset / run * stride + inside;
                std::size_t done =
                    static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), run - inside));
                // Whole short runs: read across the gaps, which takes less time than a call for
                // each.
                const std::uint64_t runs = inside != 0 || stride > widest_gap
                                               ? 0
                                               : std::min(out.size() / run, bulk / stride);
                if (runs > 1) {
                    span.resize(static_cast<std::size_t>((runs - 1) * stride + run));
                    source->read(at, span);
                    for (std::uint64_t i = 0; i < runs; ++i) {
                        std::memcpy(out.data() + i * run, span.data() + i * stride, run);
                    }
                    done = static_cast<std::size_t>(runs * run);
                } else {
                    source->read(at, out.first(done));
                }
                out = out.subspan(done);
                offset += done;
            }
        },
        [=](std::uint64_t offset, std::uint64_t bytes) {
            if (run == 0) return;
            const std::uint64_t first = offset / run;
            const std::uint64_t runs = std::min(bytes, bulk) / run + 1;
            source->expect(start + first * stride, runs * stride);
        });
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

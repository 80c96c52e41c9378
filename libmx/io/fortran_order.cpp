// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/fortran_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "libmx/io/spool.hpp"

namespace mx::io {
namespace {

// Bytes of a box; the largest spool in memory and a box stay within a source's bound together.
constexpr std::uint64_t box_bytes = 16 << 20;

// Moves one box: every run along the leading axes is read at once and its elements are put where
// C order wants them; then every run along the trailing axes is written at once.
class box_mover {
  public:
    box_mover(const byte_source& from, spool& to, const tensor::shape& shape, std::size_t width)
        : from_(from), to_(to), shape_(shape), axes_(shape.size()), width_(width) {
        in_stride_.assign(axes_, 1);
        out_stride_.assign(axes_, 1);
        for (std::size_t k = 1; k < axes_; ++k) in_stride_[k] = in_stride_[k - 1] * shape[k - 1];
        for (std::size_t k = axes_ - 1; k-- > 0;) {
            out_stride_[k] = out_stride_[k + 1] * shape[k + 1];
        }
    }

    void move(const tensor::shape& origin, const tensor::shape& extents) {
        std::vector<std::uint64_t> stride(axes_, 1);  // of C order inside the box
        for (std::size_t k = axes_ - 1; k-- > 0;) stride[k] = stride[k + 1] * extents[k + 1];
        box_.resize(static_cast<std::size_t>(stride[0] * extents[0]) * width_);
        gather(origin, extents, stride);
        scatter(origin, extents, stride);
    }

  private:
    // Axes from the given end whose box covers the whole extent can be joined into one run.
    void gather(const tensor::shape& origin, const tensor::shape& extents,
                const std::vector<std::uint64_t>& stride) {
        std::size_t joined = 1;
        std::uint64_t run = extents[0];
        while (joined < axes_ && extents[joined - 1] == shape_[joined - 1]) {
            run *= extents[joined++];
        }
        run_.resize(static_cast<std::size_t>(run) * width_);
        for_each(joined, axes_, extents, [&](const tensor::shape& at) {
            std::uint64_t place = 0;
            std::uint64_t box_place = 0;
            for (std::size_t k = 0; k < axes_; ++k) {
                place += (origin[k] + at[k]) * in_stride_[k];
                box_place += at[k] * stride[k];
            }
            from_.read(place * width_, run_);
            spread(joined, extents, stride, box_place);
        });
    }

    // Puts the run's elements, first axis fastest, into the box.
    void spread(std::size_t joined, const tensor::shape& extents,
                const std::vector<std::uint64_t>& stride, std::uint64_t base) {
        switch (width_) {
            case 1:
                return spread_as<std::uint8_t>(joined, extents, stride, base);
            case 2:
                return spread_as<std::uint16_t>(joined, extents, stride, base);
            case 4:
                return spread_as<std::uint32_t>(joined, extents, stride, base);
            case 8:
                return spread_as<std::uint64_t>(joined, extents, stride, base);
            default:
                return spread_as<std::pair<std::uint64_t, std::uint64_t>>(joined, extents, stride,
                                                                          base);
        }
    }
    template <class T>
    void spread_as(std::size_t joined, const tensor::shape& extents,
                   const std::vector<std::uint64_t>& stride, std::uint64_t base) {
        const std::byte* next = run_.data();
        for_each(1, joined, extents, [&](const tensor::shape& at) {
            std::uint64_t place = base;
            for (std::size_t k = 1; k < joined; ++k) place += at[k] * stride[k];
            std::byte* out = box_.data() + place * sizeof(T);
            for (std::uint64_t i = 0; i < extents[0]; ++i) {
                std::memcpy(out, next, sizeof(T));
                next += sizeof(T);
                out += stride[0] * sizeof(T);
            }
        });
    }

    void scatter(const tensor::shape& origin, const tensor::shape& extents,
                 const std::vector<std::uint64_t>& stride) {
        std::size_t first = axes_ - 1;
        while (first > 0 && extents[first] == shape_[first]) --first;
        const auto run = static_cast<std::size_t>(stride[first] * extents[first]) * width_;
        const std::byte* next = box_.data();
        for_each_c(first, extents, [&](const tensor::shape& at) {
            std::uint64_t place = 0;
            for (std::size_t k = 0; k < axes_; ++k) {
                place += (origin[k] + at[k]) * out_stride_[k];
            }
            to_.write(place * width_, std::span(next, run));
            next += run;
        });
    }

    // Calls `body` for all indices of axes [begin, end), the first fastest; others stay 0.
    template <class Body>
    static void for_each(std::size_t begin, std::size_t end, const tensor::shape& extents,
                         const Body& body) {
        tensor::shape at(extents.size(), 0);
        while (true) {
            body(at);
            std::size_t k = begin;
            while (k < end && ++at[k] == extents[k]) at[k++] = 0;
            if (k >= end) return;
        }
    }
    // The same for axes [0, end), the last fastest.
    template <class Body>
    static void for_each_c(std::size_t end, const tensor::shape& extents, const Body& body) {
        tensor::shape at(extents.size(), 0);
        while (true) {
            body(at);
            std::size_t k = end;
            while (k > 0 && ++at[k - 1] == extents[k - 1]) at[--k] = 0;
            if (k == 0) return;
        }
    }

    const byte_source& from_;
    spool& to_;
    const tensor::shape& shape_;
    std::size_t axes_;
    std::size_t width_;
    std::vector<std::uint64_t> in_stride_;
    std::vector<std::uint64_t> out_stride_;
    std::vector<std::byte> run_;
    std::vector<std::byte> box_;
};

class reordered final : public byte_source {
  public:
    reordered(shared_source source, tensor::shape shape, std::size_t width)
        : source_(std::move(source)), shape_(std::move(shape)), width_(width) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        {
            const std::lock_guard lock(mutex_);
            if (!result_) result_ = rearrange();
        }
        result_->read(offset, out);
    }

  private:
    std::unique_ptr<spool> rearrange() const {
        const std::uint64_t elements = *tensor::element_count(shape_);
        auto out = std::make_unique<spool>(elements * width_);
        if (elements == 0) return out;
        const tensor::shape box = transposition_box(shape_, box_bytes / width_);
        box_mover mover(*source_, *out, shape_, width_);
        tensor::shape origin(shape_.size(), 0);
        while (true) {
            tensor::shape extents(shape_.size());
            for (std::size_t k = 0; k < extents.size(); ++k) {
                extents[k] = std::min(box[k], shape_[k] - origin[k]);
            }
            mover.move(origin, extents);
            std::size_t k = shape_.size();
            while (k > 0) {
                origin[k - 1] += box[k - 1];
                if (origin[k - 1] < shape_[k - 1]) break;
                origin[--k] = 0;
            }
            if (k == 0) return out;
        }
    }

    shared_source source_;
    tensor::shape shape_;
    std::size_t width_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<spool> result_;
};

}  // namespace

tensor::shape transposition_box(const tensor::shape& shape, std::uint64_t budget) {
    const auto side = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(budget)));
    tensor::shape box(shape.size(), 1);
    std::uint64_t taken = 1;
    for (std::size_t k = 0; k < shape.size(); ++k) {
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

std::unique_ptr<byte_source> from_fortran_order(shared_source source, tensor::shape shape,
                                                std::size_t width) {
    return std::make_unique<reordered>(std::move(source), std::move(shape), width);
}

}  // namespace mx::io

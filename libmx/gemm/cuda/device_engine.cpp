// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/cuda/device_engine.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "libmx/base/parallel.hpp"

namespace mx::gemm::cuda {
namespace {

using base::cuda::device;
using base::cuda::held_memory;
using base::cuda::memory_kind;
using base::cuda::out_of_memory;

// Enough outputs to occupy a device, few enough for several kernels in flight.
constexpr std::size_t tile_side = 1024;
// Size of a piece of an operand on its way to the device, also while it is unpacked on the host.
constexpr std::size_t part_bytes = std::size_t{4} << 20;

constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    return b != 0 && a > all / b ? all : a * b;
}
std::uint64_t plus(std::uint64_t a, std::uint64_t b) { return a > all - b ? all : a + b; }

// The form and the size of an operand on the device.
struct operand_shape {
    operand_form form;
    step_kind kind;
    std::uint64_t length, steps, panels;

    operand_shape(const operand& x, const step_kind& k)
        : form(form_of(k)), kind(k), length(static_cast<std::uint64_t>(k.rule.length)) {
        steps = x.depth / length + (x.depth % length != 0 ? 1 : 0);
        panels = x.rows / panel_rows + (x.rows % panel_rows != 0 ? 1 : 0);
    }
    bool in_panels() const { return form != operand_form::plain; }
    // Of a row in a step.
    std::uint64_t row_bytes() const {
        if (form == operand_form::split) return split_bytes(kind.rule.length);
        if (form == operand_form::packed) return sizeof(packed_row);
        return length * sizeof(factor);
    }
    std::uint64_t scale_bytes() const {
        return in_panels() ? 0 : groups_of(kind) * sizeof(scale_factor);
    }
    // Of as many rows as are stored together: a panel, or one.
    std::uint64_t rows_at_once() const { return in_panels() ? panel_rows : 1; }
    std::uint64_t bytes_at_once() const {
        return times(times(steps, row_bytes() + scale_bytes()), rows_at_once());
    }
};

operand rows_of(const operand& x, std::size_t first, std::size_t rows) {
    const auto cut = [](const auto& from, std::size_t at, std::size_t count) {
        const auto begin = from.begin() + static_cast<std::ptrdiff_t>(at);
        return std::vector(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    operand part;
    part.rows = rows;
    part.depth = x.depth;
    part.format = x.format;
    part.codes = cut(x.codes, first * x.depth, rows * x.depth);
    part.scaling = x.scaling;
    part.scale_block = x.scale_block;
    if (x.scaling != 0) {
        const std::size_t blocks = (x.depth + x.scale_block - 1) / x.scale_block;
        part.scales = cut(x.scales, first * blocks, rows * blocks);
    }
    part.tensor_scale = x.tensor_scale;
    return part;
}

// Rows of a panel as they are on the device.
void fill_panels(const operand_shape& shape, const unpacked_operand& x, std::size_t rows,
                 int least_exponent, std::byte* to) {
    const std::size_t length = shape.length, bytes = shape.row_bytes();
    const std::size_t groups = groups_of(shape.kind);
    for (std::size_t r = 0; r < rows; ++r) {
        std::byte* const panel = to + r / panel_rows * shape.bytes_at_once();
        for (std::size_t s = 0; s < shape.steps; ++s) {
            std::byte* const row = panel + (s * panel_rows + r % panel_rows) * bytes;
            const factor* const f = x.row(r) + s * length;
            if (shape.form == operand_form::split) {
                split(f, shape.kind.rule.length, row);
            } else {
                const packed_row packed = pack(f, x.scale_row(r) + s * groups, least_exponent);
                std::memcpy(row, &packed, sizeof packed);
            }
        }
    }
}

// A pool of buffers, of the host and of the device. The first one always exists; if there is no
// memory for more, threads wait for one another.
class lane_pool {
  public:
    lane_pool(device& on, std::size_t pinned, std::size_t card)
        : device_(on), pinned_(pinned), card_(card) {
        idle_.push_back(made());
    }

    std::unique_ptr<base::cuda::lane> take() {
        std::unique_lock lock(guard_);
        if (idle_.empty() && !full_) {
            idle_.reserve(++lanes_);  // release must not fail
            lock.unlock();
            try {
                return made();
            } catch (const out_of_memory&) {
                lock.lock();
                full_ = true;
            }
        }
        returned_.wait(lock, [&] { return !idle_.empty(); });
        std::unique_ptr<base::cuda::lane> l = std::move(idle_.back());
        idle_.pop_back();
        return l;
    }
    void give_back(std::unique_ptr<base::cuda::lane> l) {
        {
            const std::lock_guard lock(guard_);
            idle_.push_back(std::move(l));
        }
        returned_.notify_one();
    }

  private:
    std::unique_ptr<base::cuda::lane> made() const {
        auto l = std::make_unique<base::cuda::lane>(device_);
        l->work();
        l->pinned.reserve(pinned_);
        if (card_ != 0) l->card.reserve(card_);
        return l;
    }

    device& device_;
    std::size_t pinned_, card_;
    std::mutex guard_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<base::cuda::lane>> idle_;
    std::size_t lanes_ = 1;
    bool full_ = false;
};

// RAII: always returned to the pool, because another thread may wait for it.
class borrowed_lane {
  public:
    explicit borrowed_lane(lane_pool& from) : from_(from), lane_(from.take()) {}
    borrowed_lane(const borrowed_lane&) = delete;
    borrowed_lane& operator=(const borrowed_lane&) = delete;
    ~borrowed_lane() {
        if (!done_) lane_->stop();
        from_.give_back(std::move(lane_));
    }
    base::cuda::lane* operator->() const { return lane_.get(); }
    void wait() {
        lane_->work().wait();
        done_ = true;
    }

  private:
    lane_pool& from_;
    std::unique_ptr<base::cuda::lane> lane_;
    bool done_ = false;
};

// An operand, on the device for the lifetime of the engine. Parts of it are unpacked, split or
// packed, and copied by several threads.
class resident_operand {
  public:
    resident_operand(device& on, const operand& x, const accumulator& m, const step_kind& kind,
                     int threads)
        : shape_(x, kind), rows_(on, memory_kind::device), scales_(on, memory_kind::device) {
        if (x.rows == 0 || shape_.steps == 0) return;
        const std::size_t at_once = shape_.rows_at_once();
        const std::size_t units = (x.rows + at_once - 1) / at_once;
        const std::size_t scales = shape_.steps * shape_.scale_bytes();
        const std::size_t bytes = shape_.bytes_at_once() - scales;
        rows_.reserve(units * bytes);
        if (scales != 0) scales_.reserve(units * scales);
        // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a row has bytes
        const std::size_t part =
            std::min(units, std::max<std::size_t>(1, part_bytes / shape_.bytes_at_once()));
        lane_pool lanes(on, part * (bytes + scales), 0);
        base::parallel_for((units + part - 1) / part, threads, nullptr, [&](std::uint64_t i, int) {
            borrowed_lane l(lanes);
            const std::size_t first = static_cast<std::size_t>(i) * part;
            const std::size_t count = std::min(part, units - first);
            const std::size_t rows = std::min(count * at_once, x.rows - first * at_once);
            std::byte* const here = l->pinned.data();
            const unpacked_operand unpacked = unpack_operand(rows_of(x, first * at_once, rows), m);
            if (shape_.in_panels()) {
                // Rows that fill up the last panel are zeros.
                if (rows % at_once != 0) std::memset(here + (count - 1) * bytes, 0, bytes);
                fill_panels(shape_, unpacked, rows, kind.least_exponent / 2, here);
            } else {
                std::memcpy(here, unpacked.factors.data(), count * bytes);
                if (scales != 0) {
                    std::memcpy(here + count * bytes, unpacked.scales.data(), count * scales);
                    l->work().copy_there(scales_.data() + first * scales, here + count * bytes,
                                         count * scales);
                }
            }
            l->work().copy_there(rows_.data() + first * bytes, here, count * bytes);
            l.wait();
        });
    }
    device_operand view() const {
        return {rows_.data(), reinterpret_cast<const scale_factor*>(scales_.data()), shape_.steps,
                shape_.panels};
    }

  private:
    operand_shape shape_;
    held_memory rows_, scales_;
};

void require_memory(device& on, std::uint64_t bytes) {
    static_assert(sizeof(std::size_t) == sizeof bytes);
    const base::cuda::memory_info now = on.memory();
    if (bytes == all || (now.all != 0 && bytes > now.free)) {
        throw out_of_memory(shortage_of(memory_kind::device, bytes, now));
    }
}

class device_engine final : public engine {
  public:
    device_engine(device& on, starter start, const operand& a, const operand& b,
                  const accumulator& m, int threads)
        : start_(start),
          kind_(kind_of(a, b, m)),
          a_(on, a, m, kind_, threads),
          b_(on, b, m, kind_, threads),
          lanes_(on, tile_bytes(a, b), tile_bytes(a, b)) {}

    void walk(const tile& t, const step_range& steps, std::uint32_t* acc) const override {
        const std::size_t bytes = t.rows * t.cols * sizeof *acc;
        borrowed_lane l(lanes_);
        std::byte* const here = l->pinned.reserve(bytes);
        std::byte* const there = l->card.reserve(bytes);
        std::memcpy(here, acc, bytes);
        l->work().copy_there(there, here, bytes);
        start_({kind_, a_.view(), b_.view(), t, steps, reinterpret_cast<std::uint32_t*>(there)},
               l->work());
        l->work().copy_back(here, there, bytes);
        l.wait();
        std::memcpy(acc, here, bytes);
    }

    std::size_t tile_rows() const override { return tile_side; }
    std::size_t tile_cols() const override { return tile_side; }

  private:
    static std::size_t tile_bytes(const operand& a, const operand& b) {
        return std::min(a.rows, tile_side) * std::min(b.rows, tile_side) * sizeof(std::uint32_t);
    }

    starter start_;
    step_kind kind_;
    resident_operand a_, b_;
    mutable lane_pool lanes_;
};

}  // namespace

std::uint64_t resident_bytes(const operand& a, const operand& b, const accumulator& m) {
    const step_kind kind = kind_of(a, b, m);
    const auto bytes = [&](const operand& x) {
        const operand_shape shape(x, kind);
        return times(shape.in_panels() ? shape.panels : x.rows, shape.bytes_at_once());
    };
    return plus(bytes(a), bytes(b));
}

std::unique_ptr<engine> make_device_engine(device& on, starter start, const operand& a,
                                           const operand& b, const accumulator& m, int threads) {
    // Checked before unpacking: factors take several times the memory of codes.
    require_memory(on, resident_bytes(a, b, m));
    return std::make_unique<device_engine>(on, start, a, b, m, threads);
}

}  // namespace mx::gemm::cuda

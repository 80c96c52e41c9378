// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/shards.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mx::io {
namespace {

// Boxes kept open. With fewer than lie side by side, each row of the tensor would open all again.
constexpr std::size_t open_limit = 4096;

bool holds(const shard_box& box, const tensor::shape& at) {
    for (std::size_t k = 0; k < at.size(); ++k) {
        if (at[k] < box.origin[k] || at[k] - box.origin[k] >= box.extents[k]) return false;
    }
    return true;
}

bool overlap(const shard_box& a, const shard_box& b) {
    for (std::size_t k = 0; k < a.origin.size(); ++k) {
        if (a.origin[k] + a.extents[k] <= b.origin[k] ||
            b.origin[k] + b.extents[k] <= a.origin[k]) {
            return false;
        }
    }
    return true;
}

class assembled {
  public:
    assembled(tensor::shape shape, std::vector<shard_box> boxes, std::size_t width,
              std::function<shared_source(std::uint64_t)> open)
        : shape_(std::move(shape)),
          boxes_(std::move(boxes)),
          width_(width),
          opened_(std::make_shared<source_cache>(open_limit, std::move(open))),
          order_(boxes_.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::ranges::sort(
            order_, {}, [this](std::size_t i) -> auto& { return boxes_[i].origin; });
    }

    void operator()(std::uint64_t first, std::span<std::byte> out) const {
        std::size_t guess = 0;
        while (!out.empty()) {
            const std::size_t done = read_run(first, out, guess);
            first += done / width_;
            out = out.subspan(done);
        }
    }

  private:
    // Reads from element `first` on as far as one box goes without a gap; returns the bytes.
    std::size_t read_run(std::uint64_t first, std::span<std::byte> out, std::size_t& guess) const {
        tensor::shape at(shape_.size());
        for (std::size_t k = shape_.size(); k-- > 0;) {
            at[k] = first % shape_[k];
            first /= shape_[k];
        }
        const std::size_t index = box_of(at, guess);
        const shard_box& box = boxes_[index];
        std::uint64_t place = 0;
        for (std::size_t k = 0; k < at.size(); ++k) {
            place = place * box.extents[k] + (at[k] - box.origin[k]);
        }
        // The run continues to the end of the box in the last axis that the box does not fill.
        std::uint64_t run = 1;
        std::uint64_t inner = 1;
        for (std::size_t k = at.size(); k-- > 0;) {
            run += (box.extents[k] - 1 - (at[k] - box.origin[k])) * inner;
            if (box.extents[k] != shape_[k]) break;
            inner *= box.extents[k];
        }
        const auto bytes =
            static_cast<std::size_t>(std::min<std::uint64_t>(run, out.size() / width_)) * width_;
        opened_->get(index)->read(place * width_, out.first(bytes));
        return bytes;
    }

    // Reads are mostly sequential: the box is usually that of the last run or one soon after it.
    std::size_t box_of(const tensor::shape& at, std::size_t& guess) const {
        for (std::size_t i = 0; i < order_.size(); ++i) {
            const std::size_t place = (guess + i) % order_.size();
            if (holds(boxes_[order_[place]], at)) {
                guess = place;
                return order_[place];
            }
        }
        input_error("a part of the tensor is in no shard", {});
    }

    tensor::shape shape_;
    std::vector<shard_box> boxes_;
    std::size_t width_;
    std::shared_ptr<source_cache> opened_;
    std::vector<std::size_t> order_;
};

}  // namespace

std::string check_shards(const tensor::shape& shape, const std::vector<shard_box>& boxes,
                         std::uint64_t& budget) {
    std::uint64_t covered = 0;
    std::vector<const shard_box*> order;
    for (const shard_box& box : boxes) {
        if (box.origin.size() != shape.size() || box.extents.size() != shape.size()) {
            return "a shard has another number of axes than the tensor";
        }
        for (std::size_t k = 0; k < shape.size(); ++k) {
            if (box.origin[k] > shape[k] || box.extents[k] > shape[k] - box.origin[k]) {
                return "a shard reaches beyond the tensor";
            }
        }
        const std::uint64_t count = *tensor::element_count(box.extents);  // at most the tensor's
        if (count == 0) continue;
        if (__builtin_add_overflow(covered, count, &covered)) return "its shards overlap";
        order.push_back(&box);
    }
    std::ranges::sort(order, {}, &shard_box::origin);
    // In the order of their first axis, only boxes that begin before this one ends can overlap it.
    for (std::size_t i = 0; i < order.size() && !shape.empty(); ++i) {
        for (std::size_t j = i + 1; j < order.size(); ++j) {
            if (budget == 0) return "it has too many shards";
            --budget;
            if (order[j]->origin[0] >= order[i]->origin[0] + order[i]->extents[0]) break;
            if (overlap(*order[i], *order[j])) return "its shards overlap";
        }
    }
    if (shape.empty() && order.size() > 1) return "its shards overlap";
    if (covered != *tensor::element_count(shape)) return "its shards leave a gap";
    return {};
}

std::unique_ptr<byte_source> from_shards(tensor::shape shape, std::vector<shard_box> boxes,
                                         std::size_t width,
                                         std::function<shared_source(std::uint64_t)> open) {
    return make_element_source(
        width, assembled(std::move(shape), std::move(boxes), width, std::move(open)));
}

}  // namespace mx::io

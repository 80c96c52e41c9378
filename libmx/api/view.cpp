// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "libmx/api/mx/mx.hpp"
#include "libmx/base/floating_point_environment.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/memory_tensor.hpp"
#include "libmx/io/widen.hpp"

namespace mx {

view::view(std::span<const float> values) : view(values.data(), dtype::f32, {values.size()}) {}

view::view(std::span<const float> values, std::uint64_t rows, std::uint64_t cols)
    : view(values.data(), dtype::f32, {rows, cols}) {
    if (values.size() == elements()) return;
    base::refuse("an array in memory: {} values do not make {} x {}", values.size(), rows, cols);
}

view::view(const void* data, dtype type, shape extents, std::vector<std::int64_t> strides)
    : file_(io::memory_tensor(data, type, std::move(extents), std::move(strides))) {}

view view::named(std::string name) const {
    return {io::renamed(file_, index_, std::move(name)), 0};
}

std::vector<float> view::values() const { return values(0, elements()); }

std::vector<float> view::values(std::uint64_t first, std::uint64_t count) const {
    const base::floating_point_environment ours;
    if (first > elements() || count > elements() - first) {
        base::refuse(fmt::format("values {} to {} of {}", first, first + count, elements()),
                     {info().file, info().name, {}});
    }
    std::vector<engine::skipped_tensor> skipped;
    if (engine::numeric_only({ref()}, skipped).empty()) {
        throw error(error_kind::input, skipped.front().reason, {info().file, info().name, {}});
    }
    std::vector<float> x(static_cast<std::size_t>(count));
    std::vector<std::byte> room;
    const auto source = file_->open(index_);
    constexpr std::size_t at_once = std::size_t{1} << 20;
    for (std::size_t at = 0; at < x.size(); at += at_once) {
        const auto part = std::span(x).subspan(at, std::min(at_once, x.size() - at));
        io::read_f32(*source, type(), first + at, part, room);
    }
    return x;
}

}  // namespace mx

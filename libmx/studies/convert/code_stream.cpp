// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/convert/code_stream.hpp"

#include <algorithm>

#include "libmx/block/packing.hpp"

namespace mx::convert {

code_stream::code_stream(io::array_writer& writer, std::size_t array, int bits,
                         std::uint64_t elements)
    : writer_(writer),
      array_(array),
      bits_(bits),
      elements_(elements),
      unit_(block::packing_unit(bits)) {}

void code_stream::put_edge(std::uint64_t first, std::span<const std::uint8_t> codes) {
    if (codes.empty()) return;
    const std::uint64_t unit = first / unit_;
    const std::uint64_t length = std::min(unit_, elements_ - unit * unit_);
    const std::lock_guard lock(guard_);
    piece& p = waiting_[unit];
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(first % unit_) + i;
        p.code[at] = codes[i];
        p.present |= 1u << at;
    }
    if (p.present != (1u << length) - 1u) return;
    std::array<std::byte, 4> bytes{};
    const std::size_t size = block::packed_bytes(bits_, length);
    block::pack(bits_, std::span(p.code).first(length), bytes);
    writer_.write(array_, block::packed_bytes(bits_, unit * unit_), std::span(bytes).first(size));
    waiting_.erase(unit);
}

void code_stream::put(std::uint64_t first, std::span<const std::uint8_t> codes) {
    const std::uint64_t end = first + codes.size();
    const std::uint64_t body = std::min(end, (first + unit_ - 1) / unit_ * unit_);
    const std::uint64_t tail = end == elements_ ? end : std::max(body, end / unit_ * unit_);
    put_edge(first, codes.first(body - first));
    if (tail > body) {
        const auto middle = codes.subspan(body - first, tail - body);
        std::vector<std::byte> bytes(block::packed_bytes(bits_, middle.size()));
        block::pack(bits_, middle, bytes);
        writer_.write(array_, block::packed_bytes(bits_, body), bytes);
    }
    put_edge(tail, codes.subspan(tail - first));
}

}  // namespace mx::convert

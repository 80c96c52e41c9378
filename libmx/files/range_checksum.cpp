// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/range_checksum.hpp"

#include <zlib.h>

#include <algorithm>

namespace mx::io {
namespace {

constexpr std::size_t parts_limit = 1 << 16;

std::uint32_t crc_of(std::span<const std::byte> bytes) {
    uLong crc = ::crc32(0, nullptr, 0);
    while (!bytes.empty()) {
        const std::size_t count = std::min<std::size_t>(bytes.size(), 1 << 30);
        crc = ::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(count));
        bytes = bytes.subspan(count);
    }
    return static_cast<std::uint32_t>(crc);
}

std::uint32_t joined(std::uint32_t before, std::uint32_t after, std::uint64_t after_bytes) {
    return static_cast<std::uint32_t>(
        ::crc32_combine(before, after, static_cast<z_off_t>(after_bytes)));
}

}  // namespace

bool range_checksum::add(std::uint64_t offset, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    if (settled_) return true;
    const std::uint64_t end = offset + bytes.size();
    std::uint64_t at = offset;
    while (at < end) {
        // Skip what is known, then take what lies before the next known part.
        auto next = parts_.upper_bound(at);
        if (next != parts_.begin() && std::prev(next)->second.end > at) {
            at = std::prev(next)->second.end;
            continue;
        }
        const std::uint64_t stop = next == parts_.end() ? end : std::min(end, next->first);
        const auto fresh = bytes.subspan(static_cast<std::size_t>(at - offset),
                                         static_cast<std::size_t>(stop - at));
        insert(at, {stop, crc_of(fresh)});
        at = stop;
    }
    if (parts_.size() > parts_limit) {
        settled_ = true;
        parts_.clear();
        return true;
    }
    const bool whole = size_ == 0 || (parts_.size() == 1 && parts_.begin()->first == 0 &&
                                      parts_.begin()->second.end == size_);
    if (!whole) return true;
    settled_ = true;
    return size_ == 0 ? expected_ == 0 : parts_.begin()->second.crc == expected_;
}

void range_checksum::insert(std::uint64_t begin, part added) {
    const auto after = parts_.find(added.end);
    if (after != parts_.end()) {
        added = {after->second.end,
                 joined(added.crc, after->second.crc, after->second.end - after->first)};
        parts_.erase(after);
    }
    const auto next = parts_.lower_bound(begin);
    if (next != parts_.begin() && std::prev(next)->second.end == begin) {
        part& before = std::prev(next)->second;
        before = {added.end, joined(before.crc, added.crc, added.end - begin)};
    } else {
        parts_.emplace(begin, added);
    }
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/zip_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mx::io {
namespace {

constexpr std::size_t end_bytes = 22;
constexpr std::size_t locator_bytes = 20;
constexpr std::size_t entry_bytes = 46;
constexpr std::size_t longest_comment = 65535;
// So few are fast whatever their names.
constexpr std::uint64_t few_entries = 4096;
// Comparisons of names: a fraction of a second. Names that nobody chose to collide need a few each.
constexpr std::uint64_t comparisons_floor = std::uint64_t{1} << 24;
constexpr std::uint64_t comparisons_each = 256;
constexpr std::size_t ends_limit = 4;

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
    T value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

// Where an end says that the directory is.
struct stated_directory {
    std::uint64_t offset, entries;
};

class directory_check {
  public:
    directory_check(const input_file& file, std::uint64_t begin, std::uint64_t size)
        : file_(file), begin_(begin), size_(size) {}

    void run() {
        const auto tail_bytes = static_cast<std::size_t>(
            std::min<std::uint64_t>(size_, end_bytes + locator_bytes + longest_comment));
        const std::string tail = read(size_ - tail_bytes, tail_bytes);
        std::size_t ends = 0;
        constexpr std::string_view mark = "PK\5\6";
        for (std::size_t at = tail.find(mark); at != std::string::npos;
             at = tail.find(mark, at + 1)) {
            if (tail.size() - at < end_bytes) break;
            std::vector<stated_directory> stated{
                {number_at<std::uint32_t>(tail, at + 16), number_at<std::uint16_t>(tail, at + 10)}};
            add_large(tail, at, stated);
            bool valid = false;
            for (const stated_directory& each : stated) valid = check(each) || valid;
            if (valid && ++ends > ends_limit) {
                fail(fmt::format("is a zip archive with more than {} directories", ends_limit));
            }
        }
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        input_error(message, {file_.path(), {}, {}});
    }
    std::string read(std::uint64_t offset, std::size_t count) const {
        std::string bytes(count, '\0');
        file_.read(begin_ + offset, std::as_writable_bytes(std::span(bytes.data(), count)));
        return bytes;
    }

    // That of zip64, to which a locator before the end points.
    void add_large(std::string_view tail, std::size_t end,
                   std::vector<stated_directory>& to) const {
        constexpr std::size_t large_bytes = 56;
        if (end < locator_bytes) return;
        const std::string_view locator = tail.substr(end - locator_bytes, locator_bytes);
        if (!locator.starts_with("PK\6\7")) return;
        const auto at = number_at<std::uint64_t>(locator, 8);
        if (at > size_ || size_ - at < large_bytes) return;
        const std::string large = read(at, large_bytes);
        to.push_back({number_at<std::uint64_t>(large, 48), number_at<std::uint64_t>(large, 32)});
    }

    // Whether the directory begins there; fails if its names collide.
    bool check(const stated_directory& stated) const {
        if (stated.offset > size_ || size_ - stated.offset < entry_bytes) return false;
        if (!read(stated.offset, 4).starts_with("PK\1\2")) return false;
        const std::uint64_t most = std::min(stated.entries, (size_ - stated.offset) / entry_bytes);
        if (most > few_entries) check_names(stated.offset, most);
        return true;
    }

    void check_names(std::uint64_t offset, std::uint64_t most) const {
        std::vector<std::uint32_t> chains(std::bit_ceil(most + most / 3));  // at most 75 % full
        std::uint64_t comparisons = 0, unusual = 0;
        std::string piece;
        std::size_t at = 0;
        // The next `count` bytes; none at the end.
        const auto next = [&](std::size_t count) -> std::string_view {
            if (piece.size() - at < count) {
                offset += at;
                constexpr std::size_t usual = std::size_t{1} << 18;
                piece = read(offset, static_cast<std::size_t>(std::min<std::uint64_t>(
                                         size_ - offset, std::max(usual, count))));
                at = 0;
                if (piece.size() < count) return {};
            }
            return std::string_view(piece).substr(std::exchange(at, at + count), count);
        };
        for (std::uint64_t i = 0; i < most; ++i) {
            const std::string_view entry = next(entry_bytes);
            if (!entry.starts_with("PK\1\2")) return;
            const std::size_t name_bytes = number_at<std::uint16_t>(entry, 28);
            const std::size_t more = std::size_t{number_at<std::uint16_t>(entry, 30)} +
                                     number_at<std::uint16_t>(entry, 32);
            const std::string_view name = next(name_bytes + more).substr(0, name_bytes);
            if (name.size() < name_bytes) return;
            // The hash of libzip, of a name that it takes as it is.
            std::uint32_t hash = 5381;
            for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
            comparisons += chains[hash & (chains.size() - 1)]++;
            unusual += base::printable(std::string(name)) == name ? 0 : 1;
            if (comparisons > comparisons_floor + comparisons_each * most) {
                fail("is a zip archive whose names were chosen to collide in the table of libzip");
            }
            if (unusual > few_entries) {
                fail(fmt::format("is a zip archive with more than {} names that are not UTF-8",
                                 few_entries));
            }
        }
    }

    const input_file& file_;
    std::uint64_t begin_, size_;
};

}  // namespace

void check_zip_directory(const input_file& file, std::uint64_t begin, std::uint64_t size) {
    directory_check(file, begin, size).run();
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/watch_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "libmx/base/natural_order.hpp"
#include "libmx/base/status.hpp"
#include "libmx/documents/watch.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/spool.hpp"
#include "libmx/report/json_line.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

// Searches for the start of a line in pieces of this size.
constexpr std::size_t log_piece = std::size_t{1} << 20;
constexpr std::string_view line_beginning = "{\"schema\":\"mx.watch/1\",";

}  // namespace

watch_log::watch_log(std::string path) : path_(std::move(path)) {
    descriptor_ = path_.empty() ? io::open_unnamed_file()
                                : ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("cannot open");
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail("cannot open");
    if (!S_ISREG(status.st_mode)) {
        ::close(descriptor_);
        base::refuse("--log: is no regular file; the next start reads it", {path_, {}, {}});
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        ::close(descriptor_);
        base::refuse("--log: another mx watch writes it", {path_, {}, {}});
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
    try {
        read_lines();
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

watch_log::~watch_log() { ::close(descriptor_); }

void watch_log::fail(const char* what) const {
    throw base::error(base::error_kind::output, fmt::format("{}: {}", what, std::strerror(errno)),
                      {path_, {}, {}});
}

void watch_log::read_lines() {
    std::uint64_t begin = 0;
    std::string piece(log_piece, '\0');
    for (std::uint64_t at = 0; at < size_;) {
        const ssize_t got =
            ::pread(descriptor_, piece.data(), piece.size(), static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) fail("cannot read");
        const std::string_view text(piece.data(), static_cast<std::size_t>(got));
        for (std::size_t end = text.find('\n'); end != std::string_view::npos;
             end = text.find('\n', end + 1)) {
            const extent line{begin, at + end - begin};
            const report::record r = read(line, false);
            if (report::text_of(r, "schema") != documents::watch_schema) {
                throw base::error(
                    base::error_kind::input,
                    fmt::format("line {} is not a line of mx watch; name another --log",
                                lines_.size() + 1),
                    {path_, {}, begin});
            }
            names_.push_back(report::text_of(r, "checkpoint"));
            lines_.push_back(line);
            begin = at + end + 1;
        }
        at += static_cast<std::uint64_t>(got);
    }
    if (begin == size_) return;
    // The beginning of an incomplete first line shows that the file is a log of mx watch.
    const std::string_view beginning =
        std::string_view(piece).substr(0, std::min<std::uint64_t>(size_, line_beginning.size()));
    if (begin == 0 && !line_beginning.starts_with(beginning)) {
        throw base::error(base::error_kind::input,
                          "has no whole line of mx watch; remove it, or name another --log",
                          {path_, {}, {}});
    }
    if (::ftruncate(descriptor_, static_cast<off_t>(begin)) != 0)
        fail("cannot cut off half a line");
    size_ = begin;
}

report::record watch_log::read(const extent& line, bool results) const {
    std::uint64_t done = 0;
    report::read_options options;
    options.keep = [=](std::string_view) { return results; };
    report::results_file parts = report::read_results(
        [&](std::span<char> out) -> std::size_t {
            const auto want =
                static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), line.size - done));
            ssize_t got = -1;
            do {
                got = ::pread(descriptor_, out.data(), want, static_cast<off_t>(line.begin + done));
            } while (got < 0 && errno == EINTR);
            if (got < 0) fail("cannot read");
            done += static_cast<std::uint64_t>(got);
            return static_cast<std::size_t>(got);
        },
        path_.empty() ? "the log" : path_, options);
    report::record whole = std::move(parts.head);
    if (results) {
        whole.emplace_back("results", report::list(parts.results.begin(), parts.results.end()));
    }
    return whole;
}

std::optional<report::record> watch_log::last() const {
    if (lines_.empty()) return std::nullopt;
    return read(lines_.back(), true);
}

std::vector<report::record> watch_log::before(const std::string& name, std::size_t count) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < names_.size(); ++i) {
        if (base::naturally_less(names_[i], name)) order.push_back(i);
    }
    std::ranges::sort(order, base::naturally_less, [&](std::size_t i) { return names_[i]; });
    const std::size_t first = order.size() - std::min(count, order.size());
    std::vector<report::record> lines;
    for (std::size_t i = first; i < order.size(); ++i)
        lines.push_back(read(lines_[order[i]], true));
    return lines;
}

void watch_log::append(const report::record& line) {
    const std::string text = report::json_line(line) + "\n";
    if (!io::write_fully(descriptor_, size_, std::as_bytes(std::span(text.data(), text.size()))) ||
        ::fdatasync(descriptor_) != 0) {
        const int why = errno;
        // The next start would truncate the incomplete line as well.
        if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) errno = 0;
        errno = why;
        fail("cannot write");
    }
    names_.push_back(report::text_of(line, "checkpoint"));
    lines_.push_back({size_, text.size() - 1});
    size_ += text.size();
}

}  // namespace mx::app

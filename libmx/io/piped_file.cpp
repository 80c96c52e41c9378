// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/piped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/io/spool.hpp"

namespace mx::io {
namespace {

constexpr std::size_t pipe_piece = std::size_t{1} << 20;

// Closes its descriptor unless that was released.
class open_descriptor {
  public:
    explicit open_descriptor(int descriptor) : descriptor_(descriptor) {}
    ~open_descriptor() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    open_descriptor(const open_descriptor&) = delete;
    open_descriptor& operator=(const open_descriptor&) = delete;
    int get() const { return descriptor_; }
    int release() { return std::exchange(descriptor_, -1); }

  private:
    int descriptor_;
};

[[noreturn]] void fail(const std::string& path, const char* what) {
    input_error(fmt::format("{}: {}", what, std::strerror(errno)), {path, {}, {}});
}

// Reads available bytes, waiting for some; 0 at the end. A signal ends the wait, not the read.
std::size_t read_some(int descriptor, const std::string& path, std::span<std::byte> out) {
    while (true) {
        pollfd ready{descriptor, POLLIN, 0};
        if (::poll(&ready, 1, -1) < 0) {
            if (errno == EINTR) throw base::error(base::error_kind::cancelled, "interrupted");
            fail(path, "cannot read");
        }
        const ssize_t got = ::read(descriptor, out.data(), out.size());
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR && errno != EAGAIN) fail(path, "cannot read");
    }
}

shared_file spooled_file(int from, const std::string& path) {
    open_descriptor to(open_unnamed_file());
    std::vector<std::byte> piece(pipe_piece);
    std::uint64_t size = 0;
    while (const std::size_t got = read_some(from, path, piece)) {
        if (!write_fully(to.get(), size, std::span(piece).first(got))) {
            throw base::error(
                base::error_kind::output,
                fmt::format("cannot copy {} to a temporary file: {}; set TMPDIR to a directory "
                            "with room",
                            path == standard_input ? "standard input" : path, std::strerror(errno)),
                {temporary_directory(), {}, {}});
        }
        size += got;
    }
    return input_file::adopt(to.release(), path, size);
}

shared_file read_standard_input() {
    const std::string path(standard_input);
    open_descriptor from(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    struct stat status {};
    if (from.get() < 0 || ::fstat(from.get(), &status) != 0) fail(path, "cannot read");
    if (::isatty(from.get()) != 0) {
        base::refuse("'-': standard input is a terminal; pipe a file into mx, or name one");
    }
    if (S_ISDIR(status.st_mode)) input_error("standard input is a directory", {path, {}, {}});
    if (S_ISREG(status.st_mode) && ::lseek(from.get(), 0, SEEK_CUR) == 0) {
        return input_file::adopt(from.release(), path, static_cast<std::uint64_t>(status.st_size));
    }
    return spooled_file(from.get(), path);
}

}  // namespace

bool is_pipe(const std::string& path) {
    struct stat status {};
    return path == standard_input ||
           (::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode));
}

shared_file open_pipe(const std::string& path) {
    static std::mutex guard;
    static shared_file standard;  // what was read cannot be read again
    static std::map<std::string, std::weak_ptr<const input_file>> named;
    const std::lock_guard lock(guard);
    if (path == standard_input) {
        if (!standard) standard = read_standard_input();
        return standard;
    }
    if (shared_file known = named[path].lock()) return known;
    // Opens without blocking: it waits for the bytes, not for the writer.
    const open_descriptor from(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (from.get() < 0) fail(path, "cannot open");
    shared_file file = spooled_file(from.get(), path);
    named[path] = file;
    return file;
}

shared_file open_named(const std::string& path) {
    return is_pipe(path) ? open_pipe(path) : input_file::open(path);
}

}  // namespace mx::io

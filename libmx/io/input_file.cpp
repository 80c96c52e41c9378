// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libmx/io/remote.hpp"

namespace mx::io {
namespace {

// One pread moves at most 2 GiB; stay well below so that the arithmetic is the same everywhere.
constexpr std::size_t read_limit = std::size_t{1} << 30;

class local_file final : public input_file {
  public:
    local_file(std::string path, int descriptor, std::uint64_t size)
        : input_file(std::move(path), size), descriptor_(descriptor) {}
    ~local_file() override { ::close(descriptor_); }

    int descriptor() const override { return descriptor_; }
    void read(std::uint64_t offset, std::span<std::byte> out,
              std::string_view tensor) const override;
    void expect(std::uint64_t offset, std::uint64_t bytes) const override;

  private:
    int descriptor_;
};

}  // namespace

void input_error(const std::string& message, base::error_place place) {
    throw base::error(base::error_kind::input, message, std::move(place));
}

shared_file input_file::open(const std::string& path) {
    if (is_remote(path)) return open_remote(path);
    // Non-blocking, so that a pipe given by mistake is an error and not a silent wait.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        input_error(fmt::format("cannot open: {}", std::strerror(errno)), {path, {}, {}});
    }
    struct stat status {};
    const bool known = ::fstat(descriptor, &status) == 0;
    if (!known || !S_ISREG(status.st_mode)) {
        const bool directory = known && S_ISDIR(status.st_mode);
        ::close(descriptor);
        input_error(directory ? "is a directory; name a file in it"
                              : "is not a regular file; mx reads by position, so store it first",
                    {path, {}, {}});
    }
    return adopt(descriptor, path, static_cast<std::uint64_t>(status.st_size));
}

shared_file input_file::adopt(int descriptor, std::string path, std::uint64_t size) {
    return std::make_shared<const local_file>(std::move(path), descriptor, size);
}

input_file::input_file(std::string path, std::uint64_t size)
    : path_(std::move(path)), size_(size) {}

void local_file::read(std::uint64_t offset, std::span<std::byte> out,
                      std::string_view tensor) const {
    std::size_t done = 0;
    while (done < out.size()) {
        const std::uint64_t at = offset + done;
        const std::size_t want = std::min(out.size() - done, read_limit);
        const ssize_t got =
            at < size() ? ::pread(descriptor_, out.data() + done, want, static_cast<off_t>(at)) : 0;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            input_error(fmt::format("cannot read: {}", std::strerror(errno)),
                        {path(), std::string(tensor), at});
        }
        if (got == 0) {
            input_error(fmt::format("the file ends here, {} bytes early; it is cut short or "
                                    "changed while being read",
                                    out.size() - done),
                        {path(), std::string(tensor), at});
        }
        done += static_cast<std::size_t>(got);
    }
}

void local_file::expect(std::uint64_t offset, std::uint64_t bytes) const {
    if (bytes == 0 || offset >= size()) return;
    const std::uint64_t count = std::min(bytes, size() - offset);
    // Advice to the system; it affects only the time that reading takes.
    posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(count),
                  POSIX_FADV_WILLNEED);
}

std::string input_file::head(std::size_t count) const {
    std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(count, size_)), '\0');
    read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    return text;
}

}  // namespace mx::io

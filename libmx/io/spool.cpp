// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

[[noreturn]] void fail(const char* what) {
    throw base::error(base::error_kind::output,
                      fmt::format("{} a temporary file: {}; set TMPDIR to a directory with room",
                                  what, std::strerror(errno)),
                      {temporary_directory(), {}, {}});
}

}  // namespace

std::string temporary_directory() {
    const char* directory = std::getenv("TMPDIR");
    return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

int open_unnamed_file() {
    std::string name = temporary_directory() + "/mx.XXXXXX";
    const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor < 0) fail("cannot create");
    ::unlink(name.c_str());
    return descriptor;
}

bool write_fully(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t done =
            ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(done));
        offset += static_cast<std::uint64_t>(done);
    }
    return true;
}

spool::spool(std::uint64_t size) : size_(size) {
    if (size_ <= spool_memory_limit) {
        memory_.resize(static_cast<std::size_t>(size_));
    } else {
        descriptor_ = open_unnamed_file();
    }
}

spool::~spool() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void spool::write(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (descriptor_ < 0) {
        std::ranges::copy(bytes, memory_.begin() + static_cast<std::ptrdiff_t>(offset));
        return;
    }
    if (!write_fully(descriptor_, offset, bytes)) fail("cannot write");
}

void spool::read(std::uint64_t offset, std::span<std::byte> out) const {
    if (offset > size_ || out.size() > size_ - offset) {
        input_error("read past the end of the tensor", {});
    }
    if (descriptor_ < 0) {
        std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
        return;
    }
    while (!out.empty()) {
        const ssize_t got =
            ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) fail("cannot read");
        out = out.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
}

std::unique_ptr<byte_source> spooled(std::function<std::unique_ptr<spool>()> make) {
    struct result {
        std::mutex mutex;
        std::unique_ptr<spool> bytes;
    };
    return make_source([make = std::move(make), made = std::make_shared<result>()](
                           std::uint64_t offset, std::span<std::byte> out) {
        {
            const std::lock_guard lock(made->mutex);
            if (!made->bytes) made->bytes = make();
        }
        made->bytes->read(offset, out);
    });
}

}  // namespace mx::io

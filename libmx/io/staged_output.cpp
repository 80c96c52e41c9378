// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/staged_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/pipe_write.hpp"
#include "libmx/io/spool.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t copy_bytes = 1 << 20;

// Stages that exist right now, so that an interrupted program can remove them.
std::mutex registry_mutex;
std::set<std::string>& registry() {
    static std::set<std::string> stages;
    return stages;
}

// The descriptor that a path stands for, -1 when it stands for none.
int descriptor_named(const std::string& path) {
    if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
    if (path == "/dev/stderr") return STDERR_FILENO;
    for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
        if (!path.starts_with(prefix)) continue;
        int number = -1;
        const char* const end = path.data() + path.size();
        const auto [next, problem] = std::from_chars(path.data() + prefix.size(), end, number);
        if (problem == std::errc{} && next == end && number >= 0) return number;
    }
    return -1;
}

// Follows symbolic links even when the last one leads nowhere yet.
std::string follow_links(std::string path) {
    std::error_code failure;
    for (int hops = 0; hops < 40 && fs::is_symlink(path, failure); ++hops) {
        const fs::path next = fs::read_symlink(path, failure);
        if (failure) break;
        path = next.is_absolute() ? next.string() : (fs::path(path).parent_path() / next).string();
    }
    return path;
}

std::string_view what_to_do(int error_number) {
    switch (error_number) {
        case ENOSPC:
        case EDQUOT:
            return "; free some room, or write to another disk";
        case EFBIG:
            return "; raise the limit on file sizes (ulimit -f), or write less";
        default:
            return "";
    }
}

}  // namespace

void discard_unfinished_outputs() noexcept {
    const std::lock_guard lock(registry_mutex);
    for (const std::string& stage : registry()) ::unlink(stage.c_str());
    registry().clear();
}

staged_output::staged_output(const std::string& path) : path_(path) {
    resolve();
    if (!target_.empty()) create_stage();
}

staged_output::~staged_output() { drop(); }

void staged_output::fail(std::string_view what, int error_number) const {
    const bool closed = error_number == EPIPE;
    throw base::error(
        closed ? base::error_kind::closed_pipe : base::error_kind::output,
        fmt::format("{}: {}{}", what, std::strerror(error_number), what_to_do(error_number)),
        {path_ == "-" ? "standard output" : path_, {}, {}});
}

void staged_output::resolve() {
    if (path_.empty()) {
        throw base::error(base::error_kind::output, "the output's name is empty");
    }
    direct_ = descriptor_named(path_);
    if (direct_ >= 0) {
        if (::fcntl(direct_, F_GETFD) < 0) fail("cannot write", errno);
        return;
    }
    struct stat status {};
    if (::stat(path_.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) fail("cannot write", EISDIR);
        if (::access(path_.c_str(), W_OK) != 0) fail("cannot write", errno);
        if (!S_ISREG(status.st_mode)) return;
        replaces_ = true;
        mode_ = status.st_mode & 07777u;
    } else if (errno != ENOENT) {
        fail("cannot write", errno);
    }
    target_ = follow_links(path_);
}

void staged_output::create_stage() {
    const fs::path beside =
        target_.empty() ? fs::path(temporary_directory()) / "mx-output" : fs::path(target_);
    std::random_device random;
    for (int attempt = 0; attempt < 100; ++attempt) {
        // The name is cut so that the suffix fits the usual limit of 255 bytes.
        const std::string name =
            fmt::format(".{}.{:08x}.tmp", beside.filename().string().substr(0, 200), random());
        const std::string stage = (beside.parent_path() / name).string();
        const std::lock_guard lock(registry_mutex);
        // Created with the permissions that the umask leaves, as any new file.
        descriptor_ = ::open(stage.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ < 0 && errno == EEXIST) continue;
        if (descriptor_ < 0) fail("cannot create a file in its directory", errno);
        stage_ = stage;
        registry().insert(stage_);
        return;
    }
    fail("cannot create a file in its directory", EEXIST);
}

void staged_output::reserve(std::uint64_t size) {
    if (descriptor_ < 0) create_stage();
    if (size > static_cast<std::uint64_t>(INT64_MAX)) fail("cannot reserve room", EFBIG);
    const auto length = static_cast<off_t>(size);
    if (length > 0 && ::fallocate(descriptor_, 0, 0, length) != 0 &&
        (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) {
        fail(fmt::format("cannot reserve {} bytes", size), errno);
    }
    if (::ftruncate(descriptor_, length) != 0) fail("cannot set the size", errno);
}

void staged_output::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (descriptor_ < 0) create_stage();
    while (!bytes.empty()) {
        const ssize_t done =
            ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail("cannot write", errno);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
        offset += static_cast<std::uint64_t>(done);
    }
}

void staged_output::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
        const ssize_t got = descriptor_ < 0 ? 0
                                            : ::pread(descriptor_, bytes.data(), bytes.size(),
                                                      static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("cannot read back", errno);
        if (got == 0) break;
        bytes = bytes.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
}

void staged_output::commit(std::uint64_t tail_offset, std::string_view tail) {
    if (target_.empty()) {
        copy_out(tail);
        drop();
        committed_ = true;
        return;
    }
    write_at(tail_offset, std::as_bytes(std::span(tail.data(), tail.size())));
    if (replaces_ && ::fchmod(descriptor_, mode_) != 0) fail("cannot set permissions", errno);
    if (::fsync(descriptor_) != 0) fail("cannot write", errno);
    const int closing = descriptor_;
    descriptor_ = -1;
    if (::close(closing) != 0) fail("cannot write", errno);
    const std::lock_guard lock(registry_mutex);
    if (::rename(stage_.c_str(), target_.c_str()) != 0) fail("cannot put in place", errno);
    registry().erase(stage_);
    committed_ = true;
}

// Devices and pipes take the bytes in order; nothing of theirs is replaced or truncated.
void staged_output::copy_out(std::string_view tail) {
    const int out = direct_ >= 0 ? ::fcntl(direct_, F_DUPFD_CLOEXEC, 3)
                                 : ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (out < 0) fail("cannot write", errno);
    int failure = 0;
    if (descriptor_ >= 0) {
        std::vector<std::byte> buffer(copy_bytes);
        off_t at = 0;
        ssize_t got = 0;
        while (failure == 0 && (got = ::pread(descriptor_, buffer.data(), copy_bytes, at)) > 0) {
            failure = write_all(out, std::span(buffer).first(static_cast<std::size_t>(got)));
            at += got;
        }
        if (failure == 0 && got < 0) failure = errno;
    }
    if (failure == 0) failure = write_all(out, std::as_bytes(std::span(tail.data(), tail.size())));
    if (::close(out) != 0 && failure == 0) failure = errno;
    if (failure != 0) fail("cannot write", failure);
}

void staged_output::drop() noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
    if (stage_.empty() || committed_) return;
    const std::lock_guard lock(registry_mutex);
    // Only what is still ours: after discard_unfinished_outputs() the name may be someone else's.
    if (registry().erase(stage_) != 0) ::unlink(stage_.c_str());
}

}  // namespace mx::io

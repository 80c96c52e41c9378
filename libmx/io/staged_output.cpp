// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/staged_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "libmx/base/parsed.hpp"
#include "libmx/io/spool.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t buffer_bytes = 1 << 20;

// Stages that exist now, so that an interrupted program can remove them.
std::mutex registry_mutex;
std::set<std::string>& registry() {
    static auto* const stages = new std::set<std::string>();  // never destroyed: for exit handlers
    return *stages;
}
// Held while the registry changes, by threads and, until the process ends, by a signal handler.
std::atomic<bool> registry_held{false};
static_assert(std::atomic<bool>::is_always_lock_free, "taken in a signal handler");

class registry_lock {
  public:
    registry_lock() {
        while (registry_held.exchange(true)) std::this_thread::yield();
    }
    ~registry_lock() { registry_held = false; }
    registry_lock(const registry_lock&) = delete;
    registry_lock& operator=(const registry_lock&) = delete;

  private:
    const std::lock_guard<std::mutex> lock_{registry_mutex};
};

// The descriptor that a path refers to, -1 if it is none.
int descriptor_named(const std::string& path) {
    if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
    if (path == "/dev/stderr") return STDERR_FILENO;
    for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
        if (!path.starts_with(prefix)) continue;
        const auto number = base::parsed<int>(path.substr(prefix.size()));
        if (number && *number >= 0) return *number;
    }
    return -1;
}

// Follows symbolic links even if the last target does not exist yet.
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
    if (error_number == ENOSPC || error_number == EDQUOT) {
        return "; free some space, or write to another disk";
    }
    if (error_number == EFBIG) return "; raise the limit on file sizes (ulimit -f), or write less";
    return "";
}

// Blocks SIGPIPE on this thread, and consumes one that our own writing caused.
class quiet_pipe {
  public:
    quiet_pipe() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~quiet_pipe() {
        const timespec now{0, 0};
        if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    quiet_pipe(const quiet_pipe&) = delete;
    quiet_pipe& operator=(const quiet_pipe&) = delete;

  private:
    sigset_t pipe_;
    sigset_t before_;
    bool was_pending_ = false;
};

// Writes all of `bytes` to what may be a pipe; 0, or the errno of the failure. A pipe without a
// reader is EPIPE here, however the program handles the signal SIGPIPE.
int write_all(int descriptor, std::span<const std::byte> bytes) noexcept {
    const quiet_pipe guard;
    while (!bytes.empty()) {
        const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == EAGAIN) {  // the pipe is non-blocking
            pollfd wait{descriptor, POLLOUT, 0};
            ::poll(&wait, 1, -1);
            continue;
        }
        if (done < 0) return errno;
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return 0;
}

// Stages of `file` that a killed program left: nobody holds their lock, and they are older than the
// moment in which a new one has none yet.
void clear_abandoned(const fs::path& file) {
    constexpr time_t moment = 60;
    const std::string prefix = "." + file.filename().string().substr(0, 200) + ".";
    const std::string suffix = ".tmp";
    std::error_code failure;
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
         at.increment(failure)) {
        const std::string name = at->path().filename().string();
        if (name.size() != prefix.size() + 8 + suffix.size() || !name.starts_with(prefix) ||
            !name.ends_with(suffix)) {
            continue;
        }
        const int left = ::open(at->path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (left < 0) continue;
        struct stat status {};
        if (::fstat(left, &status) == 0 && S_ISREG(status.st_mode) &&
            status.st_mtime + moment < ::time(nullptr) && ::flock(left, LOCK_EX | LOCK_NB) == 0) {
            ::unlink(at->path().c_str());
        }
        ::close(left);
    }
}

class staged_arrays final : public array_writer {
  public:
    staged_arrays(std::unique_ptr<staged_output> stage, std::vector<array_place> places)
        : stage_(std::move(stage)), places_(std::move(places)) {}

    void write(std::size_t index, std::uint64_t offset, std::span<const std::byte> bytes) override {
        const array_place& place = places_.at(index);
        if (offset > place.bytes || bytes.size() > place.bytes - offset) {
            output_error(fmt::format("bytes {} to {} are outside array {} of {} bytes", offset,
                                     offset + bytes.size(), index, place.bytes),
                         {stage_->path(), {}, {}});
        }
        stage_->write_at(place.offset + offset, bytes);
    }
    void commit() override { stage_->commit(); }

  private:
    std::unique_ptr<staged_output> stage_;
    std::vector<array_place> places_;
};

}  // namespace

void output_error(const std::string& message, base::error_place place) {
    throw base::error(base::error_kind::output, message, std::move(place));
}

void discard_unfinished_outputs() noexcept {
    const registry_lock lock;
    for (const std::string& stage : registry()) ::unlink(stage.c_str());
    registry().clear();
}

bool discard_unfinished_outputs_on_signal() noexcept {
    if (registry_held.exchange(true)) return false;
    for (const std::string& stage : registry()) ::unlink(stage.c_str());
    return true;
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
    if (path_.empty()) output_error("the output's name is empty", {});
    direct_ = descriptor_named(path_);
    if (direct_ >= 0) {
        if (::fcntl(direct_, F_GETFD) < 0) fail("cannot write", errno);
        if (path_ == "-" && ::isatty(direct_) != 0) {
            throw base::error(base::error_kind::usage,
                              "standard output is a terminal, and this is binary: name a file, "
                              "or pipe it on");
        }
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
    clear_abandoned(beside);
    std::random_device random;
    for (int attempt = 0; attempt < 100; ++attempt) {
        // The name is cut so that the suffix fits the usual limit of 255 bytes.
        const std::string name =
            fmt::format(".{}.{:08x}.tmp", beside.filename().string().substr(0, 200), random());
        const std::string stage = (beside.parent_path() / name).string();
        const registry_lock lock;
        // Created with the permissions that the umask leaves, as any new file.
        descriptor_ = ::open(stage.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ < 0 && errno == EEXIST) continue;
        if (descriptor_ < 0) fail("cannot create a file in its directory", errno);
        ::flock(descriptor_, LOCK_EX | LOCK_NB);
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
    if (!write_fully(descriptor_, offset, bytes)) fail("cannot write", errno);
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
    std::ranges::fill(bytes, std::byte{0});
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
    const registry_lock lock;
    if (::rename(stage_.c_str(), target_.c_str()) != 0) fail("cannot put in place", errno);
    registry().erase(stage_);
    committed_ = true;
}

// Devices and pipes receive the bytes in order; nothing of theirs is replaced or truncated.
void staged_output::copy_out(std::string_view tail) {
    const int out = direct_ >= 0 ? ::fcntl(direct_, F_DUPFD_CLOEXEC, 3)
                                 : ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (out < 0) fail("cannot write", errno);
    int failure = 0;
    if (descriptor_ >= 0) {
        std::vector<std::byte> buffer(buffer_bytes);
        off_t at = 0;
        ssize_t got = 0;
        while (failure == 0 && (got = ::pread(descriptor_, buffer.data(), buffer_bytes, at)) > 0) {
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
    const registry_lock lock;
    // Only what is still ours: after discard_unfinished_outputs() the name may belong to another
    // program.
    if (registry().erase(stage_) != 0) ::unlink(stage_.c_str());
}

std::unique_ptr<array_writer> stage_arrays(const std::string& path, const std::string& header,
                                           std::vector<array_place> places) {
    std::uint64_t size = header.size();
    for (array_place& place : places) {
        place.offset += header.size();
        size = std::max(size, place.offset + place.bytes);
    }
    auto stage = std::make_unique<staged_output>(path);
    stage->reserve(size);
    stage->write_at(0, std::as_bytes(std::span(header)));
    return stage_arrays(std::move(stage), std::move(places));
}

std::unique_ptr<array_writer> stage_arrays(std::unique_ptr<staged_output> stage,
                                           std::vector<array_place> places) {
    return std::make_unique<staged_arrays>(std::move(stage), std::move(places));
}

std::uint64_t planned_bytes(const std::string& path, const planned_array& array) {
    const auto elements = tensor::element_count(array.shape);
    const auto bytes = elements ? tensor::byte_count(array.type, *elements) : std::nullopt;
    if (!bytes) {
        output_error(fmt::format("shape {} is too large", tensor::to_string(array.shape)),
                     {path, array.name, {}});
    }
    return *bytes;
}

struct output_file::impl {
    explicit impl(const std::string& path) : stage(path) {}

    staged_output stage;
    std::string buffer;          // appended, not yet written
    std::uint64_t appended = 0;  // bytes before the buffer
};

output_file::output_file(const std::string& path) : impl_(std::make_unique<impl>(path)) {}
output_file::~output_file() = default;
output_file::output_file(output_file&&) noexcept = default;
output_file& output_file::operator=(output_file&&) noexcept = default;

void output_file::append(std::string_view text) {
    impl_->buffer += text;
    if (impl_->buffer.size() < buffer_bytes) return;
    write_at(impl_->appended, std::as_bytes(std::span(impl_->buffer)));
    impl_->appended += impl_->buffer.size();
    impl_->buffer.clear();
}

void output_file::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    impl_->stage.write_at(offset, bytes);
}

void output_file::commit() { impl_->stage.commit(impl_->appended, impl_->buffer); }

}  // namespace mx::io

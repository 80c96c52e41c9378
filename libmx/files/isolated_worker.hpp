// SPDX-License-Identifier: Apache-2.0
// A child process for a library that is not safe with a hostile file: if it hangs, crashes or uses
// all memory, the caller reports that in one line and continues.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace mx::io {

struct worker_limits {
    unsigned cpu_seconds = 15;                      ///< CPU time for one request
    unsigned wall_seconds = 600;                    ///< time for one request
    std::uint64_t memory = std::uint64_t{1} << 30;  ///< bytes on top of what the caller has mapped
};

/// A forked child that answers requests one at a time, until this object is destroyed. Requests are
/// thread-safe. The child has only one of the caller's open files, ignores interrupts from the
/// terminal, and ends by itself when the caller is gone.
class isolated_worker {
  public:
    /// Most bytes of one answer in the window.
    static constexpr std::size_t window_bytes = 4 << 20;

    /// Runs in the child: answers a request, and may write bytes to the window.
    using service = std::function<std::string(std::string_view request, std::span<std::byte>)>;

    /// Forks. The child calls `make` for its service and runs that. `library` ("the HDF5 library")
    /// and `file` are named in errors. Only the calling thread exists in the child, so `make` must
    /// not need a lock that another may hold. Throws base::error (input) if the system cannot start
    /// another process.
    isolated_worker(std::string library, std::string file, const worker_limits& limits,
                    const std::function<service()>& make);
    ~isolated_worker();
    isolated_worker(const isolated_worker&) = delete;
    isolated_worker& operator=(const isolated_worker&) = delete;

    /// The child's answer; `out` is filled from the start of the window. Throws what the service
    /// threw if that was a base::error, and base::error (input) naming file and library if the
    /// child exceeds its limits or dies, then and for every later request.
    std::string ask(std::string_view request, std::span<std::byte> out = {}) const;

  private:
    [[noreturn]] void run_child(int socket, const std::function<service()>& make);
    [[noreturn]] void end(const std::string& reason) const;
    [[noreturn]] void lost() const;
    void receive(std::span<std::byte> out, std::int64_t deadline) const;
    int reap() const;

    std::string library_;
    std::string file_;
    worker_limits limits_;
    std::byte* window_ = nullptr;
    mutable std::mutex mutex_;
    mutable int socket_ = -1;
    mutable pid_t child_ = -1;
    mutable std::string failure_;  ///< why there is no child any more
};

/// Numbers and texts put one after the other, as the two sides exchange them.
class message_writer {
  public:
    message_writer& number(std::uint64_t value);
    message_writer& text(std::string_view value);
    std::string finish() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// Reads what message_writer wrote. The sender is not trusted: throws base::error (input) if the
/// bytes end early.
class message_reader {
  public:
    explicit message_reader(std::string_view bytes) : rest_(bytes) {}
    std::uint64_t number();
    std::string text();
    /// A number of things that follow, each of which takes at least eight bytes.
    std::uint64_t count();

  private:
    std::string_view rest_;
};

}  // namespace mx::io

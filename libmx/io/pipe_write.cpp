// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/pipe_write.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace mx::io {
namespace {

// Holds SIGPIPE back on this thread, and takes one that our own writing caused.
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

}  // namespace

int write_all(int descriptor, std::span<const std::byte> bytes) noexcept {
    const quiet_pipe guard;
    while (!bytes.empty()) {
        const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == EAGAIN) {  // somebody made the pipe non-blocking
            pollfd wait{descriptor, POLLOUT, 0};
            ::poll(&wait, 1, -1);
            continue;
        }
        if (done < 0) return errno;
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return 0;
}

}  // namespace mx::io

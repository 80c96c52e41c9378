// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/isolated_worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "libmx/io/input_file.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MX_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MX_SANITIZED 1
#endif

namespace mx::io {
namespace {

constexpr std::uint64_t answer_limit = 256 << 20;
constexpr int child_socket = 3;

struct answer_head {
    std::uint64_t failed;
    std::uint64_t length;
};

bool send_all(int socket, const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

bool receive_all(int socket, void* data, std::size_t size) {
    char* at = static_cast<char*>(data);
    while (size > 0) {
        const ssize_t got = ::recv(socket, at, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= static_cast<std::size_t>(got);
    }
    return true;
}

std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// What names a limit is an enumerator in one C library and a number in another.
template <class Resource>
void set_limit(Resource which, rlim_t value) {
    rlimit limit{};
    if (::getrlimit(which, &limit) != 0) return;
    limit.rlim_cur = std::min(value, limit.rlim_max);
    ::setrlimit(which, &limit);
}

// The bytes that are mapped: the smallest limit under which one more page is granted. /proc may not
// be mounted.
std::uint64_t mapped_bytes() {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::uint64_t low = 0, high = std::uint64_t{1} << 50;  // pages; more than any address space
    while (low < high) {
        const std::uint64_t middle = (low + high) / 2;
        set_limit(RLIMIT_AS, middle * page);
        void* const more = ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (more != MAP_FAILED) ::munmap(more, page);
        (more == MAP_FAILED ? low : high) = more == MAP_FAILED ? middle + 1 : middle;
    }
    return low * page;
}

// Memory mapped before the fork is not counted: it is the caller's, and huge under sanitizers.
void limit_memory(std::uint64_t bytes) { set_limit(RLIMIT_AS, mapped_bytes() + bytes); }

void limit_processor_time(unsigned seconds) {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto spent = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
    // The microseconds of both can make two seconds more.
    set_limit(RLIMIT_CPU, spent + 2 + seconds);
}

// The child must not use the caller's handlers, open files and terminal.
void leave_caller_behind(int socket) {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGXCPU, SIGALRM}) {
        std::signal(number, SIG_DFL);
    }
    for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGPIPE}) std::signal(number, SIG_IGN);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(socket, child_socket);
    ::close_range(child_socket + 1, ~0u, 0);
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nowhere, STDIN_FILENO);
    ::dup2(nowhere, STDOUT_FILENO);
#if !defined(MX_SANITIZED)  // their reports are for us
    ::dup2(nowhere, STDERR_FILENO);
#endif
    if (nowhere > STDERR_FILENO) ::close(nowhere);
}

std::string encode(const base::error& e) {
    return message_writer()
        .number(static_cast<std::uint64_t>(e.kind()))
        .text(e.message())
        .text(e.place().file)
        .text(e.place().tensor)
        .number(e.place().offset ? 1 : 0)
        .number(e.place().offset.value_or(0))
        .finish();
}

[[noreturn]] void rethrow(const std::string& encoded) {
    message_reader from(encoded);
    const auto kind = static_cast<base::error_kind>(
        std::min<std::uint64_t>(from.number(), static_cast<int>(base::error_kind::closed_pipe)));
    std::string message = from.text();
    base::error_place place;
    place.file = from.text();
    place.tensor = from.text();
    const bool has_offset = from.number() != 0;
    const std::uint64_t offset = from.number();
    if (has_offset) place.offset = offset;
    throw base::error(kind, std::move(message), std::move(place));
}

[[noreturn]] void damaged_answer() {
    input_error("the answer of the reading process is damaged", {});
}

}  // namespace

isolated_worker::isolated_worker(std::string library, std::string file, const worker_limits& limits,
                                 const std::function<service()>& make)
    : library_(std::move(library)), file_(std::move(file)), limits_(limits) {
    const auto give_up = [&] {
        input_error(fmt::format("cannot start a process to read it: {}", std::strerror(errno)),
                    {file_, {}, {}});
    };
    void* const window =
        ::mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (window == MAP_FAILED) give_up();
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        ::munmap(window, window_bytes);
        give_up();
    }
    window_ = static_cast<std::byte*>(window);
    child_ = ::fork();
    if (child_ == 0) run_child(ends[1], make);
    ::close(ends[1]);
    if (child_ < 0) {
        const int problem = errno;
        ::close(ends[0]);
        ::munmap(window, window_bytes);
        errno = problem;
        give_up();
    }
    socket_ = ends[0];
}

isolated_worker::~isolated_worker() {
    if (child_ > 0) reap();
    ::munmap(window_, window_bytes);
}

void isolated_worker::run_child(int socket, const std::function<service()>& make) {
    leave_caller_behind(socket);
    set_limit(RLIMIT_CORE, 0);
    limit_memory(limits_.memory);
    service answer;
    const std::span window(window_, window_bytes);
    const auto refusal = [this](const std::string& why) {
        return encode(base::error(base::error_kind::input, why, {file_, {}, {}}));
    };
    while (true) {
        std::uint64_t length = 0;
        if (!receive_all(child_socket, &length, sizeof length)) ::_exit(0);
        std::string request(static_cast<std::size_t>(length), '\0');
        if (!receive_all(child_socket, request.data(), request.size())) ::_exit(0);
        limit_processor_time(limits_.cpu_seconds);
        std::string reply;
        bool failed = true;
        try {
            if (!answer) answer = make();
            reply = answer(request, window);
            failed = reply.size() > answer_limit;
            if (failed) reply = refusal("lists more than any real file");
        } catch (const base::error& e) {
            reply = encode(e);
        } catch (const std::bad_alloc&) {
            reply =
                refusal(fmt::format("{} needs more than {} MiB for it; the file is damaged or "
                                    "hostile",
                                    library_, limits_.memory >> 20));
        } catch (const std::exception& e) {
            reply = refusal(e.what());
        }
        const answer_head head{failed ? 1u : 0u, reply.size()};
        if (!send_all(child_socket, &head, sizeof head) ||
            !send_all(child_socket, reply.data(), reply.size())) {
            ::_exit(0);
        }
    }
}

// The child's end as waitpid reports it, -1 when it was collected elsewhere.
int isolated_worker::reap() const {
    ::close(std::exchange(socket_, -1));
    const pid_t child = std::exchange(child_, -1);
    siginfo_t still{};
    // The process id may belong to another process by now. A child that is ending already keeps its
    // own reason.
    if (::waitid(P_PID, static_cast<id_t>(child), &still, WEXITED | WNOHANG | WNOWAIT) == 0) {
        ::kill(child, SIGKILL);
    }
    int status = -1;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return status;
}

void isolated_worker::end(const std::string& reason) const {
    failure_ = fmt::format("{} {}; the file is damaged or hostile", library_, reason);
    input_error(failure_, {file_, {}, {}});
}

// The child has closed its end.
void isolated_worker::lost() const {
    const int status = reap();
    if (status >= 0 && WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        if (number == SIGXCPU) {
            end(fmt::format("was stopped after {} s of work on one request", limits_.cpu_seconds));
        }
        end(fmt::format("crashed ({})", ::strsignal(number)));
    }
    end("ended unexpectedly");
}

void isolated_worker::receive(std::span<std::byte> out, std::int64_t deadline) const {
    std::size_t done = 0;
    while (done < out.size()) {
        pollfd waiting{socket_, POLLIN, 0};
        const std::int64_t left = std::clamp<std::int64_t>(deadline - now_ms(), 0, 1 << 30);
        const int ready = ::poll(&waiting, 1, static_cast<int>(left));
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) {
            reap();
            end(fmt::format("did not answer within {} s", limits_.wall_seconds));
        }
        const ssize_t got = ::recv(socket_, out.data() + done, out.size() - done, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) lost();
        done += static_cast<std::size_t>(got);
    }
}

std::string isolated_worker::ask(std::string_view request, std::span<std::byte> out) const {
    const std::lock_guard lock(mutex_);
    if (child_ < 0) input_error(failure_, {file_, {}, {}});
    const std::int64_t deadline = now_ms() + std::int64_t{1000} * limits_.wall_seconds;
    const std::uint64_t length = request.size();
    if (!send_all(socket_, &length, sizeof length) ||
        !send_all(socket_, request.data(), request.size())) {
        lost();
    }
    answer_head head{};
    receive(std::as_writable_bytes(std::span(&head, 1)), deadline);
    if (head.length > answer_limit) {
        reap();
        end("answered with nonsense");
    }
    std::string reply(static_cast<std::size_t>(head.length), '\0');
    receive(std::as_writable_bytes(std::span(reply.data(), reply.size())), deadline);
    if (head.failed != 0) rethrow(reply);
    if (!out.empty()) std::memcpy(out.data(), window_, std::min(out.size(), window_bytes));
    return reply;
}

message_writer& message_writer::number(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
}

message_writer& message_writer::text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
    return *this;
}

std::uint64_t message_reader::number() {
    std::uint64_t value = 0;
    if (rest_.size() < sizeof value) damaged_answer();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
}

std::string message_reader::text() {
    const std::uint64_t length = number();
    if (length > rest_.size()) damaged_answer();
    std::string value(rest_.substr(0, static_cast<std::size_t>(length)));
    rest_.remove_prefix(value.size());
    return value;
}

std::uint64_t message_reader::count() {
    const std::uint64_t value = number();
    if (value > rest_.size() / sizeof value) damaged_answer();
    return value;
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "tests/host_device/host_device.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>
#include <utility>

namespace mx::base::cuda {
namespace {

// The alignment that cudaMalloc guarantees.
constexpr std::align_val_t alignment{256};

class host_graph final : public graph {
  public:
    host_graph(host_stream& on, std::vector<std::function<void()>> work)
        : on_(on), work_(std::move(work)) {}
    void start() override {
        for (const std::function<void()>& step : work_) on_.queue(step);
    }

  private:
    host_stream& on_;
    std::vector<std::function<void()>> work_;
};

}  // namespace

host_stream::~host_stream() {
    try {
        wait();
    } catch (const std::exception&) {
        // Nobody asks any more.
    }
}

void host_stream::copy_there(std::byte* device, const std::byte* host, std::size_t bytes) {
    require_no_capture();
    if (observe_) observe_(host, bytes);
    queue([=] { std::memcpy(device, host, bytes); });
}

void host_stream::copy_rows_there(std::byte* device, const std::byte* host, std::size_t bytes,
                                  std::size_t rows, std::size_t pitch) {
    for (std::size_t r = 0; r < rows; ++r) copy_there(device + r * bytes, host + r * pitch, bytes);
}

void host_stream::copy_back(std::byte* host, const std::byte* device, std::size_t bytes) {
    require_no_capture();
    queue([=] { std::memcpy(host, device, bytes); });
}

void host_stream::send(std::byte* device, const void* host, std::size_t bytes) {
    require_no_capture();
    const auto* const from = static_cast<const std::byte*>(host);
    if (observe_) observe_(from, bytes);
    queue([device, sent = std::vector<std::byte>(from, from + bytes)] {
        std::ranges::copy(sent, device);
    });
}

void host_stream::copy_across(std::byte* to, const std::byte* from, std::size_t bytes) {
    queue([=] { std::memcpy(to, from, bytes); });
}

void host_stream::wait() {
    require_no_capture();
    try {
        run(done_ + queued_.size());
    } catch (...) {
        done_ += queued_.size();
        queued_.clear();
        throw;
    }
}

void host_stream::run(std::size_t until) {
    while (done_ < until) {
        const std::function<void()> step = std::move(queued_.front());
        queued_.pop_front();
        ++done_;
        step();
    }
}

void host_stream::follow(stream& other) {
    auto& before = *static_cast<host_stream*>(other.handle());
    if (std::erase(forks_, &before) != 0) {
        std::ranges::move(before.captured_, std::back_inserter(captured_));
        before.captured_.clear();
        before.capturing_ = false;
    } else if (before.capturing_) {
        before.forks_.push_back(this);
        capturing_ = true;
    } else {
        queue([&before, until = before.done_ + before.queued_.size()] { before.run(until); });
    }
}

void host_stream::begin_capture() {
    require_no_capture();
    capturing_ = true;
}

std::unique_ptr<graph> host_stream::end_capture() {
    capturing_ = false;
    std::vector<std::function<void()>> work = std::exchange(captured_, {});
    for (host_stream* const fork : forks_) {
        fork->capturing_ = false;
        fork->captured_.clear();
    }
    if (!std::exchange(forks_, {}).empty()) {
        throw error(error_kind::unavailable, "the capture ends before streams that are part of it");
    }
    return std::make_unique<host_graph>(*this, std::move(work));
}

// A GPU refuses what cannot be part of a graph.
void host_stream::require_no_capture() const {
    if (capturing_) throw std::logic_error("the stream captures a graph");
}

std::byte* host_device::take(memory_kind kind, std::size_t bytes) {
    {
        const std::lock_guard lock(guard_);
        const std::size_t i = index_of(kind);
        if (refused() || bytes > most_[i] - held_[i]) {
            throw out_of_memory(shortage_of(
                kind, bytes, {most_[0] - held_[0], static_cast<std::uint64_t>(most_[0])}));
        }
        held_[i] += bytes;
        peak_[i] = std::max(peak_[i], held_[i]);
    }
    auto* const memory = static_cast<std::byte*>(::operator new(bytes, alignment));
    std::memset(memory, 0xa5, bytes);
    return memory;
}

void host_device::give_back(memory_kind kind, std::byte* memory, std::size_t bytes) noexcept {
    ::operator delete(memory, alignment);
    const std::lock_guard lock(guard_);
    held_[index_of(kind)] -= bytes;
}

std::unique_ptr<stream> host_device::make_stream() {
    const std::lock_guard lock(guard_);
    if (refused()) throw out_of_memory("the card has no room for a stream");
    return std::make_unique<host_stream>(observe_);
}

namespace {

// That of someone else.
class lent_stream final : public stream {
  public:
    explicit lent_stream(host_stream& of) : of_(of) {}
    void copy_there(std::byte* device, const std::byte* host, std::size_t bytes) override {
        of_.copy_there(device, host, bytes);
    }
    void copy_rows_there(std::byte* device, const std::byte* host, std::size_t bytes,
                         std::size_t rows, std::size_t pitch) override {
        of_.copy_rows_there(device, host, bytes, rows, pitch);
    }
    void copy_back(std::byte* host, const std::byte* device, std::size_t bytes) override {
        of_.copy_back(host, device, bytes);
    }
    void send(std::byte* device, const void* host, std::size_t bytes) override {
        of_.send(device, host, bytes);
    }
    void copy_across(std::byte* to, const std::byte* from, std::size_t bytes) override {
        of_.copy_across(to, from, bytes);
    }
    void wait() override { of_.wait(); }
    void follow(stream& other) override { of_.follow(other); }
    void begin_capture() override { of_.begin_capture(); }
    std::unique_ptr<graph> end_capture() override { return of_.end_capture(); }
    void* handle() override { return of_.handle(); }

  private:
    host_stream& of_;
};

}  // namespace

std::unique_ptr<stream> host_stream_device::make_stream() {
    return std::make_unique<lent_stream>(on_);
}

memory_info host_device::memory() noexcept {
    const std::lock_guard lock(guard_);
    return {most_[0] - held_[0], most_[0]};
}

std::size_t host_device::held(memory_kind kind) const {
    const std::lock_guard lock(guard_);
    return held_[index_of(kind)];
}

std::size_t host_device::peak(memory_kind kind) const {
    const std::lock_guard lock(guard_);
    return peak_[index_of(kind)];
}

std::size_t host_device::asked() const {
    const std::lock_guard lock(guard_);
    return asked_;
}

bool host_device::refused() {
    const std::size_t number = asked_++;
    return refuses_ && refuses_(number);
}

}  // namespace mx::base::cuda

// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/cuda/watched_device.hpp"

#include <algorithm>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/codec/cuda/batch_layout.hpp"

namespace mx::lab::cuda {

using base::cuda::graph;
using base::cuda::memory_kind;
using base::cuda::stream;
using codec::cuda::padded;

class watched_device::watched_stream final : public stream {
  public:
    watched_stream(watched_device& by, std::unique_ptr<stream> of) : by_(by), of_(std::move(of)) {
        by_.stream_ = this;
    }
    ~watched_stream() override { by_.stream_ = nullptr; }

    void copy_there(std::byte* device, const std::byte* host, std::size_t bytes) override {
        by_.require_no_capture();
        of_->copy_there(device, host, bytes);
    }
    void copy_rows_there(std::byte* device, const std::byte* host, std::size_t bytes,
                         std::size_t rows, std::size_t pitch) override {
        by_.require_no_capture();
        of_->copy_rows_there(device, host, bytes, rows, pitch);
    }
    void copy_back(std::byte* host, const std::byte* device, std::size_t bytes) override {
        by_.require_no_capture();
        of_->copy_back(host, device, bytes);
    }
    void send(std::byte* device, const void* host, std::size_t bytes) override {
        if (!by_.collects_) {
            by_.sent_bytes_ += padded(bytes);
            return of_->send(device, host, bytes);
        }
        collection& to = *by_.collects_;
        const std::size_t at = to.bytes.size();
        if (padded(bytes) > to.most - at) by_.require_no_capture();
        to.bytes.resize(at + padded(bytes));
        std::copy_n(static_cast<const std::byte*>(host), bytes, to.bytes.data() + at);
        of_->copy_across(device, to.sent + at, bytes);
    }
    void copy_across(std::byte* to, const std::byte* from, std::size_t bytes) override {
        of_->copy_across(to, from, bytes);
    }
    void wait() override {
        by_.require_no_capture();
        of_->wait();
    }
    void* handle() override { return of_->handle(); }
    void follow(stream& other) override { of_->follow(other); }
    void begin_capture() override { of_->begin_capture(); }
    std::unique_ptr<graph> end_capture() override { return of_->end_capture(); }

  private:
    watched_device& by_;
    std::unique_ptr<stream> of_;
};

void watched_device::require_no_capture() const {
    if (!collects_) return;
    throw base::error(base::error_kind::unavailable, "this cannot be part of a graph");
}

std::byte* watched_device::take(memory_kind kind, std::size_t bytes) {
    require_no_capture();
    return on_.take(kind, bytes);
}

void watched_device::give_back(memory_kind kind, std::byte* memory, std::size_t bytes) noexcept {
    ++frees_;
    const auto free = [this, kind, memory, bytes] { on_.give_back(kind, memory, bytes); };
    if (!collects_) return free();
    collects_->frees.push_back(free);
}

std::unique_ptr<stream> watched_device::make_stream() {
    return std::make_unique<watched_stream>(*this, on_.make_stream());
}

std::unique_ptr<graph> watched_device::captured(const std::function<void()>& work) {
    if (stream_ == nullptr) return nullptr;
    try {
        stream_->begin_capture();
        try {
            work();
        } catch (...) {
            stream_->end_capture();
            throw;
        }
        std::unique_ptr<graph> made = stream_->end_capture();
        return collects_->frees.empty() ? std::move(made) : nullptr;
    } catch (const base::error&) {
        return nullptr;
    }
}

std::unique_ptr<graph> watched_device::capture(const std::function<void()>& work, std::byte* sent,
                                               std::size_t bytes) {
    // Ends the collection, whether `work` throws or not.
    struct collecting {
        std::optional<collection>& what;
        ~collecting() {
            const auto ended = std::exchange(what, std::nullopt);
            for (const auto& free : ended->frees) free();
        }
    };
    collects_.emplace(collection{sent, bytes, {}, {}});
    std::unique_ptr<graph> made;
    std::vector<std::byte> here;
    {
        const collecting now{collects_};
        made = captured(work);
        here = std::move(collects_->bytes);
    }
    if (made && !here.empty()) stream_->send(sent, here.data(), here.size());
    return made;
}

}  // namespace mx::lab::cuda

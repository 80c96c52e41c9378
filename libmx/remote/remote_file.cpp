// SPDX-License-Identifier: Apache-2.0
// A remote file as an input_file: a few threads request ranges ahead of the reader, into a bounded
// store for all remote files.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "libmx/base/start_thread.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/remote/server.hpp"

namespace mx::io {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t piece_limit = 8 * mib;    // bytes of one request
constexpr std::uint64_t ahead_limit = 64 * mib;   // between the reader and the last request
constexpr std::uint64_t least_guess = mib;        // bytes that are worth a request on a guess
constexpr std::uint64_t store_limit = 192 * mib;  // of all files, requests in progress included
constexpr std::size_t connections = 8;
// Tensors with smaller gaps count as consecutive: padding, headers of zip entries.
constexpr std::uint64_t gap_limit = 64 << 10;
constexpr std::size_t first_bytes = 512;  // enough to recognise a format

std::uint64_t border_after(std::uint64_t at) { return (at / piece_limit + 1) * piece_limit; }

// Bytes of a file, received or requested.
struct piece {
    std::shared_ptr<server> from;
    std::uint64_t begin = 0;
    std::vector<std::byte> bytes;
    std::uint64_t number = 0;  // of the latest use
    bool there = false;
    bool read = false;  // up to its end
    std::exception_ptr failure;

    std::uint64_t end() const { return begin + bytes.size(); }
};
using shared_piece = std::shared_ptr<piece>;

// The pieces of one file, disjoint, by their first byte.
using piece_map = std::map<std::uint64_t, shared_piece>;

// The pieces of all files, and the threads that fetch them.
class piece_store {
  public:
    static piece_store& instance() {
        static piece_store store;
        return store;
    }

    ~piece_store() {
        {
            const std::lock_guard lock(guard_);
            stop_ = true;
            for (http_session* s : sessions_) s->wake();
        }
        wanted_.notify_all();
        for (std::thread& t : threads_) t.join();
    }

    // Requests the missing bytes of [begin, end), in pieces that end at multiples of their limit.
    // Bytes from `sure` on are speculative: with `must` they are not requested alone, otherwise if
    // there are enough of them and there is space.
    void want(const std::shared_ptr<server>& from, std::uint64_t begin, std::uint64_t end,
              std::uint64_t sure, bool must) {
        const std::lock_guard lock(guard_);
        piece_map& pieces = files_[from.get()];
        while (begin < end) {
            auto next = pieces.upper_bound(begin);
            if (next != pieces.begin() && std::prev(next)->second->end() > begin) {
                begin = std::prev(next)->second->end();
                continue;
            }
            std::uint64_t stop = std::min(end, border_after(begin));
            if (next != pieces.end()) stop = std::min(stop, next->first);
            if (begin >= sure && (must || stop - begin < least_guess)) return;
            if (!evict_for(stop - begin, must)) return;
            add_thread();
            auto fresh = std::make_shared<piece>();
            fresh->from = from;
            fresh->begin = begin;
            fresh->bytes.resize(static_cast<std::size_t>(stop - begin));
            fresh->number = ++uses_;
            held_ += stop - begin;
            pieces.emplace(begin, fresh);
            queue_.insert(must ? queue_.begin() : queue_.end(), fresh);
            wanted_.notify_one();
            begin = stop;
        }
    }

    // Waits for the piece with byte `at`; null if none was requested.
    shared_piece get(const server* from, std::uint64_t at, std::uint64_t end) {
        std::unique_lock lock(guard_);
        piece_map& pieces = files_[from];
        const auto next = pieces.upper_bound(at);
        if (next == pieces.begin() || std::prev(next)->second->end() <= at) return nullptr;
        shared_piece found = std::prev(next)->second;
        found->number = ++uses_;
        arrived_.wait(lock, [&] { return found->there; });
        found->read = found->read || end >= found->end();
        if (found->failure) std::rethrow_exception(found->failure);
        return found;
    }

    void keep(const std::shared_ptr<server>& from, std::vector<std::byte> head) {
        const std::lock_guard lock(guard_);
        auto known = std::make_shared<piece>();
        known->bytes = std::move(head);
        known->there = true;
        held_ += known->bytes.size();
        if (!known->bytes.empty()) files_[from.get()].emplace(0, std::move(known));
    }

    void forget(const server* from) {
        const std::lock_guard lock(guard_);
        const auto file = files_.find(from);
        if (file == files_.end()) return;
        for (const auto& [begin, p] : file->second) held_ -= p->bytes.size();
        std::erase_if(queue_, [&](const shared_piece& p) { return p->from.get() == from; });
        files_.erase(file);
    }

  private:
    // One thread is necessary; more are faster.
    void add_thread() {
        if (threads_.size() == connections) return;
        try {
            threads_.push_back(base::start_thread([this] { work(); }));
        } catch (const base::error&) {
            if (threads_.empty()) throw;
        }
    }

    // Drops the least recently used pieces; for required bytes, also those that were not read yet.
    bool evict_for(std::uint64_t bytes, bool must) {
        while (held_ + bytes > store_limit) {
            piece_map* of = nullptr;
            piece_map::iterator oldest;
            for (auto& [file, pieces] : files_) {
                for (auto at = pieces.begin(); at != pieces.end(); ++at) {
                    const piece& p = *at->second;
                    if (!p.there || !(p.read || must)) continue;
                    if (of == nullptr || p.number < oldest->second->number) {
                        of = &pieces;
                        oldest = at;
                    }
                }
            }
            if (of == nullptr) return must;
            held_ -= oldest->second->bytes.size();
            of->erase(oldest);
        }
        return true;
    }

    void work() {
        http_session session;
        std::unique_lock lock(guard_);
        sessions_.push_back(&session);
        while (true) {
            wanted_.wait(lock, [&] { return stop_ || !queue_.empty(); });
            if (stop_) break;
            const shared_piece p = queue_.front();
            queue_.pop_front();
            lock.unlock();
            std::exception_ptr failure;
            try {
                p->from->read(session, p->begin, p->bytes, stop_);
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            p->failure = failure;
            p->there = true;
            arrived_.notify_all();
        }
        std::erase(sessions_, &session);
    }

    std::mutex guard_;
    std::condition_variable wanted_, arrived_;
    std::atomic<bool> stop_{false};
    std::map<const server*, piece_map> files_;
    std::deque<shared_piece> queue_;
    std::uint64_t held_ = 0;
    std::uint64_t uses_ = 0;
    std::vector<http_session*> sessions_;
    std::vector<std::thread> threads_;
};

class remote_file final : public input_file {
  public:
    remote_file(std::shared_ptr<server> from, std::vector<std::byte> head)
        : input_file(from->path(), from->size()), from_(std::move(from)) {
        store_.keep(from_, std::move(head));
    }
    ~remote_file() override { store_.forget(from_.get()); }

    int descriptor() const override {
        input_error("this format is read by a library that needs a file on disk; fetch it first",
                    {path(), {}, {}});
    }

    void read(std::uint64_t offset, std::span<std::byte> out,
              std::string_view tensor) const override {
        if (offset > size() || out.size() > size() - offset) {
            input_error(
                fmt::format("the file ends here, {} bytes early; it is cut short or changed "
                            "while being read",
                            out.size() - (size() - std::min(offset, size()))),
                {path(), std::string(tensor), size()});
        }
        const plan ahead = plan_for(offset, out.size());
        const std::uint64_t end = offset + out.size();
        for (std::uint64_t at = offset; at < end;) {
            // First required bytes; a long read consists of many pieces.
            const std::uint64_t border = border_after(at);
            const std::uint64_t stop = std::min(end, border);
            store_.want(from_, at, std::max(stop, std::min(ahead.guess, border)), stop, true);
            store_.want(from_, stop, std::max(ahead.guess, std::min(end, at + ahead_limit)),
                        std::max(ahead.sure, end), false);
            at = copy(at, stop, out.subspan(static_cast<std::size_t>(at - offset)), tensor);
        }
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        if (offset >= size()) return;
        std::uint64_t end = offset + std::min(bytes, size() - offset);
        {
            const std::lock_guard lock(guard_);
            const auto next = rows_.upper_bound(offset);
            // Small consecutive tensors are fetched in one request.
            if (next != rows_.begin()) {
                end = std::max(end, std::min(std::prev(next)->second.end, border_after(offset)));
            }
        }
        end = std::min(end, offset + ahead_limit);
        store_.want(from_, offset, end, end, false);
    }

    void will_read(std::uint64_t offset, std::uint64_t bytes) const override {
        if (bytes == 0 || offset >= size()) return;
        row fresh{offset, offset + std::min(bytes, size() - offset), 0};
        std::uint64_t begin = offset;
        const std::lock_guard lock(guard_);
        // Rows that it touches become one with it.
        auto at = rows_.upper_bound(fresh.end + gap_limit);
        while (at != rows_.begin() && std::prev(at)->second.end + gap_limit >= offset) {
            --at;
            begin = std::min(begin, at->first);
            fresh.last = std::max(fresh.last, at->second.last);
            fresh.end = std::max(fresh.end, at->second.end);
            fresh.read = std::min(fresh.read + at->second.read, ahead_limit);
            at = rows_.erase(at);
        }
        rows_.emplace(begin, fresh);
    }

  private:
    // Consecutive tensors that are all read.
    struct row {
        std::uint64_t last;  // first byte of the last one
        std::uint64_t end;
        std::uint64_t read = 0;  // bytes, at most ahead_limit
    };
    struct plan {
        std::uint64_t sure;   // after the last byte that will certainly be read
        std::uint64_t guess;  // after the last byte to request
    };

    // How far to read ahead. In tensors that are all read: four times what was read of them, in
    // whatever order, because threads read panels at once; up to the end of the last one. Beyond
    // that, at most as much again as was read consecutively: twice the bytes of a header in the
    // worst case, and nothing beyond a tensor that is read alone.
    plan plan_for(std::uint64_t offset, std::uint64_t count) const {
        const std::lock_guard lock(guard_);
        const std::uint64_t end = offset + count;
        const auto next = rows_.upper_bound(offset);
        if (next == rows_.begin() || std::prev(next)->second.end < end) {
            if (offset < run_begin_ || offset > run_end_) run_begin_ = run_end_ = offset;
            const std::uint64_t before = run_end_ - run_begin_;
            run_end_ = std::max(run_end_, end);
            const std::uint64_t twice = run_begin_ + before + std::min(before, piece_limit);
            return {end, std::min(size(), std::max(end, twice))};
        }
        auto& [begin, of] = *std::prev(next);
        of.read = std::min(of.read + count, ahead_limit);
        // Up to a border, so that a sequential reader does not request a little each time.
        const std::uint64_t most = border_after(end + std::min(4 * of.read, ahead_limit));
        const std::uint64_t sure = std::min(of.end, most);
        const std::uint64_t beyond = of.end + std::min(of.last - begin, piece_limit);
        return {sure, std::min({size(), most, beyond})};
    }

    // Copies from byte `at` on as far as the piece goes that holds it; returns where it ends.
    std::uint64_t copy(std::uint64_t at, std::uint64_t stop, std::span<std::byte> out,
                       std::string_view tensor) const {
        shared_piece p;
        try {
            p = store_.get(from_.get(), at, stop);
        } catch (const base::error& e) {
            throw base::error(e.kind(), e.message(), {path(), std::string(tensor), at});
        }
        if (p == nullptr) return at;  // dropped meanwhile: request again
        const std::uint64_t end = std::min(stop, p->end());
        std::memcpy(out.data(), p->bytes.data() + (at - p->begin),
                    static_cast<std::size_t>(end - at));
        return end;
    }

    std::shared_ptr<server> from_;
    piece_store& store_ = piece_store::instance();
    mutable std::mutex guard_;
    mutable std::map<std::uint64_t, row> rows_;  // by first byte
    mutable std::uint64_t run_begin_ = 0, run_end_ = 0;
};

}  // namespace

shared_file open_remote(const std::string& path) {
    auto from = std::make_shared<server>(address_of(path));
    std::vector<std::byte> head = from->open(first_bytes);
    return std::make_shared<const remote_file>(std::move(from), std::move(head));
}

}  // namespace mx::io

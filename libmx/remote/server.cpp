// SPDX-License-Identifier: Apache-2.0
#include "libmx/remote/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/input_file.hpp"

namespace mx::io {
namespace {

constexpr int most_failures = 5;   // of a range, with twice the time between them
constexpr int first_failures = 2;  // of a host that never answered
constexpr double first_wait = 0.25;
constexpr double longest_wait = 300;  // what a server may ask for, all times of a range together
// What a range may take beside that and the time of its bytes, all tries together.
constexpr std::chrono::seconds allowance{60};
constexpr int most_redirects = 5;
// A server may leave out the ranges of texts, such as an index: these are taken whole.
constexpr std::uint64_t whole_limit = std::uint64_t{32} << 20;
constexpr int most_refreshes = 2;

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}
// Answers of a store for an address whose signature has expired, or that is gone.
bool is_expired(int status) {
    return status == 400 || status == 401 || status == 403 || status == 404 || status == 410;
}
bool passes(int status) { return status == 0 || status == 408 || status == 429 || status >= 500; }

// "bytes 0-511/1000", whose last byte is in the range: the range as [begin, end), and the size.
struct content_range {
    std::uint64_t begin = 0, end = 0, size = 0;
};
std::optional<content_range> parsed_range(const std::string& text) {
    const std::size_t dash = text.find('-');
    const std::size_t slash = text.find('/');
    if (!text.starts_with("bytes ") || dash == std::string::npos || slash == std::string::npos ||
        dash > slash) {
        return std::nullopt;
    }
    const auto begin = base::parsed<std::uint64_t>(text.substr(6, dash - 6));
    const auto last = base::parsed<std::uint64_t>(text.substr(dash + 1, slash - dash - 1));
    const auto size = base::parsed<std::uint64_t>(text.substr(slash + 1));
    if (!begin || !last || !size || *last >= *size || *begin > *last) return std::nullopt;
    return content_range{*begin, *last + 1, *size};
}

const std::atomic<bool> never{false};

constexpr const char* changed =
    "the file changed while it was read: its size or ETag is no longer the first one";

}  // namespace

// The remaining tries for one range.
struct server::patience {
    const std::atomic<bool>& stop;
    int failures = 0, redirects = 0, refreshes = 0;
    double waited = 0;  // as servers asked
    std::chrono::steady_clock::time_point until = std::chrono::steady_clock::now() + allowance;

    void extend(double seconds) {
        until += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(seconds));
    }
    double next_wait() const { return first_wait * static_cast<double>(1 << failures); }
};

server::server(remote_address address, http_session* through)
    : address_(std::move(address)), through_(through), origin_(origin_of(address_.url)) {}

// What servers say, and what libcurl says of them, can hold what they were sent.
void server::fail(const std::string& message, std::optional<std::uint64_t> offset) const {
    input_error(without_secrets(address_.who, message), {address_.path, {}, offset});
}

std::string server::target() {
    const std::lock_guard lock(guard_);
    return target_;
}

void server::share(const std::string& target) {
    const std::lock_guard lock(guard_);
    target_ = target;
}

void server::forget(const std::string& target) {
    const std::lock_guard lock(guard_);
    if (target_ == target) target_.clear();  // another thread may have a newer one already
}

void server::check_redirect(const http_request& from, const std::string& redirect,
                            patience& p) const {
    const std::string origin = origin_of(redirect);
    if (origin.empty() || (from.url.starts_with("https:") && !redirect.starts_with("https:"))) {
        fail("the server redirects to what is no https address");
    }
    if (++p.redirects > most_redirects) fail("the server redirects without end");
}

http_answer server::ask(http_session& session, http_request& request, std::span<std::byte> body,
                        patience& p) {
    const int expected = request.begin ? 206 : 200;
    std::string target = this->target();
    while (true) {
        request.url = target.empty() ? address_.url : target;
        request.who = origin_of(request.url) == origin_ ? &address_.who : nullptr;
        if (request.who == nullptr &&
            holds_secret(address_.who, request.url + '\n' + request.unchanged_since)) {
            fail("the server gives away the credentials: another host would be sent them");
        }
        request.until = p.until;
        http_answer answer = session.get(request, body, p.stop);
        if (p.stop) throw base::error(base::error_kind::cancelled, "cancelled");
        p.extend(static_cast<double>(answer.bytes) / least_bytes_per_second);
        const bool of_all = !opened_ && (answer.status == 200 || answer.status == 416);
        if (answer.status == expected || of_all) {
            share(target);  // the others may use it until it expires
            return answer;
        }
        if (is_redirect(answer.status) && !answer.redirect.empty()) {
            check_redirect(request, answer.redirect, p);
            target = answer.redirect;
        } else if (!target.empty() && is_expired(answer.status) && p.refreshes < most_refreshes) {
            // The hub that redirected, not the store, knows where the file is now.
            forget(target);
            target.clear();
            p.redirects = 0;
            ++p.refreshes;
        } else if (passes(answer.status)) {
            const double wait = answer.wait.value_or(p.next_wait());
            const int most = answer.status == 0 && !opened_ ? first_failures : most_failures;
            if (answer.wait) p.waited += wait;
            if (++p.failures > most || p.waited > longest_wait ||
                std::chrono::steady_clock::now() >= p.until) {
                fail(complaint(request, answer), request.begin);
            }
            p.extend(wait);
            session.pause(wait, p.stop);
        } else {
            fail(complaint(request, answer), request.begin);
        }
    }
}

// What is wrong with an answer that does not fit the request.
std::string server::complaint(const http_request& request, const http_answer& answer) const {
    const bool redirected = origin_of(request.url) != origin_;
    const std::string who =
        redirected ? fmt::format("{}, where the server redirects to,", origin_of(request.url))
                   : "the server";
    switch (answer.status) {
        case 0:
            return fmt::format("no answer: {}", answer.problem);
        case 200:
            if (!etag_.empty() && answer.etag != etag_) return changed;
            return fmt::format(
                "{} answers 200 to a request for a range, so it would send the whole "
                "file; fetch it first",
                who);
        case 400:
            if (!redirected) break;
            return fmt::format(
                "{} answers 400, as stores do for ranges of files beyond some 400 GB; "
                "fetch it first",
                who);
        case 401:
        case 403:
            return fmt::format("{} refuses ({}){}{}", who, answer.status,
                               address_.advice.empty() ? "" : "; ", address_.advice);
        case 404:
        case 410:
            return fmt::format("{} has no such file ({})", who, answer.status);
        case 416:
            return changed;
        case 429:
            return fmt::format(
                "{} answers 429, too many requests{}; try again later", who,
                answer.wait ? fmt::format(", and asks to wait {:.0f} seconds", *answer.wait) : "");
        default:
            break;
    }
    if (!answer.bucket_region.empty()) {
        return fmt::format("the bucket is in the region {}: set AWS_REGION",
                           base::printable(answer.bucket_region));
    }
    return fmt::format("{} answers {}", who, answer.status);
}

void server::check_range(const http_request& request, const http_answer& answer) const {
    const auto range = parsed_range(answer.content_range);
    if (!range) fail("the server does not say which range it sends", request.begin);
    if (opened_ && (range->size != size_ ||
                    (!etag_.empty() && !answer.etag.empty() && answer.etag != etag_))) {
        fail(changed, request.begin);
    }
    if (range->begin != *request.begin || range->end != std::min(request.end, range->size) ||
        answer.too_long) {
        fail(fmt::format("the server sends another range than the requested one ({}-{})",
                         *request.begin, request.end - 1),
             request.begin);
    }
}

std::vector<std::byte> server::open(std::size_t count) {
    std::optional<http_session> own;
    http_session& session = through_ != nullptr ? *through_ : own.emplace();
    patience p{never};
    http_request request;
    request.begin = 0;
    request.end = count;
    std::vector<std::byte> head(count);
    const http_answer answer = ask(session, request, head, p);
    if (answer.status == 416) {
        if (answer.content_range != "bytes */0") fail(complaint(request, answer));
        opened_ = true;
        return {};  // no byte is in no range
    }
    if (answer.status == 200) {
        if (answer.whole_bytes.value_or(whole_limit + 1) > whole_limit) {
            fail(complaint(request, answer), 0);
        }
        const std::string text = whole(static_cast<std::size_t>(*answer.whole_bytes));
        const std::span bytes = std::as_bytes(std::span(text));
        size_ = text.size();
        opened_ = true;
        return {bytes.begin(), bytes.end()};
    }
    check_range(request, answer);
    size_ = parsed_range(answer.content_range)->size;
    etag_ = answer.etag;
    unchanged_since_ = etag_.empty() || etag_.starts_with("W/") ? answer.last_modified : etag_;
    opened_ = true;
    head.resize(static_cast<std::size_t>(std::min<std::uint64_t>(count, size_)));
    if (answer.bytes < head.size()) {
        read(session, answer.bytes, std::span(head).subspan(answer.bytes), never);
    }
    return head;
}

void server::read(http_session& session, std::uint64_t begin, std::span<std::byte> out,
                  const std::atomic<bool>& stop) {
    patience p{stop};
    http_request request;
    request.end = begin + out.size();
    request.unchanged_since = unchanged_since_;
    for (std::size_t done = 0; done < out.size();) {
        request.begin = begin + done;
        const http_answer answer = ask(session, request, out.subspan(done), p);
        check_range(request, answer);
        done += answer.bytes;
        if (done == out.size()) break;
        const double wait = p.next_wait();
        if (++p.failures > most_failures || std::chrono::steady_clock::now() >= p.until) {
            fail(fmt::format("the connection ends early again and again: {}", answer.problem),
                 begin + done);
        }
        p.extend(wait);
        session.pause(wait, p.stop);
    }
}

std::string server::whole(std::size_t most) {
    std::optional<http_session> own;
    http_session& session = through_ != nullptr ? *through_ : own.emplace();
    patience p{never};
    std::vector<std::byte> text(most);
    http_request request;
    const http_answer answer = ask(session, request, text, p);
    if (answer.too_long) fail(fmt::format("the answer has more than {} bytes", most));
    if (!answer.problem.empty()) fail(fmt::format("no whole answer: {}", answer.problem));
    return {reinterpret_cast<const char*>(text.data()), answer.bytes};
}

}  // namespace mx::io

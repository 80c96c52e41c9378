// SPDX-License-Identifier: Apache-2.0
// One HTTP request at a time through libcurl, which no other file uses. server.cpp interprets the
// answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mx::io {

/// Credentials of a request. Empty members are not sent.
struct http_credentials {
    std::string bearer;                ///< token of an Authorization header
    std::string key, secret, session;  ///< AWS: the request is signed
    std::string region;
};

/// A body that comes slower than this takes time from the allowance of its request.
inline constexpr double least_bytes_per_second = 16384;

struct http_request {
    std::string url;
    const http_credentials* who = nullptr;  ///< null: an anonymous request
    std::optional<std::uint64_t> begin;     ///< first byte; none: the whole
    std::uint64_t end = 0;                  ///< after the last byte
    std::string unchanged_since;            ///< value of If-Range; "": not sent
    /// When the answer must be there, later by what its body takes at least_bytes_per_second.
    std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

struct http_answer {
    int status = 0;        ///< 0: no answer came
    std::string problem;   ///< why none came, or not all of it, in libcurl's words
    std::string redirect;  ///< absolute address; it may hold a signature: not to be shown
    std::string content_range, etag, last_modified;
    std::string bucket_region;                 ///< of S3
    std::optional<std::uint64_t> whole_bytes;  ///< Content-Length
    std::optional<double> wait;                ///< seconds, by Retry-After or RateLimit
    std::size_t bytes = 0;                     ///< taken into the body
    bool too_long = false;                     ///< the body went on beyond what was asked for
};

/// The origin of an address: "https://host:port". Empty if it is not an address of http or https.
std::string origin_of(const std::string& url);
/// Why an address typed by a user is refused: it is none, or has a name, password, query or
/// fragment, which might be secret and would be in messages and results. Empty: it is valid.
std::string objection_to(const std::string& url);
/// `text` with every byte as %XX that a path of an address cannot contain; '/' and the characters
/// of `kept` stay.
std::string url_encoded(const std::string& text, std::string_view kept = {});

/// The header lines that a request has beside those that libcurl makes itself, its signature among
/// them.
std::vector<std::string> headers_of(const http_request& request);

/// Whether `text` holds what must not be shown or sent elsewhere: the token, the secret or the
/// session of `who`, in capitals or not. A word of fewer than eight bytes is not looked for.
bool holds_secret(const http_credentials& who, const std::string& text);
/// `text` with "(secret)" in place of each of these.
std::string without_secrets(const http_credentials& who, std::string text);

/// A connection, kept from request to request; for one thread. Tests put another in its place.
class http_session {
  public:
    http_session();
    virtual ~http_session();
    http_session(const http_session&) = delete;
    http_session& operator=(const http_session&) = delete;

    /// Sends a request and reads the body of an answer 206, or of 200 to a request for the whole,
    /// into `body`; other bodies are dropped, and the connection with those of more than 64 KiB, as
    /// with more than 256 KiB of headers and trailers. Redirects are not followed. Returns early
    /// once `stop` is raised and wake() called.
    virtual http_answer get(const http_request& request, std::span<std::byte> body,
                            const std::atomic<bool>& stop);
    /// Waits for so many seconds, or until `stop` is raised.
    virtual void pause(double seconds, const std::atomic<bool>& stop);
    /// Makes get() check its flag; from any thread.
    void wake();

  private:
    struct handles;
    std::unique_ptr<handles> handles_;
};

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// The ranges of one file from a server, in spite of redirects that expire, requests to wait,
// truncated bodies and changing files.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/remote/address.hpp"
#include "libmx/remote/http.hpp"

namespace mx::io {

/// Sends requests to the host of its address, and to the hosts of its redirects. Credentials are
/// sent to the former alone. Errors are base::error (input) that name the address, never a
/// redirect's.
class server {
  public:
    /// `through`: what open() and whole() ask through, in place of a session of their own.
    explicit server(remote_address address, http_session* through = nullptr);

    const std::string& path() const noexcept { return address_.path; }
    /// Bytes of the file; known once open() was called.
    std::uint64_t size() const noexcept { return size_; }

    /// The first bytes of the file, at most `count`, or all of a small one that the server does not
    /// send in ranges; takes note of its size and its version.
    std::vector<std::byte> open(std::size_t count);
    /// Fills `out` from byte `begin`; the range is inside the file. For one thread per session;
    /// also throws (cancelled) if `stop` is raised.
    void read(http_session& session, std::uint64_t begin, std::span<std::byte> out,
              const std::atomic<bool>& stop);
    /// A text of at most `most` bytes, without ranges.
    std::string whole(std::size_t most);

  private:
    struct patience;
    // Afterwards `request` has the address that answered.
    http_answer ask(http_session& session, http_request& request, std::span<std::byte> body,
                    patience& p);
    std::string complaint(const http_request& request, const http_answer& answer) const;
    [[noreturn]] void fail(const std::string& message,
                           std::optional<std::uint64_t> offset = {}) const;
    void check_redirect(const http_request& from, const std::string& redirect, patience& p) const;
    void check_range(const http_request& request, const http_answer& answer) const;
    std::string target();
    void share(const std::string& target);
    void forget(const std::string& target);

    remote_address address_;
    http_session* through_;
    std::string origin_;
    std::uint64_t size_ = 0;
    bool opened_ = false;
    std::string etag_;             ///< of the first answer; "": it had none
    std::string unchanged_since_;  ///< for If-Range
    std::mutex guard_;
    std::string target_;  ///< the last redirect's target; "": use the address
};

}  // namespace mx::io

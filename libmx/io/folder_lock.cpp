// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "libmx/base/status.hpp"

namespace mx::io {

folder_lock::folder_lock(const std::string& folder, std::string_view writer) {
    descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0 || ::flock(descriptor_, writer.empty() ? LOCK_EX : LOCK_EX | LOCK_NB) == 0)
        return;
    if (errno != EINTR && errno != EWOULDBLOCK) return;
    const bool held = errno == EWOULDBLOCK;
    ::close(descriptor_);
    if (held) {
        base::refuse(
            fmt::format("another {} writes to this folder: wait for it or stop it", writer),
            {folder, {}, {}});
    }
    throw base::error(base::error_kind::cancelled, "cancelled");
}

folder_lock::~folder_lock() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/input_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "libmx/io/input_file.hpp"

namespace mx::io {

input_stream::input_stream(std::string path) : path_(std::move(path)) {
    if (path_ == standard_input) {
        descriptor_ = ::dup(STDIN_FILENO);
    } else {
        // Opening a pipe without a writer would block.
        descriptor_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    if (descriptor_ < 0) {
        input_error(fmt::format("cannot open: {}", std::strerror(errno)), {path_, {}, {}});
    }
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
        ::close(descriptor_);
        input_error("is a directory", {path_, {}, {}});
    }
    if (path_ != standard_input) {
        ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
    }
    reading_.emplace("reading",
                     S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0);
}

input_stream::~input_stream() { ::close(descriptor_); }

std::size_t input_stream::read(std::span<char> out) {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t got = ::read(descriptor_, out.data() + done, out.size() - done);
        if (got < 0 && errno == EINTR) {
            if (reading_) reading_->step(0);  // a signal may end the wait
            continue;
        }
        if (got < 0) {
            input_error(fmt::format("cannot read: {}", std::strerror(errno)), {path_, {}, {}});
        }
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    if (reading_) reading_->step(done);
    if (done < out.size()) reading_.reset();
    return done;
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// What structure-aware programs share: an input as a series of choices, and files in memory.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>

namespace mx::fuzz {

/// Ends the program if an invariant does not hold.
inline void require(bool holds, const char* what) {
    if (holds) return;
    fmt::print(stderr, "invariant broken: {}\n", what);
    std::abort();
}

/// The bytes of an input, each of which decides something; zeros after the last.
class choices {
  public:
    choices(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}

    std::uint64_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *at_++;
    }
    std::uint64_t below(std::uint64_t count) {
        return count > 256 ? (byte() | byte() << 8) % count : byte() % count;
    }
    /// False at the end of the input: a short input is a sound file.
    bool once_in(std::uint64_t count) { return byte() % count == 1; }
    template <typename List>
    const auto& of(const List& list) {
        return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
    }
    /// An extent of a tensor, 32 at the end of the input.
    std::uint64_t extent() {
        constexpr std::uint64_t list[] = {32, 0,  1,  2,  3,  7,  8,   15,  16,  17, 31,
                                          33, 48, 63, 64, 65, 96, 128, 129, 160, 256};
        return of(list);
    }

  private:
    const std::uint8_t* at_;
    std::size_t left_;
};

/// A folder whose files are in memory.
class folder {
  public:
    folder() {
        std::string name = (std::filesystem::temp_directory_path() / "mx-fuzz.XXXXXX").string();
        require(::mkdtemp(name.data()) != nullptr, "a scratch directory");
        path_ = name;
    }
    ~folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;

    std::string write(const std::string& name, const std::string& bytes) {
        const auto [at, fresh] = descriptors_.emplace(name, -1);
        if (fresh) {
            at->second = ::memfd_create(name.c_str(), 0);
            std::filesystem::create_symlink(fmt::format("/proc/self/fd/{}", at->second),
                                            path_ / name);
        }
        require(::ftruncate(at->second, 0) == 0 &&
                    ::pwrite(at->second, bytes.data(), bytes.size(), 0) ==
                        static_cast<ssize_t>(bytes.size()),
                "a file in memory");
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
    std::map<std::string, int> descriptors_;
};

}  // namespace mx::fuzz

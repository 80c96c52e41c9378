// SPDX-License-Identifier: Apache-2.0
// A separate directory for each test, and files made from bytes.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/reader.hpp"
#include "tests/catch.hpp"

namespace mx::test {

class scratch_dir {
  public:
    scratch_dir() {
        // Messages contain the path: its name is made of letters that no test looks for in one.
        static unsigned made = 0;
        const auto parent = std::filesystem::temp_directory_path();
        const std::string process = "mx-test-" + letters(static_cast<unsigned>(::getpid())) + "-";
        do path_ = parent / (process + letters(made++));
        while (!std::filesystem::create_directory(path_));
    }
    ~scratch_dir() {
        std::error_code ignored;
        std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
        std::filesystem::remove_all(path_, ignored);
    }
    scratch_dir(const scratch_dir&) = delete;
    scratch_dir& operator=(const scratch_dir&) = delete;

    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    std::string path() const { return path_.string(); }

    /// Writes a file and returns its path.
    std::string file(const std::string& name, std::string_view bytes) const {
        std::ofstream out(path_ / name, std::ios::binary);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return *this / name;
    }
    /// The names of the files in the directory, sorted.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& entry : std::filesystem::directory_iterator(path_)) {
            all.push_back(entry.path().filename().string());
        }
        std::sort(all.begin(), all.end());
        return all;
    }

  private:
    static std::string letters(unsigned n) {
        std::string out;
        for (; n != 0; n /= 2) out += n % 2 == 0 ? 'q' : 'j';
        return out;
    }

    std::filesystem::path path_;
};

inline std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// `value` as `bytes` little-endian bytes.
inline std::string little(std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i);
    return out;
}

/// The message of the error that `action` throws; checks that it is of `kind`.
template <class Action>
std::string error_of(base::error_kind kind, const Action& action) {
    try {
        action();
    } catch (const base::error& e) {
        CHECK(static_cast<int>(e.kind()) == static_cast<int>(kind));
        CHECK(std::string(e.what()).find('\n') == std::string::npos);
        return e.what();
    }
    FAIL("no error");
    return {};
}

inline std::string open_error(const std::string& path, const io::open_options& options = {}) {
    return error_of(base::error_kind::input, [&] { io::open_model(path, options); });
}

/// All bytes of tensor `index`.
inline std::string content(const io::reader& file, std::size_t index) {
    std::string bytes(static_cast<std::size_t>(file.tensors()[index].bytes), '\0');
    file.open(index)->read(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
    return bytes;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

inline bool has(const std::string& text, std::string_view part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
    return text.find(part) != std::string::npos;
}

}  // namespace mx::test

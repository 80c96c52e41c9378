// SPDX-License-Identifier: Apache-2.0
// The log of mx watch: a line of JSON per checkpoint, which is also what the next start goes on
// from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/report/record.hpp"

namespace mx::app {

/// A file of lines that only grows. A line that a killed run left without its end is cut off.
class watch_log {
  public:
    /// Opens the file, or makes it; "": one without a name. Throws base::error: output when it
    /// cannot be written, input when it holds something else, usage when another process has it.
    explicit watch_log(std::string path);
    ~watch_log();
    watch_log(const watch_log&) = delete;
    watch_log& operator=(const watch_log&) = delete;

    /// The checkpoints that have a line, in the order of the lines.
    const std::vector<std::string>& names() const { return names_; }
    /// The latest lines, at most `count`, of checkpoints naturally before `name`, in that order.
    std::vector<report::record> before(const std::string& name, std::size_t count) const;
    /// Writes a line and waits until the disk has it. Throws base::error (output); the file is then
    /// as it was.
    void append(const report::record& line);

  private:
    struct extent {
        std::uint64_t begin = 0, size = 0;
    };
    void read_lines();
    /// What stands before the results, and with `results` these.
    report::record read(const extent& at, bool results) const;
    [[noreturn]] void fail(const char* what) const;

    std::string path_;
    int descriptor_;
    std::uint64_t size_ = 0;
    std::vector<std::string> names_;
    std::vector<extent> lines_;  // by name
};

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
// The log of mx watch: one line of JSON per checkpoint. The next start continues from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/report/record.hpp"

namespace mx::app {

/// An append-only file of lines. An incomplete line of a killed run is truncated.
class watch_log {
  public:
    /// Opens or creates the file; "" means no file. Throws base::error: output if it cannot be
    /// written, input if it contains something else, usage if another process has locked it.
    explicit watch_log(std::string path);
    ~watch_log();
    watch_log(const watch_log&) = delete;
    watch_log& operator=(const watch_log&) = delete;

    /// The checkpoints that have a line, in line order.
    const std::vector<std::string>& names() const { return names_; }
    /// The line that was written last; none of an empty log.
    std::optional<report::record> last() const;
    /// At most `count` of the last lines of checkpoints before `name` in natural order, in that
    /// order.
    std::vector<report::record> before(const std::string& name, std::size_t count) const;
    /// Writes a line and waits until it is on disk. Throws base::error (output) and then leaves the
    /// file unchanged.
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

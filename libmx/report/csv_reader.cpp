// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/csv_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/text_tables.hpp"

namespace mx::report {
namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr std::size_t most_rows = std::size_t{1} << 20;
constexpr std::size_t most_columns = 1024;

std::string all_of(const byte_source& source, const std::string& path) {
    std::string text;
    std::vector<char> buffer(65536);
    while (const std::size_t count = source(buffer)) {
        if (text.size() + count > most_bytes) {
            throw base::error(base::error_kind::input, "a CSV table of more than 64 MiB",
                              {path, {}, {}});
        }
        text.append(buffer.data(), count);
    }
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (text.starts_with(mark)) text.erase(0, mark.size());
    return text;
}

// Reads one line after the other.
class csv_lines {
  public:
    csv_lines(std::string text, const std::string& path) : text_(std::move(text)), path_(path) {}

    [[noreturn]] void fail(std::size_t line, const std::string& what) const {
        throw base::error(base::error_kind::input, fmt::format("line {}: {}", line, what),
                          {path_, {}, {}});
    }

    // False at the end.
    bool next(csv_table::row& row) {
        row.fields.clear();
        while (take("\n") || take("\r\n")) ++line_;
        if (at_ >= text_.size()) return false;
        row.line = line_;
        do {
            if (row.fields.size() == most_columns) fail(line_, "more than 1,024 fields");
            row.fields.push_back(field());
        } while (take(","));
        if (!take("\r\n") && !take("\n") && at_ < text_.size()) {
            fail(line_, "a quoted field continues after its closing quote");
        }
        ++line_;
        return true;
    }

  private:
    bool take(std::string_view what) {
        if (std::string_view(text_).substr(at_, what.size()) != what) return false;
        at_ += what.size();
        return true;
    }

    std::string field() {
        std::string out;
        if (!take("\"")) {
            const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
            const std::string_view all = std::string_view(text_).substr(at_, end - at_);
            at_ = end;
            if (at_ < text_.size() && text_[at_] == '\n' && all.ends_with('\r')) --at_;
            const std::size_t first = std::min(all.find_first_not_of(" \t\r"), all.size());
            const std::size_t last = all.find_last_not_of(" \t\r") + 1;
            return std::string(all.substr(first, std::max(first, last) - first));
        }
        const std::size_t begun = line_;
        for (;; ++at_) {
            if (at_ >= text_.size()) fail(begun, "a quoted field has no closing quote");
            if (take("\"\"")) {
                out += '"';
                --at_;
            } else if (take("\"")) {
                return out;
            } else {
                if (text_[at_] == '\n') ++line_;
                out += text_[at_];
            }
        }
    }

    std::string text_;
    const std::string& path_;
    std::size_t at_ = 0, line_ = 1;
};

}  // namespace

std::optional<std::size_t> csv_table::find(std::string_view name) const {
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) return {};
    return static_cast<std::size_t>(at - names.begin());
}

std::size_t csv_table::column(std::string_view name) const {
    if (const auto at = find(name)) return *at;
    throw base::error(base::error_kind::input,
                      fmt::format("has no column '{}'; it has {}", name, base::joined(names, ", ")),
                      {path, {}, {}});
}

csv_table read_csv(const byte_source& source, const std::string& path) {
    csv_table table{path, {}, {}};
    csv_lines lines(all_of(source, path), path);
    csv_table::row row;
    if (!lines.next(row)) {
        throw base::error(base::error_kind::input, "is empty: a table begins with its header",
                          {path, {}, {}});
    }
    base::text_set seen;
    for (const std::string& name : row.fields) {
        if (name.empty()) lines.fail(row.line, "a column without a name");
        if (!seen.insert(name).second) {
            lines.fail(row.line, fmt::format("two columns are named '{}'", name));
        }
    }
    table.names = std::move(row.fields);
    while (lines.next(row)) {
        if (row.fields.size() != table.names.size()) {
            lines.fail(row.line, fmt::format("{} fields, but the header has {}", row.fields.size(),
                                             table.names.size()));
        }
        if (table.rows.size() == most_rows) lines.fail(row.line, "more than 1,048,576 rows");
        table.rows.push_back(std::move(row));
    }
    return table;
}

std::optional<double> finite_number(std::string_view field) {
    const auto x = base::parsed<double>(field);
    return x && std::isfinite(*x) ? x : std::nullopt;
}

}  // namespace mx::report

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/base/task.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/markup.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report {
namespace {

constexpr std::string_view extents_member = "shape";
constexpr std::string_view nested_member = "contraction";  // an object or null

bool writable(const std::string& name, const value& v) {
    return !std::holds_alternative<record>(v) && name != nested_member &&
           (!std::holds_alternative<list>(v) || name == extents_member);
}

std::string field_text(const value& v) {
    if (const auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
    if (const auto* i = std::get_if<std::int64_t>(&v)) return fmt::format("{}", *i);
    if (const auto* d = std::get_if<double>(&v)) return fmt::format("{}", *d);
    if (const auto* s = std::get_if<std::string>(&v)) return csv_field(base::printable(*s));
    if (const auto* items = std::get_if<list>(&v)) return extents_text(*items);
    return {};
}

// Member names in order of first appearance; records of one document may have different members.
std::vector<std::string> header_of(const record_list& results) {
    std::vector<std::string> names;
    for (const record& r : results) {
        for (const auto& [name, v] : r) {
            if (writable(name, v) && std::ranges::find(names, name) == names.end()) {
                names.push_back(name);
            }
        }
    }
    return names;
}

}  // namespace

void write_csv(const document& d, const layout&, const sink& out) {
    const std::vector<std::string> names = header_of(d.results);
    std::vector<std::string> fields;
    for (const std::string& name : names) fields.push_back(csv_field(base::printable(name)));
    out(csv_line(fields));
    base::task writing("writing", d.results.size());
    for (const record& r : d.results) {
        fields.clear();
        for (const std::string& name : names) {
            const value* v = find(r, name);
            fields.push_back(v != nullptr && writable(name, *v) ? field_text(*v) : std::string());
        }
        out(csv_line(fields));
        writing.step();
    }
}

}  // namespace mx::report

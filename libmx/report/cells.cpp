// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/cells.hpp"

#include <fmt/format.h>

#include "libmx/base/status.hpp"

namespace mx::report {
namespace {

std::string number_text(double x, const column& c) {
    if (c.kind == cell::share) return percent_text(x);
    if (c.kind == cell::fixed) return fixed_text(x, c.digits);
    if (c.kind == cell::significant) return significant_text(x, c.digits);
    return fmt::format("{}", x);
}

std::string value_text(const value& v, const column& c) {
    if (const auto* s = std::get_if<std::string>(&v)) return base::printable(*s);
    if (const auto* b = std::get_if<bool>(&v)) return *b ? "yes" : "no";
    if (const auto* i = std::get_if<std::int64_t>(&v)) {
        if (c.kind == cell::integer || c.kind == cell::text || c.kind == cell::name) {
            return c.kind == cell::integer ? grouped(*i) : fmt::format("{}", *i);
        }
        return number_text(static_cast<double>(*i), c);
    }
    if (const auto* d = std::get_if<double>(&v)) return number_text(*d, c);
    if (const auto* items = std::get_if<list>(&v)) return extents_text(*items);
    return "-";
}

}  // namespace

std::string cell_text(const record& r, const column& c) {
    const value* v = find(r, c.field);
    return v == nullptr ? std::string() : value_text(*v, c);
}

bool is_numeric(cell kind) {
    return kind == cell::integer || kind == cell::shortest || kind == cell::significant ||
           kind == cell::fixed || kind == cell::share;
}

std::string extents_text(const list& extents) {
    if (extents.empty()) return "-";
    std::string out;
    for (const value& extent : extents) {
        if (!out.empty()) out += 'x';
        const auto* i = std::get_if<std::int64_t>(&extent);
        out += i != nullptr ? fmt::format("{}", *i) : std::string("?");
    }
    return out;
}

std::string grouped(std::int64_t n) {
    std::string digits = fmt::format("{}", n);
    const std::size_t first = n < 0 ? 1 : 0;
    for (std::size_t at = digits.size(); at > first + 3;) {
        at -= 3;
        digits.insert(at, 1, ',');
    }
    return digits;
}

std::string fixed_text(double x, int digits) {
    std::string text = fmt::format("{:.{}f}", x, digits);
    if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-') text.erase(0, 1);
    return text;
}

std::string percent_text(double share) {
    if (share == 0) return "0";
    if (share == 1) return "100";
    if (share > 0 && share < 0.0001) return "<0.01";
    if (share < 1 && share > 0.9999) return ">99.99";
    return fixed_text(100 * share, 2);
}

std::string significant_text(double x, int digits) {
    if (x == 0) return "0";
    std::string text = fmt::format("{:#.{}g}", x, digits);
    // The alternate form keeps trailing zeros, but adds an insignificant one to integers.
    const std::size_t point = text.find('.');
    const std::size_t before = point - (x < 0 ? 1 : 0);
    if (point != std::string::npos && before >= static_cast<std::size_t>(digits)) {
        text.erase(point, text.find('e', point) - point);
    }
    return text;
}

}  // namespace mx::report

// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/members.hpp"

#include <cmath>
#include <limits>

namespace mx::report {

value finite_or_null(double x) { return std::isfinite(x) ? value(x) : value(); }

std::optional<double> number_of(const value& v) {
    if (const auto* d = std::get_if<double>(&v)) return *d;
    if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<double>(*i);
    return {};
}

std::optional<double> number_of(const record& r, std::string_view name) {
    const value* v = find(r, name);
    return v == nullptr ? std::optional<double>() : number_of(*v);
}

std::int64_t whole(double x) {
    constexpr double end = 9223372036854775808.0;  // 2^63
    if (!(x > -end)) return std::isnan(x) ? 0 : std::numeric_limits<std::int64_t>::min();
    return x < end ? static_cast<std::int64_t>(x) : std::numeric_limits<std::int64_t>::max();
}

std::string text_of(const record& r, std::string_view name) {
    const value* v = find(r, name);
    const auto* s = v == nullptr ? nullptr : std::get_if<std::string>(v);
    return s == nullptr ? std::string() : *s;
}

std::vector<record> records_in(const record& r, std::string_view name) {
    std::vector<record> all;
    const auto* values = member<list>(r, name);
    if (values == nullptr) return all;
    for (const value& v : *values) {
        if (const auto* one = std::get_if<record>(&v)) all.push_back(*one);
    }
    return all;
}

}  // namespace mx::report

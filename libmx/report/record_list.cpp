// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/record_list.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mx::report {
namespace {

constexpr std::uint64_t no_nested = ~std::uint64_t{0};
constexpr std::size_t compared_kinds = 64;

bool same_names(const std::vector<std::string>& names, const record& r) {
    return std::equal(
        names.begin(), names.end(), r.begin(), r.end(),
        [](const std::string& name, const auto& member) { return name == member.first; });
}

}  // namespace

record_list::record_list() = default;
record_list::record_list(record_list&&) noexcept = default;
record_list& record_list::operator=(record_list&&) noexcept = default;
record_list::~record_list() = default;

record_list::record_list(const std::vector<record>& records) {
    for (const record& r : records) push_back(r);
}

record_list::record_list(std::size_t size, std::function<record(std::size_t)> make)
    : make_(std::move(make)), made_(size) {}

std::uint32_t record_list::names_of(const record& r) {
    // Records of a list have few kinds, and neighbours mostly have the same. In results that others
    // wrote each may have names of its own: only some are compared.
    const std::size_t oldest = names_.size() > compared_kinds ? names_.size() - compared_kinds : 0;
    for (std::size_t i = names_.size(); i-- > oldest;) {
        if (same_names(names_[i], r)) return static_cast<std::uint32_t>(i);
    }
    std::vector<std::string> names;
    for (const auto& member : r) names.push_back(member.first);
    names_.push_back(std::move(names));
    return static_cast<std::uint32_t>(names_.size() - 1);
}

void record_list::store(std::size_t cell, std::size_t column, const value& v) {
    std::uint64_t bits = 0;
    tag kind = tag::null;
    if (const auto* b = std::get_if<bool>(&v)) {
        kind = tag::boolean;
        bits = *b ? 1 : 0;
    } else if (const auto* i = std::get_if<std::int64_t>(&v)) {
        kind = tag::integer;
        bits = static_cast<std::uint64_t>(*i);
    } else if (const auto* d = std::get_if<double>(&v)) {
        kind = tag::real;
        std::memcpy(&bits, d, sizeof bits);
    } else if (const auto* s = std::get_if<std::string>(&v)) {
        kind = tag::text;
        const auto [at, added] = text_index_.emplace(*s, texts_.size());
        if (added) texts_.push_back(&at->first);
        bits = at->second;
    } else if (!std::holds_alternative<std::monostate>(v)) {
        kind = tag::nested;
        if (last_nested_.size() <= column) last_nested_.resize(column + 1, no_nested);
        std::uint64_t& last = last_nested_[column];
        if (last == no_nested || !(nested_[last] == v)) {
            last = nested_.size();
            nested_.push_back(v);
        }
        bits = last;
    }
    bits_[cell] = bits;
    tags_[cell] = kind;
}

value record_list::load(std::size_t cell) const {
    const std::uint64_t bits = bits_[cell];
    switch (tags_[cell]) {
        case tag::boolean:
            return bits != 0;
        case tag::integer:
            return static_cast<std::int64_t>(bits);
        case tag::real: {
            double d = 0;
            std::memcpy(&d, &bits, sizeof d);
            return d;
        }
        case tag::text:
            return *texts_[bits];
        case tag::nested:
            return nested_[bits];
        case tag::null:
            break;
    }
    return {};
}

void record_list::push_back(const record& r) {
    const std::size_t first = bits_.size();
    rows_.push_back({names_of(r), first});
    bits_.resize(first + r.size());
    tags_.resize(first + r.size());
    for (std::size_t i = 0; i < r.size(); ++i) store(first + i, i, r[i].second);
}

record record_list::operator[](std::size_t index) const {
    if (make_) return make_(index);
    const row& at = rows_.at(index);
    const std::vector<std::string>& names = names_[at.names];
    record r;
    r.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) r.emplace_back(names[i], load(at.first + i));
    return r;
}

record_list::iterator record_list::begin() const { return {*this, 0}; }
record_list::iterator record_list::end() const { return {*this, size()}; }

}  // namespace mx::report

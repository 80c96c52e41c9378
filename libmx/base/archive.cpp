// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "libmx/base/bits.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"

namespace mx::base {
namespace {

[[noreturn]] void damaged(std::string_view what) {
    throw error(error_kind::input, fmt::format("the sums of a part are damaged: {}", what));
}

}  // namespace

std::string_view archive::word() {
    const std::size_t end = rest_.find(' ');
    if (end == std::string_view::npos) damaged("they end early");
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return found;
}

std::uint64_t archive::read_number() {
    const auto n = parsed<std::uint64_t>(word(), 16);
    if (!n) damaged("a count is not a number");
    return *n;
}

void archive::write_number(std::uint64_t n) {
    fmt::format_to(std::back_inserter(text_), "{:x} ", n);
}

void archive::add(std::uint64_t& n) {
    if (reads_) {
        n += read_number();
    } else {
        write_number(n);
    }
}

void archive::set(std::uint64_t& n) {
    if (reads_) {
        n = read_number();
    } else {
        write_number(n);
    }
}

void archive::set(double& x) {
    std::uint64_t bits = bits_of(x);
    set(bits);
    x = double_from_bits(bits);
}

void archive::raise(std::uint32_t& n) {
    if (!reads_) return write_number(n);
    const std::uint64_t other = read_number();
    if (other > 0xffffffffu) damaged("a maximum is out of range");
    n = std::max(n, static_cast<std::uint32_t>(other));
}

void archive::raise(double& x) {
    double other = x;
    set(other);
    if (!(other >= 0)) damaged("a maximum is out of range");
    x = std::max(x, other);
}

void archive::add(exact_sum& s) {
    if (!reads_) {
        text_ += s.text() + ' ';
        return;
    }
    exact_sum other;
    if (!exact_sum::read(word(), other)) damaged("a sum is not a number");
    s.merge(other);
}

void archive::add(std::span<std::uint64_t> counts) {
    std::uint64_t filled = 0;
    for (const std::uint64_t n : counts) filled += n != 0 ? 1u : 0u;
    set(filled);
    if (!reads_) {
        for (std::size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] == 0) continue;
            write_number(i);
            write_number(counts[i]);
        }
        return;
    }
    for (std::uint64_t i = 0; i < filled; ++i) {
        const std::uint64_t at = read_number();
        if (at >= counts.size()) damaged("a histogram has fewer bins");
        counts[static_cast<std::size_t>(at)] += read_number();
    }
}

void archive::end() const {
    if (!rest_.empty()) damaged("they have more than the run requests");
}

}  // namespace mx::base

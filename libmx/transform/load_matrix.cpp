// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::transform {
namespace {

using numbers = std::vector<double>;

// Digits of the numbers of the largest matrix, and more.
constexpr std::size_t most_bytes = std::size_t{largest_size} * largest_size * 32;

[[noreturn]] void fail(const std::string& file, const std::string& message) {
    throw base::error(base::error_kind::input, message, {file, {}, {}});
}

std::string text_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) fail(file, "transform_file: cannot be opened");
    std::string text;
    char part[1 << 16];
    while (in.read(part, sizeof part) || in.gcount() > 0) {
        text.append(part, static_cast<std::size_t>(in.gcount()));
        if (text.size() > most_bytes)
            fail(file, "transform_file: too long for a matrix of numbers");
    }
    return text;
}

bool separates(char c) { return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

numbers numbers_of(const std::string& file, const std::string& text, std::size_t count) {
    numbers all;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        if (separates(*at)) {
            ++at;
            continue;
        }
        if (*at == '#') {
            while (at != end && *at != '\n') ++at;
            continue;
        }
        if (*at == '+') ++at;
        double x = 0;
        const auto [next, status] = std::from_chars(at, end, x);
        if (status != std::errc() || !std::isfinite(x) || std::abs(x) > 1e100 ||
            (next != end && !separates(*next) && *next != '#')) {
            fail(file,
                 fmt::format("transform_file: entry {} is not a number; write the matrix as text, "
                             "like numpy.savetxt",
                             all.size() + 1));
        }
        all.push_back(x);
        if (all.size() > count) break;
        at = next;
    }
    return all;
}

// The rows, divided by their common length.
numbers normalized(const std::string& file, numbers m, std::size_t n) {
    constexpr double tolerance = 1e-5;
    double square = 0;
    for (std::size_t j = 0; j < n; ++j) square += m[j] * m[j];
    if (square == 0) fail(file, "transform_file: its first row is all zeros");
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = i; k < n; ++k) {
            double product = 0;
            for (std::size_t j = 0; j < n; ++j) product += m[i * n + j] * m[k * n + j];
            if (std::abs(product / square - (i == k ? 1 : 0)) <= tolerance) continue;
            fail(file, i == k ? fmt::format("transform_file: row {} is {:.6g} times as long as row "
                                            "1; an orthogonal matrix has rows of one length",
                                            i + 1, std::sqrt(product / square))
                              : fmt::format("transform_file: rows {} and {} are not orthogonal "
                                            "(their cosine is {:.3g})",
                                            i + 1, k + 1, product / square));
        }
    }
    const double length = std::sqrt(square);
    for (double& x : m) x /= length;
    return m;
}

}  // namespace

std::shared_ptr<const std::vector<double>> load_matrix(const rotation& r) {
    static std::mutex guard;
    static std::map<std::pair<std::string, int>, std::shared_ptr<const numbers>> known;
    const std::lock_guard lock(guard);
    std::shared_ptr<const numbers>& m = known[{r.file, r.size}];
    if (m) return m;
    const auto n = static_cast<std::size_t>(r.size);
    numbers all = numbers_of(r.file, text_of(r.file), n * n);
    if (all.size() != n * n) {
        const auto side = static_cast<std::size_t>(std::lround(std::sqrt(all.size())));
        fail(r.file, fmt::format("transform_file: {} {} numbers; transform_size={} needs {}{}",
                                 all.size() > n * n ? "holds more than" : "holds",
                                 all.size() > n * n ? n * n : all.size(), n, n * n,
                                 all.size() < n * n && side * side == all.size() && side > 1
                                     ? fmt::format(" (say transform_size={})", side)
                                     : ""));
    }
    m = std::make_shared<const numbers>(normalized(r.file, std::move(all), n));
    return m;
}

}  // namespace mx::transform

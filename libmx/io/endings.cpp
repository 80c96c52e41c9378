// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

// Besides those in the list of readers.
constexpr std::array<std::string_view, 14> more_endings{
    ".hdf5", ".pth", ".bin",  ".ckpt", ".pkl", ".pickle", ".zip",
    ".tar",  ".gz",  ".json", ".csv",  ".md",  ".html",   ".txt"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool has_ending(std::string_view path, std::string_view ending) {
    if (ending.empty() || path.size() < ending.size()) return false;
    path.remove_prefix(path.size() - ending.size());
    return std::equal(path.begin(), path.end(), ending.begin(), ending.end(),
                      [](char a, char b) { return lower(a) == lower(b); });
}

void check_ending(const std::string& path, std::initializer_list<std::string_view> own) {
    const auto ends_path = [&](std::string_view ending) { return has_ending(path, ending); };
    if (std::ranges::any_of(own, ends_path)) return;
    const auto refuse = [&](std::string_view ending) {
        if (!ends_path(ending)) return;
        base::refuse(fmt::format("cannot write {} here; the name may end with {}", ending,
                                 base::joined(own, ", ")),
                     {path, {}, {}});
    };
    for (const reader_format& format : reader_formats) refuse(format.ending);
    for (const std::string_view ending : more_endings) refuse(ending);
}

}  // namespace mx::io

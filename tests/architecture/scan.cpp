// SPDX-License-Identifier: Apache-2.0
#include "tests/architecture/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/architecture/house.hpp"

namespace mx::architecture {
namespace {

bool may_ask_the_oracle(std::string_view path) {
    return std::find(oracle_users.begin(), oracle_users.end(), path) != oracle_users.end();
}

namespace fs = std::filesystem;

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream{std::string(text)};
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    return parts;
}

const room* find_room(std::string_view name) {
    const auto* found =
        std::find_if(rooms.begin(), rooms.end(), [&](const room& r) { return r.name == name; });
    return found == rooms.end() ? nullptr : found;
}

constexpr std::string_view studies = "studies/";
constexpr std::string_view views = "pages/views/";

/// "io" for "libmx/io/gguf/x.hpp", "studies/diff" for "libmx/studies/diff/x.hpp", "" outside the
/// rooms.
std::string room_name(std::string_view path) {
    if (std::any_of(oracle_in_tests.begin(), oracle_in_tests.end(),
                    [&](std::string_view part) { return path.starts_with(part); })) {
        return "oracle";
    }
    const auto slash = path.find('/');
    const std::string_view house = path.substr(0, slash);
    if (slash == std::string_view::npos || (house != "libmx" && house != "datasets")) return "";
    path.remove_prefix(slash + 1);
    if (path.starts_with(views)) return "pages/views";
    const bool study = path.starts_with(studies);
    return std::string(path.substr(0, path.find('/', study ? studies.size() : 0)));
}

/// The path of an include line; empty for any other line.
struct include_line {
    std::string path;
    bool quoted = false;
};

include_line parse_include(std::string_view line) {
    const auto skip = [&](std::string_view word) {
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if (!line.starts_with(word)) return false;
        line.remove_prefix(word.size());
        return true;
    };
    if (!skip("#") || !skip("include")) return {};
    const bool quoted = skip("\"");
    if (!quoted && !skip("<")) return {};
    return {std::string(line.substr(0, line.find(quoted ? '"' : '>'))), quoted};
}

std::string direction_violation(const source_file& file, const std::string& included) {
    const std::string to = room_name(included);
    if (to.empty()) return fmt::format("includes {}, which is in no room", included);
    if (file.path.starts_with("apps/")) {
        return to == "oracle" && !may_ask_the_oracle(file.path)
                   ? "an app may not include the oracle"
                   : "";
    }
    const std::string from = room_name(file.path);
    const room* here = find_room(from);
    if (here == nullptr) return fmt::format("the room '{}' is not in the table of rooms", from);
    const bool judge = from == "oracle" && to != "oracle";
    if (judge && std::find(oracle_may_read.begin(), oracle_may_read.end(), included) ==
                     oracle_may_read.end()) {
        return fmt::format("the oracle may read lists only, not {}", included);
    }
    const auto allowed = split(here->may_include, ' ');
    if (to == from || std::find(allowed.begin(), allowed.end(), to) != allowed.end()) return "";
    return fmt::format("{} may not include {}", from, included);
}

std::string confinement_violation(const source_file& file, const std::string& included) {
    for (const confined_library& library : confined_libraries) {
        if (!included.starts_with(library.prefix)) continue;
        for (const std::string& place : split(library.places, ' ')) {
            if (file.path.starts_with(place) && file.path.ends_with(library.ending)) return "";
        }
        return fmt::format("<{}> belongs in {}*{} only", included, library.places, library.ending);
    }
    return "";
}

/// "libmx/io" for "libmx/io/npy.hpp".
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// The namespace that the headers of a folder of libmx open.
std::string namespace_of(const std::string& folder) {
    for (const shared_namespace& s : shared_namespaces) {
        if ((folder + "/").starts_with(fmt::format("{}/", s.folder))) return std::string(s.name);
    }
    std::string name = folder.substr(folder.find('/') + 1);
    if (name.starts_with(studies)) name = name.substr(studies.size());
    return fmt::format("mx::{}", fmt::join(split(name, '/'), "::"));
}

/// Whether the lines from `first` to the end of a namespace do nothing but declare classes.
bool declares_only(const std::vector<std::string>& lines, std::size_t first) {
    for (std::size_t i = first; i < lines.size() && !lines[i].starts_with("}"); ++i) {
        const bool declares = lines[i].starts_with("class ") || lines[i].starts_with("struct ");
        if (!declares || !lines[i].ends_with(";")) return false;
    }
    return true;
}

bool is_source(const std::string& path) {
    static constexpr std::array endings{".cpp", ".hpp",   ".inc", ".cu", ".cuh",
                                        ".h",   ".cmake", ".sh",  ".py"};
    const bool named = path.ends_with("CMakeLists.txt") || path == ".ci/run";
    return named || std::any_of(endings.begin(), endings.end(),
                                [&](const char* ending) { return path.ends_with(ending); });
}

}  // namespace

std::vector<source_file> repository(const std::string& root) {
    std::vector<source_file> files;
    const auto add = [&](const fs::path& path) {
        std::ifstream stream(path, std::ios::binary);
        files.push_back({fs::relative(path, root).generic_string(),
                         {std::istreambuf_iterator<char>(stream), {}}});
    };
    for (const char* folder : {"libmx", "apps", "tests", "cmake", "scripts", "datasets", ".ci"}) {
        if (!fs::is_directory(fs::path(root) / folder)) continue;
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder)) {
            const std::string path = fs::relative(entry.path(), root).generic_string();
            if (entry.is_regular_file() && is_source(path)) add(entry.path());
        }
    }
    add(fs::path(root) / "CMakeLists.txt");
    std::sort(files.begin(), files.end(),
              [](const source_file& a, const source_file& b) { return a.path < b.path; });
    return files;
}

std::vector<std::string> include_violations(const source_file& file,
                                            const std::function<bool(const std::string&)>& exists) {
    std::vector<std::string> found;
    // Tests may include every room; their include lines are not part of the architecture.
    if (file.path.starts_with("tests/") && room_name(file.path).empty()) return found;
    int number = 0;
    for (const std::string& line : split(file.text, '\n')) {
        ++number;
        const include_line include = parse_include(line);
        if (include.path.empty()) continue;
        std::string what = confinement_violation(file, include.path);
        if (what.empty() && include.quoted) {
            const bool same_app = file.path.starts_with("apps/") &&
                                  include.path.starts_with(file.path.substr(
                                      0, file.path.find('/', std::string_view("apps/").size())));
            if (!exists(include.path)) {
                what = fmt::format("\"{}\" is not a path from the repository root", include.path);
            } else if (!same_app) {
                what = direction_violation(file, include.path);
            }
        }
        if (!what.empty()) found.push_back(fmt::format("{}:{}: {}", file.path, number, what));
    }
    return found;
}

std::vector<std::string> namespace_violations(const std::vector<source_file>& files) {
    std::set<std::string> taken;
    for (const source_file& file : files) {
        if (file.path.starts_with("libmx/")) taken.insert(namespace_of(folder_of(file.path)));
    }
    std::vector<std::string> found;
    for (const source_file& file : files) {
        if (!file.path.starts_with("libmx/") || !file.path.ends_with(".hpp")) continue;
        const std::string own = namespace_of(folder_of(file.path));
        const auto lines = split(file.text, '\n');
        bool opened = false;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            constexpr std::string_view keyword = "namespace ";
            if (!lines[i].starts_with(keyword) || !lines[i].ends_with(" {")) continue;
            const std::string name =
                lines[i].substr(keyword.size(), lines[i].size() - keyword.size() - 2);
            const bool nested = opened && name != "mx" && !name.starts_with("mx::");
            if (nested || declares_only(lines, i + 1)) continue;
            opened = true;
            const bool inside = name.starts_with(own + "::") && !taken.contains(name);
            if (name != own && !inside) {
                found.push_back(
                    fmt::format("{}:{}: namespace {} instead of {}", file.path, i + 1, name, own));
            }
        }
    }
    return found;
}

std::vector<std::string> size_violations(const std::vector<source_file>& files) {
    std::map<std::string, std::size_t> sizes;
    for (const source_file& file : files) {
        // Kernels for GPUs and vectors count on their own: they are alternatives to other code of
        // the room.
        const bool kernels = file.path.find("/cuda/") != std::string::npos ||
                             file.path.find("/simd/") != std::string::npos;
        const std::string room = kernels ? folder_of(file.path) : room_name(file.path);
        for (const std::string& line : split(file.text, '\n')) {
            const auto first = line.find_first_not_of(' ');
            if (first != std::string::npos && line.compare(first, 2, "//") != 0) ++sizes[room];
        }
    }
    sizes.erase("");
    std::vector<std::string> found;
    for (const auto& [room, lines] : sizes) {
        if (lines > most_lines_of_a_room) found.push_back(fmt::format("{}: {} lines", room, lines));
    }
    return found;
}

std::vector<std::string> file_violations(const source_file& file) {
    std::vector<std::string> found;
    if (!is_source(file.path)) return found;
    const auto lines = split(file.text, '\n');
    const auto head = lines.begin() + std::min<std::ptrdiff_t>(2, std::ssize(lines));
    if (std::none_of(lines.begin(), head, [](const std::string& line) {
            return line.ends_with(" SPDX-License-Identifier: Apache-2.0");
        })) {
        found.push_back(file.path + ":1: no SPDX-License-Identifier: Apache-2.0");
    }
    if (file.path.ends_with(".hpp") && file.text.find("\n#pragma once\n") == std::string::npos) {
        found.push_back(file.path + ":1: a header without #pragma once");
    }
    // Spelled in halves, or this file would report itself.
    for (const std::string& word : {std::string("TO") + "DO", std::string("FIX") + "ME"}) {
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (lines[i].find(word) != std::string::npos) {
                found.push_back(fmt::format("{}:{}: {}", file.path, i + 1, word));
            }
        }
    }
    return found;
}

std::vector<std::string> column_violations(const std::vector<source_file>& files) {
    static const std::regex column(
        R"re((column_of\(|\{)\s*"(\w+)",\s*("(?:[^"\\]|\\.)*")((?:,\s*(?:report::)?cell::\w+)?(?:,\s*\d+)?)\s*[)}])re");
    std::map<std::string, std::string> places;
    std::vector<std::string> found;
    for (const source_file& file : files) {
        const bool list = file.path == "libmx/pages/views/values.cpp";
        if (std::none_of(rooms_with_tables.begin(), rooms_with_tables.end(),
                         [&](std::string_view room) { return file.path.starts_with(room); })) {
            continue;
        }
        for (std::sregex_iterator m(file.text.begin(), file.text.end(), column), end; m != end;
             ++m) {
            // Two texts in braces may be anything. A title may be the member's name anywhere.
            const bool is_column = (*m)[1] == "column_of(" || (*m)[4].length() > 0 || list;
            if (!is_column || (*m)[3] == fmt::format("\"{}\"", (*m)[2].str())) continue;
            const std::string kind =
                std::regex_replace((*m)[4].str(), std::regex("report::|\\s"), "");
            const std::string name = fmt::format("{} {}{}", (*m)[2].str(), (*m)[3].str(), kind);
            const auto line = 1 + std::count(file.text.begin(), (*m)[0].first, '\n');
            const std::string place = fmt::format("{}:{}", file.path, line);
            const auto [at, added] = places.emplace(name, place);
            if (!added)
                found.push_back(fmt::format("{}: {} stands in {}", place, name, at->second));
        }
    }
    return found;
}

}  // namespace mx::architecture

// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/capture_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "libmx/analysis/results_input.hpp"
#include "libmx/base/status.hpp"
#include "libmx/files/file_digest.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/report/members.hpp"

namespace mx::conformance::verify {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& message) {
    throw base::error(base::error_kind::input, message, {path, {}, {}});
}

// ROOM/NAME.safetensors
bool is_recording(const std::string& name) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos || name.find('/', slash + 1) != std::string::npos) return false;
    const std::string_view room = std::string_view(name).substr(0, slash);
    return std::ranges::count(capture_rooms, room) != 0 && name.ends_with(".safetensors");
}

void require_as_recorded(const std::string& path, const report::record& file) {
    std::error_code failure;
    const std::uint64_t bytes = fs::file_size(path, failure);
    if (failure) fail(path, fmt::format("is in the manifest, but {}", failure.message()));
    const auto stated = report::number_of(file, "bytes");
    if (!stated || *stated != static_cast<double>(bytes)) {
        fail(path, fmt::format("has {} bytes; the manifest states another number. Copy the "
                               "recording again",
                               bytes));
    }
    const std::string digest = io::sha256_of(path);
    if (digest != report::text_of(file, "sha256")) {
        fail(path, fmt::format("has SHA-256 {}, not that of the manifest: it was changed after the "
                               "recording",
                               digest));
    }
}

void require_no_other(const std::string& folder, const std::set<std::string>& listed) {
    for (const std::string_view room : capture_rooms) {
        std::error_code failure;
        for (fs::directory_iterator it(fs::path(folder) / room, failure), end;
             !failure && it != end; it.increment(failure)) {
            const std::string path = it->path().string();
            if (it->path().extension() == ".safetensors" && !listed.contains(path)) {
                fail(path, "is not in the manifest: it is no part of this recording");
            }
        }
    }
}

}  // namespace

bool is_capture(const std::string& folder) {
    std::error_code failure;
    return fs::exists(fs::path(folder) / capture_manifest, failure);
}

std::vector<std::string> captured_files(const std::string& folder) {
    const std::string manifest = (fs::path(folder) / capture_manifest).string();
    const analysis::results_input input = analysis::open_results(manifest);
    if (input.content.kind != "capture") {
        fail(manifest, fmt::format("holds mx.{}; mx.capture is expected", input.content.kind));
    }
    std::vector<std::string> paths;
    std::set<std::string> listed;
    for (const report::record& file : input.content.results) {
        const std::string name = report::text_of(file, "file");
        const auto path = io::path_beside(manifest, name);
        if (!path || !is_recording(name)) {
            fail(manifest, fmt::format("lists '{}', which is not a file of a recording",
                                       base::printable(name)));
        }
        if (!listed.insert(*path).second) fail(manifest, fmt::format("lists {} twice", name));
        require_as_recorded(*path, file);
        paths.push_back(*path);
    }
    if (paths.empty()) fail(manifest, "lists no file");
    require_no_other(folder, listed);
    return paths;
}

std::size_t parts_not_recorded(const std::string& folder) {
    const std::string manifest = (fs::path(folder) / capture_manifest).string();
    const analysis::results_input input = analysis::open_results(manifest);
    const auto* list = report::member<report::list>(input.content.tail, "not_recorded");
    if (list == nullptr) fail(manifest, "does not say which parts were not recorded");
    return list->size();
}

}  // namespace mx::conformance::verify

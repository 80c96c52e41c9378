// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/capture_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

constexpr std::array recorded_file_members = std::to_array<report::declared<recorded_file>>({
    {"file", "string", "", [](auto& f) { return f.file; }},
    {"bytes", "count", "", [](auto& f) { return f.bytes; }},
    {"sha256", "string", "", [](auto& f) { return f.sha256; }},
});
constexpr std::array failed_part_members = std::to_array<report::declared<failed_part>>({
    {"part", "string", "", [](auto& p) { return p.part; }},
    {"reason", "string", "", [](auto& p) { return p.reason; }},
});
constexpr std::array manifest_members = std::to_array<report::declared<recording_facts>>({
    {"recorded_from_hardware", "boolean", "false: computed by the emulator, for tests",
     [](auto& f) { return f.hardware; }},
    {"date", "string", "UTC", [](auto& f) { return f.date; }},
    {"device", "string", "", [](auto& f) { return f.device; }},
    {"compute_capability", "string?", "", [](auto& f) { return f.compute_capability; }},
    {"arch", "string", "", [](auto& f) { return f.arch; }},
    {"driver", "string", "", [](auto& f) { return f.driver; }},
    {"cuda_runtime", "string", "", [](auto& f) { return f.runtime; }},
    {"cublaslt", "string", "", [](auto& f) { return f.cublaslt; }},
    {"only", "string?", "--only",
     [](auto& f) { return f.only.empty() ? report::value() : report::value(f.only); }},
    {"seed", "count", "", [](auto& f) { return f.seed; }},
    {"tiles", "count", "", [](auto& f) { return f.tiles; }},
    {"hash_groups", "count", "", [](auto& f) { return f.hash_groups; }},
    {"cell_stride", "count", "", [](auto& f) { return f.cell_stride; }},
    {"stochastic_inputs", "count", "", [](auto& f) { return f.stochastic_inputs; }},
});
constexpr std::array missing_members = std::to_array<report::declared<recording_facts>>({
    {"not_recorded", "[#failed_part]", "parts that failed",
     [](auto& f) { return report::listed(failed_part_members, f.failures); }},
});

}  // namespace

report::document manifest_of(const recording_facts& f, const report::record& tool) {
    report::document d;
    d.head = {{"schema", "mx.capture/1"}, {"tool", tool}};
    report::append(d.head, manifest_members, f);
    for (const recorded_file& file : f.files) {
        d.results.push_back(report::written(recorded_file_members, file));
    }
    d.tail = report::written(missing_members, f);
    return d;
}

report::document_schema capture_schema() {
    return report::document_schema("mx.capture/1", "mx_capture: manifest.json",
                                   "What a folder of recordings holds and where it comes from.")
        .members(manifest_members)
        .member({"results", "[#file]", "a file each"})
        .members(missing_members)
        .define("file", recorded_file_members)
        .define("failed_part", failed_part_members);
}

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

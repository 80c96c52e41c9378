// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "apps/mx_capture/isolated.hpp"
#include "apps/mx_capture/part_kinds.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/conformance/verify/capture_folder.hpp"
#include "libmx/files/file_digest.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/report/members.hpp"
#include "libmx/report/record.hpp"
#include "libmx/report/writers.hpp"

namespace mx::capture {
namespace {

namespace fs = std::filesystem;

using manifest = conformance::verify::recording_facts;

void write_manifest(const manifest& m, const std::string& folder) {
    static const report::record tool{{"name", "mx_capture"},
                                     {"version", MX_VERSION},
                                     {"sha256", io::sha256_of("/proc/self/exe")}};
    const report::document d = conformance::verify::manifest_of(m, tool);
    io::output_file file((fs::path(folder) / conformance::verify::capture_manifest).string());
    report::write_json(d, {}, [&](std::string_view text) { file.append(text); });
    file.commit();
}

// With its size and SHA-256.
conformance::verify::recorded_file recorded(const std::string& folder, const std::string& file) {
    const std::string path = (fs::path(folder) / file).string();
    return {file, fs::file_size(path), io::sha256_of(path)};
}

constexpr unsigned part_seconds = 300;
// Limits the time spent on a GPU that no longer responds.
constexpr std::size_t most_late = 8;

// Facts are passed between processes as lines of text.
std::string to_lines(const device_facts& f) {
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", f.name, f.major, f.minor, f.driver, f.runtime,
                       f.cublaslt);
}

device_facts from_lines(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        lines.push_back(text.substr(at, end - at));
    }
    return {lines.at(0),
            std::stoi(lines.at(1)),
            std::stoi(lines.at(2)),
            lines.at(3),
            lines.at(4),
            lines.at(5),
            true};
}

device_facts card_facts() {
    const auto ask = [] {
        const device_facts facts = cuda_facts();
        make_cuda_device();  // throws if the GPU is busy or access is denied
        return to_lines(facts);
    };
    const outcome o = run_isolated(ask, part_seconds);
    if (!o.fine) throw base::error(base::error_kind::unavailable, o.text);
    return from_lines(o.text);
}

std::string date_text(const char* format) {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    char text[32];
    return {text, std::strftime(text, sizeof text, format, &utc)};
}

// "NVIDIA B200" to "nvidia-b200".
std::string folder_word(const std::string& name) {
    std::string word;
    for (const char c : name) {
        const auto u = static_cast<unsigned char>(c);
        const bool kept = std::isalnum(u) != 0 || c == '_';
        if (kept) word += static_cast<char>(std::tolower(u));
        if (!kept && !word.empty() && word.back() != '-') word += '-';
    }
    return word;
}

[[noreturn]] void refuse(const std::string& folder, const std::string& why) {
    throw base::error(base::error_kind::output, why, {folder, {}, {}});
}

void make_folders(const std::string& folder) {
    std::error_code failure;
    if (fs::exists(folder, failure) && !fs::is_empty(folder, failure)) {
        refuse(folder, "is there and not empty: name another folder with --out");
    }
    for (const std::string_view room : conformance::verify::capture_rooms) {
        fs::create_directories(fs::path(folder) / room, failure);
        if (failure) refuse(folder, fmt::format("cannot make the folder: {}", failure.message()));
    }
}

void say(const std::string& line) {
    std::fputs((line + "\n").c_str(), stderr);
    std::fflush(stderr);
}

// Removes temporary files of a killed process: io::output_file writes under ".NAME." plus a suffix.
void remove_unfinished(const fs::path& file) {
    std::error_code failure;
    const std::string beginning = "." + file.filename().string() + ".";
    std::vector<fs::path> left;
    for (fs::directory_iterator it(file.parent_path(), failure), end; !failure && it != end;
         it.increment(failure)) {
        if (it->path().filename().string().starts_with(beginning)) left.push_back(it->path());
    }
    for (const fs::path& path : left) fs::remove(path, failure);
}

// Opening a GPU takes longer than most parts, so a process records one part after the other until
// one fails, which destroys its context. A part that failed after others is retried once, first in
// a process.
void record_parts(const std::vector<part>& parts, const open_device& open,
                  const std::string& folder, const io::metadata_map& common, manifest& m) {
    std::size_t next = 0;
    std::size_t late = 0;
    // Marks the parts from `from` on as failed.
    const auto write_with_rest = [&](std::size_t from, std::string_view reason) {
        manifest whole = m;
        for (; from < parts.size(); ++from) {
            whole.failures.push_back({parts[from].file, std::string(reason)});
        }
        write_manifest(whole, folder);
    };
    while (next < parts.size() && late < most_late) {
        const std::size_t first = next;
        std::unique_ptr<device> d;
        const auto record = [&](std::size_t n) {
            if (!d) d = open();
            const part& p = parts[first + n];
            recording r{common};
            p.record(*d, r);
            r.write((fs::path(folder) / p.file).string());
            return std::string();
        };
        const auto ended = [&](std::size_t n, const outcome& o) {
            const part& p = parts[first + n];
            if (!o.fine) remove_unfinished(fs::path(folder) / p.file);
            if (!o.fine && !o.late && n != 0) return;
            ++next;
            late += o.late ? 1u : 0u;
            if (o.fine) {
                m.files.push_back(recorded(folder, p.file));
                say(fmt::format("[{}/{}] {}", next, parts.size(), p.file));
            } else {
                m.failures.push_back({p.file, o.text});
                say(fmt::format("[{}/{}] {}: not recorded: {}", next, parts.size(), p.file,
                                base::printable(o.text)));
            }
            // An interrupted recording still writes a manifest of its files.
            write_with_rest(next, "not asked: the recording was ended before");
        };
        run_series(parts.size() - next, record, part_seconds, ended);
    }
    for (; next < parts.size(); ++next) {
        m.failures.push_back(
            {parts[next].file,
             fmt::format("not asked: {} parts before were not done in time", late)});
    }
    write_manifest(m, folder);
}

void print_plan(const std::vector<part>& parts) {
    struct row {
        std::size_t files = 0;
        std::uint64_t bytes = 0;
    };
    std::array<row, part_kinds.size()> rows{};
    row all;
    fmt::print("{:<66} {:>10}\n", "file", "bytes");
    for (const part& p : parts) {
        fmt::print("{:<66} {:>10}\n", p.file, p.bytes);
        row& r = rows[static_cast<std::size_t>(&kind_of(p.file) - part_kinds.data())];
        for (row* to : {&r, &all}) {
            ++to->files;
            to->bytes += p.bytes;
        }
    }
    const auto line = [](std::string_view name, const row& r, std::string_view decides) {
        const double megabytes = static_cast<double>(r.bytes) / 1e6;
        fmt::print("{:<20}  {:>5}  {:>5.1f}{}{}\n", name, r.files, megabytes,
                   decides.empty() ? "" : "  ", decides);
    };
    fmt::print("\n{:<20}  {:>5}  {:>5}  {}\n", "kind", "files", "MB", "what it decides");
    for (std::size_t k = 0; k < rows.size(); ++k) {
        if (rows[k].files != 0) line(part_kinds[k].name, rows[k], part_kinds[k].decides);
    }
    line("all", all, "");
}

}  // namespace

std::size_t capture(const request& what) {
    const bool emulated = !what.emulate.empty();
    const device_facts facts =
        emulated ? device_facts{"emulated " + what.emulate, 0, 0, "", "", "", false} : card_facts();
    const chip* c = emulated ? &base::row_named(chips, "chip", what.emulate)
                             : find_chip(facts.major, facts.minor);
    if (c == nullptr) {
        throw base::error(
            base::error_kind::unavailable,
            fmt::format("{} has compute capability {}.{}, for which there is no code here",
                        facts.name, facts.major, facts.minor));
    }
    const std::string capability = fmt::format("{}.{}", facts.major, facts.minor);
    manifest m{.hardware = facts.hardware,
               .date = date_text("%Y-%m-%dT%H:%M:%SZ"),
               .device = facts.name,
               .compute_capability = facts.hardware ? std::optional(capability) : std::nullopt,
               .arch = std::string(c->name),
               .driver = facts.driver,
               .runtime = facts.runtime,
               .cublaslt = facts.cublaslt,
               .only = what.only,
               .seed = what.how_much.seed,
               .tiles = what.how_much.tiles,
               .hash_groups = what.how_much.hash_groups,
               .cell_stride = what.how_much.cell_stride,
               .stochastic_inputs = what.how_much.stochastic,
               .files = {},
               .failures = {}};
    std::vector<part> parts;
    append_conversions(parts, *c, what.how_much);
    append_instructions(parts, *c, what.how_much);
    append_products(parts, *c, what.how_much);
    if (!what.replay.empty()) append_replays(parts, *c, what.replay);
    std::erase_if(parts,
                  [&](const part& p) { return p.file.find(what.only) == std::string::npos; });
    if (parts.empty()) base::refuse("no part has '{}' in its file name", what.only);
    if (what.dry) {
        print_plan(parts);
        return 0;
    }
    const std::string folder =
        !what.out.empty()
            ? what.out
            : fmt::format("capture-{}-{}", folder_word(facts.name), date_text("%Y%m%d"));
    make_folders(folder);
    const io::metadata_map common{{"arch", std::string(c->name)},
                                  {"architecture", std::string(c->architecture)},
                                  {"device", facts.name},
                                  {"recorded_from_hardware", emulated ? "false" : "true"},
                                  {"source", fmt::format("mx_capture {}", MX_VERSION)}};
    const auto open = [&] { return emulated ? make_emulated_device(*c) : make_cuda_device(); };
    record_parts(parts, open, folder, common, m);
    say(fmt::format("{} files in {}, {} parts not recorded", m.files.size(), folder,
                    m.failures.size()));
    if (m.files.empty()) {
        throw base::error(base::error_kind::unavailable, "nothing could be recorded");
    }
    return m.failures.size();
}

}  // namespace mx::capture

// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "libmx/analysis/results_input.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/documents/build_facts.hpp"
#include "libmx/documents/judging.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/report/writers.hpp"

namespace mx::documents {
namespace {

constexpr const char* part_member = "part";
constexpr const char* sums_member = "part_sums";
// Of the sums; another number, or none, is of another version.
constexpr std::uint64_t sums_layout = 3;
// A head lists every file of a model; nothing else in it grows.
constexpr std::size_t most_head_bytes = std::size_t{1} << 26;

[[noreturn]] void no_part(const std::string& path, std::string_view why) {
    throw base::error(base::error_kind::input,
                      fmt::format("{}: give parts, which --shard i/N writes with --json", why),
                      {path, {}, {}});
}

// The line of the document that begins with the member `part`, without the comma at its end.
std::string part_line(const std::string& path) {
    io::input_stream file(path);
    const std::string key = fmt::format("\"{}\":", part_member);
    std::string line;
    std::size_t total = 0;
    std::vector<char> buffer(65536);
    for (std::size_t count = file.read(buffer); count != 0; count = file.read(buffer)) {
        total += count;
        const char* at = buffer.data();
        const char* const end = at + count;
        while (at != end) {
            const auto* stop =
                static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
            line.append(at, stop == nullptr ? end : stop);
            if (stop == nullptr) break;
            at = stop + 1;
            if (line.starts_with("\"results\":")) no_part(path, "has results that are not a part");
            if (line.starts_with(key)) {
                if (line.ends_with(',')) line.pop_back();
                return line.substr(key.size());
            }
            line.clear();
        }
        if (total > most_head_bytes) break;
    }
    no_part(path, "is not a part of a run");
}

// The same of a file of arrays.
std::string part_metadata(const std::string& path) {
    const auto file = io::open_model(path);
    const auto at = file->metadata().find("mx.part");
    if (at == file->metadata().end()) no_part(path, "is not a part of a conversion");
    return at->second;
}

report::record object_in(const std::string& text, const std::string& path) {
    std::size_t at = 0;
    const report::byte_source source = [&](std::span<char> out) {
        const std::size_t count = std::min(out.size(), text.size() - at);
        std::copy_n(text.data() + at, count, out.data());
        at += count;
        return count;
    };
    return report::read_object(source, path);
}

std::uint64_t count_of(const report::record& r, std::string_view name) {
    const double n = report::number_of(r, name).value_or(-1);
    return n >= 0 && n <= 0x1p53 ? static_cast<std::uint64_t>(n) : 0;
}

engine::range_sums sums_in(const report::record& r) {
    return {
        {static_cast<std::size_t>(count_of(r, "index")), count_of(r, "first"), count_of(r, "end")},
        report::text_of(r, "tensor"),
        0,
        true,
        count_of(r, "inexact"),
        report::text_of(r, "own"),
        pages::texts_in(r, "jobs")};
}

// As the member `given` of a document, and the files.
report::record given_by(const report::command_line& line) {
    report::record r = report::given_record(line);
    r.emplace_back("files", report::to_list(line.files));
    return r;
}

report::command_line given_to(const report::record& part) {
    const auto* given = report::member<report::record>(part, "given");
    if (given == nullptr) return {};
    return {report::text_of(*given, "command"),
            pages::texts_in(*given, "files"),
            {},
            report::options_in(part)};
}

struct named_file {
    const std::string& path;
    std::uint64_t bytes;
};
constexpr std::array file_members = std::to_array<report::declared<named_file>>({
    {"path", "string", "", [](auto& f) { return f.path; }},
    {"bytes", "count", "", [](auto& f) { return f.bytes; }},
    {"modified", "integer?", "when it last changed, in nanoseconds of the machine's clock",
     [](auto& f) {
         std::error_code failure;
         const auto time = std::filesystem::last_write_time(f.path, failure);
         return failure ? report::value() : report::tally(time.time_since_epoch().count());
     }},
});

struct made_part {
    const part_options& o;
    const part_inputs& inputs;
    std::uint64_t bytes;
    engine::part_number number = engine::parse_part(o.shard);
};
constexpr std::array head_members = std::to_array<report::declared<made_part>>({
    {"index", "ordinal", "from 1", [](auto& p) { return p.number.index; }},
    {"count", "ordinal", "how many parts there are", [](auto& p) { return p.number.count; }},
    {"bytes", "count", "stored, of its tensors", [](auto& p) { return p.bytes; }},
    {"version", "string", "of mx", [](auto&) { return version; }},
    {"layout", "integer", "of the sums; parts of one run share it",
     [](auto&) { return sums_layout; }},
    {"page_sums", "boolean", "made with --page-sums", [](auto& p) { return p.o.page_sums; }},
    {"given", "#part_given", "command, options and files that all parts share",
     [](auto& p) { return given_by(p.o.given); }},
    {"inputs", "[#part_input]", "files that the run reads", [](auto& p) { return p.inputs.files; }},
    {"tensors", "string", "digest of names, dtypes and shapes, in hexadecimal",
     [](auto& p) { return p.inputs.tensors; }},
});

constexpr std::array sums_members = std::to_array<report::declared<engine::range_sums>>({
    {"tensor", "@members#tensor", "", [](auto& s) { return s.tensor; }},
    {"index", "count", "among the tensors of the run", [](auto& s) { return s.of.tensor; }},
    {"first", "count", "first element of the piece", [](auto& s) { return s.of.first; }},
    {"end", "count", "element behind it", [](auto& s) { return s.of.end; }},
    {"inexact", "count", "values that float32 does not hold", [](auto& s) { return s.inexact; }},
    {"own", "string", "sums over all recipes", [](auto& s) { return s.own; }},
    {"jobs", "[string]", "sums by recipe, and by factor of a phase sweep",
     [](auto& s) { return report::to_list(s.jobs); }},
});

// What differs between two parts of a run; empty if nothing does.
std::string difference_of(const part_head& a, const part_head& b) {
    if (a.version != b.version)
        return fmt::format("mx {} made one, mx {} the other", a.version, b.version);
    if (a.given != b.given) {
        std::vector<std::string> first = report::arguments_of(a.given);
        std::vector<std::string> second = report::arguments_of(b.given);
        first.insert(first.begin(), a.given.command);
        second.insert(second.begin(), b.given.command);
        const auto [x, y] = std::ranges::mismatch(first, second);
        const auto word = [](auto at, const std::vector<std::string>& of) {
            return at == of.end() ? std::string("nothing") : fmt::format("'{}'", *at);
        };
        return fmt::format("one was asked for {}, the other for {}", word(x, first),
                           word(y, second));
    }
    if (a.number.count != b.number.count) {
        return fmt::format("one is of {} parts, the other of {}", a.number.count, b.number.count);
    }
    if (a.page_sums != b.page_sums) return "one has sums for a page, the other has none";
    const auto files = std::ranges::mismatch(a.inputs, b.inputs);
    if (files.in1 != a.inputs.end() || files.in2 != b.inputs.end()) {
        const auto* file =
            files.in1 == a.inputs.end() ? nullptr : std::get_if<report::record>(&*files.in1);
        return fmt::format("{} changed between them",
                           file == nullptr ? "a file" : report::text_of(*file, "path"));
    }
    if (a.tensors != b.tensors) return "their files hold other tensors";
    return {};
}

// Refuses a part of another command, or with options that no part has.
void check_given(const std::string& path, const report::command_line& given) {
    const auto among = [](const auto& list, std::string_view name) {
        return std::ranges::find(list, name) != list.end();
    };
    if (!among(part_commands, given.command) || given.files.empty()) {
        no_part(path, "has invalid data about its part");
    }
    for (const report::given_option& o : given.options) {
        if (among(part_option_names, o.name)) continue;
        no_part(path, fmt::format("holds '--{}', which is no option of a part", o.name));
    }
}

}  // namespace

bool names_file(const report::given_option& o) {
    return o.name == "eval" || o.name == "plan" ||
           (o.name == "policy" && is_policy_file(o.value.value_or("")));
}

part_head read_part_head(const std::string& path) {
    const report::record r = object_in(
        io::has_ending(path, ".safetensors") ? part_metadata(path) : part_line(path), path);
    part_head h;
    h.path = path;
    h.number = {count_of(r, "index"), count_of(r, "count")};
    if (count_of(r, "layout") != sums_layout) no_part(path, "has sums of another version of mx");
    h.version = report::text_of(r, "version");
    h.given = given_to(r);
    h.tensors = report::text_of(r, "tensors");
    if (const auto* yes = report::member<bool>(r, "page_sums")) h.page_sums = *yes;
    if (const auto* files = report::member<report::list>(r, "inputs")) h.inputs = *files;
    if (h.number.index == 0 || h.number.index > h.number.count ||
        h.number.count > engine::most_parts) {
        no_part(path, "has invalid data about its part");
    }
    check_given(path, h.given);
    return h;
}

std::vector<std::uint64_t> missing_parts(const std::vector<part_head>& heads) {
    std::map<std::uint64_t, const part_head*> by_number;
    for (const part_head& h : heads) {
        if (const std::string other = difference_of(heads.front(), h); !other.empty()) {
            throw base::error(base::error_kind::input,
                              fmt::format("is not of the same run as {}: {}",
                                          base::printable(heads.front().path), other),
                              {h.path, {}, {}});
        }
        const auto [at, is_new] = by_number.emplace(h.number.index, &h);
        if (!is_new) {
            throw base::error(base::error_kind::input,
                              fmt::format("is part {}/{}, and so is {}", h.number.index,
                                          h.number.count, base::printable(at->second->path)),
                              {h.path, {}, {}});
        }
    }
    std::vector<std::uint64_t> missing;
    for (std::uint64_t i = 1; i <= heads.front().number.count; ++i) {
        if (!by_number.contains(i)) missing.push_back(i);
    }
    return missing;
}

std::shared_ptr<engine::partial_run> partial_run_of(const part_options& o) {
    auto partial = std::make_shared<engine::partial_run>();
    if (!o.shard.empty()) {
        partial->part = engine::parse_part(o.shard);
        return partial;
    }
    if (o.merged.empty()) return nullptr;
    partial->merges = true;
    // The records follow from the sums.
    const report::read_options no_results{[](std::string_view) { return false; }};
    for (const std::string& path : o.merged) {
        const analysis::results_input part = analysis::open_results(path, no_results);
        const auto* sums = report::member<report::list>(part.content.tail, sums_member);
        if (sums == nullptr) no_part(path, "has no sums of a part");
        for (const report::value& v : *sums) {
            const auto* r = std::get_if<report::record>(&v);
            if (r == nullptr) no_part(path, "has no sums of a part");
            partial->sums.push_back(sums_in(*r));
        }
    }
    return partial;
}

std::string part_text(const part_options& o, const part_inputs& inputs, std::uint64_t bytes) {
    report::document d;
    d.head.emplace_back(part_member, report::written(head_members, {o, inputs, bytes}));
    std::string text;
    report::write_json(d, {}, [&](std::string_view more) { text += more; });
    const std::size_t first = text.find(':') + 1;
    return text.substr(first, text.find(",\n", first) - first);
}

part_inputs::part_inputs(const file_sizes& opened, const std::vector<engine::tensor_ref>& of,
                         const part_options& o) {
    for (const auto& [path, bytes, given] : opened)
        files.emplace_back(report::written(file_members, {path, bytes}));
    for (const report::given_option& option : o.given.options) {
        if (!names_file(option)) continue;
        const std::string path = option.value.value_or("");
        std::error_code failure;
        const auto bytes = std::filesystem::file_size(path, failure);
        files.emplace_back(report::written(file_members, {path, failure ? 0 : bytes}));
    }
    std::uint64_t digest = 0;
    for (const engine::tensor_ref& t : of) {
        const io::tensor_info& info = t.info();
        digest = base::tensor_id(fmt::format("{:x} {} {} {} {} {}", digest, info.name,
                                             tensor::row_of(info.type).name,
                                             tensor::to_string(info.shape), info.bytes, info.note));
    }
    tensors = fmt::format("{:016x}", digest);
}

void check_parts(const part_options& o, const part_inputs& now, bool with_page) {
    if (o.merged.empty()) return;
    const part_head made = read_part_head(o.merged.front());
    if (with_page && !made.page_sums) {
        base::refuse("--html: the parts have no sums for a page; make them with --page-sums");
    }
    part_head here = made;
    here.path = "here";
    here.inputs = now.files;
    here.tensors = now.tensors;
    if (const std::string other = difference_of(made, here); !other.empty()) {
        throw base::error(base::error_kind::input,
                          "a file is not what the parts were made of: " + other);
    }
}

void finish_part(report::document& d, const part_options& o, const engine::partial_run& partial,
                 const part_inputs& inputs) {
    std::uint64_t bytes = 0;
    std::size_t whole = 0;
    for (const engine::range_sums& s : partial.sums) {
        bytes += s.bytes;
        whole += s.whole ? 1u : 0u;
    }
    d.head.emplace_back(part_member, report::written(head_members, {o, inputs, bytes}));
    d.tail.emplace_back(sums_member, report::listed(sums_members, partial.sums));
    const std::size_t cut = partial.sums.size() - whole;
    report::section said;
    said.notes.push_back(fmt::format(
        "part {} of {}: {} tensors{}, {} bytes; 'mx merge' combines all parts", partial.part.index,
        partial.part.count, report::grouped(static_cast<std::int64_t>(whole)),
        cut == 0 ? std::string() : fmt::format(" and pieces of {}", cut),
        report::grouped(static_cast<std::int64_t>(bytes))));
    d.sections = {std::move(said)};
}

void declare_part(report::document_schema& to) {
    constexpr std::array given{
        report::member_type{"command", "analyze|compare|cluster|diff|quantize", ""},
        report::member_type{"options", "[#option]", ""},
        report::member_type{"files", "[string]", ""}};
    to.member({part_member, "#part", "of which run this is a part; with --shard", false})
        .member({sums_member, "[#part_sums]",
                 "what mx merge finishes the run from, a tensor or piece each, with sums as counts "
                 "and h * 2^(32*k - 1074), written k:h, in hexadecimal; with --shard",
                 false})
        .define("part", head_members)
        .define("part_given", given)
        .define("option", report::option_members)
        .define("part_input", file_members)
        .define("part_sums", sums_members);
}

}  // namespace mx::documents

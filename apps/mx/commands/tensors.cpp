// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/parts.hpp"
#include "libmx/engine/remarks.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

// Remarks on tensors after the table.
constexpr std::size_t remarks_shown = 12;
// Entries of the files' metadata in the table.
constexpr std::size_t entries_shown = 1000;

struct tensors_options {
    input_options in;
    role_options roles;
    output_options out;
    bool quiet = false;
    std::uint64_t parts = 0;
};

struct listed_tensor {
    const engine::tensor_ref& of;
    const engine::found_role& role;
    const io::tensor_info& info = of.info();
    engine::summed_axes k = engine::summed_axes_of(info, role.name);
};
constexpr std::array listed_tensor_members = std::to_array<report::declared<listed_tensor>>({
    {"file", "@members#file", "", [](auto& t) { return t.info.file; }},
    {"tensor", "@members#tensor", "", [](auto& t) { return t.info.name; }},
    {"dtype", "@members#dtype", "", [](auto& t) { return tensor::row_of(t.info.type).name; }},
    {"shape", "@members#shape", "", [](auto& t) { return shape_value(t.info.shape); }},
    {"elements", "count", "", [](auto& t) { return t.info.elements; }},
    {"bytes", "count", "that it occupies in its file; 0 if tied_to names a tensor",
     [](auto& t) { return t.info.occupied_bytes(); }},
    {"tied_to", "string", "the tensor of the file with the same storage; empty: none",
     [](auto& t) { return t.info.tied_to; }},
    {"layout", "string", "layout of quantized tensors that was recognised; empty: none",
     [](auto& t) { return t.info.layout; }},
    {"note", "string", "why mx analyze leaves it out; empty: it does not",
     [](auto& t) { return engine::why_left_out(t.info); }},
    {"remark", "string", "what the tensor was put together from; may be empty",
     [](auto& t) { return t.info.remark; }},
    {"role", "@members#role", "", [](auto& t) { return t.role.name; }},
    {"role_known", "boolean",
     "whether the name tells the role; if not, a matrix counts as a weight, all else as other",
     [](auto& t) { return t.role.known; }},
    {"contraction", "@members#contraction", "", [](auto& t) { return engine::to_value(t.k); }},
    {"k", "string?",
     "the extent that products with the tensor sum over, and its axes; null if it is in none",
     [](auto& t) {
         return t.k.any() ? text(fmt::format("{} ({})", t.k.extent, engine::axes_text(t.k)))
                          : undefined();
     }},
    {"why_k", "string?", "why these axes, or why none",
     [](auto& t) { return t.k.why.empty() ? undefined() : text(t.k.why); }},
    {"missing", "string", "what it lacks that tensors like it have; empty: nothing",
     [](auto& t) { return t.info.missing; }},
    {"tensor_scale", "string", "tensor_scales of its values in words; empty: none",
     [](auto& t) { return engine::tensor_scale_text(t.of); }},
    {"tensor_scales", "@common#tensor_scales", "",
     [](auto& t) { return engine::tensor_scales_of(t.of); }},
});

using metadata_entry = std::pair<const std::string, std::string>;
constexpr std::array metadata_entry_members = std::to_array<report::declared<metadata_entry>>({
    {"key", "string", "", [](auto& e) { return e.first; }},
    {"value", "string", "", [](auto& e) { return e.second; }},
});

// Text metadata of the files, one record per entry, made when it is read: a header may have
// millions.
report::record_list metadata_records(const engine::model& model) {
    std::vector<const metadata_entry*> entries;
    for (const auto& file : model.readers()) {
        for (const auto& entry : file->metadata()) entries.push_back(&entry);
    }
    const std::size_t count = entries.size();
    return {count, [entries = std::move(entries)](std::size_t i) {
                return report::written(metadata_entry_members, *entries[i]);
            }};
}

std::vector<report::record> file_records(const std::vector<engine::tensor_ref>& tensors,
                                         const engine::model& model) {
    struct tally {
        std::int64_t count = 0, elements = 0;
    };
    base::text_map<tally> tallies;
    for (const engine::tensor_ref& t : tensors) {
        tally& of = tallies[t.info().file];
        ++of.count;
        of.elements += static_cast<std::int64_t>(t.info().elements);
    }
    const std::vector<engine::input_file> files = model.files();
    base::text_map<std::int64_t> times;  // a file may be named twice
    for (const engine::input_file& file : files) ++times[file.path];
    std::vector<report::record> rows;
    for (const auto& [path, bytes, given] : files) {
        const tally of = tallies[path];
        rows.push_back({{"path", path},
                        {"tensors", integer(of.count / times[path])},
                        {"elements", integer(of.elements / times[path])},
                        {"bytes", integer(bytes)}});
    }
    return rows;
}

// Of the record of a tensor, what the table shows: a checkpoint may have many.
report::record shown_of(report::record r, const io::tensor_info& info, bool role_known) {
    constexpr std::array<std::string_view, 10> members{"file",     "tensor",      "dtype",  "shape",
                                                       "elements", "bytes",       "layout", "role",
                                                       "k",        "tensor_scale"};
    std::erase_if(r, [&](const auto& member) {
        return std::ranges::find(members, member.first) == members.end();
    });
    if (!role_known) pages::show(r, "role", report::text_of(r, "role") + "?");
    const engine::summed_axes k = engine::summed_axes_of(info, report::text_of(r, "role"));
    if (k.any() && k.last - k.first == 1 && k.last == static_cast<int>(info.shape.size())) {
        pages::show(r, "k", std::to_string(k.extent));  // along the last axis, as usual
    }
    r.shrink_to_fit();
    return r;
}

// The reasons in a member of the tensors' records, each once with the first tensor that it is of.
// `lead`: of the sentence, before the name.
void add_reasons(const report::record_list& rows, std::string_view member, std::string_view lead,
                 report::notes& notes) {
    struct reason {
        std::string why, first;
        std::size_t tensors = 0;
    };
    std::vector<reason> reasons;
    base::text_map<std::size_t> places;
    for (const report::record r : rows) {
        const std::string why = report::text_of(r, member);
        if (why.empty()) continue;
        const auto [at, added] = places.emplace(why, reasons.size());
        if (added) reasons.push_back({why, report::text_of(r, "tensor")});
        ++reasons[at->second].tensors;
    }
    for (std::size_t i = 0; i < std::min(reasons.size(), remarks_shown); ++i) {
        const reason& r = reasons[i];
        notes.push_back(report::item(fmt::format(
            "{} {}{}: {}", lead, r.first,
            r.tensors > 1 ? fmt::format(" and {} more", r.tensors - 1) : std::string(), r.why)));
    }
    if (reasons.size() > remarks_shown) {
        notes.push_back(
            report::item(fmt::format("and {} more reasons; --json and --csv have that of every "
                                     "tensor",
                                     reasons.size() - remarks_shown)));
    }
}

// Remarks on the whole list.
report::notes notes_on(const std::vector<engine::tensor_ref>& tensors) {
    report::notes notes;
    base::view_map<int> names;
    std::size_t repeated = 0;
    std::string_view example;
    for (const engine::tensor_ref& t : tensors) {
        if (++names[t.info().name] != 2) continue;
        if (repeated++ == 0) example = t.info().name;
    }
    if (repeated != 0) {
        notes.push_back(
            fmt::format("{} name{} in more than one file ('{}'{}); each tensor is "
                        "listed, and counted, under its file.",
                        repeated, repeated == 1 ? " occurs" : "s occur", example,
                        repeated == 1 ? "" : " is one"));
    }
    std::size_t unnamed = 0;
    for (const engine::tensor_ref& t : tensors) {
        if (t.info().elements == 0 || !engine::why_left_out(t.info()).empty()) continue;
        if (!engine::role_finder().find(t.info()).known && unnamed++ == 0) example = t.info().name;
    }
    if (std::string said = engine::unknown_roles_text(unnamed, example); !said.empty()) {
        notes.push_back(std::move(said));
    }
    for (std::string& remark : engine::remarks_on(tensors)) notes.push_back(std::move(remark));
    std::size_t remarks = 0;
    for (const engine::tensor_ref& t : tensors) {
        if (t.info().remark.empty() || ++remarks > remarks_shown) continue;
        notes.push_back(report::item(fmt::format("{}: {}", t.info().name, t.info().remark)));
    }
    if (remarks > remarks_shown) {
        notes.push_back(report::item(fmt::format(
            "and {} more; --json and --csv say it of every tensor", remarks - remarks_shown)));
    }
    return notes;
}

struct measured_part {
    std::uint64_t index, bytes, whole, cut;
    report::value first, last;
};
constexpr std::array part_members = std::to_array<report::declared<measured_part>>({
    {"part", "ordinal", "from 1", [](auto& p) { return p.index; }},
    {"bytes", "count", "stored", [](auto& p) { return p.bytes; }},
    {"tensors", "count", "that lie in it whole", [](auto& p) { return p.whole; }},
    {"pieces", "count", "of tensors that are cut", [](auto& p) { return p.cut; }},
    {"first", "string?", "its first tensor", [](auto& p) { return p.first; }},
    {"last", "string?", "its last tensor", [](auto& p) { return p.last; }},
});

report::record part_record(const std::vector<engine::tensor_ref>& tensors,
                           const engine::part_number& number) {
    const auto ranges = engine::ranges_of(tensors, number);
    std::uint64_t bytes = 0, cut = 0;
    for (const engine::tensor_range& p : ranges) {
        const io::tensor_info& info = tensors[p.tensor].info();
        bytes += engine::bytes_of(info, p);
        cut += p.end - p.first != info.elements ? 1u : 0u;
    }
    const auto name = [&](const engine::tensor_range& p) {
        return report::value(tensors[p.tensor].info().name);
    };
    return report::written(part_members, {number.index, bytes, ranges.size() - cut, cut,
                                          ranges.empty() ? undefined() : name(ranges.front()),
                                          ranges.empty() ? undefined() : name(ranges.back())});
}

// The parts of --shard 1/N to N/N.
report::document parts_document(const std::vector<engine::tensor_ref>& all, std::uint64_t count) {
    std::vector<engine::skipped_tensor> left_out;
    const auto tensors = engine::numeric_only(all, left_out);
    report::document d;
    d.head = pages::document_head("mx.shards/1");
    report::section table{
        "", pages::columns_of({pages::column_of("part", "part", cell::integer), "bytes", "tensors",
                               pages::column_of("pieces", "pieces of\ntensors", cell::integer),
                               pages::column_of("first", "from", cell::name),
                               pages::column_of("last", "to", cell::name)})};
    for (std::uint64_t i = 1; i <= count; ++i) {
        const report::record r = part_record(tensors, {i, count});
        d.results.push_back(r);
        table.rows.push_back(r);
    }
    d.sections.push_back(std::move(table));
    return d;
}

int run_tensors(const tensors_options& o) {
    outputs to(o.out, o.in.files);
    const engine::model model = open_inputs(o.in, to.paths());
    // Lists what there is, also a model that is there twice.
    const io::reader* const all = &model.reader();
    const engine::role_finder roles = documents::finder_of(o.roles);
    const std::vector<engine::tensor_ref> tensors =
        documents::with_roles(engine::select(std::span(&all, 1), o.in.globs), o.roles, roles);
    if (o.parts != 0) {
        to.finish(parts_document(tensors, o.parts), o.quiet);
        return exit_code::fine;
    }

    report::document d;
    d.head = pages::document_head("mx.tensors/1");
    d.head.emplace_back("inputs", input_list(model.files()));
    std::vector<report::record> shown;
    bool decoded = false;
    bool scaled = false;
    for (const engine::tensor_ref& t : tensors) {
        const engine::found_role role = roles.find(t.info());
        report::record r = report::written(listed_tensor_members, {t, role});
        d.results.push_back(r);
        scaled = scaled || !report::text_of(r, "tensor_scale").empty();
        shown.push_back(shown_of(std::move(r), t.info(), role.known));
        decoded = decoded || !t.info().layout.empty();
    }
    const std::vector<std::string> remarks = engine::remarks_on(tensors);
    if (!remarks.empty()) d.tail.emplace_back("remarks", report::to_list(remarks));
    d.tail.emplace_back("metadata", report::list());
    d.long_members.emplace_back("metadata", metadata_records(model));

    report::section listing{
        {},
        pages::columns_of({"tensor", "dtype", "shape", pages::column_of("role", "role"),
                           pages::column_of("k", "K"), "elements", "bytes"}),
        std::move(shown),
        {},
        notes_on(tensors)};
    add_reasons(d.results, "note", "Left out by analyze:", listing.notes);
    add_reasons(d.results, "why_k", "K of", listing.notes);
    if (decoded) listing.columns.insert(listing.columns.begin() + 2, {"layout", "stored as"});
    if (scaled) listing.columns.push_back({"tensor_scale", "tensor scale"});
    if (model.files().size() > 1) listing.group_field = "file";
    d.sections.push_back(std::move(listing));
    d.sections.push_back({"Files",
                          pages::columns_of({"path", "tensors", "elements",
                                             pages::column_of("bytes", "bytes on disk")}),
                          file_records(tensors, model)});
    if (const report::record_list metadata = metadata_records(model); !metadata.empty()) {
        report::section s{.heading = "Metadata", .columns = pages::columns_of({"key", "value"})};
        for (std::size_t i = 0; i < std::min(metadata.size(), entries_shown); ++i) {
            s.rows.push_back(metadata[i]);
        }
        if (s.rows.size() < metadata.size()) {
            s.notes.push_back(fmt::format(
                "and {} more; --json has all",
                report::grouped(static_cast<std::int64_t>(metadata.size() - s.rows.size()))));
        }
        d.sections.push_back(std::move(s));
    }
    to.finish(d, o.quiet);
    return exit_code::fine;
}

}  // namespace

report::document_schema tensors_schema() {
    return report::document_schema("mx.tensors/1", "mx tensors", "What a file holds.")
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"results", "[#tensor]", "a tensor each"})
        .member({"remarks", "@common#remarks", "", false})
        .member({"metadata", "[#entry]", "what the file says about itself"})
        .define("tensor", listed_tensor_members)
        .define("entry", metadata_entry_members);
}

report::document_schema shards_schema() {
    return report::document_schema("mx.shards/1", "mx tensors",
                                   "The parts that --shard deals a model into.")
        .member({"results", "[#part]", "a part each"})
        .define("part", part_members);
}

runner declare_tensors(parser& cmd) {
    const auto o = std::make_shared<tensors_options>();
    declare_inputs(cmd, o->in);
    declare_roles(cmd, o->roles);
    declare_outputs(cmd, o->out);
    cmd.add_option(
           "--parts N", o->parts,
           "list the parts of --shard 1/N to N/N instead: neighbouring tensors of about equal "
           "bytes; one is cut if no border is near the even division")
        ->in_range(std::uint64_t{1}, engine::most_parts);
    declare_quiet(cmd, o->quiet);
    cmd.description(
        "Reads only headers. The format is detected from the content of the file, not from its "
        "name. Quantized tensors are shown decoded, with their arrays and the reason; --raw shows "
        "the arrays.");
    cmd.examples(
        "mx tensors model.safetensors\n"
        "mx tensors model.safetensors.index.json --tensor '*.mlp.*' --csv -\n"
        "mx tensors 'shards/*.safetensors'\n"
        "mx tensors model.safetensors --parts 16\n"
        "mx tensors weights.bin --shape 4096x4096 --dtype BF16\n");
    return [o] { return run_tensors(*o); };
}

}  // namespace mx::app

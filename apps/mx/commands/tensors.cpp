// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <unordered_map>

#include "apps/mx/options.hpp"
#include "libmx/engine/remarks.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

// Remarks on tensors after the table.
constexpr std::size_t remarks_shown = 12;

struct tensors_options {
    input_options in;
    output_options out;
    bool quiet = false;
};

report::record tensor_record(const engine::tensor_ref& t, const engine::role_finder& roles) {
    const io::tensor_info& info = t.info();
    return {{"file", info.file},
            {"tensor", info.name},
            {"dtype", text(tensor::row_of(info.type).name)},
            {"shape", shape_value(info.shape)},
            {"elements", integer(info.elements)},
            {"bytes", integer(info.stored_bytes != 0 ? info.stored_bytes : info.bytes)},
            {"layout", info.layout},
            {"note", engine::why_left_out(info)},
            {"remark", info.remark},
            {"missing", info.missing},
            {"tensor_scale", engine::tensor_scale_text(t)},
            {"tensor_scales", engine::tensor_scales_of(t)},
            {"role", text(roles.role_of(info))}};
}

// Text metadata of the files, one record per entry.
std::vector<report::record> metadata_records(const engine::model& model) {
    std::vector<report::record> rows;
    for (const auto& file : model.readers()) {
        for (const auto& [key, value] : file->metadata()) {
            rows.push_back({{"key", key}, {"value", value}});
        }
    }
    return rows;
}

std::vector<report::record> file_records(const std::vector<engine::tensor_ref>& tensors,
                                         const engine::model& model) {
    struct tally {
        std::int64_t count = 0, elements = 0;
    };
    std::unordered_map<std::string, tally> tallies;
    for (const engine::tensor_ref& t : tensors) {
        tally& of = tallies[t.info().file];
        ++of.count;
        of.elements += static_cast<std::int64_t>(t.info().elements);
    }
    const auto files = model.files();
    std::unordered_map<std::string, std::int64_t> times;  // a file may be named twice
    for (const auto& file : files) ++times[file.first];
    std::vector<report::record> rows;
    for (const auto& [path, bytes] : files) {
        const tally of = tallies[path];
        rows.push_back({{"path", path},
                        {"tensors", integer(of.count / times[path])},
                        {"elements", integer(of.elements / times[path])},
                        {"bytes", integer(bytes)}});
    }
    return rows;
}

// Remarks on the whole list.
std::vector<std::string> notes_on(const std::vector<engine::tensor_ref>& tensors) {
    std::vector<std::string> notes;
    std::unordered_map<std::string_view, int> names;
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
    for (std::string& remark : engine::remarks_on(tensors)) notes.push_back(std::move(remark));
    std::size_t remarks = 0;
    for (const engine::tensor_ref& t : tensors) {
        if (t.info().remark.empty() || ++remarks > remarks_shown) continue;
        notes.push_back(fmt::format("- {}: {}", t.info().name, t.info().remark));
    }
    if (remarks > remarks_shown) {
        notes.push_back(fmt::format("- and {} more; --json and --csv say it of every tensor",
                                    remarks - remarks_shown));
    }
    return notes;
}

int run_tensors(const tensors_options& o) {
    outputs to(o.out, o.in.files);
    const engine::model model = open_inputs(o.in, to.paths());
    const std::vector<engine::tensor_ref> tensors = model.select(o.in.globs);

    report::document d;
    d.head = pages::document_head("mx.tensors/1");
    d.head.emplace_back("inputs", input_list(model.files()));
    const engine::role_finder roles;
    std::vector<report::record> rows;
    bool noted = false;
    bool decoded = false;
    bool scaled = false;
    for (const engine::tensor_ref& t : tensors) {
        rows.push_back(tensor_record(t, roles));
        noted = noted || !engine::why_left_out(t.info()).empty();
        decoded = decoded || !t.info().layout.empty();
        const auto* const scale =
            std::get_if<std::string>(report::find(rows.back(), "tensor_scale"));
        scaled = scaled || !scale->empty();
    }
    d.results = rows;
    const std::vector<std::string> remarks = engine::remarks_on(tensors);
    if (!remarks.empty()) d.tail.emplace_back("remarks", report::to_list(remarks));
    std::vector<report::record> metadata = metadata_records(model);
    d.tail.emplace_back("metadata", report::list(metadata.begin(), metadata.end()));

    report::section listing{{},
                            {{"tensor", "tensor", cell::name},
                             {"dtype", "dtype"},
                             {"shape", "shape", cell::extents},
                             {"role", "role"},
                             {"elements", "elements", cell::integer},
                             {"bytes", "bytes", cell::integer}},
                            rows,
                            {},
                            notes_on(tensors)};
    if (decoded) listing.columns.insert(listing.columns.begin() + 2, {"layout", "stored as"});
    if (scaled) listing.columns.push_back({"tensor_scale", "tensor scale"});
    if (noted) listing.columns.push_back({"note", "note"});
    if (model.files().size() > 1) listing.group_field = "file";
    d.sections.push_back(std::move(listing));
    d.sections.push_back({"Files",
                          {{"path", "file", cell::name},
                           {"tensors", "tensors", cell::integer},
                           {"elements", "elements", cell::integer},
                           {"bytes", "bytes on disk", cell::integer}},
                          file_records(tensors, model)});
    if (!metadata.empty()) {
        d.sections.push_back(
            {"Metadata", {{"key", "key"}, {"value", "value"}}, std::move(metadata)});
    }
    to.finish(d, o.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_tensors(parser& cmd) {
    const auto o = std::make_shared<tensors_options>();
    declare_inputs(cmd, o->in);
    declare_outputs(cmd, o->out);
    cmd.group("Output");
    cmd.add_flag("-q,--quiet", o->quiet, "no table; errors only");
    cmd.description(
        "Reads only headers. The format is detected from the content of the file, not from its "
        "name. Quantized tensors are shown decoded, with their arrays and the reason; --raw shows "
        "the arrays.");
    cmd.examples(
        "mx tensors model.safetensors\n"
        "mx tensors model.safetensors.index.json --tensor '*.mlp.*' --csv -\n"
        "mx tensors 'shards/*.safetensors'\n"
        "mx tensors weights.bin --shape 4096x4096 --dtype BF16\n");
    return [o] { return run_tensors(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "apps/mx/commands.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/input_records.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"
#include "apps/mx/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::app {
namespace {

using report::cell;

struct options {
    input_options in;
    output_options out;
    bool quiet = false;
};

report::record tensor_record(const pipeline::tensor_ref& t) {
    const io::tensor_info& info = t.info();
    return {{"file", info.file},
            {"tensor", info.name},
            {"dtype", text(tensor::row_of(info.type).name)},
            {"shape", shape_value(info.shape)},
            {"elements", integer(info.elements)},
            {"bytes", integer(info.bytes)},
            {"note", info.stored.empty() ? info.note : "stored as " + info.stored}};
}

// Text metadata of the files, one record per entry.
std::vector<report::record> metadata_records(const pipeline::model& model) {
    std::vector<report::record> rows;
    for (const auto& file : model.readers()) {
        for (const auto& [key, value] : file->metadata()) {
            rows.push_back({{"key", key}, {"value", value}});
        }
    }
    return rows;
}

std::vector<report::record> file_records(const std::vector<pipeline::tensor_ref>& tensors,
                                         const pipeline::model& model) {
    std::vector<report::record> rows;
    for (const auto& [path, bytes] : model.files()) {
        std::int64_t count = 0;
        std::int64_t elements = 0;
        for (const pipeline::tensor_ref& t : tensors) {
            if (t.info().file != path) continue;
            ++count;
            elements += static_cast<std::int64_t>(t.info().elements);
        }
        rows.push_back({{"path", path},
                        {"tensors", integer(count)},
                        {"elements", integer(elements)},
                        {"bytes", integer(bytes)}});
    }
    return rows;
}

int run(const options& o) {
    outputs to(o.out, o.in.files);
    const pipeline::model model = open_inputs(o.in);
    const std::vector<pipeline::tensor_ref> tensors = model.select(o.in.globs);

    report::document d;
    d.head = document_head("mx.tensors/1");
    d.head.emplace_back("inputs", input_list(model));
    std::vector<report::record> rows;
    bool noted = false;
    for (const pipeline::tensor_ref& t : tensors) {
        rows.push_back(tensor_record(t));
        noted = noted || !t.info().note.empty() || !t.info().stored.empty();
    }
    d.results = rows;
    std::vector<report::record> metadata = metadata_records(model);
    d.tail.emplace_back("metadata", report::list(metadata.begin(), metadata.end()));

    report::section listing{{},
                            {{"tensor", "tensor", cell::name},
                             {"dtype", "dtype"},
                             {"shape", "shape", cell::extents},
                             {"elements", "elements", cell::integer},
                             {"bytes", "bytes", cell::integer}},
                            rows,
                            {},
                            {}};
    if (noted) listing.columns.push_back({"note", "note"});
    if (model.files().size() > 1) listing.group_field = "file";
    d.sections.push_back(std::move(listing));
    d.sections.push_back({"Files",
                          {{"path", "file", cell::name},
                           {"tensors", "tensors", cell::integer},
                           {"elements", "elements", cell::integer},
                           {"bytes", "bytes on disk", cell::integer}},
                          file_records(tensors, model),
                          {},
                          {}});
    if (!metadata.empty()) {
        d.sections.push_back(
            {"Metadata", {{"key", "key"}, {"value", "value"}}, std::move(metadata), {}, {}});
    }
    to.finish(d, o.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_tensors(CLI::App& cmd) {
    const auto o = std::make_shared<options>();
    declare_inputs(cmd, o->in);
    declare_outputs(cmd, o->out);
    cmd.add_flag("-q,--quiet", o->quiet, "no table; errors only")->group("Output");
    cmd.description(
        "Reads headers only. The format is found by looking at the file, not at its name.");
    examples(cmd,
             "mx tensors model.safetensors\n"
             "mx tensors model.safetensors.index.json --tensor '*.mlp.*' --csv -\n"
             "mx tensors weights.bin --shape 4096x4096 --dtype BF16\n");
    return [o] { return run(*o); };
}

}  // namespace mx::app

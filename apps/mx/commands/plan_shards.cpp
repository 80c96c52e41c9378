// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/options.hpp"
#include "libmx/engine/share.hpp"
#include "libmx/engine/skip.hpp"

namespace mx::app {
namespace {

struct plan_shards_options {
    input_options in;
    role_options roles;
    output_options out;
    bool quiet = false;
    std::uint64_t parts = 0;
};

report::record part_record(const std::vector<engine::tensor_ref>& tensors,
                           const engine::part_number& number) {
    const auto pieces = engine::deal(tensors, number);
    std::uint64_t bytes = 0, cut = 0;
    for (const engine::tensor_piece& p : pieces) {
        const io::tensor_info& info = tensors[p.tensor].info();
        bytes += engine::bytes_of(info, p);
        cut += p.end - p.first != info.elements ? 1u : 0u;
    }
    const auto name = [&](const engine::tensor_piece& p) {
        return report::value(tensors[p.tensor].info().name);
    };
    return {{"part", integer(number.index)},
            {"bytes", integer(bytes)},
            {"tensors", integer(pieces.size() - cut)},
            {"pieces", integer(cut)},
            {"first", pieces.empty() ? undefined() : name(pieces.front())},
            {"last", pieces.empty() ? undefined() : name(pieces.back())}};
}

int run_plan_shards(const plan_shards_options& o) {
    outputs to(o.out, o.in.files);
    const engine::model model = open_inputs(o.in, to.paths());
    const engine::role_finder finder = documents::finder_of(o.roles);
    std::vector<engine::skipped_tensor> left_out;
    const auto tensors = engine::numeric_only(
        documents::with_roles(model.select(o.in.globs), o.roles, finder), left_out);
    report::document d;
    d.head = pages::document_head("mx.shards/1");
    report::section table{"",
                          {{"part", "part", cell::integer},
                           {"bytes", "bytes", cell::integer},
                           {"tensors", "tensors", cell::integer},
                           {"pieces", "pieces of\ntensors", cell::integer},
                           {"first", "from", cell::name},
                           {"last", "to", cell::name}}};
    for (std::uint64_t i = 1; i <= o.parts; ++i) {
        const report::record r = part_record(tensors, {i, o.parts});
        d.results.push_back(r);
        table.rows.push_back(r);
    }
    d.sections.push_back(std::move(table));
    to.finish(d, o.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_plan_shards(parser& cmd) {
    const auto o = std::make_shared<plan_shards_options>();
    declare_inputs(cmd, o->in);
    declare_roles(cmd, o->roles);
    cmd.group("Parts");
    cmd.add_option("-n,--shards N", o->parts, "how many parts")
        ->required()
        ->in_range(std::uint64_t{1}, engine::most_parts);
    declare_outputs(cmd, o->out);
    cmd.group("Run");
    cmd.add_flag("-q,--quiet", o->quiet, "no table");
    cmd.description(
        "Lists the parts of --shard 1/N to N/N of mx analyze, compare and cluster, from headers "
        "alone: neighbouring tensors of about equal bytes. A tensor is cut if no border between "
        "tensors is near the even division.");
    cmd.examples("mx plan-shards model.safetensors --shards 16\n");
    return [o] { return run_plan_shards(*o); };
}

}  // namespace mx::app

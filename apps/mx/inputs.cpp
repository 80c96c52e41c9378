// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/joined.hpp"

namespace mx::app {

void declare_inputs(parser& cmd, input_options& in) {
    cmd.group("Input");
    cmd.add_option("FILE", in.files,
                   "the files of one model, directories or quoted patterns, at paths or addresses "
                   "(mx help inputs)")
        ->required();
    cmd.add_option("-t,--tensor GLOB", in.globs,
                   "tensors whose name matches (*, ?, [set]); repeatable");
    declare_views(cmd, in);
}

void declare_stored(parser& cmd, io::open_options& open, engine::view_request& views) {
    cmd.group("Stored values", help_page::inputs);
    cmd.add_option("--as DTYPE", open.as,
                   "dtype of values stored as raw bytes or unsigned integers of the same width: "
                   "bf16, f16, f8_e4m3, f8_e5m2, f8_e8m0, ...");
    cmd.add_option("--dtype DTYPE", open.dtype, "raw binary: F32, BF16, F16, F8_E4M3, I8, ...");
    cmd.add_flag("--raw", views.raw, "use the arrays as stored, without decoding");
    cmd.add_flag("--swizzled", views.swizzled,
                 "scales of quantized tensors are in the 128x4 order of cuBLAS");
    cmd.group("Input");
}

void declare_views(parser& cmd, input_options& in) {
    declare_stored(cmd, in.open, in.views);
    cmd.group("Tensors", help_page::inputs);
    cmd.add_option("--shape NxM", in.open.shape, "raw binary: extents, slowest first, e.g. 64x128");
    cmd.add_option("--byte-offset BYTES", in.open.offset,
                   "raw binary: byte offset of the first element")
        ->not_negative();
    cmd.add_flag("--integers", in.views.integers,
                 "include integers of 32 and 64 bits, which are otherwise left out as indices and "
                 "counts");
    cmd.add_option("--split NAME=PARTS", in.views.splits,
                   "split a fused tensor: NAME=q:4096,k:1024,v:1024 along axis 0, NAME@1=... "
                   "along axis 1; NAME may be a pattern; repeatable");
    cmd.add_option("--transpose GLOB", in.views.transposed,
                   "swap the last two axes of matching tensors ([in,out] kernels); repeatable");
    cmd.add_option("--experts GLOB", in.views.experts,
                   "treat each matrix of matching stacks ([experts,out,in]) as a tensor: NAME.0, "
                   "NAME.1, ...; repeatable");
    cmd.add_option("--heads NAME=COUNT", in.views.heads,
                   "the last axis consists of COUNT heads ([tokens,heads*columns]), and no block "
                   "spans two; NAME may be a pattern; repeatable");
    cmd.group("Input");
}

engine::model open_inputs(const input_options& in, const std::vector<std::string>& outputs) {
    require_distinct(in.files, outputs);
    engine::model model(in.files, in.open, in.views);
    require_distinct(paths_of(model), outputs);
    return model;
}

void declare_roles(parser& cmd, role_options& o) {
    cmd.group("Roles", help_page::inputs);
    cmd.add_option("--role ROLE,...", o.roles,
                   fmt::format("only tensors of these roles: {}",
                               base::joined(names_of(engine::roles()), ", ")))
        ->delimiter(',');
    declare_role_patterns(cmd, o);
}

void declare_role_patterns(parser& cmd, role_options& o) {
    cmd.group("Roles", help_page::inputs);
    cmd.add_option("--role-pattern ROLE=GLOB", o.patterns,
                   "role of the tensors that match GLOB; takes precedence over the built-in "
                   "patterns; repeatable");
    cmd.add_option("--norm-bias X", o.norm_bias,
                   "add X to the values of norm tensors: 1 for models that store gamma - 1 "
                   "(Gemma)")
        ->finite();
    cmd.group("Input");
}

report::list shape_value(const tensor::shape& shape) { return report::to_list(shape); }

std::vector<std::string> paths_of(const engine::model& model) {
    std::vector<std::string> paths;
    for (const engine::input_file& f : model.files()) paths.push_back(f.path);
    return paths;
}

}  // namespace mx::app

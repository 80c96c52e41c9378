// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/mx/backends.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/readers.hpp"

namespace mx::app {

void declare_inputs(parser& cmd, input_options& in, const char* byte_offset) {
    cmd.add_option("FILE", in.files,
                   fmt::format("{}, or raw binary; several files, directories and quoted "
                               "patterns are one model",
                               io::readable_formats()))
        ->required()
        ->group("Input");
    // One value per occurrence: otherwise the option would swallow the FILE after it.
    cmd.add_option("-t,--tensor", in.globs, "tensors whose name matches (*, ?, [set]); repeatable")
        ->allow_extra_args(false)
        ->type_name("GLOB")
        ->group("Input");
    cmd.add_option("--as", in.open.as, "dtype that opaque or unsigned data really has: bf16, f16")
        ->type_name("DTYPE")
        ->group("Input");
    cmd.add_option("--shape", in.open.shape, "raw binary: extents, slowest first, e.g. 64x128")
        ->type_name("NxM")
        ->group("Input");
    cmd.add_option("--dtype", in.open.dtype, "raw binary: F32, BF16, F16, F8_E4M3, I8, ...")
        ->type_name("DTYPE")
        ->group("Input");
    cmd.add_option(byte_offset, in.open.offset, "raw binary: byte offset of the first element")
        ->not_negative()
        ->type_name("BYTES")
        ->group("Input");
    cmd.add_flag("--raw", in.views.raw, "arrays as they are stored: nothing is decoded")
        ->group("Input");
    cmd.add_flag("--integers", in.views.integers,
                 "take in integers of 32 and 64 bits, which are left out as indices and counts")
        ->group("Input");
    cmd.add_flag("--swizzled", in.views.swizzled,
                 "scales of quantized tensors are in the 128x4 order of cuBLAS")
        ->group("Input");
    cmd.add_option("--split", in.views.splits,
                   "parts of a fused tensor: NAME=q:4096,k:1024,v:1024 along axis 0, NAME@1=... "
                   "along axis 1; NAME may be a pattern; repeatable")
        ->allow_extra_args(false)
        ->type_name("NAME=PARTS")
        ->group("Input");
    cmd.add_option("--transpose", in.views.transposed,
                   "swap the last two axes of matching tensors ([in,out] kernels); repeatable")
        ->allow_extra_args(false)
        ->type_name("GLOB")
        ->group("Input");
}

engine::model open_inputs(const input_options& in) { return {in.files, in.open, in.views}; }

void declare_run(parser& cmd, run_options& run) {
    cmd.add_option("--threads", run.threads, "worker threads; the output does not depend on it")
        ->in_range(1, 4096)
        ->type_name("N")
        ->group("Run");
    std::vector<std::string_view> names;
    for (const codec::backend& d : codec::backends()) names.push_back(d.name);
    cmd.add_option("--backend", run.backend, fmt::format("one of: {}", fmt::join(names, ", ")))
        ->type_name("NAME")
        ->group("Run");
    cmd.add_flag("-q,--quiet", run.quiet, "no table and no progress; errors only")->group("Run");
}

engine::run_control control_of(const run_options& run) {
    engine::run_control control;
    control.threads = run.threads;
    control.backend = &chosen_backend(run.backend);
    control.cancel = &interrupted();
    control.on_progress = progress_bar(run.quiet);
    control.notices = std::make_shared<base::notices>(
        run.quiet ? std::function<void(const std::string&)>() : remark);
    return control;
}

void declare_destination(parser& cmd, std::string& out, const std::string& what) {
    cmd.add_option("-o,--output", out, what)
        ->required()
        ->file_name()
        ->type_name("OUT")
        ->group("Output");
}

void examples(parser& cmd, const std::string& lines) { cmd.examples(lines); }

}  // namespace mx::app

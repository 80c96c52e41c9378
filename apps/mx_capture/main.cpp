// SPDX-License-Identifier: Apache-2.0
// mx_capture: records the results of conversions and matrix instructions on the first GPU, for
// comparison with the emulator by `mx verify`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "apps/mx_capture/capture.hpp"
#include "libmx/base/floating_point_environment.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/writer.hpp"

namespace {

// The exit codes of mx.
constexpr int fine = 0, usage = 2, input_output = 3, unavailable = 4, internal = 70;

int code_of(mx::base::error_kind kind) {
    if (kind == mx::base::error_kind::usage) return usage;
    return kind == mx::base::error_kind::unavailable ? unavailable : input_output;
}

int complain(int code, const char* what) {
    mx::io::discard_unfinished_outputs();
    std::fprintf(stderr, "mx_capture: %s\n", mx::base::printable(what).c_str());
    return code;
}

int run(int argc, char** argv) {
    mx::capture::request what;
    bool quick = false;
    CLI::App app(
        "Records what this machine's first CUDA card answers to conversion and matrix "
        "instructions into a folder of less than 200 MB; `mx verify FOLDER` compares the emulator "
        "with it. Takes minutes.",
        "mx_capture");
    app.set_version_flag("--version", MX_VERSION);
    app.add_option("-o,--out", what.out, "folder to write (default: capture-DEVICE-DATE)")
        ->type_name("FOLDER");
    app.add_option("--only", what.only, "only parts with this in their file name")
        ->type_name("TEXT");
    app.add_option("--replay", what.replay,
                   "vector files of matrix instructions whose inputs are asked as well "
                   "(datasets/vectors/mma)")
        ->type_name("FOLDER");
    app.add_flag("--quick", quick, "less of everything: a first look in seconds");
    app.add_flag("--dry-run", what.dry,
                 "writes nothing: prints the files, their sizes, and what each kind decides");
    app.add_option("--seed", what.how_much.seed, "what inputs are made from (default 1)")
        ->type_name("N");
    app.add_option("--emulate", what.emulate,
                   "the emulator in place of a card, as this chip (sm_100a): shows the way, "
                   "proves nothing")
        ->type_name("CHIP");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? fine : usage;
    }
    if (quick) {
        const std::uint64_t seed = what.how_much.seed;
        what.how_much = mx::capture::quick_amounts();
        what.how_much.seed = seed;
    }
    mx::capture::capture(what);
    return fine;
}

}  // namespace

int main(int argc, char** argv) {
    const mx::base::floating_point_environment ours;
    try {
        return run(argc, argv);
    } catch (const mx::base::error& e) {
        return complain(code_of(e.kind()), e.what());
    } catch (const std::exception& e) {
        return complain(internal, e.what());
    }
}

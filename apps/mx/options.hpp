// SPDX-License-Identifier: Apache-2.0
// Option groups that several commands share, declared once.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/cli.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/views.hpp"
#include "libmx/io/reader.hpp"

namespace mx::app {

/// FILE..., --tensor, what a file cannot say about itself, and how its tensors are seen.
struct input_options {
    std::vector<std::string> files;
    std::vector<std::string> globs;
    io::open_options open;
    engine::view_request views;
};
/// `byte_offset`: what the option for the offset of raw data is called; --byte-offset alone where
/// --offset means something else.
inline constexpr const char* byte_offset_only = "--byte-offset";
void declare_inputs(parser& cmd, input_options& in,
                    const char* byte_offset = "--offset,--byte-offset");

/// Opens the files; errors name the file.
engine::model open_inputs(const input_options& in);

/// --threads, --backend, --quiet.
struct run_options {
    int threads = 0;
    std::string backend;  ///< empty: see chosen_backend
    bool quiet = false;
};
void declare_run(parser& cmd, run_options& run);

/// Thread count, driver, cancel flag, progress bar and notices for the library. Throws base::error
/// when the backend asked for is unknown or cannot run here.
engine::run_control control_of(const run_options& run);

/// -o, --output FILE of a converting command.
void declare_destination(parser& cmd, std::string& out, const std::string& what);

/// The text of the "Examples:" part of help and man page, one "command  # what it does" a line.
void examples(parser& cmd, const std::string& lines);

}  // namespace mx::app

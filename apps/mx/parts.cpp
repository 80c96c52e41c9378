// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/parts.hpp"

#include "apps/mx/options.hpp"

namespace mx::app {

void declare_parts(parser& cmd, part_options& o, std::string_view command, bool with_page) {
    cmd.group("Parts", help_page::outputs);
    cmd.add_option("--shard I/N", o.shard,
                   "process only part I of N, to divide a run among jobs; 'mx merge' combines the "
                   "parts into the output of one run");
    if (with_page) {
        cmd.add_flag("--page-sums", o.page_sums,
                     "with --shard: also the sums that 'mx merge --html' needs");
    }
    cmd.group("");
    cmd.add_option("--parts FILE", o.merged, "parts that are merged")->file_name();
    cmd.group("Output");  // restore the heading for later options
    o.given.command = command;
    std::vector<std::string> outputs{"title",   "summary",   "threads", "backend",
                                     "verbose", "quiet",     "shard",   "parts",
                                     "color",   "page-sums", "output",  "max-shard-size"};
    for (const report::writer& w : report::writers) outputs.emplace_back(w.name);
    cmd.keep_arguments(o.given, std::move(outputs));
}

void check_part_outputs(const part_options& o, const output_options& out) {
    if (o.shard.empty()) {
        if (o.page_sums) refuse("--page-sums is for parts: give --shard as well, or --html alone");
        return;
    }
    for (std::size_t i = 0; i < report::writers.size(); ++i) {
        const report::writer& w = report::writers[i];
        if (w.name != "json" && !out.paths[i].empty()) {
            refuse("--{}: a part is written as --json; 'mx merge' writes the rest", w.name);
        }
        if (w.name == "json" && out.paths[i].empty()) {
            refuse("--shard: name the part's file with --json");
        }
    }
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
// The page of a review, from `mx report` or the option --html of analyze, compare and cluster; the
// code that these have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mx/judging.hpp"
#include "apps/mx/options.hpp"
#include "libmx/documents/measured.hpp"

namespace mx::app {

/// --policy, --target, --eval, and --summary: one line instead of tables.
void declare_review(parser& cmd, judging_options& judging, bool& summary);
void declare_summary(parser& cmd, bool& summary);

/// The output of --summary, unless another output uses stdout.
void print_summary(const std::string& summary, const output_options& out);

/// Options of a command that measures a model, besides those of the document.
struct measured_outputs {
    output_options out;
    run_options run;
    bool sha256 = false;  ///< of the inputs, also without a page
};
/// The writers, --sha256, what declare_review declares, and --shard.
void declare_measured_outputs(parser& cmd, documents::measuring_options& o, measured_outputs& to,
                              std::string_view command);

/// --group: which tensors share a record.
void declare_groups(parser& cmd, std::vector<std::string>& groups);

/// A model opened for measurement. Outputs are opened first, so that an unwritable path ends the
/// run immediately. `more`: outputs written by the command itself.
class measured_run {
  public:
    /// Sets in `o` what the outputs require. Both must outlive the run.
    measured_run(documents::measuring_options& o, const measured_outputs& to,
                 std::vector<std::string> more = {});

    /// Opens outputs, then the model.
    documents::run_environment environment();
    /// Writes the document; --html gets the page.
    void finish(const documents::measured& m);

  private:
    const documents::measuring_options& options_;
    const measured_outputs& to_;
    std::vector<std::string> more_;
    std::optional<outputs> outputs_;
    std::optional<engine::model> model_;
};

}  // namespace mx::app

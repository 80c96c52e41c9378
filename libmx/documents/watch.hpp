// SPDX-License-Identifier: Apache-2.0
// What mx watch says of a checkpoint: its figures, what moved since the one before, and which rules
// it breaks (schema mx.watch/1). The lines that were written before are all the memory there is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/rule.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/documents/diff.hpp"
#include "libmx/documents/inputs.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/report/declared.hpp"

namespace mx::documents {

inline constexpr std::string_view watch_schema = "mx.watch/1";
report::document_schema watch_line_schema();

/// Without others: no block of a norm saturates, and none is on its way to where the recipe clamps,
/// from below or, through a power of two, from above.
inline constexpr std::array watch_rules{
    "norm:saturated_block_rate==0", "norm:rises_into_zone==false", "norm:falls_into_zone==false"};

struct watch_options {
    std::vector<std::string> globs;    ///< which tensors
    role_options roles;                ///< without globs or roles: norms
    std::vector<std::string> recipes;  ///< none: mxfp8:scale=floor
    std::vector<std::string> rules;    ///< as text; without any, and without files: watch_rules
    std::vector<std::string> rule_files;
};

/// A checkpoint and what it is called in the log.
struct named_checkpoint {
    std::string name;
    opened_dump dump;
};

class watcher {
  public:
    /// Throws base::error (usage) for options that make no sense, and for rules about the policy or
    /// about all tensors together.
    explicit watcher(const watch_options& o);

    const std::vector<codec::recipe>& recipes() const { return recipes_; }

    /// The line for `now`. `before`: the checkpoint in front of it; null where it is gone, or there
    /// is none. `earlier`: the lines of the latest two in front of it (or fewer), in their order. A
    /// figure that is undefined breaks no rule. Throws base::error: usage also for a rule about
    /// tensors or figures that are not there, input where the checkpoint has no tensor to watch.
    report::record look(const named_checkpoint& now, const named_checkpoint* before,
                        std::span<const report::record> earlier,
                        const engine::run_control& control) const;

  private:
    struct surveyed;
    std::vector<engine::tensor_ref> chosen_in(const io::reader* checkpoint) const;
    surveyed survey(const named_checkpoint& now, const named_checkpoint* before,
                    const engine::run_control& control) const;
    void add_rise(report::record& r, const surveyed& s) const;
    void add_fall(report::record& r, const surveyed& s) const;
    void add_drift(report::record& r, const surveyed& s) const;
    report::list warnings_about(const std::vector<report::record>& results,
                                const surveyed& s) const;

    watch_options options_;
    engine::role_finder finder_;
    std::vector<codec::recipe> recipes_;
    std::vector<std::string> remedies_;  ///< by recipe: what takes its clamp zone away, or empty
    std::vector<analysis::gate_rule> rules_;
};

/// The line as metrics in the text format of Prometheus. `folder` becomes a label of each, so that
/// several watches on one machine can be told apart; `checkpoints`: how many were looked at in all.
std::string prometheus_text(const report::record& line, const std::string& folder,
                            std::uint64_t checkpoints);

}  // namespace mx::documents

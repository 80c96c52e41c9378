// SPDX-License-Identifier: Apache-2.0
// What a quantized checkpoint states wrongly or lacks: THE TABLE of rules, and their findings.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::lint {

class checkpoint;

/// An error makes an engine compute something else or refuse the file; a warning may be meant.
enum class severity : std::uint8_t { error, warning };

struct finding {
    std::string_view rule;
    severity level = severity::error;
    std::string tensor;   ///< or file, of a rule about files; never empty
    std::string message;  ///< one line: what is wrong
    std::string found;    ///< the numbers or names behind it
    std::string effect;   ///< what it does to the model
    std::string repair;   ///< what to do
};

/// What is read beyond headers and scales, and what is looked for.
struct lint_options {
    bool values = false;              ///< the rule `value`; all of what is sampled otherwise
    std::string original;             ///< the model before quantization; empty: none given
    std::vector<std::string> rules;   ///< only these; none: all
    std::vector<std::string> ignore;  ///< RULE, or RULE:GLOB of tensors
    const std::atomic<bool>* cancel = nullptr;  ///< stops once it is set
};

struct lint_result {
    std::vector<finding> findings;
    std::uint64_t scale_bytes = 0;       ///< of all arrays of scales
    std::uint64_t scale_bytes_read = 0;  ///< by the rules that look at their values
};

/// Appends what a rule finds, without the name of the rule.
using rule_function = void (*)(const checkpoint&, std::vector<finding>&);

struct rule_row {
    std::string_view name;
    std::string_view meaning;
    rule_function find;
    enum class needs : std::uint8_t { nothing, values, original } needed = needs::nothing;
    /// Whether the rule is applied, before rules are chosen by name.
    bool applies(const lint_options& how) const {
        return needed == needs::nothing || (needed == needs::values && how.values) ||
               (needed == needs::original && !how.original.empty());
    }
};

void find_missing_scales(const checkpoint&, std::vector<finding>&);
void find_orphan_scales(const checkpoint&, std::vector<finding>&);
void find_scale_values(const checkpoint&, std::vector<finding>&);
void find_scale_shapes(const checkpoint&, std::vector<finding>&);
void find_fused_scales(const checkpoint&, std::vector<finding>&);
void find_default_scales(const checkpoint&, std::vector<finding>&);
void find_config(const checkpoint&, std::vector<finding>&);
void find_index(const checkpoint&, std::vector<finding>&);
void find_tied(const checkpoint&, std::vector<finding>&);
void find_values(const checkpoint&, std::vector<finding>&);
void find_conventions(const checkpoint&, std::vector<finding>&);

inline constexpr std::array rules{
    rule_row{"missing-scale", "a quantized tensor without a scale that it needs",
             find_missing_scales},
    rule_row{"orphan-scale", "a scale whose codes are in no file", find_orphan_scales},
    rule_row{"scale-value",
             "scales that are NaN, Inf, negative, subnormal, zero beside other codes, or inverted",
             find_scale_values},
    rule_row{"scale-shape", "scales whose shape fits no layout of the codes", find_scale_shapes},
    rule_row{"fused-scales", "matrices that engines load as one, with different tensor scales",
             find_fused_scales},
    rule_row{"config", "quantization_config that disagrees with the tensors", find_config},
    rule_row{"index", "an index that disagrees with the files, or a tensor that is there twice",
             find_index},
    rule_row{"value", "NaN, Inf, matrices of zeros, equal experts (--values)", find_values,
             rule_row::needs::values},
    rule_row{"default-scale", "scales that were never calibrated: 1, or one constant",
             find_default_scales},
    rule_row{"tied", "head and embedding that differ though the configuration ties them",
             find_tied},
    rule_row{"convention",
             "codes or scales that fit the original only if they are read in another way "
             "(--original)",
             find_conventions, rule_row::needs::original},
};

/// Opens `path`, a file, an index, or a folder, whatever its index says, and applies the rules.
/// Errors come first, then in the order of rules and names. Of an array of scales beyond 192 KiB
/// the first, middle and last 64 KiB are read, with `values` all. Throws base::error: input if no
/// tensor can be read or no tensor is in the original, usage for an unknown rule.
lint_result lint(const std::string& path, const lint_options& how);

}  // namespace mx::lint

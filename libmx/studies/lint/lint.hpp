// SPDX-License-Identifier: Apache-2.0
// Checks the contracts of a quantized checkpoint that engines rely on: scales, configuration,
// index. Reads headers and scales; values only on request.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/model_config.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/quantized/pairings.hpp"

namespace mx::lint {

/// error: engines refuse the file or compute something else than its writer; warning: they may.
enum class severity : std::uint8_t { error, warning };
std::string_view to_string(severity s);

struct finding {
    std::string_view rule;  ///< a name of `rules`
    severity is = severity::error;
    std::string file, tensor;  ///< empty: of the whole checkpoint
    std::string message;       ///< what was found
    std::string effect = {};   ///< what it does to the model, with figures where they are known
    std::string repair = {};   ///< what to do
};

/// What a rule looks at. Scales that are read: see checkpoint::most_scale_bytes.
struct rule_row {
    std::string_view name;
    std::string_view finds;
};

/// THE LIST of rules, in the order in which findings are listed.
inline constexpr std::array rules{
    rule_row{"missing-scale",
             "a quantized tensor without the block, tensor or input scale that "
             "its layout or its siblings have"},
    rule_row{"orphan-scale", "scales without codes"},
    rule_row{"scale-value",
             "scales that are NaN, Inf, negative, subnormal or 0 beside non-zero codes, and tensor "
             "scales that must be the inverse of what engines take them for"},
    rule_row{"scale-shape", "scales whose shape is that of no grid of blocks"},
    rule_row{"fused-scales",
             "different tensor or input scales of matrices that engines load as "
             "one: q, k and v; gate and up"},
    rule_row{"config",
             "quantization_config that contradicts the tensors: what is ignored, "
             "targeted, its format, bits, group or tile"},
    rule_row{"index",
             "shards and tensors that the index omits or states wrongly, tensors that are "
             "stored twice"},
    rule_row{"default-scale", "scales that are what they were before a calibration, such as 1"},
    rule_row{"tied", "a head and an embedding that config.json calls tied and that differ"},
    rule_row{"value", "NaN or Inf in a tensor, matrices of zeros, identical experts (--values)"},
};

/// A checkpoint as it lies there, whatever is wrong with it.
struct checkpoint {
    std::string path;    ///< as given
    std::string folder;  ///< of its files; may be an address
    std::vector<std::unique_ptr<io::reader>> files;
    std::vector<io::tensor_ref> arrays;  ///< as stored, of all files
    io::config_entries config;           ///< config.json; empty: there is none
    io::config_entries
        other_config;  ///< hf_quant_config.json or quantize_config.json; may be empty
    bool has_index = false;
    std::map<std::string, std::string> index;  ///< tensor to the path of its shard
    std::string total_size;                    ///< metadata.total_size of the index; may be empty
    std::vector<finding> broken;               ///< what the index names and is not there

    io::pairings pairs;  ///< of `arrays`

    /// Of one array of block scales, what is read without --values: its beginning.
    static constexpr std::uint64_t most_scale_bytes = std::uint64_t{1} << 20;
};

/// Opens a file, a folder or an index; no file of it needs to agree with another. Throws
/// base::error (input) for files that cannot be read at all.
checkpoint open_checkpoint(const std::string& path);

struct lint_request {
    bool values = false;               ///< read every scale and every value
    std::vector<std::string> ignored;  ///< RULE, or RULE:GLOB of tensors
};

struct lint_outcome {
    std::vector<finding> findings;  ///< errors first, then in the order of `rules`
    std::uint64_t tensors = 0;      ///< quantized ones count once
    std::uint64_t quantized = 0;
    std::uint64_t files = 0;
    bool all_scales = true;  ///< no array of scales was longer than what is read of it

    std::uint64_t count(severity s) const;
};

/// Applies all rules. Throws base::error: usage for an unknown rule, input for a file that ends
/// early.
lint_outcome run_rules(const checkpoint& c, const lint_request& request);

}  // namespace mx::lint

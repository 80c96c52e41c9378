// SPDX-License-Identifier: Apache-2.0
// Training runs of different sizes, the input of a scaling law, read from a table; with the rows
// left out and the reasons.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libmx/report/csv_reader.hpp"

namespace mx::fit {

struct run {
    std::size_t line = 0;      ///< of the table
    double n = 0;              ///< parameters
    double d = 0;              ///< tokens
    double loss = 0;           ///< nats per token
    std::vector<double> bits;  ///< by runs::bits; infinite where the field is empty
    double post_bits = 0;      ///< of weights quantized after training; infinite: they are not
    std::string group;
    /// The final loss minus the lowest one, if the table has a column min_loss or final_loss.
    std::optional<double> rise;
    double compute() const { return 6 * n * d; }  ///< FLOP
};

struct left_out {
    std::size_t line = 0;
    std::string n, d, loss;  ///< as the table has them
    std::string reason;
    bool diverged = false;
};

struct runs {
    std::vector<run> kept;
    std::vector<left_out> left;
    std::vector<std::string> bits;  ///< columns P_*: bits of what is quantized in training
    bool post = false;              ///< there is a column P_post
};

struct run_request {
    std::vector<std::string> columns;  ///< "loss=min_loss": where N, D or loss have another name
    std::vector<std::string> where;    ///< "scheme=e4m3/bf16": rows with this text
    std::string by;                    ///< column that names groups; "": one group
    std::optional<double> most_loss;   ///< leave out runs above
    std::optional<double> most_rise;   ///< leave out runs whose loss rose by more from its minimum
    bool with_bits = false;            ///< read columns P_*
};

/// The runs of a table with columns N, D and loss. Leaves out rows without three positive finite
/// numbers, rows whose column `state` is diverged, and rows that the request excludes; a loss that
/// is NaN or infinite means that the run diverged. Throws base::error: usage for a contradictory
/// request; input if a column is missing.
runs runs_of(const report::csv_table& table, const run_request& request);

}  // namespace mx::fit

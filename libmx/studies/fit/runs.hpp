// SPDX-License-Identifier: Apache-2.0
// Trainings of different sizes as a scaling law is fitted to: which of a table's rows they are,
// and which are left out and why.
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
    /// The final loss less the least one, where the table has a column min_loss or final_loss.
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

/// The runs of a table with columns N, D and loss. Left out are rows without three positive finite
/// numbers, rows whose column `state` says diverged, and what the request leaves out; a loss that
/// is no finite number is a diverged run. Throws base::error: usage for a request that contradicts
/// itself; input for a table that lacks a column.
runs runs_of(const report::csv_table& table, const run_request& request);

}  // namespace mx::fit

// SPDX-License-Identifier: Apache-2.0
// The results of a sweep as a table: what every recipe made of every tensor, phase by phase.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/record_list.hpp"

namespace mx::compare {

/// A rate of the records that is pooled over tensors, and what it is a share of.
struct pooled_rate {
    enum class whole : std::uint8_t { elements, blocks, squared_error };
    std::string_view name;
    whole of;
};

/// What a ranking pools besides errors and bits.
inline constexpr std::array pooled_rates{
    pooled_rate{"overflow_rate", pooled_rate::whole::elements},
    pooled_rate{"clamp_rate", pooled_rate::whole::elements},
    pooled_rate{"underflow_rate", pooled_rate::whole::elements},
    pooled_rate{"saturated_block_rate", pooled_rate::whole::blocks},
    pooled_rate{"collapsed_block_rate", pooled_rate::whole::blocks},
    pooled_rate{"clamp_error_share", pooled_rate::whole::squared_error},
    pooled_rate{"underflow_error_share", pooled_rate::whole::squared_error},
    pooled_rate{"grid_error_share", pooled_rate::whole::squared_error},
};

/// The index in pooled_rates of a rate that is there.
constexpr std::size_t rate_index(std::string_view name) {
    std::size_t i = 0;
    while (pooled_rates[i].name != name) ++i;
    return i;
}

/// What one recipe made of one tensor; `rmse` is none where the tensor was left out or has no
/// finite element.
struct figures {
    std::optional<double> rmse, nrmse, sqnr_db, crest_factor;
    double elements = 0;
    double counted = 0;  ///< elements that rates and sums are over
    double eligible = 0;
    double rms = 0;
    double bits_per_element = 0;
    std::array<std::optional<double>, pooled_rates.size()> rates;
};

struct tensor_row {
    std::string file, tensor, role, dtype;
    std::optional<std::int64_t> layer;
    std::vector<figures> at;  ///< by run and phase, see board::of
};

struct board {
    std::size_t runs = 0;
    std::size_t phases = 1;
    std::vector<tensor_row> tensors;  ///< in the order of the files

    const figures& of(std::size_t tensor, std::size_t run, std::size_t phase = 0) const {
        return tensors[tensor].at[run * phases + phase];
    }
};

/// Arranges results (schema mx.analysis/1) of the recipes named `runs` under `phases` factors.
/// Results of other recipes are passed over.
board arrange(const report::record_list& results, const std::vector<std::string>& runs,
              std::size_t phases);

}  // namespace mx::compare

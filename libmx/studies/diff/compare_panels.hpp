// SPDX-License-Identifier: Apache-2.0
// One panel of every dump: read, prepared, and compared value by value and code by code.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/engine/panel_reader.hpp"
#include "libmx/engine/preparation.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/studies/diff/compare_codes.hpp"
#include "libmx/studies/diff/figures.hpp"

namespace mx::diff {

/// A tensor under one recipe.
struct recipe_job {
    std::size_t recipe;
    block::grid grid;
    transform::rotation rotate;
    bool scales_have_codes;
    codec::clamp_zone zone;                   ///< see code_job::zone
    std::vector<codec::block_params> params;  ///< by dump, or one for all
    shared_codes codes;
};

/// A tensor with what several threads find out about it.
struct tensor_job {
    std::string_view role;
    float bias = 0;
    std::mutex guard;
    std::vector<value_figures> values;                 ///< one fewer than dumps
    std::vector<std::unique_ptr<recipe_job>> recipes;  ///< null where a recipe does not fit
};

/// The index, among the grids of a pass, of the one under which values are compared; others are
/// indices of tensor_job::recipes.
inline constexpr std::size_t values_job = std::numeric_limits<std::size_t>::max();

/// The scratch of one thread, kept from panel to panel.
class panel_comparer {
  public:
    /// By the driver of `control`, which has to outlive it.
    panel_comparer(const engine::run_control& control, std::size_t dumps);

    /// Adds the panel `first` of the first dump, and the same panels of the others, which `others`
    /// read, to the figures of `job`.
    void run(tensor_job& job, std::uint64_t tensor_id, const engine::loaded_panel& first,
             std::span<const std::unique_ptr<engine::panel_reader>> others);

  private:
    void read(float bias, const engine::loaded_panel& first,
              std::span<const std::unique_ptr<engine::panel_reader>> others);
    void compare_values(tensor_job& job, const block::grid& grid, const engine::panel& where);
    void take_alike(tensor_job& job, const recipe_job& like);
    void rotate(const recipe_job& like, const engine::panel& where);

    code_comparer codes_;
    // By dump:
    std::vector<engine::panel_room> rooms_;
    std::vector<std::vector<float>> rotated_;
    std::vector<codec::stored_values> ready_;

    std::vector<value_figures> values_;
    std::vector<std::size_t> left_, later_;  // recipes of the panel
    std::vector<code_job> jobs_;
};

}  // namespace mx::diff

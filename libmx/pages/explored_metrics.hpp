// SPDX-License-Identifier: Apache-2.0
// The metrics of every tensor that a page lets its reader sort and filter by.
#pragma once

#include <cstddef>
#include <vector>

#include "libmx/analysis/result.hpp"
#include "libmx/report/figure.hpp"
#include "libmx/studies/compare/cells.hpp"

namespace mx::pages {

class explored_metrics {
  public:
    /// Values of `rows` tensors under the cells of `plan`.
    explored_metrics(const compare::sweep_plan& plan, std::size_t rows);

    /// Adds the result of a tensor under run `run`; of several the first counts.
    void add(std::size_t run, std::size_t row, const analysis::result& r);

    /// The metrics; columns are the cells, with means over their seeds.
    std::vector<report::explorer::metric> take();

  private:
    std::vector<std::size_t> cell_of_;            // by run
    std::vector<std::vector<std::size_t>> runs_;  // by cell
    std::size_t rows_;
    std::vector<std::vector<bool>> seen_;  // by run and row
    std::vector<report::explorer::metric> metrics_;
};

}  // namespace mx::pages

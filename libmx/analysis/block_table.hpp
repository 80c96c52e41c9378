// SPDX-License-Identifier: Apache-2.0
// `--blocks OUT.h5`: one array per fact of a block, in the shape of the block grid.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "libmx/engine/run.hpp"
#include "libmx/io/writer.hpp"

namespace mx::analysis {

/// Writes the blocks of a run to an HDF5 file: a group per tensor, recipe and factor.
class block_table final : public engine::visitor {
  public:
    /// Plans the arrays of all `tensors`. Throws base::error.
    block_table(const std::string& path, const std::vector<engine::tensor_ref>& tensors,
                const engine::run_request& request);

    codec::recipe_request requested(const engine::run_job&) const override {
        return {nullptr, codec::detail::stats};
    }
    std::optional<codec::recipe_request> beside_counts(const engine::run_job&) const override {
        return codec::recipe_request{.wanted = codec::detail::stats, .sums = false};
    }
    void begin(const engine::run_batch& b) override;
    std::unique_ptr<engine::panel_visitor> visit(const engine::run_panel& p) override;
    void commit() { writer_->commit(); }

  private:
    std::unique_ptr<io::array_writer> writer_;
    std::size_t next_array_ = 0;            // of the jobs to come
    std::vector<std::size_t> first_array_;  // by job of the batch
};

}  // namespace mx::analysis

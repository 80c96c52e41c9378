// SPDX-License-Identifier: Apache-2.0
// What a conversion hands on as it is stored.
#pragma once

#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::convert {

/// Arrays that are copied bit for bit beside the converted ones. The widest come first in the file
/// and the narrowest last, so that each lies at a multiple of its element's size: some libraries
/// cannot read others.
class kept_tensors {
  public:
    /// Lists `t` in `result.kept`, with `reason`. Does nothing and returns false where a file of
    /// ours cannot hold it.
    bool add(const engine::tensor_ref& t, const std::string& reason, conversion& result);
    /// Those that come before the converted arrays, and those behind them.
    void plan_first(std::vector<io::planned_array>& plan);
    void plan_last(std::vector<io::planned_array>& plan);
    /// Writes the arrays planned.
    void write(io::array_writer& writer, const engine::run_control& control) const;

  private:
    struct entry {
        engine::tensor_ref tensor;
        std::size_t array;  ///< of the plan
    };
    std::vector<entry> entries_;
};

/// The tensors that are converted; of the others, those that can be are kept, and the rest is in
/// `result.skipped`.
std::vector<engine::tensor_ref> keep_others(const std::vector<engine::tensor_ref>& tensors,
                                            kept_tensors& kept, conversion& result);

}  // namespace mx::convert

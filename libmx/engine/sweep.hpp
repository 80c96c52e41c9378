// SPDX-License-Identifier: Apache-2.0
// One sweep over many tensors: plans passes, reads and widens panels, distributes them to threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "libmx/codec/quantizer.hpp"
#include "libmx/codec/segment.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/panels.hpp"
#include "libmx/io/reader.hpp"

namespace mx::engine {

/// A grid to process; `job` is the caller's index.
struct grid_job {
    std::size_t job;
    block::grid grid;
};

/// Grids of one tensor with the same view and panels, which share one read of the data.
struct pass {
    std::size_t tensor;  ///< index into the tensors of the sweep
    std::vector<grid_job> jobs;
    panel_plan panels;
};

/// Groups the jobs of a tensor into as few passes as possible, with panels of about `target`
/// elements.
std::vector<pass> plan_passes(std::size_t tensor, std::span<const grid_job> jobs,
                              std::uint64_t target = panel_target);

/// A pass over each tensor that has elements, as one row of them; its job is the tensor's index.
std::vector<pass> flat_passes(const std::vector<tensor_ref>& tensors,
                              std::uint64_t target = panel_target);

/// The panel size for a backend.
std::uint64_t panel_target_of(const codec::backend& b);

/// A panel in memory.
struct loaded_panel {
    const pass* of;
    std::size_t pass_index;
    panel where;
    codec::stored_values values;  ///< batches x rows x cols, as stored or widened
    std::span<const float> x;     ///< the same if they are float32 without gaps
    std::uint64_t inexact;        ///< values that widening rounded
    int thread;
};

/// The form of values for bodies: float32, or as stored if backends or the thread's quantizer read
/// that directly.
enum class panel_form : std::uint8_t { widened, stored };

/// All values of a tensor in C order, as stored if backends read that directly, else float32: a
/// copy, or those of a source in memory.
class kept_values {
  public:
    std::uint64_t size() const { return elements_; }  ///< 0: nothing is kept
    /// Refers to the values of a source that has them in memory as stored; else makes room for a
    /// copy.
    void keep(const tensor_ref& tensor);
    /// Whether put() is needed.
    bool copies() const { return buffer_ != nullptr; }
    /// Copies a one-row panel that begins with element `first`; does nothing without a copy.
    void put(std::uint64_t first, const codec::stored_values& values, std::uint64_t count);
    codec::stored_values from(std::uint64_t first, std::uint64_t stride) const;

  private:
    tensor::dtype type_ = tensor::dtype::f32;
    std::uint64_t elements_ = 0;
    std::shared_ptr<const io::byte_source> source_;
    std::unique_ptr<std::byte[]> buffer_;
    const std::byte* data_ = nullptr;
};

/// Reads every panel of every pass and calls `body` (concurrently, in no particular order).
/// Progress counts elements times jobs. Tensors with values in `kept` (by tensor) are not read
/// again; their panels count no inexact values. Panels are read into memory of `quantizers` (by
/// thread; empty: there are none), which `body` uses, and, while these wait for a device, the next
/// ones.
void sweep(const std::vector<tensor_ref>& tensors, const std::vector<pass>& passes,
           const run_control& control, panel_form form,
           const std::function<void(const loaded_panel&)>& body,
           const std::vector<kept_values>& kept = {},
           std::span<codec::quantizer* const> quantizers = {});

/// Calls `body` for panels of all tensors, by flat_passes, widened. Does not report progress.
void sweep_values(const std::vector<tensor_ref>& tensors, run_control control,
                  const std::function<void(std::size_t tensor, const loaded_panel&)>& body);

}  // namespace mx::engine

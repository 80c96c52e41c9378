// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/sweep.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/engine/panel_reader.hpp"
#include "libmx/io/widen.hpp"

namespace mx::engine {
namespace {

// Reports progress a few times a second, from one thread at a time.
class reporter {
  public:
    reporter(const run_control& control, std::uint64_t total) : control_(control), total_(total) {}

    void add(std::uint64_t elements) {
        if (!control_.on_progress) return;
        const std::lock_guard lock(guard_);
        done_ += elements;
        const auto now = std::chrono::steady_clock::now();
        if (done_ != total_ && now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        control_.on_progress({done_, total_});
    }

  private:
    const run_control& control_;
    std::uint64_t total_;
    std::mutex guard_;
    std::uint64_t done_ = 0;
    std::chrono::steady_clock::time_point last_{};
};

// The rows of a panel as float32, contiguous in `buffer`.
codec::stored_values widened(const codec::stored_values& values, const panel& where,
                             panel_buffer& buffer) {
    std::byte* const memory = buffer.reserve(where.elements() * sizeof(float));
    const std::span<float> x(reinterpret_cast<float*>(memory), where.elements());
    const auto cols = static_cast<std::size_t>(where.cols);
    for (std::uint64_t r = 0; r < where.batches * where.rows; ++r) {
        io::widen(values.type,
                  {values.from(r * values.stride).data, tensor::stored_bytes(values.type, cols)}, 0,
                  x.subspan(r * cols, cols));
    }
    return {tensor::dtype::f32, memory, where.cols};
}

// The panel of a thread, and the next one, which is read while a device works on the first.
struct panel_pair {
    std::array<panel_buffer, 2> buffers;
    std::size_t at_work = 0;
    std::optional<loaded_panel> next;
    std::exception_ptr failure;  // to read the next one
};

// What a quantizer does meanwhile, during the lifetime of this object.
class reading_ahead {
  public:
    reading_ahead(codec::quantizer& by, std::function<void()> read) : by_(by) {
        by.meanwhile(std::move(read));
    }
    reading_ahead(const reading_ahead&) = delete;
    reading_ahead& operator=(const reading_ahead&) = delete;
    ~reading_ahead() { by_.meanwhile({}); }

  private:
    codec::quantizer& by_;
};

}  // namespace

std::uint64_t panel_target_of(const codec::backend& b) {
    return b.is_device() ? device_panel_target : panel_target;
}

std::vector<pass> plan_passes(std::size_t tensor, std::span<const grid_job> jobs,
                              std::uint64_t target) {
    std::vector<pass> passes;
    for (const grid_job& job : jobs) {
        bool placed = false;
        for (pass& p : passes) {
            if (p.panels.over() != job.grid.over) continue;
            std::vector<block::grid> grids;
            for (const grid_job& other : p.jobs) grids.push_back(other.grid);
            grids.push_back(job.grid);
            const panel_plan joint(job.grid.over, grids, target);
            if (joint.unit_elements() > std::max(panel_limit, p.panels.unit_elements())) continue;
            p.jobs.push_back(job);
            p.panels = joint;
            placed = true;
            break;
        }
        if (!placed) {
            passes.push_back(
                pass{tensor, {job}, panel_plan(job.grid.over, std::span(&job.grid, 1), target)});
        }
    }
    return passes;
}

std::vector<pass> flat_passes(const std::vector<tensor_ref>& tensors, std::uint64_t target) {
    std::vector<pass> passes;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        const block::grid row{{1, 1, tensors[t].info().elements}, 1, 1};
        if (row.over.cols == 0) continue;
        passes.push_back({t, {{t, row}}, panel_plan(row.over, std::span(&row, 1), target)});
    }
    return passes;
}

void kept_values::keep(const tensor_ref& tensor) {
    const io::tensor_info& info = tensor.info();
    const bool as_stored = codec::is_stored(info.type);
    type_ = as_stored ? info.type : tensor::dtype::f32;
    elements_ = info.elements;
    if (as_stored) {
        source_ = tensor.file->open(tensor.index);
        data_ = source_->in_memory();
    }
    if (data_ != nullptr) return;
    source_ = nullptr;
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(
        static_cast<std::size_t>(tensor::stored_bytes(type_, elements_)));
    data_ = buffer_.get();
}

void kept_values::put(std::uint64_t first, const codec::stored_values& values,
                      std::uint64_t count) {
    if (!copies()) return;
    std::memcpy(buffer_.get() + tensor::stored_bytes(type_, first), values.data,
                tensor::stored_bytes(type_, count));
}

codec::stored_values kept_values::from(std::uint64_t first, std::uint64_t stride) const {
    return codec::stored_values{type_, data_, stride}.from(first);
}

void sweep(const std::vector<tensor_ref>& tensors, const std::vector<pass>& passes,
           const run_control& control, panel_form form,
           const std::function<void(const loaded_panel&)>& body,
           const std::vector<kept_values>& kept, std::span<codec::quantizer* const> quantizers) {
    // ends[i]: number of panels in passes 0..i; a global panel index finds its pass by bisection.
    std::vector<std::uint64_t> ends;
    std::uint64_t panels = 0;
    std::uint64_t work = 0;
    for (const pass& p : passes) {
        panels += p.panels.count();
        work += p.panels.elements() * p.jobs.size();
        ends.push_back(panels);
    }
    panel_reader reader(tensors, passes);
    reporter report(control, work);
    std::vector<panel_pair> pairs(static_cast<std::size_t>(base::thread_count(control.threads)));
    for (std::size_t t = 0; t < quantizers.size() && t < pairs.size(); ++t) {
        for (std::size_t k = 0; k < 2; ++k) pairs[t].buffers[k].serve(quantizers[t], k);
    }

    const auto load = [&](std::uint64_t i, int thread, panel_buffer& buffer) {
        const auto at = std::upper_bound(ends.begin(), ends.end(), i);
        const auto pass_index = static_cast<std::size_t>(at - ends.begin());
        const pass& p = passes[pass_index];
        const std::uint64_t before = pass_index == 0 ? 0 : ends[pass_index - 1];
        const panel where = p.panels.at(i - before);
        loaded_panel loaded{&p, pass_index, where, {}, {}, 0, thread};
        codec::stored_values& values = loaded.values;
        if (p.tensor < kept.size() && kept[p.tensor].size() != 0) {
            const block::view& v = p.panels.over();
            const std::uint64_t start = (where.batch * v.rows + where.row) * v.cols + where.col;
            values = kept[p.tensor].from(start, v.cols);
            if (form == panel_form::widened && values.type != tensor::dtype::f32) {
                values = widened(values, where, buffer);
            }
        } else {
            values = reader.read(p, pass_index, where, form, buffer, loaded.inexact);
        }
        if (values.type == tensor::dtype::f32 && values.stride == where.cols) {
            loaded.x = {reinterpret_cast<const float*>(values.data), where.elements()};
        }
        return loaded;
    };
    const auto each = [&](std::uint64_t i, int thread, const base::index_taker& take) {
        panel_pair& own = pairs[static_cast<std::size_t>(thread)];
        if (own.failure) std::rethrow_exception(std::exchange(own.failure, nullptr));
        const loaded_panel p = own.next ? *std::exchange(own.next, std::nullopt)
                                        : load(i, thread, own.buffers[own.at_work]);
        if (quantizers.empty()) {
            body(p);
        } else {
            panel_buffer& buffer = own.buffers[1 - own.at_work];
            const reading_ahead until(*quantizers[static_cast<std::size_t>(thread)], [&] {
                const std::optional<std::uint64_t> next = take();
                if (!next) return;
                try {
                    own.next = load(*next, thread, buffer);
                } catch (...) {
                    own.failure = std::current_exception();
                }
            });
            body(p);
        }
        if (own.next) own.at_work = 1 - own.at_work;
        report.add(p.where.elements() * p.of->jobs.size());
    };
    base::parallel_for_ahead(panels, control.threads, control.cancel, each);
}

void sweep_values(const std::vector<tensor_ref>& tensors, run_control control,
                  const std::function<void(std::size_t, const loaded_panel&)>& body) {
    control.on_progress = nullptr;
    sweep(tensors, flat_passes(tensors), control, panel_form::widened,
          [&](const loaded_panel& p) { body(p.of->tensor, p); });
}

}  // namespace mx::engine

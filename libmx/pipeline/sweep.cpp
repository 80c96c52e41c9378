// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/sweep.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "libmx/base/parallel.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/pipeline/read_ahead.hpp"

namespace mx::pipeline {
namespace {

// Sources of tensors in use: opened when their first panel is due, closed after their last.
class open_sources {
  public:
    open_sources(const std::vector<tensor_ref>& tensors, const std::vector<pass>& passes)
        : tensors_(tensors) {
        for (const pass& p : passes) left_[p.tensor] += p.panels.count();
    }

    std::shared_ptr<io::byte_source> get(std::size_t tensor) {
        const std::lock_guard lock(guard_);
        std::shared_ptr<io::byte_source>& source = open_[tensor];
        if (!source) source = tensors_[tensor].file->open(tensors_[tensor].index);
        return source;
    }

    void done(std::size_t tensor) {
        const std::lock_guard lock(guard_);
        if (--left_[tensor] == 0) open_.erase(tensor);
    }

  private:
    const std::vector<tensor_ref>& tensors_;
    std::mutex guard_;
    std::map<std::size_t, std::shared_ptr<io::byte_source>> open_;
    std::map<std::size_t, std::uint64_t> left_;
};

// Passes on progress a few times a second, from one thread at a time.
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

struct workspace {
    std::vector<float> x;
    std::vector<std::byte> bytes;
};

// Bytes of whole elements; of packed types, to within one.
std::uint64_t stored_bytes(tensor::dtype type, std::uint64_t elements) {
    const auto bits = static_cast<std::uint64_t>(tensor::row_of(type).bits);
    return elements / 8 * bits + elements % 8 * bits / 8;
}

// Fills `space` with a panel as `form` says and returns its values.
quantize::stored_values load(const io::byte_source& source, tensor::dtype type,
                             const block::view& v, const panel& p, panel_form form,
                             workspace& space, std::uint64_t& inexact) {
    const bool as_stored = form == panel_form::stored && quantize::is_stored(type);
    const auto bytes = static_cast<std::uint64_t>(tensor::row_of(type).bits / 8);
    const auto read = [&](std::uint64_t first, std::uint64_t at, std::uint64_t count) {
        if (as_stored) {
            source.read(first * bytes, std::span(space.bytes).subspan(at * bytes, count * bytes));
        } else {
            const std::span<float> out = std::span(space.x).subspan(at, count);
            inexact += io::read_f32(source, type, first, out, space.bytes);
        }
    };
    if (as_stored) {
        space.bytes.resize(p.elements() * bytes);
        space.x.clear();
    } else {
        space.x.resize(p.elements());
    }
    const std::uint64_t start = (p.batch * v.rows + p.row) * v.cols + p.col;
    if (p.cols == v.cols) {
        read(start, 0, p.elements());
    } else {
        for (std::uint64_t r = 0; r < p.rows; ++r) read(start + r * v.cols, r * p.cols, p.cols);
    }
    if (as_stored) return {type, space.bytes.data(), p.cols};
    return {tensor::dtype::f32, std::as_bytes(std::span(space.x)).data(), p.cols};
}

// A panel of values in memory: a view where its elements are contiguous, else a copy.
std::span<const float> cut(std::span<const float> values, const block::view& v, const panel& p,
                           workspace& space) {
    const std::uint64_t start = (p.batch * v.rows + p.row) * v.cols + p.col;
    if (p.cols == v.cols) return values.subspan(start, p.elements());
    space.x.resize(p.elements());
    for (std::uint64_t r = 0; r < p.rows; ++r) {
        const auto row = values.subspan(start + r * v.cols, p.cols);
        std::copy(row.begin(), row.end(),
                  space.x.begin() + static_cast<std::ptrdiff_t>(r * p.cols));
    }
    return space.x;
}

}  // namespace

std::vector<pass> plan_passes(std::size_t tensor, std::span<const grid_job> jobs) {
    std::vector<pass> passes;
    for (const grid_job& job : jobs) {
        bool placed = false;
        for (pass& p : passes) {
            if (p.panels.over() != job.grid.over) continue;
            std::vector<block::grid> grids;
            for (const grid_job& other : p.jobs) grids.push_back(other.grid);
            grids.push_back(job.grid);
            const panel_plan joint(job.grid.over, grids);
            if (joint.unit_elements() > std::max(panel_limit, p.panels.unit_elements())) continue;
            p.jobs.push_back(job);
            p.panels = joint;
            placed = true;
            break;
        }
        if (!placed) {
            passes.push_back(
                pass{tensor, {job}, panel_plan(job.grid.over, std::span(&job.grid, 1))});
        }
    }
    return passes;
}

void sweep(const std::vector<tensor_ref>& tensors, const std::vector<pass>& passes,
           const run_control& control, panel_form form,
           const std::function<void(const loaded_panel&)>& body,
           const std::vector<std::vector<float>>& kept) {
    // ends[i]: number of panels in passes 0..i; a global panel index finds its pass by bisection.
    std::vector<std::uint64_t> ends;
    std::uint64_t panels = 0;
    std::uint64_t work = 0;
    for (const pass& p : passes) {
        panels += p.panels.count();
        work += p.panels.over().elements() * p.jobs.size();
        ends.push_back(panels);
    }
    open_sources sources(tensors, passes);
    reporter report(control, work);
    read_ahead ahead;
    std::vector<workspace> spaces(static_cast<std::size_t>(base::thread_count(control.threads)));

    base::parallel_for(panels, control.threads, control.cancel, [&](std::uint64_t i, int thread) {
        const auto at = std::upper_bound(ends.begin(), ends.end(), i);
        const auto pass_index = static_cast<std::size_t>(at - ends.begin());
        const pass& p = passes[pass_index];
        const std::uint64_t before = pass_index == 0 ? 0 : ends[pass_index - 1];
        const panel where = p.panels.at(i - before);
        workspace& space = spaces[static_cast<std::size_t>(thread)];
        if (p.tensor < kept.size() && !kept[p.tensor].empty()) {
            const auto x = cut(kept[p.tensor], p.panels.over(), where, space);
            const quantize::stored_values values{tensor::dtype::f32, std::as_bytes(x).data(),
                                                 where.cols};
            body({&p, pass_index, where, x, values, 0, thread});
        } else {
            const std::shared_ptr<io::byte_source> source = sources.get(p.tensor);
            std::uint64_t inexact = 0;
            const tensor::dtype type = tensors[p.tensor].info().type;
            const block::view& v = p.panels.over();
            const auto start = std::chrono::steady_clock::now();
            const quantize::stored_values values =
                load(*source, type, v, where, form, space, inexact);
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            // Panels come row by row; those beside this one are of rows that are being read.
            const std::uint64_t rows =
                where.batch * v.rows + where.row + where.batches * where.rows;
            ahead.after_read(*source, pass_index, stored_bytes(type, where.elements()),
                             stored_bytes(type, rows * v.cols), took.count());
            body({&p, pass_index, where, space.x, values, inexact, thread});
            sources.done(p.tensor);
        }
        report.add(where.elements() * p.jobs.size());
    });
}

}  // namespace mx::pipeline

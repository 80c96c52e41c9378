// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/panel_reader.hpp"

#include <algorithm>
#include <chrono>
#include <span>

#include "libmx/io/remote.hpp"
#include "libmx/io/widen.hpp"

namespace mx::engine {
namespace {

// Whether all rows of a panel begin at whole bytes.
bool in_whole_bytes(tensor::dtype type, const block::view& v, const panel& p) {
    const auto ends = [&](std::uint64_t elements) {
        return elements * static_cast<std::uint64_t>(tensor::row_of(type).bits) % 8 == 0;
    };
    return ends(v.cols) && ends(p.col) && ends(p.cols);
}

codec::stored_values load(const io::byte_source& source, tensor::dtype type, const block::view& v,
                          const panel& p, panel_form form, panel_buffer& buffer,
                          std::uint64_t& inexact) {
    const bool as_stored =
        form == panel_form::stored && buffer.reads(type) && in_whole_bytes(type, v, p);
    const tensor::dtype to = as_stored ? type : tensor::dtype::f32;
    const auto bytes = [&](std::uint64_t elements) { return tensor::stored_bytes(to, elements); };
    const std::uint64_t start = (p.batch * v.rows + p.row) * v.cols + p.col;
    if (const std::byte* all = source.in_memory(); as_stored && all != nullptr) {
        return {type, all + bytes(start), v.cols};
    }
    std::byte* const memory = buffer.reserve(static_cast<std::size_t>(bytes(p.elements())));
    const auto read = [&](std::uint64_t first, std::uint64_t at, std::uint64_t count) {
        if (as_stored) {
            source.read(bytes(first), {memory + bytes(at), bytes(count)});
        } else {
            const std::span<float> out(reinterpret_cast<float*>(memory) + at, count);
            inexact += io::read_f32(source, type, first, out, buffer.scratch);
        }
    };
    if (p.cols == v.cols) {
        read(start, 0, p.elements());
    } else {
        for (std::uint64_t r = 0; r < p.rows; ++r) read(start + r * v.cols, r * p.cols, p.cols);
    }
    return {to, memory, p.cols};
}

// Bytes per second: the system's cache is several times faster, a single disk is slower.
constexpr double slow_bytes_per_second = 2e9;

// Reads that hit read-ahead data are fast, and say nothing about the rest of the file.
constexpr int windows_at_once = 16;

// Read-ahead of the next tensor: all of a small one, and enough of a large one to start.
constexpr std::uint64_t first_window = std::uint64_t{1} << 20;

}  // namespace

void read_ahead::after_read(const io::byte_source& source, std::size_t pass, std::uint64_t bytes,
                            std::uint64_t next, double seconds) {
    const bool slow = static_cast<double>(bytes) < seconds * slow_bytes_per_second;
    std::uint64_t from = 0;
    {
        const std::lock_guard lock(guard_);
        if (slow) windows_left_ = windows_at_once;
        if (windows_left_ == 0) return;
        if (pass != pass_) {
            pass_ = pass;
            asked_ = 0;
        }
        from = std::max(asked_, next);
        if (from > next + window / 2) return;
        asked_ = from + window;
        --windows_left_;
    }
    source.expect(from, window);
}

panel_reader::panel_reader(const std::vector<tensor_ref>& tensors, const std::vector<pass>& passes)
    : tensors_(tensors), passes_(passes) {
    for (const pass& p : passes) left_[p.tensor] += p.panels.count();
}

std::shared_ptr<io::byte_source> panel_reader::source_of(std::size_t tensor) {
    const std::lock_guard lock(guard_);
    return open_source(tensor);
}

std::shared_ptr<io::byte_source> panel_reader::open_source(std::size_t tensor) {
    std::shared_ptr<io::byte_source>& source = open_[tensor];
    if (!source) source = tensors_[tensor].file->open(tensors_[tensor].index);
    return source;
}

void panel_reader::done(std::size_t tensor) {
    const std::lock_guard lock(guard_);
    if (--left_[tensor] == 0) open_.erase(tensor);
}

// For remote tensors, each separate request would cost a round trip.
void panel_reader::expect_next(std::size_t pass_index) {
    std::vector<std::shared_ptr<io::byte_source>> due;
    {
        const std::lock_guard lock(guard_);
        if (pass_index + 1 < expected_) return;
        std::uint64_t bytes = 0;
        for (expected_ = pass_index + 1; expected_ < passes_.size() && bytes < read_ahead::window;
             ++expected_) {
            const std::size_t tensor = passes_[expected_].tensor;
            const io::tensor_info& info = tensors_[tensor].info();
            if (!io::is_remote(info.file)) continue;
            bytes += info.bytes;
            due.push_back(open_source(tensor));
        }
    }
    for (const std::shared_ptr<io::byte_source>& source : due) {
        source->expect(0, first_window);
    }
}

codec::stored_values panel_reader::read(const pass& p, std::size_t pass_index, const panel& where,
                                        panel_form form, panel_buffer& buffer,
                                        std::uint64_t& inexact) {
    const std::shared_ptr<io::byte_source> source = source_of(p.tensor);
    const tensor::dtype type = tensors_[p.tensor].info().type;
    const block::view& v = p.panels.over();
    const auto start = std::chrono::steady_clock::now();
    const codec::stored_values values = load(*source, type, v, where, form, buffer, inexact);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    // Panels are in row order; panels beside this one belong to rows that are being read.
    const std::uint64_t rows = where.batch * v.rows + where.row + where.batches * where.rows;
    ahead_.after_read(*source, pass_index, tensor::stored_bytes(type, where.elements()),
                      tensor::stored_bytes(type, rows * v.cols), took.count());
    expect_next(pass_index);
    done(p.tensor);
    return values;
}

}  // namespace mx::engine

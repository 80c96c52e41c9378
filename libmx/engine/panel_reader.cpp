// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/panel_reader.hpp"

#include <chrono>
#include <span>

#include "libmx/io/widen.hpp"

namespace mx::engine {
namespace {

// Bytes of whole elements; of packed types, to within one.
std::uint64_t stored_bytes(tensor::dtype type, std::uint64_t elements) {
    const auto bits = static_cast<std::uint64_t>(tensor::row_of(type).bits);
    return elements / 8 * bits + elements % 8 * bits / 8;
}

codec::stored_values load(const io::byte_source& source, tensor::dtype type, const block::view& v,
                          const panel& p, panel_form form, panel_room& room,
                          std::uint64_t& inexact) {
    const bool as_stored = form == panel_form::stored && codec::is_stored(type);
    const auto bytes = static_cast<std::uint64_t>(tensor::row_of(type).bits / 8);
    const auto read = [&](std::uint64_t first, std::uint64_t at, std::uint64_t count) {
        if (as_stored) {
            source.read(first * bytes, std::span(room.bytes).subspan(at * bytes, count * bytes));
        } else {
            const std::span<float> out = std::span(room.x).subspan(at, count);
            inexact += io::read_f32(source, type, first, out, room.bytes);
        }
    };
    if (as_stored) {
        room.bytes.resize(p.elements() * bytes);
        room.x.clear();
    } else {
        room.x.resize(p.elements());
    }
    const std::uint64_t start = (p.batch * v.rows + p.row) * v.cols + p.col;
    if (p.cols == v.cols) {
        read(start, 0, p.elements());
    } else {
        for (std::uint64_t r = 0; r < p.rows; ++r) read(start + r * v.cols, r * p.cols, p.cols);
    }
    if (as_stored) return {type, room.bytes.data(), p.cols};
    return {tensor::dtype::f32, std::as_bytes(std::span(room.x)).data(), p.cols};
}

}  // namespace

panel_reader::panel_reader(const std::vector<tensor_ref>& tensors, const std::vector<pass>& passes)
    : tensors_(tensors) {
    for (const pass& p : passes) left_[p.tensor] += p.panels.count();
}

std::shared_ptr<io::byte_source> panel_reader::source_of(std::size_t tensor) {
    const std::lock_guard lock(guard_);
    std::shared_ptr<io::byte_source>& source = open_[tensor];
    if (!source) source = tensors_[tensor].file->open(tensors_[tensor].index);
    return source;
}

void panel_reader::done(std::size_t tensor) {
    const std::lock_guard lock(guard_);
    if (--left_[tensor] == 0) open_.erase(tensor);
}

codec::stored_values panel_reader::read(const pass& p, std::size_t pass_index, const panel& where,
                                        panel_form form, panel_room& room, std::uint64_t& inexact) {
    const std::shared_ptr<io::byte_source> source = source_of(p.tensor);
    const tensor::dtype type = tensors_[p.tensor].info().type;
    const block::view& v = p.panels.over();
    const auto start = std::chrono::steady_clock::now();
    const codec::stored_values values = load(*source, type, v, where, form, room, inexact);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    // Panels come row by row; those beside this one are of rows that are being read.
    const std::uint64_t rows = where.batch * v.rows + where.row + where.batches * where.rows;
    ahead_.after_read(*source, pass_index, stored_bytes(type, where.elements()),
                      stored_bytes(type, rows * v.cols), took.count());
    done(p.tensor);
    return values;
}

}  // namespace mx::engine

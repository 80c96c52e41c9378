// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/convert/kept_tensors.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "libmx/base/status.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/safetensors_header.hpp"

namespace mx::convert {
namespace {

constexpr std::uint64_t piece = std::uint64_t{1} << 20;  // bytes copied at a time

constexpr int wide = 64;  // bits; results have 32 at most

int bits_of(const engine::tensor_ref& t) { return tensor::row_of(t.info().type).bits; }

}  // namespace

bool kept_tensors::add(const engine::tensor_ref& t, const std::string& reason, conversion& result) {
    const io::tensor_info& info = t.info();
    if (!io::safetensors_has(info.type)) return false;
    entries_.push_back({t, 0});
    result.kept.push_back({info.file, info.name, "", reason});
    return true;
}

void kept_tensors::plan_first(std::vector<io::planned_array>& plan) {
    std::stable_sort(entries_.begin(), entries_.end(), [](const entry& a, const entry& b) {
        return bits_of(a.tensor) > bits_of(b.tensor);
    });
    for (entry& e : entries_) {
        if (bits_of(e.tensor) < wide) return;
        e.array = plan.size();
        plan.push_back({e.tensor.info().name, e.tensor.info().type, e.tensor.info().shape});
    }
}

void kept_tensors::plan_last(std::vector<io::planned_array>& plan) {
    for (entry& e : entries_) {
        if (bits_of(e.tensor) >= wide) continue;
        e.array = plan.size();
        plan.push_back({e.tensor.info().name, e.tensor.info().type, e.tensor.info().shape});
    }
}

void kept_tensors::write(io::array_writer& writer, const engine::run_control& control) const {
    std::vector<std::byte> bytes;
    for (const entry& e : entries_) {
        const std::uint64_t size = e.tensor.info().bytes;
        const std::unique_ptr<io::byte_source> source = e.tensor.file->open(e.tensor.index);
        for (std::uint64_t at = 0; at < size; at += piece) {
            if (control.cancel != nullptr && control.cancel->load()) {
                throw base::error(base::error_kind::cancelled, "stopped before the end");
            }
            bytes.resize(static_cast<std::size_t>(std::min(piece, size - at)));
            source->read(at, bytes);
            writer.write(e.array, at, bytes);
        }
    }
}

std::vector<engine::tensor_ref> keep_others(const std::vector<engine::tensor_ref>& tensors,
                                            kept_tensors& kept, conversion& result) {
    std::vector<engine::tensor_ref> converted;
    for (const engine::tensor_ref& t : tensors) {
        std::vector<engine::skipped_tensor> left_out;
        if (!engine::numeric_only({t}, left_out).empty()) {
            converted.push_back(t);
        } else if (!kept.add(t, left_out.front().reason, result)) {
            result.skipped.push_back(std::move(left_out.front()));
        }
    }
    return converted;
}

}  // namespace mx::convert

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/convert/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "libmx/base/bits.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/engine/amax_pass.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/io/safetensors_header.hpp"

namespace mx::convert {
namespace {

constexpr std::uint64_t copied_at_once = std::uint64_t{1} << 20;  // bytes

constexpr int wide_bits = 64;  // results have at most 32

int bits_of(const engine::tensor_ref& t) { return tensor::row_of(t.info().type).bits; }

}  // namespace

std::unique_ptr<io::array_writer> create_destination(const std::string& path,
                                                     const std::vector<io::planned_array>& plan,
                                                     const io::metadata_map& metadata,
                                                     std::uint64_t shard_bytes) {
    const bool sharded = io::has_ending(path, io::shards_ending);
    if (!sharded) io::check_ending(path, {".safetensors", ".npy", ".h5", ".hdf5"});
    std::set<std::string> names;
    for (const io::planned_array& a : plan) {
        if (names.insert(a.name).second) continue;
        base::refuse(
            "two tensors would both be written as '{}'; convert the input files one at a time",
            base::printable(a.name));
    }
    if (io::has_ending(path, ".npy")) {
        if (plan.size() != 1) {
            base::refuse(fmt::format("a .npy file has one array, this would write {}; choose one "
                                     "with --tensor or write .safetensors",
                                     plan.size()),
                         {path, "", {}});
        }
        return io::create_npy(path, plan.front());
    }
    if (io::has_ending(path, ".h5") || io::has_ending(path, ".hdf5")) {
        return io::create_hdf5(path, plan, metadata);
    }
    if (sharded) return io::create_safetensors_shards(path, plan, metadata, shard_bytes);
    return io::create_safetensors(path, plan, metadata);
}

destination to_file(const std::string& path, std::uint64_t shard_bytes) {
    return [=](const std::vector<io::planned_array>& plan, const io::metadata_map& metadata) {
        return create_destination(path, plan, metadata, shard_bytes);
    };
}

std::vector<float> largest_magnitudes(const std::vector<engine::tensor_ref>& tensors,
                                      const engine::run_control& control) {
    std::vector<std::uint32_t> amax(tensors.size());
    std::mutex guard;
    engine::sweep_values(tensors, control, [&](std::size_t t, const engine::loaded_panel& p) {
        const auto* x = reinterpret_cast<const float*>(p.values.data);
        const std::uint32_t most =
            engine::finite_amax({x, static_cast<std::size_t>(p.where.elements())});
        const std::lock_guard lock(guard);
        amax[t] = std::max(amax[t], most);
    });
    std::vector<float> largest;
    for (const std::uint32_t bits : amax) largest.push_back(base::float_from_bits(bits));
    return largest;
}

bool output::converts(const engine::tensor_ref& t) {
    std::vector<engine::skipped_tensor> left_out;
    if (!engine::numeric_only({t}, left_out).empty()) return true;
    if (!keep(t, left_out.front().reason)) result.skipped.push_back(std::move(left_out.front()));
    return false;
}

bool output::keep(const engine::tensor_ref& t, const std::string& reason) {
    const io::tensor_info& info = t.info();
    if (!io::safetensors_has(info.type)) return false;
    kept_.push_back({t, 0});
    engine::put_axes(metadata, info);
    result.kept.push_back({info.file, info.name, "", reason});
    return true;
}

void output::plan_kept(bool wide) {
    for (kept_tensor& k : kept_) {
        if ((bits_of(k.tensor) >= wide_bits) != wide) continue;
        const io::tensor_info& info = k.tensor.info();
        k.array = plan_.size();
        plan_.push_back({info.name, info.type, info.shape});
    }
}

void output::begin() {
    if (!plan_.empty()) return;
    std::ranges::stable_sort(kept_, std::greater(),
                             [](const kept_tensor& k) { return bits_of(k.tensor); });
    plan_kept(true);
}

std::atomic<bool>* output::watch(const io::tensor_info& info) {
    if (info.layout.empty()) return nullptr;
    watched_.push_back({info.name, std::make_unique<std::atomic<bool>>(false)});
    return watched_.back().changed.get();
}

void output::note_changed() {
    if (watched_.empty()) return;
    const auto changed = [](const watched_tensor& t) { return t.changed->load(); };
    const auto first = std::ranges::find_if(watched_, changed);
    if (first == watched_.end()) {
        result.remarks.push_back(
            fmt::format("exact: all {} tensors that the input has quantized keep their values",
                        watched_.size()));
        return;
    }
    const auto kept = std::ranges::count_if(watched_, std::not_fn(changed));
    result.remarks.push_back(
        fmt::format("not exact: {} of {} tensors that the input has quantized keep their values, "
                    "'{}' is the first that does not",
                    kept, watched_.size(), first->name));
}

std::size_t output::add(io::planned_array array) {
    begin();
    plan_.push_back(std::move(array));
    return plan_.size() - 1;
}

io::array_writer& output::create(const destination& out) {
    begin();
    plan_kept(false);
    for (const io::planned_array& a : plan_) {
        result.bytes_written += *tensor::byte_count(a.type, *tensor::element_count(a.shape));
    }
    writer_ = out(plan_, metadata);
    return *writer_;
}

void output::copy(const engine::tensor_ref& from, std::size_t array,
                  const engine::run_control& control) {
    std::vector<std::byte> bytes;
    const std::uint64_t size = from.info().bytes;
    const std::unique_ptr<io::byte_source> source = from.file->open(from.index);
    for (std::uint64_t at = 0; at < size; at += copied_at_once) {
        base::stop_if(control.cancel);
        bytes.resize(static_cast<std::size_t>(std::min(copied_at_once, size - at)));
        source->read(at, bytes);
        writer_->write(array, at, bytes);
    }
}

void output::copy_from(const std::vector<const io::reader*>& files,
                       const engine::run_control& control) {
    std::map<std::string_view, engine::tensor_ref> by_name;
    for (const io::reader* file : files) {
        for (std::size_t i = 0; i < file->tensors().size(); ++i) {
            by_name.emplace(file->tensors()[i].name, engine::tensor_ref{file, i});
        }
    }
    std::set<std::size_t> kept;
    for (const kept_tensor& k : kept_) kept.insert(k.array);
    for (std::size_t i = 0; i < plan_.size(); ++i) {
        if (kept.contains(i)) continue;
        const auto at = by_name.find(plan_[i].name);
        if (at == by_name.end() || at->second.info().type != plan_[i].type ||
            at->second.info().shape != plan_[i].shape) {
            throw base::error(base::error_kind::input,
                              "no part has this array in the required form: make the parts again",
                              {{}, plan_[i].name, {}});
        }
        copy(at->second, i, control);
    }
}

conversion output::finish(const engine::run_control& control) {
    for (const kept_tensor& k : kept_) copy(k.tensor, k.array, control);
    writer_->commit();
    note_changed();
    return std::move(result);
}

code_stream::code_stream(io::array_writer& writer, std::size_t array, int bits,
                         std::uint64_t elements)
    : writer_(writer),
      array_(array),
      bits_(bits),
      elements_(elements),
      unit_(block::packing_unit(bits)) {}

void code_stream::put_edge(std::uint64_t first, std::span<const std::uint8_t> codes) {
    if (codes.empty()) return;
    const std::uint64_t unit = first / unit_;
    const std::uint64_t length = std::min(unit_, elements_ - unit * unit_);
    const std::lock_guard lock(guard_);
    piece& p = waiting_[unit];
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(first % unit_) + i;
        p.code[at] = codes[i];
        p.present |= 1u << at;
    }
    if (p.present != (1u << length) - 1u) return;
    std::array<std::byte, 4> bytes{};
    const std::size_t size = block::packed_bytes(bits_, length);
    block::pack(bits_, std::span(p.code).first(length), bytes);
    writer_.write(array_, block::packed_bytes(bits_, unit * unit_), std::span(bytes).first(size));
    waiting_.erase(unit);
}

void code_stream::put(std::uint64_t first, std::span<const std::uint8_t> codes) {
    const std::uint64_t end = first + codes.size();
    const std::uint64_t body = std::min(end, (first + unit_ - 1) / unit_ * unit_);
    const std::uint64_t tail = end == elements_ ? end : std::max(body, end / unit_ * unit_);
    put_edge(first, codes.first(body - first));
    if (tail > body) {
        const auto middle = codes.subspan(body - first, tail - body);
        const std::uint64_t at = block::packed_bytes(bits_, body);
        if (block::packed_bits(bits_) == 8) {
            writer_.write(array_, at, std::as_bytes(middle));
        } else {
            static thread_local std::vector<std::byte> bytes;
            bytes.resize(block::packed_bytes(bits_, middle.size()));
            block::pack(bits_, middle, bytes);
            writer_.write(array_, at, bytes);
        }
    }
    put_edge(tail, codes.subspan(tail - first));
}

}  // namespace mx::convert

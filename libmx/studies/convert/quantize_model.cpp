// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/given_scales.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/engine/remarks.hpp"
#include "libmx/engine/run.hpp"
#include "libmx/studies/convert/output.hpp"

namespace mx::convert {
namespace {

// The indices of a tensor's parts among the arrays to write.
struct parts {
    std::size_t data = 0;  // values, or codes if packed
    std::size_t scales = 0, offsets = 0, tensor_scale = 0;
    int code_bits = 8;
    const interleaved_blocks* interleaved = nullptr;
    float scale_factor = 1;
    std::optional<std::size_t> input_scale;
    float input_scale_value = 1;
    std::unique_ptr<code_stream> codes;
    std::atomic<bool>* changed = nullptr;  // of output::watch
};

// Collects the bytes of one array in order of position, to write them in a few long writes.
class run_buffer {
  public:
    run_buffer(io::array_writer& writer, std::size_t array) : writer_(writer), array_(array) {}

    template <typename T>
    void put(std::uint64_t index, std::span<T> values) {
        if (first_ + bytes_.size() != index * sizeof(T)) flush();
        if (bytes_.empty()) first_ = index * sizeof(T);
        const auto bytes = std::as_bytes(values);
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    void flush() {
        if (!bytes_.empty()) writer_.write(array_, first_, bytes_);
        bytes_.clear();
    }

  private:
    io::array_writer& writer_;
    std::size_t array_;
    std::uint64_t first_ = 0;
    std::vector<std::byte> bytes_;
};

// Calls write(first element, offset in the panel, count) for every contiguous run of a panel.
template <typename Write>
void for_each_run(const engine::panel& p, const block::view& v, Write&& write) {
    const std::uint64_t start = (p.batch * v.rows + p.row) * v.cols + p.col;
    if (p.cols == v.cols) return write(start, std::uint64_t{0}, p.elements());
    for (std::uint64_t r = 0; r < p.rows; ++r) write(start + r * v.cols, r * p.cols, p.cols);
}

// The position in the panel of the first element of a block of a segment.
std::size_t place_in_panel(const engine::quantized_segment& s, const engine::panel& where,
                           const codec::block_extent& e) {
    return static_cast<std::size_t>((s.at.batch * where.rows + s.at.row + e.row) * where.cols +
                                    s.at.col + e.col);
}

// Copies the values of blocks [first, first + count), all in one row of the grid and `stride` apart
// at `from`, to the positions of their elements in the panel.
template <typename T>
void put_blocks(const engine::quantized_segment& s, const engine::panel& where, std::size_t first,
                std::size_t count, const T* from, std::size_t stride, T* to) {
    const codec::block_extent e = codec::extent_of(s.place, first);
    to += place_in_panel(s, where, e);
    if (e.cols == 1) {  // columns: row by row, so that adjacent elements are written together
        for (std::uint64_t r = 0; r < e.rows; ++r, to += where.cols) {
            for (std::size_t b = 0; b < count; ++b) to[b] = from[b * stride + r];
        }
        return;
    }
    for (std::size_t b = 0; b < count; ++b, from += stride) {
        const auto wide = static_cast<std::size_t>(codec::extent_of(s.place, first + b).cols);
        T* row = to + b * static_cast<std::size_t>(s.place.block_cols);
        for (std::uint64_t r = 0; r < e.rows; ++r, row += where.cols) {
            const T* const at = from + r * wide;
            for (std::size_t i = 0; i < wide; ++i) row[i] = at[i];
        }
    }
}

// Calls put(first, count) for short runs of blocks in one row of the grid.
template <typename Put>
void for_each_run_of_blocks(const engine::quantized_segment& s, std::size_t blocks, Put&& put) {
    constexpr std::size_t most = 64;
    const auto across = static_cast<std::size_t>(s.place.grid_cols());
    for (std::size_t row = 0; row < blocks; row += across) {
        for (std::size_t b = 0; b < across; b += most) put(row + b, std::min(most, across - b));
    }
}

void put_codes(const engine::quantized_segment& s, const engine::panel& where,
               const codec::block_results& d, std::vector<std::uint8_t>& to) {
    // Rows of blocks without padding are rows of the panel.
    if (s.place.block_rows == 1 && s.place.block_cols == d.stride) {
        const auto across = static_cast<std::size_t>(s.place.grid_cols());
        for (std::size_t b = 0; b < d.blocks; b += across) {
            const codec::block_extent e = codec::extent_of(s.place, b);
            std::copy_n(d.codes + b * d.stride, s.place.cols,
                        to.data() + place_in_panel(s, where, e));
        }
        return;
    }
    for_each_run_of_blocks(s, d.blocks, [&](std::size_t first, std::size_t count) {
        put_blocks(s, where, first, count, d.codes + first * d.stride, d.stride, to.data());
    });
}

void put_values(const engine::quantized_segment& s, const engine::panel& where,
                const codec::block_params& params, const codec::block_results& d,
                std::vector<float>& block, std::vector<float>& to) {
    if (s.place.block_rows == 1) {
        const auto across = static_cast<std::size_t>(s.place.grid_cols());
        for (std::size_t b = 0; b < d.blocks; b += across) {
            const std::size_t at = place_in_panel(s, where, codec::extent_of(s.place, b));
            const std::span<float> row = std::span(to).subspan(at, s.place.cols);
            // Blocks longer than a row and parts of blocks have padding.
            const std::size_t whole = s.place.block_cols == d.stride ? row.size() / d.stride : 0;
            codec::values_of_blocks(params, d, b, row.first(whole * d.stride));
            for (std::size_t k = whole; k < across; ++k) {
                const auto col = k * static_cast<std::size_t>(s.place.block_cols);
                const auto width = std::min<std::size_t>(s.place.block_cols, row.size() - col);
                codec::values_of_block(params, d, b + k, row.subspan(col, width));
            }
        }
        return;
    }
    for_each_run_of_blocks(s, d.blocks, [&](std::size_t first, std::size_t count) {
        block.resize(count * d.stride);
        for (std::size_t b = 0; b < count; ++b) {
            const std::size_t size = codec::extent_of(s.place, first + b).size();
            codec::values_of_block(params, d, first + b,
                                   std::span(block).subspan(b * d.stride, size));
        }
        put_blocks(s, where, first, count, block.data(), d.stride, to.data());
    });
}

// Data shared by all panels of a conversion.
struct quantize_job {
    const codec::recipe& recipe;
    bool packed;
    io::array_writer& writer;
    std::vector<parts> of;  // by tensor
};

// A panel in the layout of its tensor's arrays.
class panel_output final : public engine::panel_visitor {
  public:
    panel_output(const quantize_job& job, const engine::run_panel& p)
        : job_(job),
          to_(job.of[p.tensor]),
          panel_(p),
          params_(*p.job(0).params[0]),
          scales_(job.writer, to_.scales),
          offsets_(job.writer, to_.offsets),
          outer_(job.writer, to_.tensor_scale) {
        const auto elements = static_cast<std::size_t>(p.where.elements());
        (job.packed && !encodes() ? scratch().codes.resize(elements)
                                  : scratch().values.resize(elements));
        if (to_.interleaved != nullptr) {
            scratch().scales.resize(elements / p.job(0).layout.grid.block_cols);
        }
    }

    void segment(const engine::quantized_segment& s, std::span<const std::size_t>) override {
        const codec::block_results& d = s.by_recipe.front().of_blocks;
        if (encodes()) {
            for_each_run_of_blocks(s, d.blocks, [&](std::size_t first, std::size_t count) {
                put_blocks(s, panel_.where, first, count, d.inputs + first * d.stride, d.stride,
                           scratch().values.data());
            });
            return;
        }
        // The error is that of exact products, values are float32.
        if (to_.changed && !*to_.changed && s.by_recipe.front().stats->max_error != 0 &&
            !keeps_values(s, d)) {
            *to_.changed = true;
        }
        if (!job_.packed) {
            return put_values(s, panel_.where, params_, d, scratch().block, scratch().values);
        }
        put_codes(s, panel_.where, d, scratch().codes);
        if (params_.outer_areas) {
            const block::grid& grid = panel_.job(0).layout.grid;
            const float stored = s.by_recipe.front().outer.stored;
            outer_.put(grid.area_of(s.index_of(0)), std::span(&stored, 1));
        }
        const auto across = static_cast<std::size_t>(s.place.grid_cols());
        for (std::size_t b = 0; b < d.blocks; b += across) {
            if (to_.interleaved != nullptr) {
                const std::size_t at =
                    place_in_panel(s, panel_.where, codec::extent_of(s.place, b));
                std::copy_n(d.scale_code + b, across,
                            scratch().scales.begin() +
                                static_cast<std::ptrdiff_t>(at / s.place.block_cols));
                continue;
            }
            put_scales(s.index_of(b), d, b, across);
        }
    }

    void end() override {
        const block::grid& grid = panel_.job(0).layout.grid;
        const transform::rotation& rotate = job_.recipe.rotate;
        if (!job_.packed && rotate.what != transform::kind::none) {
            engine::rotate_back(rotate, grid, panel_.where, scratch().values);
        }
        scales_.flush();
        offsets_.flush();
        outer_.flush();
        for_each_run(panel_.where, grid.over,
                     [&](std::uint64_t first, std::uint64_t at, std::uint64_t count) {
                         if (to_.interleaved != nullptr) {
                             put_interleaved(first, at, count);
                         } else if (job_.packed) {
                             to_.codes->put(first, std::span(scratch().codes).subspan(at, count));
                         } else {
                             const auto run = std::span(scratch().values).subspan(at, count);
                             job_.writer.write(to_.data, first * sizeof(float), std::as_bytes(run));
                         }
                     });
    }

  private:
    bool encodes() const {
        return to_.interleaved != nullptr && to_.interleaved->encode != nullptr;
    }

    bool keeps_values(const engine::quantized_segment& s, const codec::block_results& d) const {
        std::vector<float>& values = scratch().block;
        for (std::size_t b = 0; b < d.blocks; ++b) {
            values.resize(codec::extent_of(s.place, b).size());
            codec::values_of_block(params_, d, b, values);
            if (!std::ranges::equal(values, std::span(d.inputs + b * d.stride, values.size()))) {
                return false;
            }
        }
        return true;
    }

    // Writes the scales of consecutive blocks; `index` is that of the first one in the tensor's
    // grid.
    void put_scales(std::uint64_t index, const codec::block_results& d, std::size_t first,
                    std::size_t count) {
        if (job_.recipe.offset == codec::offset_kind::fp16) {
            offsets_.put(index, std::span(d.offset + first, count));
        }
        if (codec::scales_have_codes(job_.recipe)) {
            return scales_.put(index, std::span(d.scale_code + first, count));
        }
        for (std::size_t b = 0; b < count; ++b) {
            const float scale = to_.scale_factor * codec::scale_of_block(params_, d, first + b);
            scales_.put(index + b, std::span(&scale, 1));
        }
    }

    // A run of whole blocks: rows have no others, and panels are cut at segments.
    void put_interleaved(std::uint64_t first, std::uint64_t at, std::uint64_t count) {
        const interleaved_blocks& kind = *to_.interleaved;
        const auto cols = panel_.job(0).layout.grid.block_cols;
        std::vector<std::byte>& bytes = scratch().bytes;
        bytes.resize(count / kind.elements * kind.bytes);
        for (std::size_t b = 0; b < count / kind.elements; ++b) {
            const std::size_t each = kind.elements / cols;
            const std::size_t from = at + b * kind.elements;
            const auto out = std::span(bytes).subspan(b * kind.bytes, kind.bytes);
            if (!encodes()) {
                kind.pack(std::span(scratch().codes).subspan(from, kind.elements),
                          std::span(scratch().scales).subspan(from / cols, each), out);
            } else if (!kind.encode(std::span(scratch().values).subspan(from, kind.elements),
                                    out) &&
                       to_.changed != nullptr) {
                *to_.changed = true;
            }
        }
        job_.writer.write(to_.data, first / kind.elements * kind.bytes, bytes);
    }

    const quantize_job& job_;
    const parts& to_;
    engine::run_panel panel_;
    const codec::block_params& params_;
    run_buffer scales_, offsets_, outer_;

    // Kept from panel to panel; a thread processes one at a time.
    struct panel_values {
        std::vector<std::uint8_t> codes, scales;
        std::vector<float> values, block;
        std::vector<std::byte> bytes;
    };
    static panel_values& scratch() {
        static thread_local panel_values kept;
        return kept;
    }
};

class quantize_visitor final : public engine::visitor {
  public:
    explicit quantize_visitor(const quantize_job& job) : job_(job) {}

    codec::recipe_request requested(const engine::run_job& j) const override {
        const parts& to = job_.of[j.tensor];
        const bool watched = to.changed != nullptr;
        const bool inputs =
            watched || (to.interleaved != nullptr && to.interleaved->encode != nullptr);
        return {nullptr, codec::detail::codes, false, !job_.packed, inputs, watched};
    }
    void begin(const engine::run_batch& b) override {
        if (!job_.packed || !codec::has_tensor_scale(job_.recipe)) return;
        for (const engine::run_job& j : b.jobs) {
            job_.writer.write(job_.of[j.tensor].tensor_scale, 0,
                              std::as_bytes(std::span(&j.params[0]->tensor.stored, 1)));
        }
    }
    std::unique_ptr<engine::panel_visitor> visit(const engine::run_panel& p) override {
        return std::make_unique<panel_output>(job_, p);
    }

  private:
    const quantize_job& job_;
};

// The tensors of one recipe, with the destinations of their parts.
struct recipe_group {
    codec::recipe recipe;
    std::vector<engine::tensor_ref> tensors;
    std::vector<parts> of;
    std::uint64_t elements = 0;
};

recipe_group& group_of(std::vector<recipe_group>& groups, const codec::recipe& r) {
    for (recipe_group& g : groups) {
        if (g.recipe == r) return g;
    }
    groups.push_back({r, {}, {}, 0});
    return groups.back();
}

void require_packable(const codec::recipe& r) {
    if (!codec::bumps_positions(r)) return;
    base::refuse(
        "recipe '{}': its scale differs inside a block, so there are "
        "no packed scales; write values (without --packed)",
        codec::to_string(r));
}

// The arrays of the packed layout.
stored_arrays packed_arrays(const io::tensor_info& info, const codec::recipe& r,
                            quantized_form form) {
    std::string reason;
    const engine::geometry layout = *engine::lay_out(info, r, reason);
    const tensor::shape& grid = layout.grid_shape;
    stored_arrays a;
    const bool bytes = form == quantized_form::codes;
    a.code_bits = bytes ? 8 : r.element->bits();
    a.codes = engine::codes_array(info.name, bytes ? "U8" : r.element->safetensors, a.code_bits,
                                  info.shape);
    a.scales = {info.name + ".scales", engine::scales_type(r), grid};
    if (r.offset == codec::offset_kind::fp16) {
        a.offsets = {info.name + ".offsets", tensor::dtype::f16, grid};
    }
    if (codec::has_tensor_scale(r) || codec::has_outer_areas(r)) {
        const tensor::shape one{1};
        a.tensor_scale = {info.name + engine::tensor_scale_suffix, tensor::dtype::f32,
                          codec::has_outer_areas(r) ? layout.area_shape : one};
    }
    return a;
}

// Plans the arrays of a tensor.
parts plan_parts(output& o, const io::tensor_info& info, const codec::recipe& r,
                 quantized_form form, const conversion_parts& of) {
    parts p;
    if (form == quantized_form::values) {
        p.data = o.add({info.name, tensor::dtype::f32, info.shape});
        if (of.described) engine::put_axes(o.metadata, info);
        return p;
    }
    stored_arrays a = of.arrays ? of.arrays(info, r) : packed_arrays(info, r, form);
    p.data = o.add(std::move(a.codes));
    if (a.scales) p.scales = o.add(std::move(*a.scales));
    if (a.offsets) p.offsets = o.add(std::move(*a.offsets));
    if (a.tensor_scale) p.tensor_scale = o.add(std::move(*a.tensor_scale));
    if (a.input_scale) p.input_scale = o.add(std::move(*a.input_scale));
    p.input_scale_value = a.input_scale_value;
    p.code_bits = a.code_bits;
    p.interleaved = a.interleaved;
    p.scale_factor = a.scale_factor;
    if (of.arrays || !of.described) return p;
    std::optional<engine::axis_range> along;
    if (r.axis.what == codec::axis_choice::kind::last) along = engine::axes_along_sums(info);
    o.metadata[engine::tensor_key(info.name)] = engine::tensor_entry(info, along);
    return p;
}

// Whether `r` fits the tensor; if not, sets `reason`. `files` holds the files of outer scales that
// were read, by path.
bool fits(const engine::tensor_ref& tensor, const codec::recipe& r,
          std::map<std::string, engine::given_scales>& files, std::string& reason) {
    if (!engine::lay_out(tensor.info(), r, reason)) return false;
    if (r.outer.file.empty()) return true;
    const engine::given_scales& given = files.try_emplace(r.outer.file, r.outer.file).first->second;
    if (given.of(tensor)) return true;
    reason = given.why_left_out();
    return false;
}

// Returns the tensors to quantize; keeps or skips the others.
std::vector<const assigned_tensor*> sort_out(output& o, const std::vector<assigned_tensor>& tensors,
                                             quantized_form form, bool keep_rest, bool is_part) {
    std::vector<const assigned_tensor*> chosen;
    std::map<std::string, engine::given_scales> files;
    for (const assigned_tensor& t : tensors) {
        const io::tensor_info& info = t.tensor.info();
        std::string reason = t.kept;
        std::string recipe;
        if (t.recipe) {
            if (form != quantized_form::values) require_packable(*t.recipe);
            if (!o.converts(t.tensor)) continue;
            if (fits(t.tensor, *t.recipe, files, reason)) {
                chosen.push_back(&t);
                continue;
            }
            recipe = codec::to_string(*t.recipe);
        }
        if ((t.recipe && !keep_rest) || !o.keep(t.tensor, reason)) {
            o.result.skipped.push_back({info.file, info.name, recipe, reason});
        }
    }
    engine::require_any(is_part || !chosen.empty(),
                        o.result.kept.empty() ? o.result.skipped : o.result.kept);
    return chosen;
}

}  // namespace

conversion quantize_model(const std::vector<assigned_tensor>& tensors, quantized_form form,
                          bool keep_rest, const destination& out,
                          const engine::run_control& control, const conversion_parts& parts_of) {
    const bool packed = form != quantized_form::values;
    output o;
    std::vector<engine::tensor_ref> inputs;
    for (const assigned_tensor& t : tensors) {
        if (t.recipe) codec::require_blocks(*t.recipe);
        inputs.push_back(t.tensor);
    }
    o.result.remarks = engine::remarks_on(inputs);
    std::vector<recipe_group> groups;
    std::vector<engine::tensor_recipe> recipes;
    for (const assigned_tensor* t : sort_out(o, tensors, form, keep_rest, !parts_of.note.empty())) {
        const io::tensor_info& info = t->tensor.info();
        recipe_group& g = group_of(groups, *t->recipe);
        g.tensors.push_back(t->tensor);
        g.of.push_back(plan_parts(o, info, *t->recipe, form, parts_of));
        if (parts_of.arrays) g.of.back().changed = o.watch(info);
        g.elements += info.elements;
        recipes.push_back({info.name, *t->recipe});
        o.result.elements += info.elements;
    }
    o.result.tensors = recipes.size();
    if (!parts_of.arrays && parts_of.described) engine::put_recipes(o.metadata, recipes, packed);
    if (!parts_of.note.empty()) o.metadata[part_key] = parts_of.note;
    io::array_writer& writer = o.create(out);
    if (!parts_of.merged.empty()) {
        o.copy_from(parts_of.merged, control);
        return o.finish(control);
    }
    std::uint64_t done = 0;
    for (recipe_group& g : groups) {
        quantize_job job{g.recipe, packed, writer, std::move(g.of)};
        for (std::size_t t = 0; t < g.tensors.size(); ++t) {
            if (const auto scale = job.of[t].input_scale) {
                writer.write(*scale, 0, std::as_bytes(std::span(&job.of[t].input_scale_value, 1)));
            }
            job.of[t].codes = std::make_unique<code_stream>(
                writer, job.of[t].data, job.of[t].code_bits, g.tensors[t].info().elements);
        }
        quantize_visitor study(job);
        engine::run_request request;
        request.recipes = {g.recipe};
        engine::run(g.tensors, request, study,
                    engine::part_of(control, done, g.elements, o.result.elements));
        done += g.elements;
    }
    return o.finish(control);
}

conversion quantize_model(const std::vector<engine::tensor_ref>& tensors,
                          const codec::recipe& recipe, quantized_form form, const destination& out,
                          const engine::run_control& control) {
    std::vector<assigned_tensor> all;
    for (const engine::tensor_ref& t : tensors) all.push_back({t, recipe, {}});
    return quantize_model(all, form, false, out, control);
}

}  // namespace mx::convert

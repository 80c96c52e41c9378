// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "libmx/analysis/analyze.hpp"
#include "libmx/api/mx/mx.hpp"
#include "libmx/base/floating_point_environment.hpp"
#include "libmx/base/glob.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/simd/values.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/io/memory_tensor.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "libmx/studies/products/operand_forms.hpp"
#include "libmx/studies/products/products.hpp"

namespace mx {
namespace {

engine::run_control control_of(const run_options& how) {
    engine::run_control control;
    control.threads = how.threads;
    control.cancel = how.cancel;
    if (!how.backend.empty()) control.backend = &codec::backend_named(how.backend);
    return control;
}

// A call that names one tensor leaves nothing out.
void require_taken(const std::vector<engine::skipped_tensor>& skipped, const view& x) {
    if (skipped.empty()) return;
    const bool by_recipe = !skipped.front().recipe.empty();
    throw error(by_recipe ? error_kind::usage : error_kind::input, skipped.front().reason,
                {x.info().file, x.name(), {}});
}

void require_taken(const convert::conversion& done, const view& x) {
    require_taken(done.kept, x);
    require_taken(done.skipped, x);
}

// Arrays of the caller in place of a file; what was planned says how large they are.
class memory_writer final : public io::array_writer {
  public:
    using target = std::function<std::span<std::byte>(const io::planned_array&)>;
    memory_writer(const std::vector<io::planned_array>& plan, const target& memory_for) {
        for (const io::planned_array& a : plan) arrays_.push_back(memory_for(a));
    }
    void write(std::size_t index, std::uint64_t offset, std::span<const std::byte> bytes) override {
        if (!bytes.empty()) std::memcpy(arrays_[index].data() + offset, bytes.data(), bytes.size());
    }
    void commit() override {}

  private:
    std::vector<std::span<std::byte>> arrays_;
};

void write(const view& x, const recipe& r, convert::quantized_form form,
           const convert::destination& make, const run_options& how) {
    const auto array = io::as_array(*x.ref().file, x.ref().index);
    convert::conversion_parts parts;
    parts.described = false;
    const std::vector<convert::assigned_tensor> one{{{array.get(), 0}, r, {}}};
    require_taken(convert::quantize_model(one, form, false, make, control_of(how), parts), x);
}

void write(const view& x, const recipe& r, convert::quantized_form form,
           const memory_writer::target& memory_for, const run_options& how) {
    const auto make = [&](const std::vector<io::planned_array>& plan, const io::metadata_map&) {
        return std::make_unique<memory_writer>(plan, memory_for);
    };
    write(x, r, form, convert::destination(make), how);
}

// An array of the caller, of 16-bit values in place of float32.
class narrow_writer final : public io::array_writer {
  public:
    narrow_writer(dtype type, std::uint16_t* to) : type_(type), to_(to) {}
    void write(std::size_t, std::uint64_t offset, std::span<const std::byte> bytes) override {
        // Whole values: panels are passed on as they are stored.
        const auto* const from = reinterpret_cast<const float*>(bytes.data());
        const std::size_t count = bytes.size() / sizeof(float);
        std::uint16_t* const to = to_ + offset / sizeof(float);
        if (type_ == dtype::bf16) {
            codec::simd::to_bf16(from, to, count);
        } else {
            for (std::size_t i = 0; i < count; ++i) to[i] = base::half_bits_of(from[i]);
        }
    }
    void commit() override {}

  private:
    dtype type_;
    std::uint16_t* to_;
};

template <typename T>
std::span<std::byte> sized(std::vector<T>& v, const io::planned_array& a) {
    v.resize(static_cast<std::size_t>(*tensor::element_count(a.shape)));
    return std::as_writable_bytes(std::span(v));
}

engine::geometry layout_of(const shape& extents, const recipe& r) {
    codec::require_blocks(r);
    std::string reason;
    const auto layout = engine::lay_out(extents, r, reason);
    if (!layout) base::refuse(to_string(r) + ": " + reason);
    return *layout;
}

}  // namespace

blocks quantize(const view& x, const recipe& r, const run_options& how) {
    const base::floating_point_environment ours;
    blocks q;
    q.recipe_ = r;
    q.extents_ = x.extents();
    const engine::geometry layout = layout_of(x.extents(), r);
    q.grid_ = layout.grid_shape;
    q.outer_grid_ = layout.area_shape;
    float tensor_scale = 1;
    const auto memory_for = [&](const io::planned_array& a) -> std::span<std::byte> {
        if (a.name.ends_with(".scales")) {
            return codec::scales_have_codes(r) ? sized(q.scale_codes_, a) : sized(q.scales_, a);
        }
        if (a.name.ends_with(".offsets")) return sized(q.offsets_, a);
        if (a.name.ends_with(engine::tensor_scale_suffix)) {
            if (codec::has_outer_areas(r)) return sized(q.outer_scales_, a);
            return std::as_writable_bytes(std::span(&tensor_scale, 1));
        }
        q.packed_.resize(
            static_cast<std::size_t>(block::packed_bytes(r.element->bits(), x.elements())));
        return q.packed_;
    };
    write(x, r, convert::quantized_form::packed, memory_for, how);
    if (codec::has_tensor_scale(r)) q.tensor_scale_ = tensor_scale;
    return q;
}

namespace {

void need(bool holds, std::string_view what, std::uint64_t count) {
    if (!holds) base::refuse("blocks: {} {} are required", count, what);
}

}  // namespace

blocks blocks::from_parts(const mx::recipe& r, shape extents, std::vector<std::uint8_t> codes,
                          std::vector<std::uint8_t> scale_codes, std::vector<float> scales,
                          std::vector<std::uint16_t> offsets, std::optional<float> tensor_scale,
                          std::vector<float> outer_scales) {
    const auto elements = tensor::element_count(extents);
    need(elements == codes.size(), "codes", elements.value_or(0));
    std::vector<std::byte> packed(
        static_cast<std::size_t>(block::packed_bytes(r.element->bits(), codes.size())));
    block::pack(r.element->bits(), codes, packed);
    return from_packed(r, std::move(extents), std::move(packed), std::move(scale_codes),
                       std::move(scales), std::move(offsets), tensor_scale,
                       std::move(outer_scales));
}

blocks blocks::from_packed(const mx::recipe& r, shape extents, std::vector<std::byte> packed,
                           std::vector<std::uint8_t> scale_codes, std::vector<float> scales,
                           std::vector<std::uint16_t> offsets, std::optional<float> tensor_scale,
                           std::vector<float> outer_scales) {
    blocks q;
    const engine::geometry layout = layout_of(extents, r);
    q.grid_ = layout.grid_shape;
    q.outer_grid_ = layout.area_shape;
    const std::uint64_t elements = *tensor::element_count(extents);
    const std::uint64_t count = *tensor::element_count(q.grid_);
    const bool coded = codec::scales_have_codes(r);
    const std::uint64_t bytes = block::packed_bytes(r.element->bits(), elements);
    need(packed.size() == bytes, "bytes of codes", bytes);
    need(scale_codes.size() == (coded ? count : 0), "scale codes", coded ? count : 0);
    need(coded || scales.size() == count, "scales", count);
    const bool has_offset = r.offset == codec::offset_kind::fp16;
    need(offsets.size() == (has_offset ? count : 0), "offsets", has_offset ? count : 0);
    need(tensor_scale.has_value() == codec::has_tensor_scale(r), "tensor scales",
         codec::has_tensor_scale(r) ? 1 : 0);
    const std::uint64_t areas = layout.grid.has_areas() ? layout.grid.areas() : 0;
    need(outer_scales.size() == areas, "outer scales", areas);
    q.recipe_ = r;
    q.extents_ = std::move(extents);
    q.packed_ = std::move(packed);
    q.scale_codes_ = std::move(scale_codes);
    if (!coded) q.scales_ = std::move(scales);
    q.offsets_ = std::move(offsets);
    q.tensor_scale_ = tensor_scale;
    q.outer_scales_ = std::move(outer_scales);
    return q;
}

std::vector<std::uint8_t> blocks::codes() const {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(*tensor::element_count(extents_)));
    block::unpack(recipe_.element->bits(), packed_, codes);
    return codes;
}

std::vector<float> blocks::scales() const {
    const base::floating_point_environment ours;
    if (scale_codes_.empty()) return scales_;
    std::vector<float> scales;
    scales.reserve(scale_codes_.size());
    for (const std::uint8_t code : scale_codes_) {
        scales.push_back(format::decode_scale(*recipe_.scale_format, code));
    }
    return scales;
}

std::vector<float> dequantize(const blocks& q, const run_options& how) {
    const base::floating_point_environment ours;
    const recipe& r = q.recipe();
    codec::block_params params = codec::params_of(r);
    if (q.tensor_scale()) codec::set_tensor_scale(params, *q.tensor_scale());
    // Of these, only what it refuses matters: every block is decoded under that of its area.
    for (const float stored : q.outer_scales()) codec::set_tensor_scale(params, stored);
    const block::grid g = layout_of(q.extents(), r).grid;
    const auto source = [](const auto& span, dtype type) -> io::shared_source {
        return io::memory_tensor(span.data(), type, {span.size()}, {})->open(0);
    };
    const bool coded = codec::scales_have_codes(r);
    const std::vector<float> scales = coded ? std::vector<float>() : q.scales();
    const auto decoded = engine::open_blocks(
        r, params, g, r.element->bits(),
        {source(q.packed_codes(), dtype::u8),
         coded ? source(q.scale_codes(), dtype::u8) : source(scales, dtype::f32),
         q.offsets().empty() ? nullptr : source(q.offsets(), dtype::f16), q.outer_scales()});
    std::vector<float> values(static_cast<std::size_t>(*tensor::element_count(q.extents())));
    engine::for_each_piece(g, how.threads, how.cancel,
                           [&](std::uint64_t first, std::uint64_t count) {
                               const auto piece = std::span(values).subspan(first, count);
                               decoded->read(first * sizeof(float), std::as_writable_bytes(piece));
                           });
    return values;
}

void fake_quantize(const view& x, const recipe& r, std::span<float> to, const run_options& how) {
    const base::floating_point_environment ours;
    if (to.size() != x.elements()) {
        base::refuse("room for {} values is required, not for {}", x.elements(), to.size());
    }
    write(
        x, r, convert::quantized_form::values,
        [&](const io::planned_array&) { return std::as_writable_bytes(to); }, how);
}

std::vector<float> fake_quantize(const view& x, const recipe& r, const run_options& how) {
    std::vector<float> to(static_cast<std::size_t>(x.elements()));
    fake_quantize(x, r, to, how);
    return to;
}

void fake_quantize(const view& x, const recipe& r, dtype type, void* to, const run_options& how) {
    const base::floating_point_environment ours;
    if (type == dtype::f32) {
        const auto count = static_cast<std::size_t>(x.elements());
        return fake_quantize(x, r, std::span(static_cast<float*>(to), count), how);
    }
    if (type != dtype::bf16 && type != dtype::f16) {
        base::refuse("results are F32, BF16 or F16, not {}", tensor::row_of(type).name);
    }
    const auto make = [&](const std::vector<io::planned_array>&, const io::metadata_map&) {
        return std::make_unique<narrow_writer>(type, static_cast<std::uint16_t*>(to));
    };
    write(x, r, convert::quantized_form::values, convert::destination(make), how);
}

std::vector<row> measure(const view& x, std::span<const recipe> recipes, const run_options& how) {
    const base::floating_point_environment ours;
    analysis::analysis_request request;
    request.recipes.assign(recipes.begin(), recipes.end());
    const auto array = io::as_array(*x.ref().file, x.ref().index);
    const analysis::analysis a =
        analysis::analyze({io::tensor_ref{array.get(), 0}}, request, control_of(how));
    require_taken(a.skipped, x);
    return {a.results.begin(), a.results.end()};
}

row measure(const view& x, const recipe& r, const run_options& how) {
    return measure(x, std::span(&r, 1), how).front();
}

std::vector<float> cast(const view& x, std::string_view element, const cast_options& options,
                        const run_options& how) {
    const base::floating_point_environment ours;
    std::vector<float> to(static_cast<std::size_t>(x.elements()));
    convert::cast_request request;
    request.element = element;
    request.round = options.round;
    request.saturate = options.saturate;
    request.seed = options.seed;
    const auto make = [&](const std::vector<io::planned_array>& plan, const io::metadata_map&) {
        return std::make_unique<memory_writer>(
            plan, [&](const io::planned_array&) { return std::as_writable_bytes(std::span(to)); });
    };
    require_taken(
        convert::cast({convert::assigned_tensor{x.ref(), {}, {}}}, request, make, control_of(how)),
        x);
    return to;
}

std::vector<float> multiply(const view& a, const recipe& recipe_a, const view& b,
                            const recipe& recipe_b, std::string_view accumulate,
                            const run_options& how) {
    const base::floating_point_environment ours;
    const engine::run_control control = control_of(how);
    const gemm::accumulator model = gemm::parse_accumulator(accumulate);
    const auto operand = [&](const view& x, const recipe& r) {
        const products::operand_recipe by = products::operand_recipe_of(r);
        return products::quantize_operand(products::read_matrix(x.ref(), control),
                                          products::reduction::last, by, r.rotate, control);
    };
    const products::quantized_operand qa = operand(a, recipe_a), qb = operand(b, recipe_b);
    if (qa.depth != qb.depth) {
        base::refuse("operands with K = {} and {} cannot be multiplied", qa.depth, qb.depth);
    }
    const products::form_pair forms = products::forms_for(model, qa, qb);
    products::product_runner runner(control, how.backend, 0);
    return runner.multiply(forms.first.operand, forms.second.operand, {}, model, {});
}

const view& model::operator[](std::string_view name) const {
    std::vector<std::string_view> names;
    for (const view& t : tensors_) {
        if (t.name() == name) return t;
        names.emplace_back(t.name());
    }
    base::refuse(base::unknown("tensor", name, names));
}

model model::select(const std::string& glob) const {
    model chosen;
    std::vector<std::string_view> names;
    for (const view& t : tensors_) {
        names.emplace_back(t.name());
        if (base::glob_match(glob, t.name())) chosen.tensors_.push_back(t);
    }
    if (chosen.tensors_.empty()) {
        base::refuse(base::unknown("tensor", glob, names));
    }
    return chosen;
}

model open(const std::string& path, const io::open_options& options) {
    const base::floating_point_environment ours;
    const auto opened =
        std::make_shared<const engine::model>(std::vector<std::string>{path}, options);
    std::vector<engine::skipped_tensor> left_out;
    model m;
    for (const io::tensor_ref& t : engine::numeric_only(opened->select({}), left_out)) {
        m.tensors_.emplace_back(std::shared_ptr<const io::reader>(opened, t.file), t.index);
    }
    return m;
}

}  // namespace mx

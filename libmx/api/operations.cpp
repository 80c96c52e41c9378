// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "libmx/analysis/analyze.hpp"
#include "libmx/api/mx/mx.hpp"
#include "libmx/base/glob.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/backends.hpp"
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

// Nothing is left out of a call that names one tensor.
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

// Arrays of the caller's in place of a file; what was planned tells how large they are.
class memory_writer final : public io::array_writer {
  public:
    using room = std::function<std::span<std::byte>(const io::planned_array&)>;
    memory_writer(const std::vector<io::planned_array>& plan, const room& room_for) {
        for (const io::planned_array& a : plan) arrays_.push_back(room_for(a));
    }
    void write(std::size_t index, std::uint64_t offset, std::span<const std::byte> bytes) override {
        if (!bytes.empty()) std::memcpy(arrays_[index].data() + offset, bytes.data(), bytes.size());
    }
    void commit() override {}

  private:
    std::vector<std::span<std::byte>> arrays_;
};

void write(const view& x, const recipe& r, convert::quantized_form form,
           const memory_writer::room& room_for, const run_options& how) {
    const auto make = [&](const std::vector<io::planned_array>& plan, const io::metadata_map&) {
        return std::make_unique<memory_writer>(plan, room_for);
    };
    require_taken(convert::quantize_model({x.ref()}, r, form, make, control_of(how)), x);
}

template <typename T>
std::span<std::byte> sized(std::vector<T>& v, const io::planned_array& a) {
    v.resize(static_cast<std::size_t>(*tensor::element_count(a.shape)));
    return std::as_writable_bytes(std::span(v));
}

engine::geometry layout_of(const shape& extents, const recipe& r) {
    std::string reason;
    const auto layout = engine::lay_out(extents, r, reason);
    if (!layout) base::refuse(to_string(r) + ": " + reason);
    return *layout;
}

}  // namespace

blocks quantize(const view& x, const recipe& r, const run_options& how) {
    blocks q;
    q.recipe_ = r;
    q.extents_ = x.extents();
    q.grid_ = layout_of(x.extents(), r).grid_shape;
    float tensor_scale = 1;
    const auto room_for = [&](const io::planned_array& a) -> std::span<std::byte> {
        if (a.name.ends_with(".scales")) {
            return codec::scales_have_codes(r) ? sized(q.scale_codes_, a) : sized(q.scales_, a);
        }
        if (a.name.ends_with(".offsets")) return sized(q.offsets_, a);
        if (a.name.ends_with(".global_scale")) {
            return std::as_writable_bytes(std::span(&tensor_scale, 1));
        }
        return sized(q.codes_, a);
    };
    write(x, r, convert::quantized_form::codes, room_for, how);
    if (codec::needs_tensor_facts(r)) q.tensor_scale_ = tensor_scale;
    for (const std::uint8_t code : q.scale_codes_) {
        q.scales_.push_back(format::decode_scale(*r.scale_format, code));
    }
    return q;
}

blocks blocks::from_parts(const mx::recipe& r, shape extents, std::vector<std::uint8_t> codes,
                          std::vector<std::uint8_t> scale_codes, std::vector<float> scales,
                          std::vector<std::uint16_t> offsets, std::optional<float> tensor_scale) {
    const auto need = [](bool holds, std::string_view what, std::uint64_t count) {
        if (holds) return;
        base::refuse("blocks: {} {} are called for", count, what);
    };
    blocks q;
    q.recipe_ = r;
    q.grid_ = layout_of(extents, r).grid_shape;
    const std::uint64_t elements = *tensor::element_count(extents);
    const std::uint64_t count = *tensor::element_count(q.grid_);
    const bool coded = codec::scales_have_codes(r);
    need(codes.size() == elements, "codes", elements);
    need(scale_codes.size() == (coded ? count : 0), "scale codes", coded ? count : 0);
    need(coded || scales.size() == count, "scales", count);
    const bool has_offset = r.offset == codec::offset_kind::fp16;
    need(offsets.size() == (has_offset ? count : 0), "offsets", has_offset ? count : 0);
    need(tensor_scale.has_value() == codec::needs_tensor_facts(r), "tensor scales",
         codec::needs_tensor_facts(r) ? 1 : 0);
    if (coded) {
        scales.clear();
        for (const std::uint8_t code : scale_codes) {
            scales.push_back(format::decode_scale(*r.scale_format, code));
        }
    }
    q.extents_ = std::move(extents);
    q.codes_ = std::move(codes);
    q.scale_codes_ = std::move(scale_codes);
    q.scales_ = std::move(scales);
    q.offsets_ = std::move(offsets);
    q.tensor_scale_ = tensor_scale;
    return q;
}

std::vector<std::byte> blocks::packed_codes() const {
    const int bits = recipe_.element->bits();
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(block::packed_bytes(bits, codes_.size())));
    block::pack(bits, codes_, bytes);
    return bytes;
}

std::vector<float> dequantize(const blocks& q, const run_options& how) {
    const recipe& r = q.recipe();
    codec::block_params params = codec::params_of(r);
    if (q.tensor_scale()) codec::set_tensor_scale(params, *q.tensor_scale());
    const block::grid g = layout_of(q.extents(), r).grid;
    const auto source = [](const auto& span, dtype type) -> io::shared_source {
        return io::memory_tensor(span.data(), type, {span.size()}, {})->open(0);
    };
    const bool coded = codec::scales_have_codes(r);
    const auto decoded = engine::open_blocks(
        r, params, g, 8,
        {source(q.codes(), dtype::u8),
         coded ? source(q.scale_codes(), dtype::u8) : source(q.scales(), dtype::f32),
         q.offsets().empty() ? nullptr : source(q.offsets(), dtype::f16)});
    std::vector<float> values(q.codes().size());
    engine::for_each_piece(g, how.threads, how.cancel,
                           [&](std::uint64_t first, std::uint64_t count) {
                               const auto piece = std::span(values).subspan(first, count);
                               decoded->read(first * sizeof(float), std::as_writable_bytes(piece));
                           });
    return values;
}

void fake_quantize(const view& x, const recipe& r, std::span<float> to, const run_options& how) {
    if (to.size() != x.elements()) {
        base::refuse("room for {} values is called for, not for {}", x.elements(), to.size());
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

std::vector<row> measure(const view& x, std::span<const recipe> recipes, const run_options& how) {
    analysis::analysis_request request;
    request.recipes.assign(recipes.begin(), recipes.end());
    const analysis::analysis a = analysis::analyze({x.ref()}, request, control_of(how));
    require_taken(a.skipped, x);
    return {a.results.begin(), a.results.end()};
}

row measure(const view& x, const recipe& r, const run_options& how) {
    return measure(x, std::span(&r, 1), how).front();
}

std::vector<float> cast(const view& x, std::string_view element, const cast_options& options,
                        const run_options& how) {
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
    require_taken(convert::cast({x.ref()}, request, make, control_of(how)), x);
    return to;
}

std::vector<float> multiply(const view& a, const recipe& recipe_a, const view& b,
                            const recipe& recipe_b, std::string_view accumulate,
                            const run_options& how) {
    const engine::run_control control = control_of(how);
    const gemm::accumulator model = gemm::parse_accumulator(accumulate);
    const auto operand = [&](const view& x, const recipe& r) {
        products::operand_recipe by;
        by.blocks = r;
        return products::quantize_operand(products::read_matrix(x.ref(), control),
                                          products::reduction::last, by, r.rotate, control);
    };
    const products::quantized_operand qa = operand(a, recipe_a), qb = operand(b, recipe_b);
    if (qa.depth != qb.depth) {
        base::refuse("operands of K = {} and {} have no product", qa.depth, qb.depth);
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

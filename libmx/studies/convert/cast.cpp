// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "libmx/base/bits.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/stored_value.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/studies/convert/output.hpp"

namespace mx::convert {
namespace {

// What elements become: a wide format, an element format, or the codes of a scale format.
struct target {
    std::string_view wide;  ///< empty: none
    codec::element_cast cast;
    std::string_view type_name;
    int bits = 8;
};

target find_target(const cast_request& request) {
    target t{};
    if (const format::element_format* w = format::find_wide_format(request.element)) {
        t.wide = w->name;
        return t;
    }
    const format::element_format* e = format::find_element_format(request.element);
    const format::scale_format* s = format::find_scale_format(request.element);
    if (e == nullptr && (s == nullptr || !s->has_codes())) {
        base::refuse(base::unknown("format", request.element, engine::cast_formats()));
    }
    t.type_name = e != nullptr ? e->safetensors : s->safetensors;
    t.bits = e != nullptr ? e->bits() : 8;
    if (e == nullptr && s->power_of_two()) {
        t.cast = codec::cast_to_e8m0(*request.by, request.round, request.saturate);
        return t;
    }
    const format::element_format& f = e != nullptr ? *e : s->number;
    const codec::int_min minimum = request.minimum.value_or(codec::default_int_min(f, *request.by));
    const int random_bits =
        request.random_bits.value_or(codec::default_random_bits(*request.by, f));
    t.cast.number = codec::conversion_of(*request.by, f, {request.round, request.ties, random_bits},
                                         request.saturate, minimum == codec::int_min::full);
    return t;
}

// What a tensor becomes.
struct parts_of_tensor {
    std::size_t data = 0;  // the index of the array of its values or codes
    std::optional<std::size_t> tensor_scale{}, input_scale{};
    float given_scale = 1, input_scale_value = 1;
    std::atomic<bool>* changed = nullptr;  // of output::watch
    std::unique_ptr<code_stream> codes{};
};

// The scale of each tensor under scale=tensor; else nothing.
std::vector<float> scales_of(const std::vector<engine::tensor_ref>& tensors,
                             const std::vector<parts_of_tensor>& parts, const cast_request& request,
                             const engine::run_control& control) {
    if (!request.tensor_scaled) return {};
    std::vector<float> scales;
    if (request.arrays) {
        for (const parts_of_tensor& p : parts) scales.push_back(p.given_scale);
        return scales;
    }
    const format::element_format& f = *format::find_element_format(request.element);
    for (const float amax : largest_magnitudes(tensors, control)) {
        scales.push_back(codec::whole_scale(f, amax));
    }
    return scales;
}

// The buffers and the caster of a thread.
struct worker {
    std::unique_ptr<codec::caster> by;
    std::vector<std::uint8_t> codes;
    std::vector<float> values, widened;
};

// Some dialects return values without a code.
[[noreturn]] void fail_without_code(const cast_request& request, const io::tensor_info& info,
                                    float x, std::uint64_t index) {
    throw base::error(
        base::error_kind::input,
        fmt::format("element {} is {}, which dialect {} turns into a value without a code in {}; "
                    "write values (without --packed) or use another dialect",
                    index, x, request.by->name, request.element),
        {info.file, info.name, {}});
}

// How files store a wide format.
tensor::dtype stored_type(std::string_view wide) {
    return wide == "bf16"  ? tensor::dtype::bf16
           : wide == "f16" ? tensor::dtype::f16
                           : tensor::dtype::f32;
}

// Writes values in a wide format, from element `first` of an array on.
void put_wide(std::string_view to, bool packed, std::span<float> x, std::uint64_t first,
              std::size_t array, io::array_writer& writer) {
    format::round_to_wide(to, x);
    if (!packed || stored_type(to) == tensor::dtype::f32) {
        return writer.write(array, first * sizeof(float), std::as_bytes(x));
    }
    std::vector<std::uint16_t> words(x.size());
    std::ranges::transform(x, words.begin(), [&](float v) {
        return to == "f16" ? format::half_bits(v)
                           : static_cast<std::uint16_t>(base::bits_of(v) >> 16);
    });
    writer.write(array, first * sizeof words.front(), std::as_bytes(std::span(words)));
}

}  // namespace

std::optional<codec::element_cast> element_cast_of(const cast_request& request) {
    const target to = find_target(request);
    if (!to.wide.empty()) return std::nullopt;
    return to.cast;
}

conversion cast(const std::vector<assigned_tensor>& tensors, const cast_request& request,
                const destination& out, const engine::run_control& control) {
    if (request.tensor_scaled && request.packed && !request.arrays) {
        base::refuse(
            "{}:scale=tensor: codes without their scale are no tensor; write values, "
            "without --packed",
            request.element);
    }
    const target to = find_target(request);
    const codec::backend& backend = control.chosen_backend();
    if (control.notices && to.wide.empty() && backend.takes_cast != nullptr &&
        !backend.takes_cast(to.cast)) {
        control.notices->detail(fmt::format(
            "casts: by backend scalar, as backend {} has no kernels for them", backend.name));
    }
    output o;
    std::vector<engine::tensor_ref> chosen;
    std::vector<const assigned_tensor*> under;
    for (const assigned_tensor& t : tensors) {
        const io::tensor_info& info = t.tensor.info();
        if (t.recipe || (t.kept.empty() && !request.arrays)) {
            if (!o.converts(t.tensor)) continue;
            chosen.push_back(t.tensor);
            under.push_back(&t);
        } else if (!o.keep(t.tensor, t.kept)) {
            o.result.skipped.push_back({info.file, info.name, {}, t.kept});
        }
    }
    engine::require_any(!chosen.empty(), o.result.kept.empty() ? o.result.skipped : o.result.kept);
    o.metadata[engine::schema_key_name] = "mx.cast/1";
    o.metadata["mx.element"] = request.element;
    if (request.tensor_scaled) o.metadata["mx.scale"] = "tensor";
    if (request.by->id != codec::dialect_id::ocp) o.metadata["mx.dialect"] = request.by->name;
    std::vector<parts_of_tensor> parts(chosen.size());
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        const io::tensor_info& info = chosen[t].info();
        parts_of_tensor& p = parts[t];
        if (request.arrays) {
            stored_arrays a = request.arrays(info, *under[t]->recipe);
            p.data = o.add(std::move(a.codes));
            p.tensor_scale = o.add(std::move(*a.tensor_scale));
            p.given_scale = under[t]->recipe->outer.value;
            if (a.input_scale) p.input_scale = o.add(std::move(*a.input_scale));
            p.input_scale_value = a.input_scale_value;
            p.changed = o.watch(info);
        } else if (!to.wide.empty() && request.packed) {
            p.data = o.add({info.name, stored_type(to.wide), info.shape});
            engine::put_axes(o.metadata, info);
        } else if (request.packed) {
            p.data = o.add(engine::codes_array(info.name, to.type_name, to.bits, info.shape));
            o.metadata[engine::tensor_key(info.name)] = engine::tensor_entry(info);
        } else {
            p.data = o.add({info.name, tensor::dtype::f32, info.shape});
            engine::put_axes(o.metadata, info);
        }
        o.result.elements += info.elements;
    }
    o.result.tensors = chosen.size();
    io::array_writer& writer = o.create(out);
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        parts_of_tensor& p = parts[t];
        p.codes = std::make_unique<code_stream>(writer, p.data, to.bits, chosen[t].info().elements);
        const auto put = [&](const std::optional<std::size_t>& array, const float& scale) {
            if (array) writer.write(*array, 0, std::as_bytes(std::span(&scale, 1)));
        };
        put(p.tensor_scale, p.given_scale);
        put(p.input_scale, p.input_scale_value);
    }

    const std::vector<float> scales = scales_of(chosen, parts, request, control);
    std::vector<worker> workers(static_cast<std::size_t>(base::thread_count(control.threads)));
    engine::sweep(
        chosen, engine::flat_passes(chosen, engine::panel_target_of(backend)), control,
        engine::panel_form::stored, [&](const engine::loaded_panel& p) {
            const std::size_t t = p.of->tensor;
            const base::random_key key{request.seed, base::tensor_id(chosen[t].info().name)};
            const auto count = static_cast<std::size_t>(p.where.elements());
            worker& w = workers[static_cast<std::size_t>(p.thread)];
            codec::stored_values from = p.values;
            if (!to.wide.empty() || !scales.empty()) {
                w.widened.resize(count);
                for (std::size_t i = 0; i < count; ++i) {
                    w.widened[i] = codec::stored_value(from.type, from.data, i);
                }
                from = {tensor::dtype::f32, std::as_bytes(std::span(w.widened)).data(), count};
            }
            if (!to.wide.empty()) {
                return put_wide(to.wide, request.packed, w.widened, p.where.col, parts[t].data,
                                writer);
            }
            if (!scales.empty()) {
                for (float& x : w.widened) x /= scales[t];
            }
            if (!w.by) w.by = backend.make_caster(control.notices.get());
            if (!request.packed) {
                w.values.resize(count);
                w.by->cast(to.cast, {from, count, p.where.col, key}, {nullptr, w.values.data()});
                if (!scales.empty()) {
                    for (float& x : w.values) x *= scales[t];
                }
                writer.write(parts[t].data, p.where.col * sizeof(float),
                             std::as_bytes(std::span(w.values)));
                return;
            }
            w.codes.resize(count);
            const std::size_t without_code =
                w.by->cast(to.cast, {from, count, p.where.col, key}, {w.codes.data(), nullptr});
            if (without_code < count) {
                const float x = codec::stored_value(p.values.type, p.values.data, without_code);
                fail_without_code(request, chosen[t].info(), x, p.where.col + without_code);
            }
            parts[t].codes->put(p.where.col, w.codes);
            if (parts[t].changed == nullptr) return;
            const format::element_format& f = *format::find_element_format(request.element);
            for (std::size_t i = 0; i < count; ++i) {
                const float x = codec::stored_value(p.values.type, p.values.data, i);
                const float y = scales[t] * format::decode(f, w.codes[i]);
                if (x != y && !(std::isnan(x) && std::isnan(y))) *parts[t].changed = true;
            }
        });
    return o.finish(control);
}

conversion cast(const std::vector<engine::tensor_ref>& tensors, const cast_request& request,
                const std::string& out, const engine::run_control& control) {
    std::vector<assigned_tensor> all;
    for (const engine::tensor_ref& t : tensors) all.push_back({t, {}, {}});
    return cast(all, request, to_file(out), control);
}

}  // namespace mx::convert

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/stored_value.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/studies/convert/output.hpp"

namespace mx::convert {
namespace {

// A target format of casts: an element format, or the codes of a scale format.
struct target {
    codec::element_cast cast;
    std::string_view type_name;
    int bits = 8;
};

target find_target(const cast_request& request) {
    const format::element_format* e = format::find_element_format(request.element);
    const format::scale_format* s = format::find_scale_format(request.element);
    if (e == nullptr && (s == nullptr || !s->has_codes())) {
        base::refuse(base::unknown("element format", request.element, castable_formats()));
    }
    target t{};
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

// The buffers and the caster of a thread.
struct worker {
    std::unique_ptr<codec::caster> by;
    std::vector<std::uint8_t> codes;
    std::vector<float> values;
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

}  // namespace

std::vector<std::string_view> castable_formats() {
    std::vector<std::string_view> names = base::names_of(format::element_formats);
    for (const format::scale_format& f : format::scale_formats) {
        if (f.has_codes()) names.push_back(f.name);
    }
    return names;
}

conversion cast(const std::vector<engine::tensor_ref>& tensors, const cast_request& request,
                const destination& out, const engine::run_control& control) {
    const target to = find_target(request);
    const codec::backend& backend = control.chosen_backend();
    if (control.notices && backend.takes_cast != nullptr && !backend.takes_cast(to.cast)) {
        control.notices->detail(fmt::format(
            "casts: by backend scalar, as backend {} has no kernels for them", backend.name));
    }
    output o;
    std::vector<engine::tensor_ref> chosen = tensors;
    std::erase_if(chosen, [&](const engine::tensor_ref& t) { return !o.converts(t); });
    engine::require_any(!chosen.empty(), o.result.kept.empty() ? o.result.skipped : o.result.kept);
    o.metadata[engine::schema_key_name] = "mx.cast/1";
    o.metadata["mx.element"] = request.element;
    if (request.by->id != codec::dialect_id::ocp) o.metadata["mx.dialect"] = request.by->name;
    std::vector<std::size_t> arrays;
    for (const engine::tensor_ref& t : chosen) {
        const io::tensor_info& info = t.info();
        if (request.packed) {
            arrays.push_back(
                o.add(engine::codes_array(info.name, to.type_name, to.bits, info.shape)));
            o.metadata[engine::tensor_key(info.name)] = engine::tensor_entry(info);
        } else {
            arrays.push_back(o.add({info.name, tensor::dtype::f32, info.shape}));
            engine::put_axes(o.metadata, info);
        }
        o.result.elements += info.elements;
    }
    o.result.tensors = chosen.size();
    io::array_writer& writer = o.create(out);
    std::vector<std::unique_ptr<code_stream>> streams;
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        streams.push_back(
            std::make_unique<code_stream>(writer, arrays[t], to.bits, chosen[t].info().elements));
    }

    std::vector<worker> workers(static_cast<std::size_t>(base::thread_count(control.threads)));
    engine::sweep(
        chosen, engine::flat_passes(chosen, engine::panel_target_of(backend)), control,
        engine::panel_form::stored, [&](const engine::loaded_panel& p) {
            const std::size_t t = p.of->tensor;
            const base::random_key key{request.seed, base::tensor_id(chosen[t].info().name)};
            const auto count = static_cast<std::size_t>(p.where.elements());
            worker& w = workers[static_cast<std::size_t>(p.thread)];
            if (!w.by) w.by = backend.make_caster(control.notices.get());
            if (!request.packed) {
                w.values.resize(count);
                w.by->cast(to.cast, {p.values, count, p.where.col, key},
                           {nullptr, w.values.data()});
                writer.write(arrays[t], p.where.col * sizeof(float),
                             std::as_bytes(std::span(w.values)));
                return;
            }
            w.codes.resize(count);
            const std::size_t without_code =
                w.by->cast(to.cast, {p.values, count, p.where.col, key}, {w.codes.data(), nullptr});
            if (without_code < count) {
                const float x = codec::stored_value(p.values.type, p.values.data, without_code);
                fail_without_code(request, chosen[t].info(), x, p.where.col + without_code);
            }
            streams[t]->put(p.where.col, w.codes);
        });
    return o.finish(control);
}

}  // namespace mx::convert

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
#include "libmx/engine/packed_file.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/studies/convert/code_stream.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "libmx/studies/convert/kept_tensors.hpp"

namespace mx::convert {
namespace {

// A format one can cast to: an element format, or a scale format's codes.
struct target {
    codec::element_cast cast;
    std::string_view type_name;
    int bits = 8;
};

target find_target(const cast_request& request) {
    const format::element_format* e = format::find_element_format(request.element);
    const format::scale_format* s = format::find_scale_format(request.element);
    if (e == nullptr && (s == nullptr || !s->has_codes())) {
        throw base::error(base::error_kind::usage,
                          base::unknown("element format", request.element, castable_formats()));
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

// What casts a thread's panels.
struct worker {
    std::unique_ptr<codec::caster> by;
    std::vector<std::uint8_t> codes;
    std::vector<float> values;
};

// Some dialects return values that have no code.
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
    std::vector<std::string_view> names;
    for (const format::element_format& f : format::element_formats) names.push_back(f.name);
    for (const format::scale_format& f : format::scale_formats) {
        if (f.has_codes()) names.push_back(f.name);
    }
    return names;
}

conversion cast(const std::vector<engine::tensor_ref>& tensors, const cast_request& request,
                const destination& out, const engine::run_control& control) {
    const target to = find_target(request);
    const codec::backend& backend = control.chosen_backend();
    conversion result;
    std::vector<io::planned_array> plan;
    kept_tensors kept;
    const std::vector<engine::tensor_ref> chosen = keep_others(tensors, kept, result);
    engine::require_any(!chosen.empty(), result.kept.empty() ? result.skipped : result.kept);
    kept.plan_first(plan);
    const std::size_t first_array = plan.size();
    std::vector<engine::pass> passes;
    io::metadata_map metadata{{engine::schema_key_name, "mx.cast/1"},
                              {"mx.element", request.element}};
    if (request.by->id != codec::dialect_id::ocp) {
        metadata["mx.dialect"] = request.by->name;
    }
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        const io::tensor_info& info = chosen[t].info();
        if (request.packed) {
            plan.push_back(engine::codes_array(info.name, to.type_name, to.bits, info.shape));
            metadata[engine::tensor_key(info.name)] = engine::tensor_entry(info);
        } else {
            plan.push_back({info.name, tensor::dtype::f32, info.shape});
        }
        const block::grid row{{1, 1, info.elements}, 1, block::segment_elements};
        const engine::grid_job job{t, row};
        if (info.elements != 0)
            passes.push_back(
                engine::plan_passes(t, std::span(&job, 1), engine::panel_target_of(backend))
                    .front());
        result.elements += info.elements;
    }
    kept.plan_last(plan);
    result.tensors = chosen.size();
    const std::unique_ptr<io::array_writer> writer = out(plan, metadata);
    for (const io::planned_array& a : plan) {
        result.bytes_written += *tensor::byte_count(a.type, *tensor::element_count(a.shape));
    }
    std::vector<std::unique_ptr<code_stream>> streams;
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        streams.push_back(std::make_unique<code_stream>(*writer, first_array + t, to.bits,
                                                        chosen[t].info().elements));
    }

    std::vector<worker> workers(static_cast<std::size_t>(base::thread_count(control.threads)));
    engine::sweep(
        chosen, passes, control, engine::panel_form::stored, [&](const engine::loaded_panel& p) {
            const std::size_t t = p.of->tensor;
            const base::random_key key{request.seed, base::tensor_id(chosen[t].info().name)};
            const auto count = static_cast<std::size_t>(p.where.elements());
            worker& w = workers[static_cast<std::size_t>(p.thread)];
            if (!w.by) w.by = backend.make_caster(control.notices.get());
            if (!request.packed) {
                w.values.resize(count);
                w.by->cast(to.cast, {p.values, count, p.where.col, key},
                           {nullptr, w.values.data()});
                writer->write(first_array + t, p.where.col * sizeof(float),
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
    kept.write(*writer, control);
    writer->commit();
    return result;
}

}  // namespace mx::convert

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <deque>
#include <memory>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/engine/prologue.hpp"
#include "libmx/engine/quantize_panel.hpp"
#include "libmx/engine/run_buffer.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/studies/convert/code_stream.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "libmx/studies/convert/kept_tensors.hpp"

namespace mx::convert {
namespace {

// Where the parts of a tensor stand in the writer's plan.
struct parts {
    engine::geometry layout;
    std::size_t data = 0;  // values, or codes when packed
    std::size_t scales = 0;
    std::size_t offsets = 0;
    std::size_t tensor_scale = 0;
    std::unique_ptr<code_stream> codes;
};

// Calls write(first element, offset in the panel, count) for every contiguous run of a panel.
template <typename Write>
void for_each_run(const engine::panel& p, const block::view& v, Write&& write) {
    const std::uint64_t start = (p.batch * v.rows + p.row) * v.cols + p.col;
    if (p.cols == v.cols) return write(start, std::uint64_t{0}, p.elements());
    for (std::uint64_t r = 0; r < p.rows; ++r) write(start + r * v.cols, r * p.cols, p.cols);
}

// Quantizes panels into the arrays of their tensor.
class panel_writer {
  public:
    panel_writer(const codec::recipe& recipe, bool packed, io::array_writer& writer,
                 const engine::run_control& control)
        : recipe_(recipe), packed_(packed), writer_(writer) {
        for (int i = 0; i < base::thread_count(control.threads); ++i) by_.emplace_back(control);
    }

    void run(const engine::loaded_panel& p, const codec::block_params& params,
             const std::string& name, const parts& to) {
        const block::grid& grid = to.layout.grid;
        const engine::preparation how{0, 1, recipe_.rotate};
        base::aligned_buffer<float> room;
        const codec::stored_values x =
            how.rotates() ? engine::prepare(how, grid, p.where, p.values, room) : p.values;
        const auto elements = static_cast<std::size_t>(p.where.elements());
        engine::quantized_panel made;
        (packed_ ? made.codes.resize(elements) : made.values.resize(elements));
        const bool has_offset = recipe_.offset == codec::offset_kind::fp16;
        engine::run_buffer<std::uint8_t> scale_codes(writer_, to.scales);
        engine::run_buffer<float> scales(writer_, to.scales);
        engine::run_buffer<std::uint16_t> offsets(writer_, to.offsets);
        const auto report = [&](std::uint64_t index, const codec::block_results& d,
                                std::size_t first, std::size_t count) {
            if (!packed_) return;
            if (has_offset) offsets.put(index, std::span(d.offset + first, count));
            if (codec::scales_have_codes(recipe_)) {
                scale_codes.put(index, std::span(d.scale_code + first, count));
                return;
            }
            for (std::size_t b = 0; b < count; ++b) {
                scales.put(index + b, codec::scale_of_block(params, d, first + b));
            }
        };
        engine::quantize_panel(by_[static_cast<std::size_t>(p.thread)], params, grid, p.where, x,
                               base::tensor_id(name), made, report);
        if (!packed_ && how.rotates())
            engine::rotate_back(recipe_.rotate, grid, p.where, made.values);
        scale_codes.flush();
        scales.flush();
        offsets.flush();
        for_each_run(p.where, grid.over,
                     [&](std::uint64_t first, std::uint64_t at, std::uint64_t count) {
                         if (packed_) {
                             to.codes->put(first, std::span(made.codes).subspan(at, count));
                         } else {
                             const auto run = std::span(made.values).subspan(at, count);
                             writer_.write(to.data, first * sizeof(float), std::as_bytes(run));
                         }
                     });
    }

  private:
    const codec::recipe& recipe_;
    bool packed_;
    io::array_writer& writer_;
    std::deque<engine::panel_quantizer> by_;  // by thread
};

void write_tensor_scale(io::array_writer& writer, const parts& to,
                        const codec::block_params& params) {
    writer.write(to.tensor_scale, 0, std::as_bytes(std::span(&params.tensor.stored, 1)));
}

// The passes of `count` tensors from `first` on, with these tensors counted from zero.
std::vector<engine::pass> passes_of(const std::vector<engine::pass>& passes, std::size_t first,
                                    std::size_t count) {
    std::vector<engine::pass> some;
    for (engine::pass p : passes) {
        if (p.tensor < first || p.tensor >= first + count) continue;
        p.tensor -= first;
        some.push_back(std::move(p));
    }
    return some;
}

// Progress of a part of the run as progress of the whole.
engine::run_control share_of(const engine::run_control& control, std::uint64_t done,
                             std::uint64_t total) {
    engine::run_control c = control;
    if (!control.on_progress) return c;
    c.on_progress = [&control, done, total](const engine::progress& p) {
        control.on_progress({done + p.done, total});
    };
    return c;
}

}  // namespace

conversion quantize_model(const std::vector<engine::tensor_ref>& tensors,
                          const codec::recipe& recipe, quantized_form form, const destination& out,
                          const engine::run_control& control) {
    const bool packed = form != quantized_form::values;
    const int code_bits = form == quantized_form::packed ? recipe.element->bits() : 8;
    if (packed && codec::bumps_positions(recipe)) {
        throw base::error(base::error_kind::usage,
                          fmt::format("recipe '{}': its scale differs inside a block, so there are "
                                      "no packed scales; write values (without --packed)",
                                      codec::to_string(recipe)));
    }
    conversion result;
    std::vector<engine::tensor_ref> chosen;
    std::vector<parts> layouts;
    std::vector<io::planned_array> plan;
    std::vector<engine::pass> passes;
    const std::uint64_t target = engine::panel_target_of(control.chosen_backend());
    const bool has_offset = recipe.offset == codec::offset_kind::fp16;
    const bool two_level = codec::needs_tensor_facts(recipe);
    io::metadata_map metadata{{engine::recipe_key_name, codec::to_string(recipe)}};
    if (packed) metadata[engine::schema_key_name] = engine::packed_schema;
    kept_tensors kept;
    const std::vector<engine::tensor_ref> numeric = keep_others(tensors, kept, result);
    kept.plan_first(plan);
    for (const engine::tensor_ref& t : numeric) {
        const io::tensor_info& info = t.info();
        std::string reason;
        std::optional<engine::geometry> layout = engine::lay_out(info.shape, recipe, reason);
        if (!layout) {
            result.skipped.push_back({info.file, info.name, codec::to_string(recipe), reason});
            continue;
        }
        parts p;
        p.layout = *layout;
        p.data = plan.size();
        if (packed) {
            const bool bytes = form == quantized_form::codes;
            plan.push_back(engine::codes_array(
                info.name, bytes ? "U8" : recipe.element->safetensors, code_bits, info.shape));
            p.scales = plan.size();
            plan.push_back(
                {info.name + ".scales", engine::scales_type(recipe), layout->grid_shape});
            p.offsets = plan.size();
            if (has_offset) {
                plan.push_back({info.name + ".offsets", tensor::dtype::f16, layout->grid_shape});
            }
            p.tensor_scale = plan.size();
            if (two_level) {
                plan.push_back({info.name + engine::tensor_scale_suffix, tensor::dtype::f32, {1}});
            }
            metadata[engine::tensor_key(info.name)] = engine::tensor_entry(info);
        } else {
            plan.push_back({info.name, tensor::dtype::f32, info.shape});
        }
        const engine::grid_job job{chosen.size(), layout->grid};
        if (info.elements != 0) {
            passes.push_back(
                engine::plan_passes(chosen.size(), std::span(&job, 1), target).front());
        }
        result.elements += info.elements;
        chosen.push_back(t);
        layouts.push_back(std::move(p));
    }
    engine::require_any(!chosen.empty(), result.kept.empty() ? result.skipped : result.kept);
    kept.plan_last(plan);
    result.tensors = chosen.size();
    for (const io::planned_array& a : plan) {
        result.bytes_written += *tensor::byte_count(a.type, *tensor::element_count(a.shape));
    }

    std::uint64_t done = 0;
    const std::unique_ptr<io::array_writer> writer = out(plan, metadata);
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        layouts[t].codes = std::make_unique<code_stream>(*writer, layouts[t].data, code_bits,
                                                         chosen[t].info().elements);
    }

    panel_writer work(recipe, packed, *writer, control);
    if (!two_level) {
        const codec::block_params params = codec::params_of(recipe);
        engine::sweep(chosen, passes, control, engine::panel_form::stored,
                      [&](const engine::loaded_panel& p) {
                          work.run(p, params, chosen[p.of->tensor].info().name,
                                   layouts[p.of->tensor]);
                      });
    }
    for (std::size_t first = 0; two_level && first < chosen.size();) {
        const std::size_t count = engine::prologue_share(chosen, first, chosen.size(), control);
        const auto at = chosen.begin() + static_cast<std::ptrdiff_t>(first);
        const std::vector<engine::tensor_ref> some(at, at + static_cast<std::ptrdiff_t>(count));
        std::vector<std::vector<engine::facts_wanted>> wanted;
        for (std::size_t t = 0; t < count; ++t) {
            wanted.push_back({{{0, 1, recipe.rotate}, layouts[first + t].layout.grid}});
        }
        const engine::prologue before = engine::run_prologue(some, wanted, control);
        std::vector<codec::block_params> params;
        for (std::size_t t = 0; t < count; ++t) {
            params.push_back(codec::params_of(recipe, before.facts[t].front()));
            if (packed) write_tensor_scale(*writer, layouts[first + t], params.back());
        }
        engine::sweep(
            some, passes_of(passes, first, count), share_of(control, done, result.elements),
            engine::panel_form::stored,
            [&](const engine::loaded_panel& p) {
                const std::size_t t = p.of->tensor;
                work.run(p, params[t], some[t].info().name, layouts[first + t]);
            },
            before.kept);
        for (const engine::tensor_ref& t : some) done += t.info().elements;
        first += count;
    }
    kept.write(*writer, control);
    writer->commit();
    return result;
}

}  // namespace mx::convert

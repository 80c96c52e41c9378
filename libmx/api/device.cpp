// SPDX-License-Identifier: Apache-2.0
#include "libmx/api/mx/mx.hpp"

#include <cmath>
#include <functional>

#include "libmx/analysis/statistics.hpp"
#include "libmx/analysis/totals.hpp"
#include "libmx/base/cuda/device.hpp"
#include "libmx/base/floating_point_environment.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "libmx/engine/cuda/arrays.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx {
namespace {

using codec::cuda::array_quantizer;

std::uint64_t elements_of(const device_array& x) {
    const auto count = tensor::element_count(x.extents);
    if (!count) base::refuse("an array of a device: its extents are too large");
    return *count;
}

codec::cuda::device_numbers numbers_of(const device_array& x) {
    if (!codec::is_stored(x.type)) {
        base::refuse("an array of a device is F32, BF16 or F16, not {}",
                     tensor::row_of(x.type).name);
    }
    return {static_cast<std::byte*>(x.data), x.type};
}

engine::cuda::array array_of(const device_array& x, std::string_view name) {
    return {numbers_of(x), x.extents, base::tensor_id(name)};
}

codec::cuda::packed_array packed(const device_blocks& b) {
    return {b.codes, b.scale_codes, b.offsets};
}

void require_same(const device_array& x, const device_array& to) {
    if (x.extents != to.extents) base::refuse("results have the extents of the array");
    numbers_of(to);
}

// Calls work(quantizer) on the stream, in the floating-point environment of this library.
void run(const device_stream& on, const std::function<void(array_quantizer&)>& work) {
    const base::floating_point_environment ours;
    codec::cuda::with_stream({on.device, on.stream}, work);
}

// An array on the host, and its values there.
struct host_copy {
    std::vector<std::byte> bytes;
    view values;

    explicit host_copy(const device_array& like)
        : bytes(static_cast<std::size_t>(tensor::stored_bytes(like.type, elements_of(like)))),
          values(bytes.data(), like.type, like.extents) {}
    host_copy(array_quantizer& by, const device_array& x, std::string_view name) : host_copy(x) {
        by.work().copy_back(bytes.data(), static_cast<const std::byte*>(x.data), bytes.size());
        by.work().wait();
        values = values.named(std::string(name));
    }
    void send(array_quantizer& by, const device_array& to) const {
        by.work().send(static_cast<std::byte*>(to.data), bytes.data(), bytes.size());
    }
};

}  // namespace

std::string missing_device() { return base::cuda::missing(); }

std::string copies(const recipe& r, const shape& extents, bool packed) {
    return engine::cuda::obstacle(r, extents, packed);
}

void fake_quantize(const device_array& x, const recipe& r, std::string_view name,
                   const device_array& to, const device_stream& on) {
    require_same(x, to);
    const bool there = copies(r, x.extents).empty();
    run(on, [&](array_quantizer& by) {
        if (there) return engine::cuda::fake_quantize(by, array_of(x, name), r, numbers_of(to));
        const host_copy here(by, x, name);
        host_copy result(to);
        fake_quantize(here.values, r, to.type, result.bytes.data());
        result.send(by, to);
    });
}

std::optional<float> quantize(const device_array& x, const recipe& r, std::string_view name,
                              const device_blocks& to, const device_stream& on) {
    if (const std::string why = copies(r, x.extents, true); !why.empty()) {
        base::refuse("recipe '{}': the GPU has no {}; quantize a copy on the host", to_string(r),
                     why);
    }
    codec::tensor_scale scale;
    run(on, [&](array_quantizer& by) {
        scale = engine::cuda::quantize(by, array_of(x, name), r, packed(to));
    });
    if (!codec::has_tensor_scale(r)) return std::nullopt;
    return scale.stored;
}

void dequantize(const device_blocks& from, std::optional<float> tensor_scale, const recipe& r,
                const device_array& to, const device_stream& on) {
    if (const std::string why = copies(r, to.extents, true); !why.empty()) {
        base::refuse("recipe '{}': the GPU has no {}; dequantize a copy on the host", to_string(r),
                     why);
    }
    if (tensor_scale.has_value() != codec::has_tensor_scale(r)) {
        base::refuse("recipe '{}': blocks have {}", to_string(r),
                     tensor_scale ? "no tensor scale" : "a tensor scale");
    }
    run(on, [&](array_quantizer& by) {
        engine::cuda::dequantize(by, r, to.extents, packed(from), tensor_scale.value_or(1.0f),
                                 numbers_of(to));
    });
}

void cast(const device_array& x, std::string_view element, const cast_options& options,
          std::string_view name, const device_array& to, const device_stream& on) {
    require_same(x, to);
    if (to.type != dtype::f32) base::refuse("casts give F32");
    convert::cast_request request;
    request.element = element;
    request.round = options.round;
    request.saturate = options.saturate;
    const auto how = convert::element_cast_of(request);
    const base::random_key key{options.seed, base::tensor_id(name)};
    run(on, [&](array_quantizer& by) {
        if (how) {
            return by.cast(*how, key, numbers_of(x), elements_of(x), static_cast<float*>(to.data));
        }
        const host_copy here(by, x, name);
        const std::vector<float> values = cast(here.values, element, options);
        by.work().send(static_cast<std::byte*>(to.data), values.data(),
                       values.size() * sizeof(float));
    });
}

void update(std::span<analysis::statistics* const> all, const device_array& x,
            const device_stream& on) {
    if (all.empty()) return;
    const std::string name = all.front()->name();
    const view described = view(x.data, x.type, x.extents).named(name);
    const io::tensor_info& info = described.info();
    // Of norms, how far their values lie apart is found on the host.
    bool there = engine::role_finder().role_of(info) != "norm";
    for (const analysis::statistics* s : all) {
        there = there && copies(s->recipe(), x.extents).empty();
    }
    run(on, [&](array_quantizer& by) {
        if (!there) {
            const host_copy here(by, x, name);
            return analysis::statistics::update(all, here.values.ref(), {});
        }
        std::vector<analysis::statistics::array_figures> figures;
        for (const analysis::statistics* s : all) {
            const recipe& r = s->recipe();
            const engine::cuda::measured m = engine::cuda::measure(by, array_of(x, name), r);
            analysis::statistics::array_figures f{analysis::empty_totals(r), 1};
            f.totals.add(m.stats);
            f.tensor_scale = static_cast<double>(m.tensor.decode);
            const bool large = info.elements > engine::run_control().kept_elements;
            if (codec::needs_tensor_facts(r) && large) f.passes = 2;  // as on the host
            figures.push_back(f);
        }
        analysis::statistics::add(all, info, std::nan(""), figures);
    });
}

std::vector<row> measure(const device_array& x, std::span<const recipe> recipes,
                         std::string_view name, const device_stream& on) {
    std::vector<analysis::statistics> all;
    std::vector<analysis::statistics*> each;
    for (const recipe& r : recipes) all.emplace_back(r, std::string(name));
    for (analysis::statistics& s : all) each.push_back(&s);
    update(each, x, on);
    std::vector<row> rows;
    for (const analysis::statistics& s : all) rows.push_back(s.figures());
    return rows;
}

}  // namespace mx

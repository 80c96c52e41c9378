// SPDX-License-Identifier: Apache-2.0
// The verb for Python: views of arrays and of files' tensors go in, NumPy arrays and dictionaries
// come out. What Python users see is in __init__.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "libmx/analysis/statistics.hpp"
#include "libmx/api/mx/mx.hpp"
#include "libmx/base/floating_point_environment.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/start_thread.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/float_scale.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/documents/checkpoint.hpp"
#include "libmx/documents/diff.hpp"
#include "libmx/documents/gate.hpp"
#include "libmx/documents/lint.hpp"
#include "libmx/documents/parts.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/documents/report.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/views.hpp"
#include "libmx/eval/run.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/memory_tensor.hpp"
#include "libmx/lint/lint.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/fragment.hpp"
#include "libmx/report/writers.hpp"

namespace nb = nanobind;
namespace doc = mx::documents;

namespace {

using array = nb::ndarray<nb::ro, nb::device::cpu>;

// Results depend on no mode of the caller's arithmetic.
const nb::call_guard<mx::base::floating_point_environment> plain;

// The same as a context, for conversions by NumPy and PyTorch.
class plain_arithmetic {
  public:
    void enter() { ours_.emplace(); }
    void exit(const nb::object&, const nb::object&, const nb::object&) { ours_.reset(); }

  private:
    std::optional<mx::base::floating_point_environment> ours_;
};

// A NumPy array that owns `values`.
template <typename T>
nb::object to_numpy(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner),
                    nb::rv_policy::reference);
}

// The same of room for values, all of which have been written.
template <typename T>
nb::object to_numpy(std::unique_ptr<T[]> values, const std::vector<std::size_t>& shape) {
    T* const kept = values.release();
    const nb::capsule owner(kept, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept, shape.size(), shape.data(), owner),
                    nb::rv_policy::reference);
}

nb::object bytes_to_numpy(std::vector<std::byte> bytes) {
    auto* kept = new std::vector<std::byte>(std::move(bytes));
    const nb::capsule owner(
        kept, [](void* p) noexcept { delete static_cast<std::vector<std::byte>*>(p); });
    const std::size_t count = kept->size();
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(kept->data(), 1, &count, owner),
                    nb::rv_policy::reference);
}

// Names in files may be any bytes.
nb::str to_text(std::string_view s) {
    return nb::steal<nb::str>(
        PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "backslashreplace"));
}

std::vector<std::size_t> extents_of(const mx::shape& s) { return {s.begin(), s.end()}; }

// Below this a call is over before anybody could interrupt it, or another thread could help.
constexpr std::uint64_t short_work = 1 << 14;  // elements

// body(how) without the GIL. Work that may take long has a thread of its own, so that this one can
// look for signals: Ctrl-C cancels and raises KeyboardInterrupt.
template <typename Body>
auto run(std::uint64_t elements, int threads, Body body) {
    std::atomic<bool> cancel{false};
    mx::run_options how;
    how.threads = elements <= short_work ? 1 : threads;
    how.cancel = &cancel;
    if (elements <= short_work) {
        const nb::gil_scoped_release release;
        return body(how);
    }
    using result = decltype(body(how));
    std::optional<result> done;
    std::exception_ptr failure;
    bool interrupted = false;
    {
        const nb::gil_scoped_release release;
        std::mutex guard;
        std::condition_variable ended;
        bool over = false;
        std::thread worker = mx::base::start_thread([&] {
            try {
                done = body(how);
            } catch (...) {
                failure = std::current_exception();
            }
            const std::lock_guard lock(guard);
            over = true;
            ended.notify_one();
        });
        std::unique_lock lock(guard);
        while (!ended.wait_for(lock, std::chrono::milliseconds(50), [&] { return over; })) {
            lock.unlock();
            {
                const nb::gil_scoped_acquire acquire;
                interrupted = interrupted || PyErr_CheckSignals() != 0;
            }
            lock.lock();
            if (interrupted) cancel.store(true);
        }
        lock.unlock();
        worker.join();
    }
    if (interrupted) throw nb::python_error();
    if (failure) std::rethrow_exception(failure);
    return std::move(*done);
}

nb::object to_python(const mx::report::value& v) {
    if (const auto* b = std::get_if<bool>(&v)) return nb::bool_(*b);
    if (const auto* i = std::get_if<std::int64_t>(&v)) return nb::int_(*i);
    if (const auto* d = std::get_if<double>(&v)) return nb::float_(*d);
    if (const auto* s = std::get_if<std::string>(&v)) return to_text(*s);
    if (const auto* l = std::get_if<mx::report::list>(&v)) {
        nb::list items;
        for (const mx::report::value& item : *l) items.append(to_python(item));
        return items;
    }
    if (const auto* r = std::get_if<mx::report::record>(&v)) {
        nb::dict members;
        for (const auto& [name, member] : *r) {
            members[to_text(name)] = to_python(member);
        }
        return members;
    }
    return nb::none();
}

// Of `owner`, which the view keeps; strides are in elements.
mx::view view_at(std::uintptr_t address, mx::shape extents, std::vector<std::int64_t> strides,
                 std::string_view dtype, const std::string& name, const nb::object&) {
    mx::view v(reinterpret_cast<const void*>(address), mx::io::parse_dtype("dtype", dtype),
               std::move(extents), std::move(strides));
    return name.empty() ? v : v.named(name);
}

mx::view view_of(const array& x, std::string_view dtype, std::string name) {
    if (x.data() == nullptr && x.size() != 0) {
        mx::base::refuse("the array has no memory of its own: give one whose values are there");
    }
    mx::shape extents;
    std::vector<std::int64_t> strides;
    for (std::size_t i = 0; i < x.ndim(); ++i) {
        extents.push_back(x.shape(i));
        strides.push_back(x.stride(i));
    }
    const mx::view v(x.data(), mx::io::parse_dtype("dtype", dtype), std::move(extents),
                     std::move(strides));
    return name.empty() ? v : v.named(std::move(name));
}

nb::object values_of(const mx::view& v, std::uint64_t begin, std::optional<std::uint64_t> end) {
    std::vector<std::size_t> extents = extents_of(v.extents());
    if (extents.empty()) {
        return to_numpy(run(1, 1, [&](const mx::run_options&) { return v.values(); }), extents);
    }
    const std::uint64_t rows = extents.front(), last = std::min(end.value_or(rows), rows);
    const std::uint64_t first = std::min(begin, last);
    const std::uint64_t row = rows == 0 ? 0 : v.elements() / rows;
    extents.front() = static_cast<std::size_t>(last - first);
    return to_numpy(
        run((last - first) * row, 1,
            [&](const mx::run_options&) { return v.values(first * row, (last - first) * row); }),
        extents);
}

// Packed codes, scales, offsets, and the tensor scale or those of rows, columns or tiles.
nb::tuple quantize(const mx::view& x, const mx::recipe& r, int threads) {
    mx::blocks q = run(x.elements(), threads,
                       [&](const mx::run_options& how) { return mx::quantize(x, r, how); });
    const std::vector<std::size_t> grid = extents_of(q.grid());
    const bool coded = mx::codec::scales_have_codes(r);
    nb::object scales =
        coded ? to_numpy(std::vector<std::uint8_t>(q.scale_codes().begin(), q.scale_codes().end()),
                         grid)
              : to_numpy(q.scales(), grid);
    nb::object offsets =
        q.offsets().empty()
            ? nb::object(nb::none())
            : to_numpy(std::vector<std::uint16_t>(q.offsets().begin(), q.offsets().end()), grid);
    nb::object tensor_scale = q.tensor_scale()
                                  ? nb::object(nb::float_(static_cast<double>(*q.tensor_scale())))
                                  : nb::object(nb::none());
    if (mx::codec::has_outer_areas(r)) {
        tensor_scale = to_numpy(std::vector(q.outer_scales()), extents_of(q.outer_grid()));
    }
    return nb::make_tuple(bytes_to_numpy(q.take_packed_codes()), scales, offsets, tensor_scale);
}

template <typename T>
using flat = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::vector<T> copied(const flat<T>& x) {
    return {x.data(), x.data() + x.size()};
}

std::span<const std::byte> bytes_of(const flat<std::uint8_t>& x) {
    return std::as_bytes(std::span(x.data(), x.size()));
}

nb::object dequantize(const mx::recipe& r, const mx::shape& extents,
                      const flat<std::uint8_t>& packed, const flat<std::uint8_t>& scale_codes,
                      const flat<float>& scales, const flat<std::uint16_t>& offsets,
                      std::optional<double> tensor_scale, const flat<float>& outer_scales,
                      int threads) {
    const std::span<const std::byte> bytes = bytes_of(packed);
    std::optional<float> scale;
    if (tensor_scale) scale = static_cast<float>(*tensor_scale);
    const mx::blocks q =
        mx::blocks::from_packed(r, extents, {bytes.begin(), bytes.end()}, copied(scale_codes),
                                copied(scales), copied(offsets), scale, copied(outer_scales));
    return to_numpy(run(packed.size(), threads,
                        [&](const mx::run_options& how) { return mx::dequantize(q, how); }),
                    extents_of(extents));
}

nb::object pack(int bits, const flat<std::uint8_t>& codes) {
    std::vector<std::byte> packed(
        static_cast<std::size_t>(mx::block::packed_bytes(bits, codes.size())));
    mx::block::pack(bits, std::span(codes.data(), codes.size()), packed);
    return bytes_to_numpy(std::move(packed));
}

nb::object unpack(int bits, const flat<std::uint8_t>& packed, std::size_t count) {
    if (packed.size() != mx::block::packed_bytes(bits, count)) {
        mx::base::refuse("{} codes take {} bytes, not {}", count,
                         mx::block::packed_bytes(bits, count), packed.size());
    }
    std::vector<std::uint8_t> codes(count);
    mx::block::unpack(bits, bytes_of(packed), codes);
    return to_numpy(std::move(codes), {count});
}

// The numbers of a recipe that operations of other libraries need, as block_params.hpp explains them;
// None for recipes with steps that _operations.py does not have.
std::optional<nb::dict> steps_of(const mx::recipe& r) {
    namespace codec = mx::codec;
    const codec::dialect& by = *r.by;
    constexpr std::array known{codec::dialect_id::ocp,          codec::dialect_id::torchao,
                               codec::dialect_id::torchao_0_18, codec::dialect_id::torchao_0_15,
                               codec::dialect_id::te,           codec::dialect_id::nvidia,
                               codec::dialect_id::microxcaling, codec::dialect_id::compressed_tensors};
    const bool number = r.scale_format->is_number();
    const bool random = r.round == mx::format::rounding::stochastic;
    const bool as_microxcaling = by.arithmetic.value == codec::element_kind::microxcaling;
    const bool rounds = as_microxcaling || random || r.round == mx::format::rounding::rtne;
    const bool has_all_steps =
        codec::has_blocks(r) && std::count(known.begin(), known.end(), by.id) != 0 &&
        r.element->floating() && r.element->mantissa_bits > 0 && r.element->has_sign &&
        (r.scale_format->power_of_two() || (number && r.scale_format->name == "ue4m3")) &&
        rounds && !r.flush_subnormals && r.offset == codec::offset_kind::none &&
        r.rotate == mx::transform::rotation{} && r.select == codec::four_over_six::none &&
        r.outer.what == codec::outer_choice::kind::by_rule &&
        r.axis.what != codec::axis_choice::kind::flat && !mx::scale::is_search(r.rule->id);
    if (!has_all_steps) return {};
    const codec::block_params p = codec::params_of(r);
    // Stochastic rounding of an exact quotient: its bits times the 28 of a scale, in 62.
    const bool exact_quotient = number && by.two_level.value == codec::two_level_kind::exact;
    const bool too_long = r.element->mantissa_bits + p.mode.random_bits > 33;
    if (p.step.drawn_bits != 0 || (random && exact_quotient && too_long)) return {};
    static constexpr const char* exponents[] = {"floor", "ceil", "nearest", "rounded_up", "exact"};
    const codec::dialect_step& rule = p.dialect_rule;
    const bool exact = by.id == codec::dialect_id::ocp;
    nb::dict d;
    d["dialect"] = std::string(codec::family_of(by));
    d["exponent"] = exact ? "exact" : exponents[static_cast<std::size_t>(rule.exponent)];
    d["exact_log2"] = rule.log2 == codec::log2_kind::exact;
    d["emax"] = exact || rule.exponent == codec::exponent_kind::exact ? p.step.emax : rule.emax;
    d["from"] = p.step.from;
    d["nan_from"] = p.step.nan_from;
    d["added"] = rule.added;
    d["factor"] = rule.factor;
    d["divisor"] = rule.divisor;
    d["saturates"] = rule.saturates;
    d["inf"] = by.inf.value == codec::inf_amax::nan        ? "nan"
               : by.inf.value == codec::inf_amax::saturate ? "saturate"
               : by.inf.value == codec::inf_amax::power_128 ? "power_128"
                                                           : "finite_max";
    d["skips_nan"] = number ? !codec::nan_decides(p) : by.nan.value == codec::nan_amax::ignored;
    d["exponent_at_code_0"] = std::ilogb(rule.at_code_0);
    d["mantissa_bits"] = r.element->mantissa_bits;
    d["emin"] = r.element->emin();
    d["largest"] = p.largest;
    d["has_nan"] = r.element->nan_code() >= 0;
    d["of_nan"] = p.value[p.poisoned_code];
    d["random_bits"] = random ? p.mode.random_bits : 0;
    d["as_microxcaling"] = as_microxcaling;
    d["round"] = std::string(mx::format::row_of(r.round).name);
    d["seed"] = r.seed;
    d["rows"] = r.block.rows;
    d["cols"] = r.block.cols;
    d["axis"] = r.axis.what == codec::axis_choice::kind::index ? r.axis.value : -1;
    d["number"] = number;
    d["divides"] = codec::divides_elements(by.two_level.value);
    d["has_tensor_scale"] = p.has_tensor_scale;
    d["range"] = p.outer.range;
    return d;
}

// What a recipe's packed arrays hold, for the types of other libraries. axis is None if blocks run over
// all of a tensor; reciprocal: the tensor scale is stored as its reciprocal.
nb::dict layout_of(const mx::recipe& r) {
    namespace codec = mx::codec;
    nb::dict d;
    d["element"] = std::string(r.element->name);
    d["scale_format"] = std::string(r.scale_format->name);
    d["rows"] = r.block.rows;
    d["cols"] = r.block.cols;
    d["axis"] = nb::none();
    if (r.axis.what == codec::axis_choice::kind::index) d["axis"] = r.axis.value;
    if (r.axis.what == codec::axis_choice::kind::last) d["axis"] = -1;
    d["rotates"] = !(r.rotate == mx::transform::rotation{});
    d["reciprocal"] = codec::stored_tensor_scale(r.by->two_level.value, 2).decode != 2;
    return d;
}

// The values as F32, or the bits of BF16 or F16.
nb::object fake_quantize(const mx::view& x, const mx::recipe& r, std::string_view dtype,
                         int threads) {
    const mx::dtype type = mx::io::parse_dtype("dtype", dtype);
    const auto made = [&](auto values) {
        run(x.elements(), threads, [&](const mx::run_options& how) {
            mx::fake_quantize(x, r, type, values.get(), how);
            return true;
        });
        return to_numpy(std::move(values), extents_of(x.extents()));
    };
    // Not set to zero first: that would be one thread's work.
    const auto count = static_cast<std::size_t>(x.elements());
    return type == mx::dtype::f32 ? made(std::make_unique_for_overwrite<float[]>(count))
                                  : made(std::make_unique_for_overwrite<std::uint16_t[]>(count));
}

// Into an array of the same layout: float32, or the bits of another type.
void fake_quantize_into(const mx::view& x, const mx::recipe& r,
                        const nb::ndarray<nb::c_contig, nb::device::cpu>& out,
                        std::string_view dtype, int threads) {
    const mx::dtype type = mx::io::parse_dtype("dtype", dtype);
    const auto width = static_cast<std::size_t>(mx::tensor::row_of(type).bits / 8);
    if (out.size() != x.elements() || out.itemsize() != width) {
        mx::base::refuse("out has {} values of {} bytes; {} of {} are expected", out.size(),
                         out.itemsize(), x.elements(), width);
    }
    run(x.elements(), threads, [&](const mx::run_options& how) {
        mx::fake_quantize(x, r, type, out.data(), how);
        return true;
    });
}

mx::cast_options cast_options_of(std::string_view round, bool saturate, std::uint64_t seed) {
    const mx::format::rounding_row* const row = mx::format::find_rounding(round);
    if (row == nullptr) {
        std::vector<std::string_view> names;
        for (const auto& known : mx::format::roundings) names.push_back(known.name);
        throw mx::error(mx::error_kind::usage, mx::base::unknown("rounding", round, names));
    }
    return {row->id, saturate, seed};
}

nb::object cast(const mx::view& x, std::string_view element, std::string_view round, bool saturate,
                std::uint64_t seed, int threads) {
    const mx::cast_options options = cast_options_of(round, saturate, seed);
    return to_numpy(
        run(x.elements(), threads,
            [&](const mx::run_options& how) { return mx::cast(x, element, options, how); }),
        extents_of(x.extents()));
}

nb::object multiply(const mx::view& a, const mx::recipe& ra, const mx::view& b,
                    const mx::recipe& rb, std::string_view accumulate, int threads) {
    std::vector<std::size_t> extents;
    if (!a.extents().empty() && !b.extents().empty()) {
        extents = {a.extents().front(), b.extents().front()};
    }
    const std::uint64_t products = extents.empty() ? 0 : a.elements() * b.extents().front();
    return to_numpy(run(std::max(products, b.elements()), threads,
                        [&](const mx::run_options& how) {
                            return mx::multiply(a, ra, b, rb, accumulate, how);
                        }),
                    extents);
}

// An array in the memory of a device, and the stream for work on it.
struct device_array {
    mx::device_array array;
    mx::device_stream at;
    std::string name;

    static device_array of(std::uintptr_t address, mx::shape extents, std::string_view dtype,
                           int device, std::uintptr_t stream, std::string name) {
        return {{reinterpret_cast<void*>(address), mx::io::parse_dtype("dtype", dtype),
                 std::move(extents)},
                {device, reinterpret_cast<void*>(stream)},
                std::move(name)};
    }
};

// Of an array that gives its memory by DLPack, in C order: address, shape, type and device.
nb::tuple dlpack_place(const nb::ndarray<nb::ro, nb::c_contig, nb::device::cuda>& x) {
    const nb::dlpack::dtype t = x.dtype();
    const auto code = static_cast<nb::dlpack::dtype_code>(t.code);
    const bool real = code == nb::dlpack::dtype_code::Float, one = t.lanes == 1;
    const bool narrow = code == nb::dlpack::dtype_code::Bfloat;
    const char* type = one && real && t.bits == 32     ? "F32"
                       : one && real && t.bits == 16   ? "F16"
                       : one && narrow && t.bits == 16 ? "BF16"
                       : one && t.bits == 8            ? "U8"
                       : one && t.bits == 16           ? "U16"
                                                       : "other";
    nb::list shape;
    for (std::size_t i = 0; i < x.ndim(); ++i) shape.append(x.shape(i));
    return nb::make_tuple(reinterpret_cast<std::uintptr_t>(x.data()), shape, type, x.device_id());
}

template <typename T>
T* at_address(std::uintptr_t address) {
    return reinterpret_cast<T*>(address);
}

mx::device_blocks blocks_at(std::uintptr_t codes, std::uintptr_t scales, std::uintptr_t offsets) {
    return {at_address<std::uint8_t>(codes), at_address<std::uint8_t>(scales),
            at_address<std::uint16_t>(offsets)};
}

std::optional<double> quantize_there(const device_array& x, const mx::recipe& r,
                                     std::uintptr_t codes, std::uintptr_t scales,
                                     std::uintptr_t offsets) {
    const auto scale =
        mx::quantize(x.array, r, x.name, blocks_at(codes, scales, offsets), x.at);
    if (!scale) return {};
    return static_cast<double>(*scale);
}

void dequantize_there(std::uintptr_t codes, std::uintptr_t scales, std::uintptr_t offsets,
                      std::optional<double> tensor_scale, const mx::recipe& r,
                      const device_array& to) {
    std::optional<float> scale;
    if (tensor_scale) scale = static_cast<float>(*tensor_scale);
    mx::dequantize(blocks_at(codes, scales, offsets), scale, r, to.array, to.at);
}

// The bytes of packed codes, the number of blocks along each axis, and whether there are offsets.
nb::tuple packed_layout(const mx::recipe& r, const mx::shape& extents) {
    std::string reason;
    const auto layout = mx::engine::lay_out(extents, r, reason);
    if (!layout) mx::base::refuse(mx::to_string(r) + ": " + reason);
    const std::uint64_t count = layout->grid.over.elements();
    return nb::make_tuple(mx::block::packed_bytes(r.element->bits(), count),
                          nb::tuple(nb::cast(layout->grid_shape)),
                          r.offset == mx::codec::offset_kind::fp16);
}

mx::engine::run_control control_of(const mx::run_options& how) {
    mx::engine::run_control control;
    control.threads = how.threads;
    control.cancel = how.cancel;
    return control;
}

// Options by name; those without keep their defaults.
template <typename T>
void take(const nb::dict& from, const char* name, T& to) {
    if (from.contains(name)) to = nb::cast<T>(from[name]);
}

void take_inputs(const nb::dict& o, doc::input_options& in, doc::role_options& roles) {
    take(o, "tensors", in.globs);
    take(o, "as", in.open.as);
    take(o, "shape", in.open.shape);
    take(o, "dtype", in.open.dtype);
    take(o, "offset", in.open.offset);
    take(o, "raw", in.views.raw);
    take(o, "integers", in.views.integers);
    take(o, "swizzled", in.views.swizzled);
    take(o, "splits", in.views.splits);
    take(o, "transposed", in.views.transposed);
    take(o, "experts", in.views.experts);
    take(o, "heads", in.views.heads);
    take(o, "roles", roles.roles);
    take(o, "role_patterns", roles.patterns);
    take(o, "norm_bias", roles.norm_bias);
}

void take_judging(const nb::dict& o, doc::judging_options& by) {
    take(o, "policy", by.policy);
    take(o, "target", by.target);
    take(o, "eval", by.eval);
}

// SHA-256 by Python's hashlib, on whatever thread.
doc::digest_function digest_by(const nb::dict& o) {
    if (!o.contains("digest")) return {};
    nb::object by = nb::borrow(o["digest"]);
    return [held = by.ptr()](const std::string& path) {
        const nb::gil_scoped_acquire acquire;
        return nb::cast<std::string>(nb::handle(held)(path));
    };
}

void take_measuring(const nb::dict& o, doc::measuring_options& to) {
    take_inputs(o, to.in, to.roles);
    take_judging(o, to.judging);
    take(o, "recipes", to.recipes);
    take(o, "groups", to.groups);
    take(o, "page", to.page);
    take(o, "shard", to.parts.shard);
    take(o, "parts", to.parts.merged);
    take(o, "command", to.parts.given.command);
    take(o, "files", to.parts.given.files);
    if (o.contains("given")) {
        using option = std::pair<std::string, std::optional<std::string>>;
        for (auto& [name, value] : nb::cast<std::vector<option>>(o["given"])) {
            to.parts.given.options.push_back({name, value});
        }
    }
    to.parts.page_sums = to.page && !to.parts.shard.empty();
    if (to.parts.page_sums) to.page = false;
    to.digest = digest_by(o);
}

// Refuses parts that are not all those of this call.
void check_merged(const doc::part_options& o) {
    if (o.merged.empty()) return;
    std::vector<doc::part_head> heads;
    for (const std::string& path : o.merged) heads.push_back(doc::read_part_head(path));
    const std::vector<std::uint64_t> missing = doc::missing_parts(heads);
    if (!missing.empty()) {
        throw mx::base::error(mx::base::error_kind::input,
                              fmt::format("{} of {} parts are missing: {}", missing.size(),
                                          heads.front().number.count, fmt::join(missing, ", ")));
    }
    if (heads.front().given != o.given) {
        throw mx::base::error(
            mx::base::error_kind::input,
            fmt::format("is a part of another call, '{}'; this one is '{}'",
                        heads.front().given.text(), o.given.text()),
            {heads.front().path, {}, {}});
    }
}

// A checkpoint: an opened one (Files), paths that a run opens, or arrays (views).
struct files {
    std::shared_ptr<const mx::engine::model> model;
    doc::input_options in;  ///< how it was opened
};
class tensor_source {
  public:
    explicit tensor_source(nb::handle from) {
        if (nb::isinstance<files>(from)) {
            const auto& opened = nb::cast<const files&>(from);
            model_ = opened.model;
            opened_ = &opened.in;
        } else if (nb::isinstance<nb::list>(from) && nb::len(from) > 0 &&
                   nb::isinstance<nb::str>(from[0])) {
            paths_ = nb::cast<std::vector<std::string>>(from);
        } else {
            for (const mx::view& v : nb::cast<std::vector<mx::view>>(from)) {
                arrays_.emplace_back(v.file(), v.ref().index);
            }
        }
    }
    /// Sets in `in` how an opened checkpoint was opened: so it is seen.
    void set_views(doc::input_options& in) const {
        if (opened_ == nullptr) return;
        in.open = opened_->open;
        in.views = opened_->views;
    }
    /// The tensors as `in` says that they are seen; an opened checkpoint is seen as it was opened.
    std::shared_ptr<const mx::io::reader> open(const doc::input_options& in) {
        if (!paths_.empty()) {
            model_ = std::make_shared<const mx::engine::model>(paths_, in.open, in.views);
        }
        if (model_) return {model_, &model_->reader()};
        // Arrays go the way of a file's tensors: decoded, split, left out where they are indices.
        together_.clear();
        together_.push_back(mx::io::together(arrays_));
        view_ = mx::engine::make_view(together_, in.views);
        return {std::shared_ptr<const void>(), view_ ? view_.get() : together_.front().get()};
    }
    doc::opened_tensors tensors(const doc::input_options& in) {
        const std::shared_ptr<const mx::io::reader> all = open(in);
        if (model_) return {model_->select(in.globs), sizes()};
        const mx::io::reader* const one = all.get();
        return {mx::engine::select(std::span(&one, 1), in.globs), {}};
    }
    doc::file_sizes sizes() const { return model_ ? model_->files() : doc::file_sizes(); }

  private:
    std::vector<std::string> paths_;
    std::shared_ptr<const mx::engine::model> model_;
    const doc::input_options* opened_ = nullptr;  // of `from`, which outlives the call
    std::vector<std::pair<std::shared_ptr<const mx::io::reader>, std::size_t>> arrays_;
    std::vector<std::unique_ptr<mx::io::reader>> together_;
    std::unique_ptr<mx::io::reader> view_;
};

// What a call makes of a document: the text that --json writes, and the terminal's table.
std::string written(void (*write)(const mx::report::document&, const mx::report::layout&,
                                  const mx::report::sink&),
                    const mx::report::document& d, const std::string& title = {}) {
    std::string text;
    write(d, {100, title}, [&](std::string_view piece) { text += piece; });
    return text;
}
struct texts {
    std::string json, table;
    explicit texts(const mx::report::document& d)
        : json(written(mx::report::write_json, d)), table(written(mx::report::write_table, d)) {}
};
nb::tuple to_python(const texts& t) {
    return nb::make_tuple(nb::bytes(t.json.data(), t.json.size()), to_text(t.table));
}

constexpr std::uint64_t long_work = short_work + 1;

template <typename Options>
nb::tuple study(const nb::object& from, const nb::dict& named, int threads, Options o,
                doc::measured (*find)(const Options&, const doc::run_environment&)) {
    take_measuring(named, o);
    tensor_source source(from);
    source.set_views(o.in);
    return to_python(run(long_work, threads, [&](const mx::run_options& how) {
        check_merged(o.parts);
        const auto open = [&] { return source.tensors(o.in); };
        return texts(find(o, {open, [&](auto) { return control_of(how); }}).document);
    }));
}

nb::tuple analyze(const nb::object& from, const nb::dict& named, int threads) {
    doc::analyze_options o;
    take(named, "histograms", o.histograms);
    take(named, "decompose", o.decompose);
    take(named, "regret", o.regret);
    return study(from, named, threads, std::move(o), doc::analyze);
}

nb::tuple evaluate(const std::string& model, const nb::dict& named, int threads) {
    mx::eval::run_request q;
    q.model = model;
    q.text = "tokens";
    std::string precision = "float32", each;
    std::size_t context = 0, stride = 0;
    take(named, "tokens", q.tokens);
    take(named, "sample", q.sample);
    take(named, "seed", q.seed);
    take(named, "heads", q.heads);
    take(named, "context", context);
    take(named, "stride", stride);
    take(named, "precision", precision);
    take(named, "recipes", q.recipes);
    take(named, "weights", q.weights);
    take(named, "activations", q.activations);
    take(named, "kv", q.kv);
    take(named, "attention", q.attention);
    take(named, "at", q.at);
    take(named, "accumulate", q.accumulate);
    take(named, "each", each);
    take(named, "pairs", q.pairs);
    take(named, "layers", q.layer_errors);
    take(named, "per_token", q.per_token);
    if (context != 0) q.context = context;
    if (stride != 0) q.stride = stride;
    return to_python(run(long_work, threads, [&](const mx::run_options& how) {
        if (precision != "float32" && precision != "float64") {
            mx::base::refuse("precision '{}': float32 or float64", precision);
        }
        if (precision == "float64") q.in = mx::eval::arithmetic::float64;
        if (!each.empty()) q.each = mx::eval::level_named(each);
        q.cancel = how.cancel;
        mx::lab::execution_context on(how.threads);
        return texts(mx::eval::document_of(mx::eval::run(q, on),
                                           mx::pages::document_head("mx.eval/1")));
    }));
}

nb::tuple lint(const std::string& path, const std::vector<std::string>& rules,
               const std::vector<std::string>& ignore, bool values,
               const std::string& original) {
    mx::lint::lint_options how;
    how.original = original;
    how.rules = rules;
    how.ignore = ignore;
    how.values = values;
    return to_python(run(long_work, 1, [&](const mx::run_options& of) {
        how.cancel = of.cancel;
        return texts(mx::documents::lint_document(path, how, mx::lint::lint(path, how), true));
    }));
}

// The tensors that were not quantized, and why.
nb::dict save_checkpoint(const nb::list& tensors, const nb::dict& named, int threads) {
    doc::checkpoint_options o;
    take(named, "folder", o.folder);
    take(named, "layout", o.layout);
    take(named, "recipe", o.recipe);
    take(named, "config", o.config);
    take(named, "input_scales", o.input_scales);
    std::vector<std::pair<std::shared_ptr<const mx::io::reader>, std::size_t>> arrays;
    for (const mx::view& v : nb::cast<std::vector<mx::view>>(tensors)) {
        arrays.emplace_back(v.file(), v.ref().index);
    }
    const auto done = run(long_work, threads, [&](const mx::run_options& how) {
        return doc::save_checkpoint(o, arrays, control_of(how));
    });
    nb::dict kept;
    for (const mx::engine::skipped_tensor& t : done.kept) {
        kept[to_text(t.tensor)] = to_text(t.reason);
    }
    return kept;
}

nb::tuple compare(const nb::object& from, const nb::dict& named, int threads) {
    doc::compare_options o;
    for (std::size_t i = 0; i < doc::sweep_keys.size(); ++i) {
        take(named, std::string(doc::sweep_keys[i]).append("_axis").c_str(), o.axes[i]);
    }
    take(named, "baseline", o.baseline);
    take(named, "seeds", o.seeds);
    take(named, "phase_sweep", o.phase_sweep);
    if (named.contains("regret")) {
        bool regret = false;
        take(named, "regret", regret);
        o.regret = regret;
    }
    return study(from, named, threads, std::move(o), doc::compare);
}

nb::tuple cluster(const nb::object& from, const nb::dict& named, int threads) {
    doc::cluster_options o;
    o.in.views.vectors = true;
    return study(from, named, threads, std::move(o), doc::cluster);
}

// Dumps are called by `names`; those that are paths stand for themselves.
nb::tuple diff(const std::vector<std::string>& names, const nb::list& dumps, const nb::dict& named,
               int threads) {
    doc::diff_options o;
    take_inputs(named, o.in, o.roles);
    take(named, "recipes", o.recipes);
    take(named, "groups", o.groups);
    take(named, "labels", o.labels);
    take(named, "as_given", o.as_given);
    take(named, "transposed_first", o.transposed_first);
    take(named, "transposed_second", o.transposed_second);
    o.in.files = names;
    std::map<std::string, tensor_source> sources;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!nb::isinstance<nb::str>(dumps[i])) sources.emplace(names[i], dumps[i]);
    }
    return to_python(run(long_work, threads, [&](const mx::run_options& how) {
        doc::dump_environment environment;
        environment.control = [&](auto) { return control_of(how); };
        environment.open = [&](const std::string& path,
                               const doc::input_options& in) -> doc::opened_dump {
            const auto known = sources.find(path);
            if (known != sources.end()) {
                const auto tensors = known->second.open(in);
                return {tensors, known->second.sizes()};
            }
            const auto model =
                std::make_shared<const mx::engine::model>(std::vector{path}, in.open, in.views);
            return {{model, &model->reader()}, model->files()};
        };
        environment.on_disk = sources.empty();
        return texts(doc::diff(o, environment));
    }));
}

// Results by name: their text, or that of the file of this name where there is none.
using kept_results = std::vector<std::pair<std::string, std::optional<nb::bytes>>>;

mx::analysis::results_opener opener_of(const kept_results& results) {
    return [&](const std::string& name, const mx::report::read_options& options) {
        for (const auto& [known, text] : results) {
            if (known != name || !text) continue;
            const std::string_view json(text->c_str(), text->size());
            return mx::analysis::results_input{name, json.size(),
                                               mx::report::read_results(json, name, options)};
        }
        return mx::analysis::open_results(name, options);
    };
}

std::vector<std::string> names_of(const kept_results& results) {
    std::vector<std::string> names;
    for (const auto& [name, text] : results) names.push_back(name);
    return names;
}

nb::tuple changes(const kept_results& results, const nb::dict& named) {
    doc::diff_options o;
    take_inputs(named, o.in, o.roles);
    take(named, "recipes", o.recipes);
    take(named, "labels", o.labels);
    return to_python(run(long_work, 1, [&](const mx::run_options&) {
        return texts(doc::changes(o, names_of(results), opener_of(results)));
    }));
}

nb::tuple gate(const kept_results& results, const nb::dict& named) {
    doc::gate_options o;
    take(named, "rules", o.rules);
    take(named, "rule_files", o.rule_files);
    take(named, "recipes", o.recipes);
    take_judging(named, o.judging);
    bool holds = false;
    const texts t = run(long_work, 1, [&](const mx::run_options&) {
        const doc::gated g = doc::gate(o, [&](const auto& rules) {
            return mx::gate::open_for_gate(names_of(results), rules, opener_of(results));
        });
        holds = g.verdict.holds();
        return texts(g.document);
    });
    return nb::make_tuple(nb::bytes(t.json.data(), t.json.size()), to_text(t.table), holds);
}

// The page as HTML, the beginning of it for a notebook, and the verdict in one line.
nb::tuple report(const kept_results& results, const nb::dict& named, const std::string& title,
                 const std::string& id) {
    doc::report_options o;
    o.files = names_of(results);
    o.open = opener_of(results);
    o.digest = digest_by(named);
    take_judging(named, o.judging);
    struct pages {
        std::string html, fragment, summary;
    };
    const pages p = run(long_work, 1, [&](const mx::run_options&) {
        const doc::reported r = doc::report(o);
        const mx::report::document& page = r.page ? *r.page : r.screen;
        return pages{written(mx::report::write_html, page, title),
                     mx::report::fragment_of(doc::beginning_of(r), id), r.summary};
    });
    return nb::make_tuple(nb::bytes(p.html.data(), p.html.size()), to_text(p.fragment),
                          to_text(p.summary));
}

files open(const std::vector<std::string>& paths, const nb::dict& named) {
    doc::input_options in;
    doc::role_options roles;
    take_inputs(named, in, roles);
    return run(long_work, 1, [&](const mx::run_options&) {
        return files{std::make_shared<const mx::engine::model>(paths, in.open, in.views), in};
    });
}

nb::list views_of(const files& f) {
    std::vector<mx::engine::skipped_tensor> left_out;
    nb::list views;
    for (const mx::io::tensor_ref& t : mx::engine::numeric_only(f.model->select({}), left_out)) {
        views.append(
            nb::cast(mx::view(std::shared_ptr<const mx::io::reader>(f.model, t.file), t.index)));
    }
    return views;
}

nb::dict left_out_of(const files& f) {
    std::vector<mx::engine::skipped_tensor> left_out;
    mx::engine::numeric_only(f.model->select({}), left_out);
    nb::dict reasons;
    for (const mx::engine::skipped_tensor& s : left_out) {
        reasons[to_text(s.tensor)] = to_text(s.reason);
    }
    return reasons;
}

nb::dict metadata_of(const files& f) {
    nb::dict all;
    for (const auto& file : f.model->readers()) {
        for (const auto& [key, value] : file->metadata()) all[to_text(key)] = to_text(value);
    }
    return all;
}

// libmx.Error, also as Python's error of the system's reason.
struct error_types {
    PyObject *plain, *missing, *forbidden;
    nb::handle of(const mx::error& e) const {
        const std::string& what = e.message();
        if (what == "no file matches this pattern") return missing;
        if (what == fmt::format("cannot open: {}", std::strerror(ENOENT))) return missing;
        if (what == fmt::format("cannot open: {}", std::strerror(EACCES))) return forbidden;
        return plain;
    }
};

// libmx.Error, and where it happened.
void translate(const std::exception_ptr& failure, void* types) {
    try {
        std::rethrow_exception(failure);
    } catch (const mx::error& e) {
        const nb::handle error = static_cast<const error_types*>(types)->of(e);
        std::string what = e.what();
        if (e.kind() == mx::error_kind::unavailable && !e.place().file.empty()) {
            what +=
                "; h5py, onnx, numpy.load or torch.load give arrays, which every function takes";
        }
        // Advice in the words of the package; an error while it is imported has none yet.
        nb::object said = to_text(what);
        const nb::object documents =
            nb::borrow(nb::module_::import_("sys").attr("modules")).attr("get")("libmx._documents");
        if (nb::hasattr(documents, "in_python")) said = documents.attr("in_python")(said);
        const nb::object made = error(said);
        const auto text = [](const std::string& s) {
            return s.empty() ? nb::object(nb::none()) : nb::object(to_text(s));
        };
        static constexpr const char* kinds[] = {"usage",       "input",     "output",
                                                "unavailable", "cancelled", "closed_pipe"};
        made.attr("kind") = kinds[static_cast<std::size_t>(e.kind())];
        made.attr("file") = text(e.place().file);
        made.attr("tensor") = text(e.place().tensor);
        made.attr("offset") = nb::cast(e.place().offset);
        PyErr_SetObject(error.ptr(), made.ptr());
    }
}

}  // namespace

NB_MODULE(_libmx, m) {
    m.doc() = "The compiled part of libmx.";
    m.attr("threads") = MX_THREADS;  // "std": a child made by fork can go on
    // Never freed: errors can come until the interpreter ends.
    static error_types errors;
    errors.plain = PyErr_NewException("libmx.Error", PyExc_ValueError, nullptr);
    const auto as_well = [&](const char* name, PyObject* base) {
        const nb::tuple bases = nb::make_tuple(nb::handle(errors.plain), nb::handle(base));
        return PyErr_NewException(name, bases.ptr(), nullptr);
    };
    errors.missing = as_well("libmx.MissingFileError", PyExc_FileNotFoundError);
    errors.forbidden = as_well("libmx.ForbiddenFileError", PyExc_PermissionError);
    m.attr("Error") = nb::borrow(errors.plain);
    m.attr("MissingFileError") = nb::borrow(errors.missing);
    m.attr("ForbiddenFileError") = nb::borrow(errors.forbidden);
    nb::register_exception_translator(translate, &errors);

    nb::class_<plain_arithmetic>(m, "PlainArithmetic")
        .def(nb::init<>())
        .def("__enter__", &plain_arithmetic::enter)
        .def("__exit__", &plain_arithmetic::exit, nb::arg().none(), nb::arg().none(),
             nb::arg().none());

    nb::class_<mx::recipe>(m, "Recipe")
        .def(
            "__init__",
            [](mx::recipe* self, std::string_view text) {
                new (self) mx::recipe(mx::parse_recipe(std::string(text)));
            },
            plain)
        .def(
            "__str__", [](const mx::recipe& r) { return mx::to_string(r); }, plain)
        .def("bits", [](const mx::recipe& r) { return r.element->bits(); })
        .def("layout", &layout_of, plain)
        .def("steps", &steps_of, plain);

    nb::class_<mx::view>(m, "View")
        .def_static("of", &view_of, nb::arg("x").noconvert(), nb::arg("dtype"), nb::arg("name"),
                    nb::keep_alive<0, 1>())
        .def_static("at", &view_at, nb::arg("address"), nb::arg("shape"), nb::arg("strides"),
                    nb::arg("dtype"), nb::arg("name"), nb::arg("owner"), nb::keep_alive<0, 6>())
        .def("named", &mx::view::named, nb::keep_alive<0, 1>())
        .def_prop_ro("name", [](const mx::view& v) { return to_text(v.name()); })
        .def_prop_ro("file", [](const mx::view& v) { return to_text(v.info().file); })
        .def_prop_ro(
            "dtype",
            [](const mx::view& v) { return std::string(mx::tensor::row_of(v.type()).name); })
        .def_prop_ro("shape", [](const mx::view& v) { return nb::tuple(nb::cast(v.extents())); })
        .def("values", &values_of, nb::arg("begin") = 0, nb::arg("end") = nb::none(), plain);

    nb::class_<files>(m, "Files")
        .def(nb::init<const files&>())
        .def("views", &views_of, plain)
        .def("left_out", &left_out_of, plain)
        .def("metadata", &metadata_of)
        .def("sizes", [](const files& f) {
            std::vector<std::pair<std::string, std::uint64_t>> sizes;
            for (const mx::engine::input_file& file : f.model->files()) {
                sizes.emplace_back(file.path, file.bytes);
            }
            return sizes;
        });

    nb::class_<mx::analysis::statistics>(m, "Statistics")
        .def(nb::init<const mx::recipe&, std::string>())
        .def(
            "update",
            [](mx::analysis::statistics& s, const mx::view& x, int threads) {
                run(x.elements(), threads, [&](const mx::run_options& how) {
                    s.update(x.ref(), control_of(how));
                    return true;
                });
            },
            plain)
        .def_static(
            "update_all",
            [](const nb::list& each, const mx::view& x, int threads) {
                std::vector<mx::analysis::statistics*> all;
                for (const nb::handle one : each) {
                    all.push_back(nb::cast<mx::analysis::statistics*>(one));
                }
                run(x.elements(), threads, [&](const mx::run_options& how) {
                    mx::analysis::statistics::update(all, x.ref(), control_of(how));
                    return true;
                });
            },
            plain)
        .def_static(
            "update_there",
            [](const nb::list& each, const device_array& x) {
                std::vector<mx::analysis::statistics*> all;
                for (const nb::handle one : each) {
                    all.push_back(nb::cast<mx::analysis::statistics*>(one));
                }
                const nb::gil_scoped_release release;
                mx::update(all, x.array, x.at);
            })
        .def("merge", &mx::analysis::statistics::merge, plain)
        .def(
            "record",
            [](const mx::analysis::statistics& s) {
                return nb::cast<nb::dict>(
                    to_python(mx::report::value(mx::analysis::record_of(s.figures()))));
            },
            plain)
        .def(
            "sums",
            [](const mx::analysis::statistics& s) {
                std::vector<double> n = s.sums();
                const std::size_t count = n.size();
                return to_numpy(std::move(n), {count});
            },
            plain)
        .def(
            "maxima",
            [](const mx::analysis::statistics& s) {
                std::vector<double> n = s.maxima();
                const std::size_t count = n.size();
                return to_numpy(std::move(n), {count});
            },
            plain)
        .def_static(
            "with_numbers",
            [](const mx::recipe& r, std::string name, const flat<double>& sums,
               const flat<double>& maxima) {
                return mx::analysis::statistics::with_numbers(
                    r, std::move(name), std::span(sums.data(), sums.size()),
                    std::span(maxima.data(), maxima.size()));
            },
            plain)
        .def_prop_rw("shape", &mx::analysis::statistics::shape,
                     &mx::analysis::statistics::set_shape, nb::for_setter(nb::arg("shape").none()));

    m.def("open", &open, plain);
    m.def("quantize", &quantize, plain);
    m.def("dequantize", &dequantize, nb::arg("recipe"), nb::arg("shape"), nb::arg("packed"),
          nb::arg("scale_codes"), nb::arg("scales"), nb::arg("offsets"),
          nb::arg("tensor_scale").none(), nb::arg("outer_scales"), nb::arg("threads"), plain);
    m.def("tensor_id", [](const std::string& name) { return mx::base::tensor_id(name); });
    m.def("pack", &pack);
    m.def("unpack", &unpack);
    m.def("fake_quantize", &fake_quantize, plain);
    m.def("fake_quantize_into", &fake_quantize_into, nb::arg("x"), nb::arg("recipe"),
          nb::arg("out").noconvert(), nb::arg("dtype"), nb::arg("threads"), plain);
    m.def("cast", &cast, plain);
    nb::class_<device_array>(m, "DeviceArray")
        .def_static("of", &device_array::of, nb::arg("address"), nb::arg("shape"),
                    nb::arg("dtype"), nb::arg("device"), nb::arg("stream"), nb::arg("name"));
    const nb::call_guard<nb::gil_scoped_release> released;
    m.def("missing_device", &mx::missing_device, released);
    m.def("copies", [](const mx::recipe& r, const mx::shape& extents, bool packed) {
        return mx::copies(r, extents, packed);
    });
    m.def("packed_layout", &packed_layout);
    m.def("dlpack_place", &dlpack_place);
    m.def(
        "fake_quantize_there",
        [](const device_array& x, const mx::recipe& r, const device_array& to) {
            mx::fake_quantize(x.array, r, x.name, to.array, x.at);
        },
        released);
    m.def("quantize_there", &quantize_there, nb::arg("x"), nb::arg("recipe"), nb::arg("codes"),
          nb::arg("scales"), nb::arg("offsets"), released);
    m.def("dequantize_there", &dequantize_there, nb::arg("codes"), nb::arg("scales"),
          nb::arg("offsets"), nb::arg("tensor_scale").none(), nb::arg("recipe"), nb::arg("to"),
          released);
    m.def(
        "cast_there",
        [](const device_array& x, std::string_view element, std::string_view round, bool saturate,
           std::uint64_t seed, const device_array& to) {
            mx::cast(x.array, element, cast_options_of(round, saturate, seed), x.name, to.array,
                     x.at);
        },
        released);
    m.def("multiply", &multiply, plain);
    m.def("analyze", &analyze, plain);
    m.def("evaluate", &evaluate, plain);
    m.def("lint", &lint, plain);
    m.def("save_checkpoint", &save_checkpoint, plain);
    m.def("compare", &compare, plain);
    m.def("cluster", &cluster, plain);
    m.def("diff", &diff, plain);
    m.def("are_results", &doc::are_results, plain);
    m.def("changes", &changes, plain);
    m.def("gate", &gate, plain);
    m.def("report", &report, plain);
    m.def(
        "formats", [] { return to_python(texts(doc::formats())); }, plain);
    m.def(
        "dialects",
        [](const std::vector<std::string>& names) {
            return to_python(texts(doc::dialects(names)));
        },
        plain);
    m.def(
        "explain",
        [](const std::string& what, const std::vector<std::string>& which,
           const std::string& target) {
            return to_python(texts(doc::explain({what, which, target})));
        },
        plain);
}

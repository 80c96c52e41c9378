// SPDX-License-Identifier: Apache-2.0
// The verb for Python: views of arrays and of files' tensors go in, NumPy arrays and dictionaries
// come out. What Python users see is in __init__.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/api/mx/mx.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/dialects.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/io/dtype_names.hpp"

namespace nb = nanobind;

namespace {

using array = nb::ndarray<nb::ro, nb::device::cpu>;

// A NumPy array that owns `values`.
template <typename T>
nb::object to_numpy(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner),
                    nb::rv_policy::reference);
}

std::vector<std::size_t> extents_of(const mx::shape& s) { return {s.begin(), s.end()}; }

// Below this a call is over before anybody could interrupt it.
constexpr std::uint64_t short_work = 1 << 14;  // elements

// body(how) without the GIL. Work that may take long has a thread of its own, so that this one can
// look for signals: Ctrl-C cancels and raises KeyboardInterrupt.
template <typename Body>
auto run(std::uint64_t elements, int threads, Body body) {
    std::atomic<bool> cancel{false};
    mx::run_options how;
    how.threads = threads;
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
        std::thread worker([&] {
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
    if (const auto* s = std::get_if<std::string>(&v)) return nb::str(s->data(), s->size());
    if (const auto* l = std::get_if<mx::report::list>(&v)) {
        nb::list items;
        for (const mx::report::value& item : *l) items.append(to_python(item));
        return items;
    }
    if (const auto* r = std::get_if<mx::report::record>(&v)) {
        nb::dict members;
        for (const auto& [name, member] : *r) {
            members[nb::str(name.data(), name.size())] = to_python(member);
        }
        return members;
    }
    return nb::none();
}

mx::view view_of(const array& x, std::string_view dtype, std::string name) {
    mx::shape extents;
    std::vector<std::int64_t> strides;
    for (std::size_t i = 0; i < x.ndim(); ++i) {
        extents.push_back(x.shape(i));
        strides.push_back(x.stride(i));
    }
    return mx::view(x.data(), mx::io::parse_dtype("dtype", dtype), std::move(extents),
                    std::move(strides))
        .named(std::move(name));
}

nb::tuple quantize(const mx::view& x, const mx::recipe& r, int threads) {
    const mx::blocks q = run(x.elements(), threads,
                             [&](const mx::run_options& how) { return mx::quantize(x, r, how); });
    const auto bytes = [](const auto& span) {
        return std::vector<std::uint8_t>(span.begin(), span.end());
    };
    std::vector<std::uint8_t> packed;
    for (const std::byte b : q.packed_codes()) packed.push_back(static_cast<std::uint8_t>(b));
    const std::vector<std::size_t> grid = extents_of(q.grid());
    const std::size_t count = packed.size();
    return nb::make_tuple(
        to_numpy(bytes(q.codes()), extents_of(q.extents())), to_numpy(std::move(packed), {count}),
        q.scale_codes().empty()
            ? to_numpy(std::vector<float>(q.scales().begin(), q.scales().end()), grid)
            : to_numpy(bytes(q.scale_codes()), grid),
        q.offsets().empty() ? nb::object(nb::none())
                            : to_numpy(std::vector<std::uint16_t>(q.offsets().begin(),
                                                                  q.offsets().end()),
                                       grid),
        q.tensor_scale() ? nb::object(nb::float_(static_cast<double>(*q.tensor_scale())))
                         : nb::object(nb::none()));
}

template <typename T>
using flat = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::vector<T> copied(const flat<T>& x) {
    return {x.data(), x.data() + x.size()};
}

nb::object dequantize(const mx::recipe& r, const mx::shape& extents, const flat<std::uint8_t>& codes,
                      const flat<std::uint8_t>& scale_codes, const flat<float>& scales,
                      const flat<std::uint16_t>& offsets, std::optional<float> tensor_scale,
                      int threads) {
    const mx::blocks q =
        mx::blocks::from_parts(r, extents, copied(codes), copied(scale_codes), copied(scales),
                               copied(offsets), tensor_scale);
    return to_numpy(run(codes.size(), threads,
                        [&](const mx::run_options& how) { return mx::dequantize(q, how); }),
                    extents_of(extents));
}

nb::object fake_quantize(const mx::view& x, const mx::recipe& r, int threads) {
    return to_numpy(run(x.elements(), threads,
                        [&](const mx::run_options& how) { return mx::fake_quantize(x, r, how); }),
                    extents_of(x.extents()));
}

void fake_quantize_into(const mx::view& x, const mx::recipe& r,
                        const nb::ndarray<float, nb::c_contig, nb::device::cpu>& out, int threads) {
    run(x.elements(), threads, [&](const mx::run_options& how) {
        mx::fake_quantize(x, r, std::span(out.data(), out.size()), how);
        return true;
    });
}

nb::object cast(const mx::view& x, std::string_view element, std::string_view round, bool saturate,
                std::uint64_t seed, int threads) {
    mx::cast_options options;
    const mx::format::rounding_row* const row = mx::format::find_rounding(round);
    if (row == nullptr) {
        std::vector<std::string_view> names;
        for (const auto& known : mx::format::roundings) names.push_back(known.name);
        throw mx::error(mx::error_kind::usage, mx::base::unknown("rounding", round, names));
    }
    options.round = row->id;
    options.saturate = saturate;
    options.seed = seed;
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
    return to_numpy(run(a.elements() + b.elements(), threads,
                        [&](const mx::run_options& how) {
                            return mx::multiply(a, ra, b, rb, accumulate, how);
                        }),
                    extents);
}

// Results and what was left out, as the members of mx.analysis/1.
nb::tuple analyze(const std::vector<mx::view>& tensors, const std::vector<mx::recipe>& recipes,
                  bool histograms, bool decompose, int threads) {
    std::vector<mx::io::tensor_ref> refs;
    std::uint64_t elements = 0;
    for (const mx::view& v : tensors) {
        refs.push_back(v.ref());
        elements += v.elements();
    }
    mx::analysis::analysis_request request;
    request.recipes = recipes;
    request.histograms = histograms;
    request.decompose = decompose;
    mx::analysis::analysis a = run(elements, threads, [&](const mx::run_options& how) {
        mx::engine::run_control control;
        control.threads = how.threads;
        control.cancel = how.cancel;
        return mx::analysis::analyze(refs, request, control);
    });
    nb::list records, skipped;
    for (const mx::report::record r : mx::analysis::records_of(a.results)) {
        records.append(to_python(r));
    }
    for (const mx::engine::skipped_tensor& s : a.skipped) {
        nb::dict one;
        one["tensor"] = s.tensor;
        one["recipe"] = s.recipe;
        one["reason"] = s.reason;
        skipped.append(one);
    }
    return nb::make_tuple(records, skipped);
}

// libmx.Error, and where it happened.
void translate(const std::exception_ptr& failure, void* type) {
    try {
        std::rethrow_exception(failure);
    } catch (const mx::error& e) {
        const nb::handle error(static_cast<PyObject*>(type));
        const nb::object made = error(e.what());
        const auto text = [](const std::string& s) {
            return s.empty() ? nb::object(nb::none()) : nb::object(nb::str(s.data(), s.size()));
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
    PyObject* const error = PyErr_NewException("libmx.Error", PyExc_ValueError, nullptr);
    m.attr("Error") = nb::borrow(error);
    nb::register_exception_translator(translate, error);

    nb::class_<mx::recipe>(m, "Recipe")
        .def("__init__",
             [](mx::recipe* self, std::string_view text) {
                 new (self) mx::recipe(mx::parse_recipe(std::string(text)));
             })
        .def("__str__", [](const mx::recipe& r) { return mx::to_string(r); })
        .def("bits", [](const mx::recipe& r) { return r.element->bits(); });

    nb::class_<mx::view>(m, "View")
        .def_static("of", &view_of, nb::arg("x").noconvert(), nb::arg("dtype"), nb::arg("name"),
                    nb::keep_alive<0, 1>())
        .def("named", &mx::view::named)
        .def_prop_ro("name", &mx::view::name)
        .def_prop_ro("dtype",
                     [](const mx::view& v) { return std::string(mx::tensor::row_of(v.type()).name); })
        .def_prop_ro("shape", [](const mx::view& v) { return nb::tuple(nb::cast(v.extents())); })
        .def("values", [](const mx::view& v) {
            return to_numpy(run(v.elements(), 1,
                                [&](const mx::run_options&) { return v.values(); }),
                            extents_of(v.extents()));
        });

    m.def("open", [](const std::string& path) {
        nb::list tensors;
        for (const mx::view& v : mx::open(path)) tensors.append(nb::cast(v));
        return tensors;
    });
    m.def("quantize", &quantize);
    m.def("dequantize", &dequantize, nb::arg("recipe"), nb::arg("shape"), nb::arg("codes"),
          nb::arg("scale_codes"), nb::arg("scales"), nb::arg("offsets"),
          nb::arg("tensor_scale").none(), nb::arg("threads"));
    m.def("fake_quantize", &fake_quantize);
    m.def("fake_quantize_into", &fake_quantize_into, nb::arg("x"), nb::arg("recipe"),
          nb::arg("out").noconvert(), nb::arg("threads"));
    m.def("cast", &cast);
    m.def("multiply", &multiply);
    m.def("analyze", &analyze);
    m.def("unpack", [](int bits, const flat<std::uint8_t>& packed, std::size_t count) {
        std::vector<std::uint8_t> codes(count);
        const auto bytes = std::as_bytes(std::span(packed.data(), packed.size()));
        mx::block::unpack(bits, bytes, codes);
        return to_numpy(std::move(codes), {count});
    });
    m.def("elements", [] {
        std::vector<std::string> names;
        for (const auto& f : mx::format::element_formats) names.emplace_back(f.name);
        return names;
    });
    m.def("dialects", [] {
        std::vector<std::string> names;
        for (const auto& d : mx::codec::dialects()) names.emplace_back(d.name);
        return names;
    });
}

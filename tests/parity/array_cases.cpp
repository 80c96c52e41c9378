// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/array_cases.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "libmx/analysis/statistics.hpp"
#include "libmx/analysis/totals.hpp"
#include "libmx/api/mx/mx.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/cuda/arrays.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "tests/parity/recipe_generator.hpp"
#include "tests/parity/segments.hpp"

namespace mx::tests {
namespace {

using base::cuda::held_memory;
using base::cuda::memory_kind;
using codec::cuda::array_quantizer;
using codec::cuda::device_numbers;

constexpr const char* array_name = "layers.0.w";
constexpr std::array types{dtype::f32, dtype::bf16, dtype::f16};

// Along the last axis, along the first, in tiles, with a short block at every end, of one element
// and of none.
const std::vector<shape>& shapes() {
    static const std::vector<shape> all{{5, 203},      {37},     {3, 40, 17}, {64, 96},
                                        {2, 3, 5, 33}, {203, 5}, {1, 999},    {4, 1, 64},
                                        {1},           {0, 7},   {2, 33, 50}};
    return all;
}

// Bytes on the device, `offset` behind an aligned address.
class copy_there {
  public:
    copy_there(const array_device& d, std::size_t bytes, std::size_t offset = 0)
        : offset_(offset), memory_(d.memory, memory_kind::device) {
        memory_.reserve(bytes + offset + 1);
    }
    std::byte* data() const { return memory_.data() + offset_; }
    device_numbers numbers(dtype type) const { return {data(), type}; }
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(data());
    }

  private:
    std::size_t offset_;
    held_memory memory_;
};

std::size_t bytes_of(dtype type, std::uint64_t count) {
    return static_cast<std::size_t>(tensor::stored_bytes(type, count));
}

std::string first_difference(std::string_view what, std::span<const std::byte> got,
                             std::span<const std::byte> expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (got[i] != expected[i]) {
            return std::string(what) + " differ from byte " + std::to_string(i) + "; ";
        }
    }
    return got.size() == expected.size() ? "" : std::string(what) + " differ in size; ";
}

template <typename T>
std::span<const std::byte> raw(const std::vector<T>& v) {
    return std::as_bytes(std::span(v));
}

class one_case {
  public:
    one_case(const array_device& d, const codec::recipe& r, shape extents, std::size_t turn)
        : device_(d),
          recipe_(r),
          extents_(std::move(extents)),
          type_(types[turn % types.size()]),
          launch_(turn % 4 == 0 ? array_quantizer::usual_launch : 200),
          count_(*tensor::element_count(extents_)) {
        stored_ =
            make_matrix(type_, 1, count_, turn % 5 < 3 ? every_kind : usual_kinds, *r.element, turn)
                .bytes;
        here_.emplace(stored_.data(), type_, extents_);
        here_ = here_->named(array_name);
        // Not always at a multiple of 16 bytes.
        there_.emplace(d, stored_.size(), turn % 3 == 0 ? 0 : bytes_of(type_, turn % 5));
    }

    std::string description() const {
        std::string text = codec::to_string(recipe_) + ", ";
        text += tensor::row_of(type_).name;
        for (const std::uint64_t n : extents_) text += " " + std::to_string(n);
        return text + ", launches of " + std::to_string(launch_);
    }

    std::string difference() {
        std::string found;
        device_.run(launch_, [&](array_quantizer& by) {
            by.work().send(there_->data(), stored_.data(), stored_.size());
        });
        for (const dtype to : {type_, dtype::f32}) found += values(to, to == type_);
        if (engine::cuda::obstacle(recipe_, extents_, true).empty()) found += blocks();
        return found + figures();
    }

  private:
    engine::cuda::array array() const {
        return {there_->numbers(type_), extents_, base::tensor_id(array_name)};
    }

    std::vector<std::byte> received(array_quantizer& by, const copy_there& from,
                                    std::size_t bytes) const {
        std::vector<std::byte> got(bytes);
        by.work().copy_back(got.data(), from.data(), bytes);
        by.work().wait();
        return got;
    }

    // Into other memory, or in place of a copy.
    std::string values(dtype to, bool in_place) const {
        std::vector<std::byte> expected(bytes_of(to, count_)), got;
        fake_quantize(*here_, recipe_, to, expected.data(), {.threads = 1});
        const copy_there result(device_, expected.size());
        device_.run(launch_, [&](array_quantizer& by) {
            engine::cuda::array x = array();
            if (in_place) {
                by.work().copy_across(result.data(), x.values.data, expected.size());
                x.values = result.numbers(to);
            }
            engine::cuda::fake_quantize(by, x, recipe_, result.numbers(to));
            got = received(by, result, expected.size());
        });
        return first_difference(in_place ? "values in place" : "values", got, expected);
    }

    std::string blocks() const {
        const mx::blocks q = quantize(*here_, recipe_, {.threads = 1});
        const copy_there codes(device_, q.packed_codes().size());
        const copy_there scales(device_, q.scale_codes().size());
        const copy_there offsets(device_, 2 * q.offsets().size());
        const codec::cuda::packed_array to{
            codes.as<std::uint8_t>(), scales.as<std::uint8_t>(),
            q.offsets().empty() ? nullptr : offsets.as<std::uint16_t>()};
        const std::vector<float> expected = dequantize(q, {.threads = 1});
        const copy_there result(device_, bytes_of(dtype::f32, count_));
        std::string found;
        device_.run(launch_, [&](array_quantizer& by) {
            const codec::tensor_scale scale = engine::cuda::quantize(by, array(), recipe_, to);
            if (q.tensor_scale() && base::bits_of(scale.stored) != base::bits_of(*q.tensor_scale()))
                found += "the tensor scale differs; ";
            found += first_difference("codes", received(by, codes, q.packed_codes().size()),
                                      q.packed_codes());
            found += first_difference("scales", received(by, scales, q.scale_codes().size()),
                                      std::as_bytes(q.scale_codes()));
            found += first_difference("offsets", received(by, offsets, 2 * q.offsets().size()),
                                      std::as_bytes(q.offsets()));
            engine::cuda::dequantize(by, recipe_, extents_, to, scale.stored,
                                     result.numbers(dtype::f32));
            found +=
                first_difference("dequantized values",
                                 received(by, result, bytes_of(dtype::f32, count_)), raw(expected));
        });
        return found;
    }

    std::string figures() const {
        analysis::statistics expected(recipe_, array_name), got(recipe_, array_name);
        expected.update(here_->ref(), {});
        analysis::statistics::array_figures f{analysis::empty_totals(recipe_), 1};
        device_.run(launch_, [&](array_quantizer& by) {
            const engine::cuda::measured m = engine::cuda::measure(by, array(), recipe_);
            f.totals.add(m.stats);
            f.tensor_scale = static_cast<double>(m.tensor.decode);
        });
        analysis::statistics* const one[] = {&got};
        analysis::statistics::add(one, here_->info(), expected.figures().spread_error, {&f, 1});
        return first_difference("sums", raw(got.sums()), raw(expected.sums())) +
               first_difference("maxima", raw(got.maxima()), raw(expected.maxima()));
    }

    const array_device& device_;
    const codec::recipe& recipe_;
    shape extents_;
    dtype type_;
    std::uint64_t launch_;
    std::uint64_t count_;
    std::vector<std::byte> stored_;
    std::optional<view> here_;
    std::optional<copy_there> there_;
};

}  // namespace

std::size_t compare_arrays(
    const array_device& d, std::uint64_t every,
    const std::function<void(const std::string&, const std::string&)>& on_case) {
    std::size_t turn = 0, without = 0;
    for (const codec::recipe& r : generated_recipes()) {
        if (turn++ % every != 0) continue;
        const std::size_t which = turn / every;
        shape extents = shapes()[which % shapes().size()];
        std::string reason;
        if (!engine::lay_out(extents, r, reason)) extents = shapes().front();
        if (!engine::cuda::obstacle(r, extents, false).empty()) {
            ++without;
            continue;
        }
        one_case one(d, r, extents, which);
        on_case(one.description(), one.difference());
    }
    return without;
}

void compare_array_casts(
    const array_device& d,
    const std::function<void(const std::string&, const std::string&)>& on_case) {
    std::size_t turn = 0;
    for (const char* element : {"e4m3", "e5m2", "e2m1", "e3m2", "int8", "ue4m3", "e8m0"}) {
        for (const auto round : {format::rounding::rtne, format::rounding::stochastic}) {
            const dtype type = types[turn % types.size()];
            const stored_matrix m =
                make_matrix(type, 7, 143, every_kind, *format::find_element_format("e4m3"), ++turn);
            cast_options options;
            options.round = round;
            options.seed = turn;
            convert::cast_request request;
            request.element = element;
            request.round = round;
            std::optional<codec::element_cast> how;
            std::vector<float> expected;
            const view here = view(m.bytes.data(), type, {7, 143}).named(array_name);
            try {
                how = convert::element_cast_of(request);
                expected = cast(here, element, options);
            } catch (const base::error&) {
                continue;  // there is no such rounding
            }
            const copy_there x(d, m.bytes.size()), result(d, expected.size() * sizeof(float));
            std::vector<float> got(expected.size());
            d.run(array_quantizer::usual_launch, [&](array_quantizer& by) {
                by.work().send(x.data(), m.bytes.data(), m.bytes.size());
                by.cast(*how, {options.seed, base::tensor_id(array_name)}, x.numbers(type),
                        expected.size(), result.as<float>());
                by.work().copy_back(reinterpret_cast<std::byte*>(got.data()), result.data(),
                                    got.size() * sizeof(float));
            });
            on_case(std::string(element) + " by rounding " + std::to_string(turn),
                    first_difference("values", raw(got), raw(expected)));
        }
    }
}

}  // namespace mx::tests

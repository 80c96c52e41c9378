// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/element_cases.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/recipe.hpp"

namespace mx::tests {
namespace {

using codec::element_cast;
using tensor::dtype;

// Results are compared beyond their ends, too.
constexpr std::size_t slack = 64;

// Next to powers of two, to ties of mantissas of few bits, and to infinity and zero.
std::vector<std::uint32_t> float32_inputs() {
    std::vector<std::uint32_t> x;
    for (std::uint32_t field = 0; field < 512; ++field) {
        for (const std::uint32_t mantissa :
             {0u, 1u, 5u, 60u, 0x10000u, 0x100000u, 0x180001u, 0x1fffffu, 0x2aaaaau, 0x300000u,
              0x400000u, 0x400001u, 0x5fffffu, 0x700000u, 0x7fff00u, 0x7fffc4u, 0x7fffffu}) {
            x.push_back(field << 23 | mantissa);
        }
    }
    return x;
}

std::vector<std::byte> inputs_of(dtype type) {
    const auto bytes = [](const auto& values) {
        std::vector<std::byte> out(values.size() * sizeof values[0]);
        std::memcpy(out.data(), values.data(), out.size());
        return out;
    };
    if (type == dtype::f32) return bytes(float32_inputs());
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    return bytes(all);
}

class comparison {
  public:
    comparison(codec::caster& device,
               const std::function<void(const std::string&, const std::string&)>& on_case,
               std::uint64_t every = 1)
        : device_(device), on_case_(on_case), every_(every) {}

    // Alternates between types, lengths, positions in the input and requested results.
    void run(const std::string& what, const element_cast& to) {
        if (runs_++ % every_ != 0) return;
        constexpr std::array<std::size_t, 7> lengths{8704, 1, 257, 4095, 1000, 2, 6001};
        const std::size_t type = cases_ % types_.size();
        const auto width = static_cast<std::size_t>(tensor::row_of(types_[type]).bits / 8);
        const std::size_t all = inputs_[type].size() / width;
        const std::size_t count = std::min(lengths[cases_ % lengths.size()], all);
        const std::size_t at = cases_ * 7919 % (all - count + 1);
        const codec::stored_values values{types_[type], inputs_[type].data() + at * width, all};
        compare(what, to, {values, count, first_[cases_ % first_.size()], {cases_, ~cases_}});
    }

    void compare(const std::string& what, const element_cast& to, const codec::element_run& from) {
        const bool codes = cases_ % 3 != 1;
        const bool values = cases_ % 3 != 2;
        const std::vector<std::byte> expected = results(*host_, to, from, codes, values);
        const std::vector<std::byte> got = results(device_, to, from, codes, values);
        std::size_t where = 0;
        while (where < got.size() && got[where] == expected[where]) ++where;
        on_case_(what + ", " + std::string(tensor::row_of(from.values.type).name) + ", " +
                     std::to_string(from.count) + " values" + (codes ? ", codes" : "") +
                     (values ? ", values" : ""),
                 got == expected ? "" : "differs from byte " + std::to_string(where));
        ++cases_;
    }

  private:
    static std::vector<std::byte> results(codec::caster& by, const element_cast& to,
                                          const codec::element_run& from, bool codes, bool values) {
        std::vector<std::uint8_t> code(from.count + slack, 0x5a);
        std::vector<float> value(from.count + slack, 12345.0f);
        const std::size_t without_code =
            by.cast(to, from, {codes ? code.data() : nullptr, values ? value.data() : nullptr});
        std::vector<std::byte> out(code.size() + value.size() * sizeof(float) +
                                   sizeof without_code);
        std::memcpy(out.data(), code.data(), code.size());
        std::memcpy(out.data() + code.size(), value.data(), value.size() * sizeof(float));
        std::memcpy(out.data() + out.size() - sizeof without_code, &without_code,
                    sizeof without_code);
        return out;
    }

    codec::caster& device_;
    const std::function<void(const std::string&, const std::string&)>& on_case_;
    const std::unique_ptr<codec::caster> host_ = codec::make_host_caster();
    static constexpr std::array types_{dtype::f32, dtype::bf16, dtype::f32, dtype::f16};
    static constexpr std::array<std::uint64_t, 4> first_{0, 3, (std::uint64_t{1} << 34) + 1,
                                                         262144};
    const std::array<std::vector<std::byte>, 4> inputs_{inputs_of(types_[0]), inputs_of(types_[1]),
                                                        inputs_of(types_[2]), inputs_of(types_[3])};
    std::uint64_t every_, runs_ = 0, cases_ = 0;
};

// Skips what a dialect does not support.
template <typename Make>
std::optional<element_cast> if_offered(Make&& make) {
    try {
        return make();
    } catch (const base::error& e) {
        if (e.kind() != base::error_kind::usage) throw;
        return std::nullopt;
    }
}

void compare_numbers(comparison& c, const codec::dialect& by, const format::element_format& f,
                     std::uint64_t& turn) {
    for (const format::rounding_row& rounding : format::roundings) {
        for (const bool saturate : {true, false}) {
            ++turn;
            format::rounding_mode mode;
            mode.how = rounding.id;
            mode.ties = turn % 4 < 2 ? format::tie_rule::up : format::tie_rule::even;
            mode.random_bits = turn % 3 == 0   ? codec::default_random_bits(by, f)
                               : turn % 3 == 1 ? 32
                                               : 1;
            const auto to = if_offered([&] {
                return element_cast{codec::conversion_of(by, f, mode, saturate, turn % 5 < 2),
                                    false};
            });
            if (!to) continue;
            c.run(std::string(by.name) + " to " + std::string(f.name) + " " +
                      std::string(rounding.name) + (saturate ? "" : ", not saturated"),
                  *to);
        }
    }
}

}  // namespace

void compare_casts(codec::caster& device,
                   const std::function<void(const std::string&, const std::string&)>& on_case,
                   std::uint64_t every) {
    comparison c(device, on_case, every);
    std::uint64_t turn = 0;
    for (const codec::dialect& by : codec::dialects()) {
        for (const auto& f : format::element_formats) compare_numbers(c, by, f, turn);
        for (const auto& s : format::scale_formats) {
            if (s.is_number()) compare_numbers(c, by, s.number, turn);
            if (!s.power_of_two()) continue;
            for (const auto how : {format::rounding::up, format::rounding::zero}) {
                for (const bool saturate : {true, false}) {
                    const auto to =
                        if_offered([&] { return codec::cast_to_e8m0(by, how, saturate); });
                    if (!to) continue;
                    c.run(
                        std::string(by.name) + " to e8m0 " + std::string(format::row_of(how).name),
                        *to);
                }
            }
        }
    }
}

void compare_long_cast(codec::caster& device, std::size_t count,
                       const std::function<void(const std::string&, const std::string&)>& on_case) {
    std::mt19937 random(7);
    std::vector<std::uint32_t> x(count);
    for (std::uint32_t& u : x) u = static_cast<std::uint32_t>(random());
    comparison c(device, on_case);
    format::rounding_mode mode;
    mode.how = format::rounding::stochastic;
    const auto& ocp = codec::row_of(codec::dialect_id::ocp);
    const auto& microxcaling = codec::row_of(codec::dialect_id::microxcaling);
    const auto* e4m3 = format::find_element_format("e4m3");
    const auto* e2m1 = format::find_element_format("e2m1");
    const std::array<element_cast, 3> casts{
        element_cast{codec::conversion_of(ocp, *e4m3, mode, true, false), false},
        element_cast{codec::conversion_of(ocp, *e2m1, mode, true, false), false},
        element_cast{codec::conversion_of(microxcaling, *e2m1, {}, true, false), false}};
    for (const element_cast& to : casts) {
        const codec::stored_values values{dtype::f32, reinterpret_cast<const std::byte*>(x.data()),
                                          count};
        c.compare("at random", to, {values, count, 1, {11, 13}});
    }
}

}  // namespace mx::tests

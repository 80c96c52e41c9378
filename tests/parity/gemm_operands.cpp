// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/gemm_operands.hpp"

#include "libmx/gemm/factor.hpp"

namespace mx::tests {
namespace {

using gemm::operand_format;

// The codes of a format by exponent field.
class code_maker {
  public:
    code_maker(const operand_format& f, std::mt19937_64& random) : f_(f), random_(random) {}

    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
    std::uint32_t any() {
        return static_cast<std::uint32_t>(random_()) & (0xffffffffu >> (32 - f_.code_bits()));
    }
    std::uint32_t finite() {
        for (;;) {
            const std::uint32_t code = any();
            if (is_finite(code)) return code;
        }
    }
    std::uint32_t special() {
        if (f_.special == gemm::operand_specials::none) return any();
        if (f_.special == gemm::operand_specials::fnuz) return sign_bit();  // the only one
        for (;;) {
            const std::uint32_t code =
                with_field(last_field()) | (below(2) == 0 ? ~0u >> (33 - f_.code_bits()) : 0u);
            if (!is_finite(code)) return code;
        }
    }
    // A finite code with the exponent field closest to `field`.
    std::uint32_t with_field(std::uint32_t field) {
        const std::uint32_t mantissa = any() & ((1u << mantissa_bits()) - 1u);
        const std::uint32_t sign = below(2) << (f_.code_bits() - 1);
        return sign | field << mantissa_bits() | mantissa;
    }
    std::uint32_t finite_with_field(std::uint32_t field) {
        const std::uint32_t code = with_field(field);
        return is_finite(code) ? code : finite_with_field(field - 1);
    }
    std::uint32_t last_field() const { return (1u << f_.exponent_bits) - 1u; }
    std::uint32_t field_of_one() const { return static_cast<std::uint32_t>(f_.bias); }
    std::uint32_t sign_bit() const { return 1u << (f_.code_bits() - 1); }

    std::uint32_t of(operand_kind kind) {
        switch (kind) {
            case operand_kind::any_bits:
                return any();
            case operand_kind::finite_bits:
                return finite();
            case operand_kind::subnormal:
                return with_field(0);
            case operand_kind::largest:
                return finite_with_field(last_field() - below(2));
            case operand_kind::smallest:
                return with_field(below(2));
            case operand_kind::near_one:
            case operand_kind::cancelling:
                return finite_with_field(field_of_one() + below(2));
            case operand_kind::one_above:
                return below(40) == 0 ? finite_with_field(last_field()) : with_field(below(3));
            case operand_kind::zeros:
                return below(12) == 0 ? finite() : below(2) * sign_bit();
            case operand_kind::few_special:
                return below(200) == 0 ? special() : finite();
        }
        return 0;
    }

  private:
    int mantissa_bits() const { return f_.mantissa_bits + f_.dropped_bits; }
    bool is_finite(std::uint32_t code) const {
        return unpack(f_, gemm::subnormal_alignment::least_exponent, code).what ==
               gemm::value_class::finite;
    }

    const operand_format& f_;
    std::mt19937_64& random_;
};

std::uint8_t make_scale(operand_kind kind, std::uint32_t scaling, std::mt19937_64& random) {
    const auto any = static_cast<std::uint32_t>(random() % 256);
    const bool fine = scaling == gemm::scales_ue4m3_16;
    switch (kind) {
        case operand_kind::any_bits:
            return static_cast<std::uint8_t>(any);
        case operand_kind::largest:
            return static_cast<std::uint8_t>(fine ? 0x70 + any % 15 : 254 - any % 4);
        case operand_kind::subnormal:
        case operand_kind::smallest:
            return static_cast<std::uint8_t>(fine ? any % 9 : any % 4);
        case operand_kind::finite_bits:
            return static_cast<std::uint8_t>(fine ? any % 127 : any % 255);
        case operand_kind::few_special:
            if (any == 0) return fine ? 0x7f : 0xff;
            [[fallthrough]];
        default:
            return static_cast<std::uint8_t>(fine ? 0x34 + any % 8 : 124 + any % 8);
    }
}

}  // namespace

std::string_view name_of(operand_kind kind) {
    constexpr std::array<std::string_view, operand_kinds.size()> names{
        "any bits", "finite bits", "subnormal", "largest", "smallest",
        "near one", "cancelling",  "one above", "zeros",   "few special"};
    return names[static_cast<std::size_t>(kind)];
}

gemm::operand make_operand(const operand_format& f, operand_kind kind, side which,
                           std::uint32_t scaling, std::size_t rows, std::size_t depth,
                           std::mt19937_64& random) {
    gemm::operand o;
    o.rows = rows;
    o.depth = depth;
    o.format = &f;
    o.codes.resize(rows * depth);
    code_maker codes(f, random);
    for (std::size_t i = 0; i < o.codes.size(); ++i) {
        const bool repeats = kind == operand_kind::cancelling && i % depth % 2 == 1;
        o.codes[i] = repeats && codes.below(8) != 0
                         ? o.codes[i - 1] ^ (which == side::left ? codes.sign_bit() : 0u)
                         : codes.of(kind);
    }
    for (const gemm::operand_scale& s : gemm::operand_scales) {
        if (s.bit != scaling) continue;
        o.scaling = scaling;
        o.scale_block = s.block;
        o.scales.resize(rows * ((depth + s.block - 1) / s.block));
        for (std::uint8_t& code : o.scales) code = make_scale(kind, scaling, random);
    }
    return o;
}

std::vector<std::uint32_t> make_accumulators(bool f16, operand_kind kind, std::size_t count,
                                             std::mt19937_64& random) {
    const operand_format& f = *gemm::find_operand_format(f16 ? "f16" : "f32");
    code_maker codes(f, random);
    std::vector<std::uint32_t> c(count);
    for (std::uint32_t& code : c) code = codes.below(3) == 0 ? 0 : codes.of(kind);
    return c;
}

std::vector<std::uint32_t> scalings_of(const gemm::accumulator& m, const gemm::operand_format& a,
                                       const gemm::operand_format& b) {
    std::vector<std::uint32_t> out;
    if (gemm::takes(m, a, b, 0)) out.push_back(0);
    for (const gemm::operand_scale& s : gemm::operand_scales) {
        if (gemm::takes(m, a, b, s.bit)) out.push_back(s.bit);
    }
    return out;
}

}  // namespace mx::tests

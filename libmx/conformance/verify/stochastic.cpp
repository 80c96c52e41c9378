// SPDX-License-Identifier: Apache-2.0
// Files of kind `stochastic`: `input` converted with the random words `rbits`. The tensor's name
// contains the implementation and the number of bits used.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>

#include "libmx/base/parsed.hpp"
#include "libmx/conformance/verify/element_inputs.hpp"
#include "libmx/conformance/verify/verify.hpp"

namespace mx::conformance::verify {
namespace {

// NAME[.kK].code: K is the number of top bits used; 0 if the name does not contain it.
struct stochastic_name {
    std::string_view name;
    codec::dialect_id by;
};
constexpr std::array stochastic_names{
    // By definition the canonical form, not a dialect of gfloat.
    stochastic_name{"gfloat.StochasticFastest", codec::dialect_id::ocp},
    stochastic_name{"gfloat.Stochastic", codec::dialect_id::gfloat},
    stochastic_name{"amd_hip", codec::dialect_id::amd_hip},
    stochastic_name{"te_fallback", codec::dialect_id::te},
};

struct stochastic_tensor {
    implementation by;
    int bits = 0;
};

stochastic_tensor meaning_of(const vector_file& file, const std::string& tensor,
                             const format::element_format& f) {
    std::string_view rest = tensor;
    constexpr std::string_view ending = ".code";
    if (!rest.ends_with(ending)) file.fail_in(tensor, "is not a tensor of a stochastic file");
    rest.remove_suffix(ending.size());
    // HIP shifts the mantissa, so 23 - m bits remain to be added.
    int bits = 23 - f.mantissa_bits;
    const std::size_t k = rest.rfind(".k");
    if (k != std::string_view::npos) {
        const std::string_view digits = rest.substr(k + 2);
        const auto stated = base::parsed<std::uint64_t>(digits);
        if (!stated || *stated < 1 || *stated > 32) {
            file.fail_in(tensor, "names no number of random bits from 1 to 32");
        }
        bits = static_cast<int>(*stated);
        rest = rest.substr(0, k);
    }
    for (const stochastic_name& n : stochastic_names) {
        if (n.name == rest) return {{n.name, n.by}, bits};
    }
    file.fail_in(tensor, "no dialect answers for '{}'", rest);
}

}  // namespace

std::string verify_stochastic(const vector_file& file, const verify_options& options,
                              comparison& found) {
    const std::string name =
        options.recipe ? std::string(options.recipe->element->name) : file.at("element");
    const vector_format f = format_named(file, name);
    if (f.number == nullptr) file.fail("{} has no stochastic rounding", f.name);
    const auto x = file.f32("input", vector_file::any_count);
    const auto words = file.u32("rbits", x.size());
    std::set<std::string_view> dialects;
    for (const io::tensor_info& info : file.tensors()) {
        if (info.name == "input" || info.name == "rbits") continue;
        if (info.name == "decode_table") {
            compare_decode_table(file, f, found);
            continue;
        }
        const stochastic_tensor t = meaning_of(file, info.name, *f.number);
        const std::string_view by = codec::row_of(t.by.by).name;
        dialects.insert(by);
        const auto expected = file.u8(info.name, x.size());
        const converter convert =
            converter_of(f, t.by, {format::rounding::stochastic, format::tie_rule::up, t.bits});
        found.about(info.name, std::string(by));
        for (std::size_t i = 0; i < x.size(); ++i) {
            found.check_code({i, {}, {}, x[i]}, f.codes, expected[i], convert(x[i], words[i]).code);
        }
    }
    return fmt::format("{}: {}", f.name, fmt::join(dialects, ", "));
}

}  // namespace mx::conformance::verify

// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/element_inputs.hpp"

#include <fmt/format.h>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/conformance/verify/vector_recipe.hpp"

namespace mx::conformance::verify {

vector_format format_named(const vector_file& file, const std::string& name) {
    vector_format f;
    f.name = element_name(name);
    const std::string* int_min = file.find("int_min");
    f.full_range = int_min != nullptr && *int_min == "full";
    const format::scale_format* scale = format::find_scale_format(f.name);
    f.number = format::find_element_format(f.name);
    if (f.number == nullptr && scale != nullptr && scale->is_number()) f.number = &scale->number;
    const bool is_e8m0 = scale != nullptr && scale->power_of_two();
    if (f.number == nullptr && !is_e8m0) {
        file.fail(
            "its metadata names the element '{}', which this version does not have; 'mx explain "
            "formats' "
            "lists what it has",
            name);
    }
    f.codes = is_e8m0 ? e8m0_codes() : codes_of(*f.number);
    return f;
}

converter converter_of(const vector_format& f, const implementation& by,
                       const format::rounding_mode& mode) {
    const codec::dialect& dialect = codec::row_of(by.by);
    if (f.number == nullptr) {
        const codec::element_cast c = codec::cast_to_e8m0(
            dialect, by.toward_zero ? format::rounding::zero : format::rounding::up, by.saturate);
        return [c](std::uint32_t x, std::uint32_t) { return codec::cast_element(c, x, 0); };
    }
    // A dialect without nearest even uses the rounding that it has.
    format::rounding_mode how = mode;
    if (how.how == format::rounding::rtne && !codec::lists(dialect.roundings, "rtne")) {
        how.how = format::find_rounding(codec::first_of(dialect.roundings))->id;
    }
    const codec::conversion c =
        codec::conversion_of(dialect, *f.number, how, by.saturate, f.full_range);
    return [c](std::uint32_t x, std::uint32_t draw) { return codec::convert(c, x, draw); };
}

void compare_decode_table(const vector_file& file, const vector_format& f, comparison& found) {
    const auto expected = file.f32("decode_table", f.codes.value.size());
    found.about("decode_table", f.name);
    for (std::size_t code = 0; code < expected.size(); ++code) {
        found.check_f32({code, {}, {}, {}}, expected[code], base::bits_of(f.codes.value[code]));
    }
}

const std::vector<std::uint32_t>& input_sets::of(std::string_view set, std::string_view tensor) {
    const auto found = sets_.find(set);
    if (found != sets_.end()) return found->second;
    std::vector<std::uint32_t> inputs;
    if (set == "fp32") {
        inputs = file_->f32("fp32.input", vector_file::any_count);
    } else if (set == "bf16" || set == "fp16") {
        for (std::uint32_t i = 0; i < 65536; ++i) {
            const auto pattern = static_cast<std::uint16_t>(i);
            inputs.push_back(base::bits_of(set == "bf16" ? base::float_from_bf16(pattern)
                                                         : base::float_from_half(pattern)));
        }
    } else {
        file_->fail_in(tensor, "'{}' is no set of inputs; there are bf16, fp16 and fp32", set);
    }
    return sets_.emplace(std::string(set), std::move(inputs)).first->second;
}

}  // namespace mx::conformance::verify

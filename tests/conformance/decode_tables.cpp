// SPDX-License-Identifier: Apache-2.0
// Compares the library and the oracle with decode tables stored as text, so that the table of
// formats is not its own evidence. A format without a text file fails.
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "libmx/base/bits.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/oracle/value_list.hpp"
#include "tests/catch.hpp"

namespace {

// The values of datasets/vectors/decode/NAME.txt in code order.
std::vector<double> read_table(std::string_view name) {
    std::ifstream in(std::string(MX_SOURCE_DIR) + "/datasets/vectors/decode/" + std::string(name) +
                     ".txt");
    std::vector<double> values;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line.front() == '#') continue;
        const std::size_t space = line.find(' ');
        CHECK(std::stoul(line.substr(0, space), nullptr, 16) == values.size());
        values.push_back(std::stod(line.substr(space + 1)));
    }
    return values;
}

bool same(double typed, const mx::oracle::decoded& d) {
    if (std::isnan(typed)) return d.what == mx::oracle::number_class::nan;
    if (std::signbit(typed) != d.negative) return false;
    if (std::isinf(typed)) return d.what == mx::oracle::number_class::infinite;
    return d.what == mx::oracle::number_class::finite && d.value() == mx::oracle::rational(typed);
}

bool same(double typed, double decoded) {
    if (std::isnan(typed)) return std::isnan(decoded);
    return mx::base::bits_of(typed) == mx::base::bits_of(decoded);
}

void check_number(std::string_view name, const mx::format::element_format& f) {
    const std::vector<double> typed = read_table(name);
    CAPTURE(std::string(name));
    REQUIRE(typed.size() == std::size_t{1} << mx::oracle::code_bits(f));
    for (std::uint32_t code = 0; code < typed.size(); ++code) {
        CAPTURE(code, typed[code]);
        CHECK(same(typed[code], double{mx::format::decode(f, code)}));
        CHECK(same(typed[code], mx::oracle::decode(f, code)));
    }
}

}  // namespace

TEST_CASE("every element format decodes to its typed table") {
    for (const mx::format::element_format& f : mx::format::element_formats) check_number(f.name, f);
}

TEST_CASE("every scale format decodes to its typed table") {
    for (const mx::format::scale_format& s : mx::format::scale_formats) {
        if (s.is_number()) {
            check_number(s.name, s.number);
            continue;
        }
        if (!s.has_codes()) continue;
        const std::vector<double> typed = read_table(s.name);
        REQUIRE(typed.size() == 256);
        for (unsigned code = 0; code < 256; ++code) {
            CAPTURE(code);
            CHECK(same(typed[code], mx::format::decode_e8m0(static_cast<int>(code))));
            CHECK(same(typed[code], mx::oracle::decode_scale(s, code)));
        }
    }
}

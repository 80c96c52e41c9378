// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/hex_text.hpp"

#include <fmt/format.h>

#include <iterator>

namespace mx::conformance::vectors {

std::string hex_text(const vector_array& a, const hex_heading& heading) {
    std::string text;
    const auto out = std::back_inserter(text);
    const std::size_t line = a.per_block == 0 ? a.words.size() : a.per_block;
    fmt::format_to(out, "// {}: {} of recipe {}\n", a.text, a.meaning, heading.recipe);
    fmt::format_to(out, "// written by {}; inputs: {}\n", heading.made_by, heading.source);
    if (a.per_block == 0) {
        fmt::format_to(out, "// layout: one word for all blocks\n");
    } else {
        fmt::format_to(out, "// layout: one block per line, {} word{} each, first element first\n",
                       line, line == 1 ? "" : "s");
    }
    fmt::format_to(out, "// $readmemh: reg [{}:0] {} [0:{}], {} words of {} bits\n", a.bits - 1,
                   a.text, a.words.size() - 1, a.words.size(), a.bits);
    const int digits = (a.bits + 3) / 4;
    for (std::size_t i = 0; i < a.words.size(); ++i) {
        const char end = (i + 1) % line == 0 ? '\n' : ' ';
        fmt::format_to(out, "{:0{}x}{}", a.words[i], digits, end);
    }
    return text;
}

}  // namespace mx::conformance::vectors

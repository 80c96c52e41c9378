// SPDX-License-Identifier: Apache-2.0
// Layers of Keras in int8: value = code / scale, with a scale for each output. Their variables have
// numbers for names. Which arrays confirm each other.
#include <fmt/format.h>

#include <algorithm>

#include "libmx/quantized/candidate.hpp"

namespace mx::io {

std::optional<pairing> confirm_keras(const candidate& c, const quantized_layout& l,
                                     std::string& misfit) {
    const tensor::shape& shape = c.code_info().shape;
    tensor::shape outputs = c.scale_info().shape;
    std::erase(outputs, 1u);
    const std::string modes = c.arrays.metadata_of(c.codes, keras_modes_key);
    if (!modes.empty() && modes != "int8") {
        misfit = fmt::format("{}: the configuration states the modes {}", l.title, modes);
        return std::nullopt;
    }
    const auto axes = static_cast<std::ptrdiff_t>(outputs.size());
    const bool proper = !outputs.empty() && outputs.size() < shape.size() && fits_memory(shape);
    const bool last = proper && std::equal(outputs.begin(), outputs.end(), shape.end() - axes);
    const bool first = proper && std::equal(outputs.begin(), outputs.end(), shape.begin());
    if (!first && !last) {
        misfit =
            fmt::format("{} calls for a scale for each of the last or the first axes", l.title);
        return std::nullopt;
    }
    pairing p = c.begin(l);
    p.shape = shape;
    // Folders are named after classes. Rows of an embedding are vectors, each with its scale.
    const bool rows = first && (!last || c.stem.find("embedding") != std::string::npos);
    const std::uint64_t count = c.scale_info().elements;
    const std::uint64_t others = *tensor::element_count(shape) / count;
    const int total = static_cast<int>(shape.size()), split = static_cast<int>(axes);
    if (rows) {
        p.grid = {{1, count, others}, 1, others};
        p.sums_over = {split, total, "each index of the axes before has a scale"};
    } else {
        p.grid = {{1, others, count}, others, 1};
        p.sums_over = {0, total - split, "each output has a scale"};
    }
    p.why =
        fmt::format(", which divides{}",
                    modes.empty() ? "; mode int8 is assumed, which only config.json of a .keras "
                                    "file states"
                                  : "");
    return p;
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <numeric>

#include "apps/mx_capture/parts.hpp"
#include "apps/mx_capture/recording_file.hpp"

namespace mx::capture {
namespace {

using namespace conformance::vectors;

io::metadata_map metadata_of(const io::metadata_map& common, std::string_view list,
                             std::string_view name, std::string_view instruction,
                             std::string_view format, const amounts& a) {
    io::metadata_map m = common;
    m["kind"] = "cvt";
    m["list"] = list;
    m["conversion"] = name;
    m["instruction"] = instruction;
    m["format"] = format;
    m["inputs"] = "generated";
    m["generator"] = conversion_inputs_version;
    m["seed"] = fmt::format("{}", a.seed);
    return m;
}

std::vector<std::uint32_t> words_of(const std::vector<std::uint8_t>& bytes) {
    return {bytes.begin(), bytes.end()};
}

void record_narrowing(const narrowing& row, const amounts& a, device& d, const std::string& path,
                      const io::metadata_map& common) {
    io::metadata_map m = metadata_of(common, "narrowing", row.name, row.instruction, row.format, a);
    recording_file file;
    std::vector<std::uint32_t> halves(65536);
    if (row.from == conversion_input::f32) {
        halves = all_halves(row.from);
    } else {
        std::iota(halves.begin(), halves.end(), 0u);
    }
    file.add("all.code", tensor::dtype::u8, {halves.size()}, words_of(d.narrow(row, halves)));
    if (row.from == conversion_input::f32) {
        const auto x = stratified_floats(a.seed);
        file.add("strata.code", tensor::dtype::u8, {x.size()}, words_of(d.narrow(row, x)));
        if (!row.relu) {
            file.add_words64("cells.hash", d.hash_cells(row, a.cell_stride));
            m["cell_stride"] = fmt::format("{}", a.cell_stride);
        }
    }
    file.write(path, m);
}

void record_widening(const widening& row, const amounts& a, device& d, const std::string& path,
                     const io::metadata_map& common) {
    const std::size_t codes =
        row.format == "e8m0"
            ? 256
            : static_cast<std::size_t>(format::find_element_format(row.format)->codes());
    const auto values = d.widen(row, codes);
    recording_file file;
    file.add("codes.value", tensor::dtype::u16, {codes},
             std::vector<std::uint32_t>(values.begin(), values.end()));
    file.write(path, metadata_of(common, "widening", row.name, row.instruction, row.format, a));
}

void record_stochastic(const stochastic_narrowing& row, const amounts& a, device& d,
                       const std::string& path, const io::metadata_map& common) {
    // The plain conversions show how random bits are used; of the others a part is enough.
    const bool plain = !row.relu && row.saturate == (row.values == 4);
    const std::size_t count = plain ? a.stochastic : a.stochastic / 16;
    const auto inputs = stochastic_inputs(row, a.seed, count);
    const auto results = d.narrow_stochastically(row, inputs);
    io::metadata_map m =
        metadata_of(common, "stochastic", row.name, row.instruction, row.format, a);
    m["random_inputs"] = fmt::format("{}", count);
    recording_file file;
    file.add("results.word", tensor::dtype::u32, {results.size()}, results);
    file.write(path, m);
}

bool has(const chip& c, conversion_since since) {
    return since == conversion_since::sm89 ? c.fp8 : c.narrow_cvt;
}

}  // namespace

void append_conversions(std::vector<part>& parts, const chip& c, const amounts& a) {
    const auto append = [&](std::string_view name, auto record) {
        parts.push_back({fmt::format("cvt/{}.safetensors", name), record});
    };
    for (const narrowing& row : narrowings) {
        if (!has(c, row.since)) continue;
        append(row.name,
               [&row, a](device& d, const std::string& path, const io::metadata_map& common) {
                   record_narrowing(row, a, d, path, common);
               });
    }
    for (const widening& row : widenings) {
        if (!has(c, row.since)) continue;
        append(fmt::format("widen.{}", row.name),
               [&row, a](device& d, const std::string& path, const io::metadata_map& common) {
                   record_widening(row, a, d, path, common);
               });
    }
    for (const stochastic_narrowing& row : stochastic_narrowings) {
        if (!c.stochastic_cvt) continue;
        append(row.name,
               [&row, a](device& d, const std::string& path, const io::metadata_map& common) {
                   record_stochastic(row, a, d, path, common);
               });
    }
}

}  // namespace mx::capture

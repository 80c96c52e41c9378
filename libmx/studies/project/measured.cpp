// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/project/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/report/csv_reader.hpp"

namespace mx::project {
namespace {

using extents = std::array<double, 3>;  // M, N, K

struct measurement {
    extents shape;
    unit is;
    double rate;  // FLOP a second
};

std::vector<measurement> read_measurements(const std::string& path) {
    io::input_stream file(path);
    const report::csv_table table =
        report::read_csv([&](std::span<char> out) { return file.read(out); }, path);
    const std::array<std::size_t, 3> at{table.column("M"), table.column("N"), table.column("K")};
    const std::size_t format = table.column("format"), seconds = table.column("seconds");
    std::vector<measurement> all;
    for (const auto& row : table.rows) {
        const auto number = [&](std::size_t column) {
            const auto x = report::finite_number(row.fields[column]);
            if (x && *x > 0) return *x;
            throw base::error(
                base::error_kind::input,
                fmt::format("line {}: {} must be a positive number", row.line, table.names[column]),
                {path, {}, {}});
        };
        const auto is = std::ranges::find(unit_names, row.fields[format]);
        if (is == unit_names.end()) {
            throw base::error(base::error_kind::input,
                              fmt::format("line {}: {}", row.line,
                                          base::unknown("format", row.fields[format],
                                                        {unit_names.begin(), unit_names.end()})),
                              {path, {}, {}});
        }
        const extents shape{number(at[0]), number(at[1]), number(at[2])};
        all.push_back({shape, static_cast<unit>(is - unit_names.begin()),
                       2 * shape[0] * shape[1] * shape[2] / number(seconds)});
    }
    return all;
}

}  // namespace

measured_rates take_measured(const std::string& path, const model_shape& m, double tokens,
                             assumptions& a) {
    const std::vector<measurement> all = read_measurements(path);
    measured_rates out;
    // Seconds of a block's linear layers, by unit and class.
    std::array<std::array<double, 2>, unit_names.size()> time{};
    double flop = 0;
    for (std::size_t u = 0; u < unit_names.size(); ++u) {
        const auto is = static_cast<unit>(u);
        const bool known =
            std::ranges::any_of(all, [&](const measurement& x) { return x.is == is; });
        if (!known) {
            if (is == unit::bf16) {
                throw base::error(base::error_kind::input, "has no row of bf16, the yardstick",
                                  {path, {}, {}});
            }
            out.missing.push_back(is);
            continue;
        }
        for (const linear_layer& l : linear_layers(m)) {
            const auto o = static_cast<double>(l.out), i = static_cast<double>(l.in);
            for (const extents& want :
                 {extents{tokens, o, i}, extents{tokens, i, o}, extents{o, i, tokens}}) {
                const measurement* best = nullptr;
                double least = 0;
                for (const measurement& x : all) {
                    if (x.is != is) continue;
                    double distance = 0;
                    for (std::size_t k = 0; k < 3; ++k) {
                        distance += std::abs(std::log(x.shape[k] / want[k]));
                    }
                    if (best == nullptr || distance < least) {
                        best = &x;
                        least = distance;
                    }
                }
                ++out.of;
                if (least == 0) ++out.exact;
                time[u][l.is == work::mlp ? 0 : 1] += 2 * want[0] * want[1] * want[2] / best->rate;
                if (is == unit::bf16) flop += 2 * want[0] * want[1] * want[2];
            }
        }
    }
    const auto layers = static_cast<double>(m.layers);
    const double mlp = layers * time[0][0], attention = layers * time[0][1];
    const std::array<double, 4> work = forward_flop(m, a.sequence, a.causal);
    const double rest = 3 * tokens * (work[2] + work[3]) * (mlp + attention) / (layers * flop);
    out.seconds = mlp + attention + rest;
    a.shares_by_flop = false;
    a.mlp = mlp / out.seconds;
    a.attention = attention / out.seconds;
    for (std::size_t u = 1; u < unit_names.size(); ++u) {
        if (time[u][0] == 0) continue;
        for (std::size_t of = 0; of < 2; ++of) {
            set_parameter(m, a, fmt::format("{}.{}", unit_names[u], of == 0 ? "mlp" : "attention"),
                          time[0][of] / time[u][of]);
        }
    }
    return out;
}

}  // namespace mx::project

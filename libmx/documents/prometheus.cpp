// SPDX-License-Identifier: Apache-2.0
// The text format of Prometheus, version 0.0.4, for the textfile collector of node_exporter.
#include <fmt/format.h>

#include <string_view>

#include "libmx/base/status.hpp"
#include "libmx/documents/watch.hpp"
#include "libmx/report/members.hpp"

namespace mx::documents {
namespace {

using report::record;

// A metric and the member of a line, or of its results, that it is.
struct metric_row {
    std::string_view name, member, help;
};

constexpr std::array tensor_metrics{
    metric_row{"mx_watch_saturated_block_rate", "saturated_block_rate",
               "Share of blocks whose elements all take the largest code."},
    metric_row{"mx_watch_clamp_zone_block_rate", "clamp_zone_block_rate",
               "Share of blocks whose maximum lies where the recipe clamps."},
    metric_row{"mx_watch_clamp_zone_distance_octaves", "clamp_zone_distance",
               "Mean distance of block maxima to the lower edge of the clamp zone."},
    metric_row{"mx_watch_falling_blocks", "falling_blocks",
               "Blocks whose maximum is about to fall through a power of two."},
    metric_row{"mx_watch_expected_step", "expected_step",
               "Step at which block maxima are expected in the clamp zone."},
    metric_row{"mx_watch_nrmse", "nrmse", "Relative error of quantization."},
    metric_row{"mx_watch_drift_nrmse", "drift.nrmse",
               "Relative change of values since the checkpoint before."},
    metric_row{"mx_watch_codes_moved", "drift.codes_moved",
               "Share of codes that changed since the checkpoint before."},
};

// A label's value. One that is not UTF-8 would make the collector discard the whole file.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : base::printable(text)) {
        if (c == '\\' || c == '"') out += '\\';
        out += c;
    }
    return out;
}

std::optional<double> figure_of(const record& r, std::string_view member) {
    const std::size_t dot = member.find('.');
    if (dot == std::string_view::npos) return report::number_of(r, member);
    const auto* inner = report::member<record>(r, member.substr(0, dot));
    return inner == nullptr ? std::nullopt : report::number_of(*inner, member.substr(dot + 1));
}

std::string head_of(std::string_view name, std::string_view help) {
    return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
}

}  // namespace

std::string prometheus_text(const record& line, const std::string& folder,
                            std::uint64_t checkpoints) {
    const std::string place = fmt::format("folder=\"{}\"", escaped(folder));
    std::string text;
    const auto whole = [&](std::string_view name, std::string_view help, double x) {
        text += fmt::format("{}{}{{{}}} {}\n", head_of(name, help), name, place, x);
    };
    const auto* warnings = report::member<report::list>(line, "warnings");
    whole("mx_watch_checkpoints", "Checkpoints that were looked at.",
          static_cast<double>(checkpoints));
    whole("mx_watch_warnings", "Rules and tensors that the last checkpoint breaks.",
          warnings == nullptr ? 0 : static_cast<double>(warnings->size()));
    if (const auto step = report::number_of(line, "step")) {
        whole("mx_watch_step", "Training step of the last checkpoint.", *step);
    }
    const auto* results = report::member<report::list>(line, "results");
    if (results == nullptr) return text;
    for (const metric_row& m : tensor_metrics) {
        std::string samples;
        for (const report::value& v : *results) {
            const auto* r = std::get_if<record>(&v);
            const auto x = r == nullptr ? std::nullopt : figure_of(*r, m.member);
            if (!x) continue;
            const auto layer = report::number_of(*r, "layer");
            samples += fmt::format("{}{{{},tensor=\"{}\",layer=\"{}\",recipe=\"{}\"}} {}\n", m.name,
                                   place, escaped(report::text_of(*r, "tensor")),
                                   layer ? fmt::format("{:.0f}", *layer) : "",
                                   escaped(report::text_of(*r, "recipe")), *x);
        }
        if (!samples.empty()) text += head_of(m.name, m.help) + samples;
    }
    return text;
}

}  // namespace mx::documents

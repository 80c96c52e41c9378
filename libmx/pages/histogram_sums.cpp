// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/histogram_sums.hpp"

#include <charconv>

#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t most_codes = 256;

void add_codes(const report::record& r, histogram_sum& to) {
    const auto* codes = report::member<report::list>(r, "code_histogram");
    if (codes == nullptr || codes->size() > most_codes) return;
    if (to.codes.size() < codes->size()) to.codes.resize(codes->size());
    for (std::size_t i = 0; i < codes->size(); ++i) {
        to.codes[i] += report::number_of((*codes)[i]).value_or(0);
    }
}

void add_scales(const report::record& r, histogram_sum& to) {
    const auto* scales = report::member<report::record>(r, "scale_histogram");
    if (scales == nullptr) return;
    for (const auto& [name, count] : *scales) {
        int code = -1;
        const char* const end = name.data() + name.size();
        const auto read = std::from_chars(name.data(), end, code);
        const bool valid = read.ec == std::errc{} && read.ptr == end && code >= 0 &&
                           code < static_cast<int>(most_codes);
        if (valid) to.scales[code] += report::number_of(count).value_or(0);
    }
}

}  // namespace

bool read_mantissas(const report::record& r, mantissas& bins) {
    const auto* of = report::member<report::record>(r, "amax_mantissa_histogram");
    const auto* counts = of == nullptr ? nullptr : report::member<report::list>(*of, "bins");
    if (counts == nullptr || counts->size() != bins.size()) return false;
    for (std::size_t i = 0; i < bins.size(); ++i) {
        bins[i] += report::number_of((*counts)[i]).value_or(0);
    }
    return true;
}

std::optional<histogram_sum> histograms_of(const review_data& e, const std::string& role,
                                           const std::string& recipe) {
    std::optional<histogram_sum> sum;
    for (const report::record* r : e.sums) {
        if (report::text_of(*r, "recipe") != recipe) continue;
        if (!role.empty() && report::text_of(*r, "role") != role) continue;
        if (!sum) sum.emplace();
        sum->tensors += report::number_of(*r, "tensors").value_or(0);
        add_codes(*r, *sum);
        add_scales(*r, *sum);
        read_mantissas(*r, sum->amax);
    }
    return sum;
}

}  // namespace mx::pages

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/findings.hpp"

#include <array>
#include <tuple>

#include "libmx/report/members.hpp"

namespace mx::cluster {
namespace {

using report::tally;

constexpr std::array words{ailment_words{"saturates", "saturate"}, ailment_words{"dies", "die"},
                           ailment_words{"collapses", "collapse"}};
static_assert(words.size() == ailment_count);

std::string verdict(ailment a) { return std::string(words_of(a).one); }

report::record block_record(const bad_block& b) {
    return {{"block", tally(b.index)},
            {"verdict", verdict(b.what)},
            {"min", b.least},
            {"max", b.largest},
            {"becomes", b.becomes ? report::value(*b.becomes) : report::value()},
            {"gain", b.gain}};
}

report::record mend_record(const measured_mend& m) {
    return {{"change", m.change},
            {"recipe", m.recipe},
            {"rmse", m.rmse},
            {"saturated_block_rate", m.saturated_block_rate},
            {"bits_per_element", m.bits_per_element}};
}

}  // namespace

const ailment_words& words_of(ailment a) { return words[static_cast<std::size_t>(a)]; }

std::optional<ailment> danger_of(const block_survey& s) {
    for (std::size_t a = 0; a < ailment_count; ++a) {
        const auto what = static_cast<ailment>(a);
        if (s.ailing[a] > 0 && s.share(what) >= danger_share) return what;
    }
    return std::nullopt;
}

bool more_severe(const finding& a, const finding& b) {
    const auto severity = [](const finding& f) {
        return std::tuple(-static_cast<int>(f.what), f.survey.share(f.what),
                          report::number_of(f.nrmse).value_or(0));
    };
    return severity(b) < severity(a);
}

report::record finding_record(const finding& f, const engine::role_finder& roles) {
    const io::tensor_info& info = f.tensor.info();
    const block_survey& s = f.survey;
    const std::uint64_t ailing = s.ailing[static_cast<std::size_t>(f.what)];
    report::list mends, worst;
    for (const measured_mend& m : f.mends) mends.emplace_back(mend_record(m));
    for (const bad_block& b : s.worst) worst.emplace_back(block_record(b));
    const measured_mend& chosen = f.mends[f.mend];
    return {{"file", info.file},
            {"tensor", info.name},
            {"role", std::string(roles.role_of(info))},
            {"recipe", codec::to_string(f.recipe)},
            {"verdict", verdict(f.what)},
            {"eligible_blocks", tally(s.eligible)},
            {"ailing_blocks", tally(ailing)},
            {"ailing_block_rate", s.share(f.what)},
            {"saturated_block_rate", s.saturated_block_rate},
            {"collapsed_block_rate", f.collapsed_block_rate},
            {"certain_overflow_block_rate", s.certain_overflow_block_rate},
            {"certain_saturation_block_rate", s.certain_saturation_block_rate},
            {"clamp_zone_block_rate", s.clamp_zone_block_rate},
            {"saturated_block_gain", s.saturated_block_gain},
            {"rmse", s.rmse},
            {"nrmse", f.nrmse},
            {"mend", chosen.recipe},
            {"mend_rmse", chosen.rmse},
            {"mends", std::move(mends)},
            {"worst_blocks", std::move(worst)}};
}

}  // namespace mx::cluster

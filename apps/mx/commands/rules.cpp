// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::app {

report::document rules_document() {
    std::vector<report::record> rules;
    for (const auto& r : scale::scale_rules) {
        rules.push_back({{"kind", text("scale rule")},
                         {"name", text(r.name)},
                         {"key", fmt::format("scale={}", r.name)},
                         {"definition", text(r.definition)},
                         {"source", text(r.source)}});
    }
    std::vector<report::record> roundings;
    for (const auto& r : format::roundings) {
        roundings.push_back({{"kind", text("rounding")},
                             {"name", text(r.name)},
                             {"key", fmt::format("round={}", r.name)},
                             {"definition", text(r.summary)}});
    }
    std::vector<report::record> keys;
    for (const auto& k : codec::recipe_keys()) {
        keys.push_back({{"kind", text("recipe key")},
                        {"name", text(k.name)},
                        {"key", text(k.name)},
                        {"definition", text(k.summary)},
                        {"values", text(k.values)}});
    }
    report::document d;
    d.head = pages::document_head("mx.rules/1");
    for (const auto* part : {&rules, &roundings, &keys}) {
        for (const report::record& r : *part) d.results.push_back(r);
    }
    d.sections.push_back({"Scale rules: the shared scale of a block with largest magnitude amax",
                          {{"key", "key"}, {"definition", "scale"}, {"source", "source"}},
                          rules,
                          {},
                          {"emax is the exponent of the element format's largest value max; see "
                           "'mx formats'. An E8M0 scale is clamped to 2^-127 .. 2^127; an Inf or "
                           "NaN in the block gives scale code 255 (NaN). g is the tensor scale, "
                           "amax of the tensor / (448 max). Dialects depart from "
                           "this: see 'mx dialects'."}});
    d.sections.push_back({"Roundings of elements",
                          {{"key", "key"}, {"definition", "how x / scale becomes an element"}},
                          roundings});
    d.sections.push_back({"Recipe keys: PRESET[:key=value,...]",
                          {{"key", "key"}, {"values", "values"}, {"definition", "what it decides"}},
                          keys,
                          {},
                          {"Presets are the block formats of 'mx formats'; 'mx explain RECIPE' "
                           "says what one does."}});
    return d;
}

runner declare_rules(parser& cmd) {
    const auto o = std::make_shared<output_options>();
    declare_outputs(cmd, *o);
    cmd.description("Lists how the scale of a block is chosen and how its elements are rounded.");
    cmd.examples("mx rules\n");
    return [o] { return print_document(*o, rules_document); };
}

}  // namespace mx::app

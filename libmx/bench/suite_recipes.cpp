// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/suite_recipes.hpp"

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/codec/dialects.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::bench {
namespace {

class recipe_list {
  public:
    void add(std::string group, const std::string& text) {
        codec::recipe r = codec::parse_recipe(text);
        const bool known = std::any_of(
            all.begin(), all.end(), [&](const suite_recipe& other) { return other.recipe == r; });
        if (!known) all.push_back({std::move(group), std::move(r)});
    }
    /// Does nothing if the combination does not exist.
    void add_if_any(std::string group, const std::string& text) {
        try {
            add(std::move(group), text);
        } catch (const base::error&) {
        }
    }

    std::vector<suite_recipe> all;
};

}  // namespace

std::vector<suite_recipe> suite_recipes() {
    recipe_list list;
    list.add("format", "mxfp4");
    for (const format::block_format& f : format::block_formats) {
        list.add("format", std::string(f.name));
    }
    for (const std::string preset : {"mxfp4", "mxfp8", "nvfp4", "fp8_1x128"}) {
        for (const scale::scale_rule& rule : scale::scale_rules) {
            list.add_if_any("rule", preset + ":scale=" + std::string(rule.name));
        }
    }
    for (const std::string preset : {"mxfp4", "mxfp8", "mxint8", "nvfp4"}) {
        for (const format::rounding_row& how : format::roundings) {
            list.add_if_any("rounding", preset + ":round=" + std::string(how.name));
        }
    }
    for (const char* text :
         {"mxfp4_e3m0:ties=even", "nvfp4:scale=single-level,block=16x16", "nvfp4:block=16x16",
          "nvfp4:four_over_six=mse", "nvfp4:four_over_six=mae", "nvfp4:four_over_six=abs_max",
          "nvfp4:four_over_six=mae,bound=448,dialect=te",
          "nvfp4:four_over_six=mse,candidates=fp16,dialect=te", "nvfp4:scale_format=ue5m3",
          "nvfp4:scale_format=ue5m3,scale=single-level", "nvfp4:scale_format=ue5m3,dialect=te",
          "amdfp4:block=1x32", "amdfp4:block=1x32,dialect=quark", "nvfp4:element=e1m2",
          "nvfp4:scale=search,search=mae,reach=3", "amdfp4:scale=search", "nvfp4:outer=row",
          "nvfp4:outer=none", "nvfp4:outer=128x128"}) {
        list.add("element and scale", text);
    }
    for (const char* text : {"mxfp4:block=1x16", "mxfp4:block=1x128", "mxfp4:block=32x1",
                             "mxfp4:block=4x4", "mxfp4:block=8x8", "mxfp4:block=32x32"}) {
        list.add("block", text);
    }
    for (const char* text : {"mxfp4:offset=fp16", "mxfp8:offset=fp16,range=half"}) {
        list.add("offset", text);
    }
    for (const char* text : {"mxfp4:transform=hadamard", "nvfp4:transform=hadamard"}) {
        list.add("rotation", text);
    }
    for (const codec::dialect& by : codec::dialects()) {
        if (!by.blocks) continue;
        for (const std::string preset :
             {"mxfp4", "mxfp8", "mxint8", "nvfp4", "amdfp4", "fp8_1x128"}) {
            list.add_if_any("dialect", preset + ":dialect=" + std::string(by.name));
        }
    }
    return std::move(list.all);
}

}  // namespace mx::bench

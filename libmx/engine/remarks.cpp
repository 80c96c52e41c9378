// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/remarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "libmx/io/input_paths.hpp"
#include "libmx/io/remarks.hpp"
#include "libmx/report/members.hpp"

namespace mx::engine {

std::vector<std::string> remarks_on(const std::vector<tensor_ref>& tensors) {
    constexpr std::size_t shown = 4;
    std::vector<std::string> all;
    std::set<const io::reader*> told;
    std::vector<std::string> files;
    std::size_t lacking = 0;
    for (const tensor_ref& t : tensors) {
        if (!told.insert(t.file).second) continue;
        for (std::string& text : io::remarks_of(*t.file)) all.push_back(std::move(text));
        for (auto& [path, bytes] : t.file->files()) files.push_back(path);
    }
    for (const std::string& shards : io::missing_shards(files)) all.push_back("reads " + shards);
    for (const tensor_ref& t : tensors) {
        if (t.info().missing.empty() || ++lacking > shown) continue;
        all.push_back(fmt::format("{} lacks {}", t.info().name, t.info().missing));
    }
    std::size_t odd = 0;
    for (const tensor_ref& t : tensors) {
        for (const io::tensor_scale& s : io::tensor_scales_of(t)) {
            const auto at =
                std::ranges::find_if_not(s.values, [](float x) { return std::isfinite(x); });
            if (at == s.values.end() || ++odd > shown) continue;
            all.push_back(fmt::format("{} of {} is {}", s.name, t.info().name, *at));
        }
    }
    if (odd > shown) all.push_back(fmt::format("and {} more scales are not finite", odd - shown));
    if (lacking > shown) {
        all.push_back(
            fmt::format("and {} more tensors lack what others like them have: 'mx tensors "
                        "--json -' states it of each",
                        lacking - shown));
    }
    return all;
}

namespace {

// A number, or the word for one that JSON does not have.
report::value scale_value(float x) {
    if (std::isfinite(x)) return static_cast<double>(x);
    return fmt::format("{}", x);
}

std::string range_text(std::span<const float> values) {
    const auto [least, largest] = std::ranges::minmax_element(values);
    return *least == *largest ? fmt::format("{}", *least)
                              : fmt::format("{} to {}", *least, *largest);
}

}  // namespace

report::list tensor_scales_of(const tensor_ref& t) {
    return report::to_list(io::tensor_scales_of(t), [](const io::tensor_scale& s) {
        report::record r{{"name", s.name}, {"operation", s.use}};
        if (s.values.size() == 1) r.emplace_back("value", scale_value(s.values.front()));
        if (s.values.size() <= 1) return r;
        const auto [least, largest] = std::ranges::minmax_element(s.values);
        r.emplace_back("count", static_cast<std::int64_t>(s.values.size()));
        r.emplace_back("min", scale_value(*least));
        r.emplace_back("max", scale_value(*largest));
        return r;
    });
}

std::string tensor_scale_text(const tensor_ref& t) {
    std::string text;
    for (const io::tensor_scale& s : io::tensor_scales_of(t)) {
        if (s.values.empty() || s.use == "activations") continue;
        text += (text.empty() ? "" : ", ") + std::string(s.use == "divided" ? "/ " : "x ") +
                range_text(s.values);
    }
    return text;
}

}  // namespace mx::engine

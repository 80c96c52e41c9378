// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "libmx/engine/roles.hpp"

namespace mx::pages {

report::figure& add_figure(report::section& to, const std::string& kind, std::string title,
                           std::string caption, report::plot what) {
    const auto before = std::ranges::count_if(to.figures, [&](const report::figure& o) {
        return o.id == kind || o.id.rfind(kind + "-", 0) == 0;
    });
    report::figure f;
    f.id = before == 0 ? kind : fmt::format("{}-{}", kind, before + 1);
    f.title = std::move(title);
    f.caption = std::move(caption);
    f.what = std::move(what);
    to.figures.push_back(std::move(f));
    return to.figures.back();
}

std::string end_of_name(const std::string& name) {
    constexpr std::size_t most = 23;
    std::string end = name;
    std::string number;  // the last number left out: of a layer or an expert
    while (end.size() > most) {
        const std::size_t dot = end.find('.');
        if (dot == std::string::npos) break;
        const std::string part = end.substr(0, dot);
        if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos) {
            number = part;
        }
        end.erase(0, dot + 1);
    }
    if (end.size() == name.size()) return end;
    return number.empty() ? "\u2026" + end : number + ": " + end;
}

std::vector<std::string> told_apart(std::vector<std::string> names) {
    if (names.size() < 2) return names;
    constexpr const char* separators = "./";
    std::string_view first = names.front(), last = names.front();
    for (const std::string& n : names) {
        const auto head = std::ranges::mismatch(first, n).in1 - first.begin();
        first = first.substr(0, static_cast<std::size_t>(head));
        const auto tail =
            std::mismatch(last.rbegin(), last.rend(), n.rbegin(), n.rend()).first - last.rbegin();
        last = last.substr(last.size() - static_cast<std::size_t>(tail));
    }
    last = last.substr(std::min(last.size(), last.find_first_of(separators)));
    // npos + 1 is 0.
    const std::size_t head = first.find_last_of(separators) + 1;
    // Nothing is left of a name that ends with what the others have in common: they keep more.
    const std::size_t shortest = std::ranges::min(names, {}, &std::string::size).size();
    while (!last.empty() && head + last.size() >= shortest) {
        last = last.substr(std::min(last.size(), last.find_first_of(separators, 1)));
    }
    if (head >= shortest) return names;
    for (std::string& n : names) n = n.substr(head, n.size() - head - last.size());
    return names;
}

std::vector<std::string> last_parts(const std::vector<std::string>& names) {
    if (names.size() < 2) return names;
    std::vector<std::string> out;
    for (const std::string& name : names) {
        std::size_t from = name.size();
        const auto ends_alike = [&](const std::string& other) {
            return other != name && std::string_view(other).ends_with(name.substr(from));
        };
        do {
            const std::size_t dot = from == 0 ? from : name.find_last_of("./", from - 2);
            from = dot == std::string::npos || from < 2 ? 0 : dot + 1;
        } while (from > 0 && std::ranges::any_of(names, ends_alike));
        out.push_back(name.substr(from));
    }
    return out;
}

std::vector<std::string> labels_of(const std::vector<std::string>& tensors) {
    std::vector<std::string> modules, layers;
    for (const std::string& name : tensors) {
        auto at = engine::layer_of(name);
        if (at && at->series.find("_*") != std::string::npos) at.reset();  // a part of a name
        modules.push_back(at ? at->series : name);
        layers.push_back(at ? fmt::format("{}: ", at->layer) : "");
    }
    std::vector<std::string> labels = last_parts(told_apart(std::move(modules)));
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = layers[i] + labels[i];
    return labels;
}

report::axis axis_of(std::string title, std::string unit, bool log, bool share) {
    report::axis a;
    a.title = std::move(title);
    a.unit = std::move(unit);
    a.log = log;
    a.share = share;
    return a;
}

report::axis in_range(report::axis a, double low, std::optional<double> high) {
    a.low = low;
    a.high = high;
    return a;
}

}  // namespace mx::pages

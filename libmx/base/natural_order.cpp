// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/natural_order.hpp"

#include <algorithm>

namespace mx::base {

std::vector<std::string> runs_of(std::string_view name) {
    std::vector<std::string> runs(1);
    for (const char c : name) {
        const bool in_number = runs.size() % 2 == 0;
        if ((c >= '0' && c <= '9') != in_number) runs.emplace_back();
        runs.back().push_back(c);
    }
    return runs;
}

bool less_number(std::string_view a, std::string_view b) {
    a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
    b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
    return a.size() != b.size() ? a.size() < b.size() : a < b;
}

bool naturally_less(std::string_view a, std::string_view b) {
    const std::vector<std::string> in_a = runs_of(a);
    const std::vector<std::string> in_b = runs_of(b);
    for (std::size_t i = 0; i < std::min(in_a.size(), in_b.size()); ++i) {
        const auto less = [&](const std::string& x, const std::string& y) {
            return i % 2 == 0 ? x < y : less_number(x, y);
        };
        if (less(in_a[i], in_b[i])) return true;
        if (less(in_b[i], in_a[i])) return false;
    }
    return in_a.size() != in_b.size() ? in_a.size() < in_b.size() : a < b;
}

}  // namespace mx::base

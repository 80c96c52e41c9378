// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/joined.hpp"

#include <fmt/format.h>

namespace mx::base {

std::string joined(std::span<const std::string> parts, std::string_view between) {
    return fmt::format("{}", fmt::join(parts, between));
}

std::string joined(std::span<const std::string_view> parts, std::string_view between) {
    return fmt::format("{}", fmt::join(parts, between));
}

std::string listed(std::span<const std::string> parts) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
        text += parts[i];
    }
    return text;
}

}  // namespace mx::base

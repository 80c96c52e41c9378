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

}  // namespace mx::base

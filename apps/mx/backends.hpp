// SPDX-License-Identifier: Apache-2.0
// THE LIST of backends of this build.
#pragma once

#include <array>
#include <string_view>

namespace mx::app {

struct backend {
    std::string_view name;
    std::string_view summary;
};

inline constexpr std::array backends{
    backend{"scalar", "portable C++, one block at a time, any number of threads"},
};

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
// From which shares on a tensor is called in danger, wherever a verdict is given in words.
#pragma once

namespace mx::analysis {

inline constexpr double alarming_clamp_rate = 0.01;  ///< of elements
inline constexpr double alarming_saturation = 0.10;  ///< of eligible blocks
inline constexpr double alarming_collapse = 0.10;    ///< of eligible blocks

}  // namespace mx::analysis

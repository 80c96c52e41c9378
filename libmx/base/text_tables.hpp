// SPDX-License-Identifier: Apache-2.0
// Tables whose keys are text. Files choose the keys, and keys that share one value of a known hash
// would make every lookup a search.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace mx::base {

/// A hash that differs from run to run, so that nobody can choose keys that collide. The order of a
/// table differs with it: do not iterate where the order matters.
struct seeded_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const;
};

template <class Value>
using text_map = std::unordered_map<std::string, Value, seeded_hash, std::equal_to<>>;
using text_set = std::unordered_set<std::string, seeded_hash, std::equal_to<>>;

/// The same of text that others hold.
template <class Value>
using view_map = std::unordered_map<std::string_view, Value, seeded_hash>;
using view_set = std::unordered_set<std::string_view, seeded_hash>;

}  // namespace mx::base

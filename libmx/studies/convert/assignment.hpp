// SPDX-License-Identifier: Apache-2.0
// The recipe of each tensor of a model, as chosen by `mx plan` or recommended by `mx report`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::convert {

struct assignment {
    struct entry {
        std::optional<codec::recipe> recipe;    ///< none: it keeps its stored precision
        std::optional<std::uint64_t> elements;  ///< as far as the file says
    };
    std::string path;
    std::map<std::string, entry> tensors;  ///< by name
};

/// Reads JSON of mx plan (mx.plan/1) or mx report (mx.report/3): the members `tensor` and `recipe`
/// of each result, where "stored" and "keep" mean the stored precision and null means undecided;
/// and `elements` if present. For a `layout` of inference engines, recipes are those of
/// parse_layout_recipe (engine_layouts.hpp). Throws base::error (input) for anything else, and for
/// a tensor with two entries.
assignment read_assignment(const std::string& path, std::string_view layout = {});

/// The treatment of the tensors `chosen` of a model with the tensors `all`. Tensors without
/// numbers, which plans do not cover, are converted or kept as usual. With `keep_rest`, all other
/// tensors, and those that the assignment does not name, are copied as stored. Throws base::error
/// (usage) if the assignment belongs to another model (it names tensors that are not in `all` or
/// have another size), and without `keep_rest` for a chosen tensor that it does not name.
std::vector<assigned_tensor> assign(const assignment& by,
                                    const std::vector<engine::tensor_ref>& all,
                                    const std::vector<engine::tensor_ref>& chosen, bool keep_rest);

/// The same with one recipe for all chosen tensors.
std::vector<assigned_tensor> assign(const codec::recipe& recipe,
                                    const std::vector<engine::tensor_ref>& all,
                                    const std::vector<engine::tensor_ref>& chosen, bool keep_rest);

}  // namespace mx::convert

// SPDX-License-Identifier: Apache-2.0
// Which recipe each tensor of a model gets: what `mx plan` chose or `mx report` recommends.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
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

/// Reads JSON of mx plan (mx.plan/1) or mx report (mx.report/2): of each of the results the members
/// `tensor` and `recipe`, in which "stored" and "keep" are the stored precision and null says
/// nothing; `elements` where it is there. Throws base::error (input) for anything else, and for a
/// tensor with two entries.
assignment read_assignment(const std::string& path);

/// What becomes of `chosen`, tensors of a model that holds `all`. Tensors without numbers, which no
/// plan is about, are converted or kept as ever. With `keep_rest`, all others of `all` and those
/// that the assignment does not name are copied as they are stored. Throws base::error (usage) when
/// the assignment is of another model (it names tensors that are not in `all`, or of another size),
/// and without `keep_rest` for a chosen tensor that it does not name.
std::vector<assigned_tensor> assign(const assignment& by,
                                    const std::vector<engine::tensor_ref>& all,
                                    const std::vector<engine::tensor_ref>& chosen, bool keep_rest);

/// The same with one recipe for all that are chosen.
std::vector<assigned_tensor> assign(const codec::recipe& recipe,
                                    const std::vector<engine::tensor_ref>& all,
                                    const std::vector<engine::tensor_ref>& chosen, bool keep_rest);

}  // namespace mx::convert

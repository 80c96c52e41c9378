// SPDX-License-Identifier: Apache-2.0
// Tensors that share a record (`--group`): the experts of a layer, or all of a layer and role.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/result.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/roles.hpp"

namespace mx::analysis {

/// How results identify a tensor.
tensor_identity identity_of(const io::tensor_info& info, std::string_view role);

/// Which tensors share a record.
struct grouping {
    struct group {
        /// The common properties of its tensors: the file of the first, the layer if all are of
        /// one, and of each extent the greatest common divisor, which blocks divide if they divide
        /// all. Dtype, role and number of axes are those of every member; bytes are added up.
        std::shared_ptr<const tensor_identity> of;
        std::size_t tensors = 0;
    };
    std::vector<group> groups;          ///< in the order of their first tensors
    std::vector<std::size_t> group_of;  ///< by tensor: an index into groups
};

/// Groups of `tensors` by names and headers alone. Each of `by` is
/// - a pattern: words between dots or slashes, one of which has a *, ? or [set] that matches part
/// of a word. Wherever such words occur in a name they become the pattern, and tensors whose names
/// become the same share a record: 'experts.*' makes layers.3.experts.17.up into
/// layers.3.experts.*.up;
/// - "layer,role" or "role": tensors that no pattern matches share a record by these.
/// Tensors of different roles, dtypes or numbers of axes never share one: the names of their
/// records then end with these. A tensor that nothing matches has its own record. Throws
/// base::error (usage) for other texts, and for a pattern that matches no tensor.
grouping group_tensors(std::span<const engine::tensor_ref> tensors,
                       const std::vector<std::string>& by, const engine::role_finder& roles);
/// The same of `count` tensors of results; `identity` is called once for each, in order.
grouping group_tensors(std::size_t count,
                       const std::function<tensor_identity(std::size_t)>& identity,
                       const std::vector<std::string>& by);

}  // namespace mx::analysis

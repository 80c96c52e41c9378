// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/input_records.hpp"

#include "apps/mx/values.hpp"

namespace mx::app {

report::list input_list(const pipeline::model& model) {
    report::list files;
    for (const auto& [path, bytes] : model.files()) {
        files.emplace_back(report::record{{"path", path}, {"bytes", integer(bytes)}});
    }
    return files;
}

report::list skipped_list(const std::vector<pipeline::skipped_tensor>& skipped) {
    report::list list;
    for (const pipeline::skipped_tensor& s : skipped) {
        list.emplace_back(
            report::record{{"file", s.file},
                           {"tensor", s.tensor},
                           {"recipe", s.recipe.empty() ? undefined() : report::value(s.recipe)},
                           {"reason", s.reason}});
    }
    return list;
}

report::list shape_value(const tensor::shape& shape) {
    report::list extents;
    for (const std::uint64_t extent : shape) extents.push_back(integer(extent));
    return extents;
}

std::vector<std::string> paths_of(const pipeline::model& model,
                                  const std::vector<std::string>& named) {
    std::vector<std::string> paths = named;
    for (const auto& [path, bytes] : model.files()) paths.push_back(path);
    return paths;
}

}  // namespace mx::app

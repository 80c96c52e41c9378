// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/input_records.hpp"

#include "apps/mx/terminal.hpp"
#include "libmx/files/file_digest.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {

using pages::integer;
using pages::undefined;

report::list input_list(const engine::model& model, bool sha256) {
    report::list files;
    for (const auto& [path, bytes] : model.files()) {
        report::record file{{"path", path}, {"bytes", integer(bytes)}};
        if (sha256) file.emplace_back("sha256", io::sha256_of(path, &interrupted()));
        files.emplace_back(std::move(file));
    }
    return files;
}

report::list skipped_list(const std::vector<engine::skipped_tensor>& skipped) {
    report::list list;
    for (const engine::skipped_tensor& s : skipped) {
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

std::vector<std::string> paths_of(const engine::model& model,
                                  const std::vector<std::string>& named) {
    std::vector<std::string> paths = named;
    for (const auto& [path, bytes] : model.files()) paths.push_back(path);
    return paths;
}

}  // namespace mx::app

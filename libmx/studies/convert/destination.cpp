// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/convert/destination.hpp"

#include <fmt/format.h>

#include <set>

#include "libmx/base/status.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::convert {

std::unique_ptr<io::array_writer> create_destination(const std::string& path,
                                                     const std::vector<io::planned_array>& plan,
                                                     const io::metadata_map& metadata) {
    io::check_ending(path, {".safetensors", ".npy", ".h5", ".hdf5"});
    std::set<std::string> names;
    for (const io::planned_array& a : plan) {
        if (names.insert(a.name).second) continue;
        throw base::error(base::error_kind::usage,
                          fmt::format("two tensors would both be written as '{}'; convert the "
                                      "input files one at a time",
                                      base::printable(a.name)));
    }
    if (io::has_ending(path, ".npy")) {
        if (plan.size() != 1) {
            throw base::error(base::error_kind::usage,
                              fmt::format("a .npy file holds one array, this would write {}; "
                                          "choose one with --tensor or write .safetensors",
                                          plan.size()),
                              {path, "", {}});
        }
        return io::create_npy(path, plan.front());
    }
    if (io::has_ending(path, ".h5") || io::has_ending(path, ".hdf5")) {
        return io::create_hdf5(path, plan, metadata);
    }
    return io::create_safetensors(path, plan, metadata);
}

destination to_file(const std::string& path) {
    return [path](const std::vector<io::planned_array>& plan, const io::metadata_map& metadata) {
        return create_destination(path, plan, metadata);
    };
}

}  // namespace mx::convert

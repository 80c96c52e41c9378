// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "libmx/io/safetensors_header.hpp"
#include "libmx/io/staged_output.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

// A JSON string; names that are not UTF-8 cannot be stored.
std::string quoted(const std::string& path, const std::string& text) {
    try {
        return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
        output_error(fmt::format("'{}' is not UTF-8 and cannot be stored in safetensors", text),
                     {path, {}, {}});
    }
}

}  // namespace

std::unique_ptr<array_writer> create_safetensors(const std::string& path,
                                                 const std::vector<planned_array>& plan,
                                                 const metadata_map& metadata) {
    check_ending(path, {".safetensors"});
    // Before any work: a file that mx could not read again.
    if (plan.size() > safetensors_tensors_limit) {
        output_error(fmt::format("{} arrays are more than the {} that mx reads in one file; write "
                                 "shards ('-o NAME.safetensors.index.json')",
                                 plan.size(), safetensors_tensors_limit),
                     {path, {}, {}});
    }
    std::string header = "{";
    const auto comma = [&] { return header.size() > 1 ? "," : ""; };
    if (!metadata.empty()) {
        header += "\"__metadata__\":{";
        const char* separator = "";
        for (const auto& [key, value] : metadata) {
            header += fmt::format("{}{}:{}", separator, quoted(path, key), quoted(path, value));
            separator = ",";
        }
        header += "}";
    }
    std::vector<array_place> places;
    std::set<std::string> names{"__metadata__"};
    std::uint64_t offset = 0;
    for (const planned_array& array : plan) {
        if (!safetensors_has(array.type)) {
            output_error(
                fmt::format("safetensors has no dtype {}", tensor::row_of(array.type).name),
                {path, array.name, {}});
        }
        if (!names.insert(array.name).second) {
            output_error("two arrays of this name", {path, array.name, {}});
        }
        const std::uint64_t bytes = planned_bytes(path, array);
        header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                              comma(), quoted(path, array.name), tensor::row_of(array.type).name,
                              nlohmann::json(array.shape).dump(), offset, offset + bytes);
        places.push_back({offset, bytes});
        offset += bytes;
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    if (header.size() > safetensors_header_limit) {
        output_error(
            fmt::format("a header of {} bytes is longer than safetensors allows", header.size()),
            {path, {}, {}});
    }
    std::string start(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) start[i] = static_cast<char>(header.size() >> 8 * i);
    return stage_arrays(path, start + header, std::move(places));
}

}  // namespace mx::io

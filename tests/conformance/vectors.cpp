// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/vectors.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "libmx/io/reader.hpp"
#include "libmx/io/widen.hpp"

namespace mx::tests {

std::vector<std::uint8_t> vectors::codes(const std::string& name) const {
    std::vector<std::uint8_t> out;
    for (const float v : tensor.at(name)) out.push_back(static_cast<std::uint8_t>(v));
    return out;
}

std::vector<std::string> vector_files(const std::string& folder) {
    std::vector<std::string> paths;
    const std::string root = std::string(MX_SOURCE_DIR) + "/datasets/vectors/" + folder;
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
        paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

vectors read_vectors(const std::string& path) {
    vectors out;
    const auto reader = io::open_model(path);
    out.metadata = reader->metadata();
    std::vector<std::byte> scratch;
    for (std::size_t i = 0; i < reader->tensors().size(); ++i) {
        const io::tensor_info& info = reader->tensors()[i];
        std::vector<float> values(info.elements);
        io::read_f32(*reader->open(i), info.type, 0, values, scratch);
        out.last_axis[info.name] = info.shape.empty() ? 1 : info.shape.back();
        out.tensor[info.name] = std::move(values);
    }
    return out;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
    return parts;
}

std::string stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

}  // namespace mx::tests

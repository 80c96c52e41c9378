// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/onnx/onnx_external.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "libmx/base/status.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

// Below the model's folder by its spelling alone; on every system, so also by those of others.
bool stays_inside(const std::string& location) {
    if (location.empty() || location.find('\0') != std::string::npos) return false;
    if (location.front() == '/' || location.find_first_of("\\:") != std::string::npos) return false;
    for (const fs::path& part : fs::path(location)) {
        if (part == "..") return false;
    }
    return true;
}

}  // namespace

onnx_externals::onnx_externals(const std::string& model_path)
    : model_path_(model_path), folder_(fs::path(model_path).parent_path().string()) {}

onnx_place onnx_externals::place_of(const onnx_tensor& t, std::uint64_t bytes) {
    const auto fail = [&](const std::string& message) {
        throw base::error(base::error_kind::input, message, {model_path_, t.name, t.message.begin});
    };
    const auto number = [&](const std::string& text, const char* what) {
        std::uint64_t value = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (problem != std::errc{} || end != text.data() + text.size()) {
            fail(fmt::format("its external data has the {} '{}', not a number", what, text));
        }
        return value;
    };
    if (!stays_inside(t.external.location)) {
        fail(fmt::format("its external data is at '{}', outside the model's folder",
                         t.external.location));
    }
    onnx_place place;
    place.path = (fs::path(folder_) / t.external.location).string();
    if (!t.external.offset.empty()) place.offset = number(t.external.offset, "offset");
    auto known = files_.find(place.path);
    if (known == files_.end()) {
        known = files_.emplace(place.path, input_file::open(place.path)->size()).first;
    }
    const std::uint64_t size = known->second;
    if (place.offset > size || bytes > size - place.offset) {
        fail(fmt::format("its {} bytes from {} on go beyond '{}', which has {}", bytes,
                         place.offset, t.external.location, size));
    }
    const std::uint64_t length =
        t.external.length.empty() ? bytes : number(t.external.length, "length");
    if (length != bytes) {
        fail(fmt::format("its external data has {} bytes, its shape takes {}", length, bytes));
    }
    return place;
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// Small safetensors files with given bytes, and the values of a model made of them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/io/writer.hpp"
#include "tests/io/scratch_dir.hpp"

namespace mx::test {

struct stored {
    std::string name;
    tensor::dtype type;
    tensor::shape shape;
    std::string bytes;
};

inline std::string write_model(const std::string& path, const std::vector<stored>& arrays) {
    std::vector<io::planned_array> plan;
    for (const stored& a : arrays) plan.push_back({a.name, a.type, a.shape});
    const auto writer = io::create_safetensors(path, plan, {});
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        writer->write(i, 0, bytes_of(arrays[i].bytes));
    }
    writer->commit();
    return path;
}

/// float32 numbers as bytes.
inline std::string f32_bytes(const std::vector<float>& values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

inline std::string repeated(int byte, std::size_t count) {
    return std::string(count, static_cast<char>(byte));
}

inline const io::tensor_info* info_in(const engine::model& m, const std::string& name) {
    for (const engine::tensor_ref& t : m.select({})) {
        if (t.info().name == name) return &t.info();
    }
    return nullptr;
}

/// Values of the tensor as float32; `inexact` receives how many had to be rounded.
inline std::vector<float> values_in(const engine::model& m, const std::string& name,
                                    std::uint64_t* inexact = nullptr) {
    for (const engine::tensor_ref& t : m.select({})) {
        if (t.info().name != name) continue;
        std::vector<float> values(static_cast<std::size_t>(t.info().elements));
        std::vector<std::byte> scratch;
        const auto source = t.file->open(t.index);
        const std::uint64_t rounded = io::read_f32(*source, t.info().type, 0, values, scratch);
        if (inexact != nullptr) *inexact = rounded;
        return values;
    }
    FAIL("no tensor " << name);
    return {};
}

inline engine::model model_of(const std::vector<std::string>& paths,
                              const engine::view_request& views = {}) {
    return engine::model(paths, {}, views);
}

}  // namespace mx::test

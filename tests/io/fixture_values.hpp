// SPDX-License-Identifier: Apache-2.0
// The values that tests/io/data/README.md promises.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "libmx/io/widen.hpp"
#include "tests/io/scratch_dir.hpp"

namespace mx::test {

inline std::string fixture(const std::string& name) {
    return std::string(MX_SOURCE_DIR) + "/tests/io/data/" + name;
}

inline const io::tensor_info* find(const io::reader& file, const std::string& name) {
    const auto& all = file.tensors();
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const io::tensor_info& t) { return t.name == name; });
    return at == all.end() ? nullptr : &*at;
}

inline std::size_t index_of(const io::reader& file, const std::string& name) {
    const io::tensor_info* info = find(file, name);
    if (info == nullptr) throw std::runtime_error("no tensor " + name);
    return static_cast<std::size_t>(info - file.tensors().data());
}

/// All values of a numeric tensor.
inline std::vector<float> values(const io::reader& file, const std::string& name) {
    const std::size_t index = index_of(file, name);
    std::vector<float> out(static_cast<std::size_t>(file.tensors()[index].elements));
    std::vector<std::byte> scratch;
    const auto source = file.open(index);
    CHECK(io::read_f32(*source, file.tensors()[index].type, 0, out, scratch) == 0);
    return out;
}

/// Checks that tensor `name` has dtype `type`, `shape` and the promised values.
inline void check_fixture(const io::reader& file, const std::string& name, tensor::dtype type,
                          const tensor::shape& shape) {
    INFO(name);
    const io::tensor_info* info = find(file, name);
    REQUIRE(info != nullptr);
    CHECK(tensor::row_of(info->type).name == tensor::row_of(type).name);
    CHECK(info->shape == shape);
    const std::size_t count = static_cast<std::size_t>(*tensor::element_count(shape));
    CHECK(info->elements == count);
    CHECK(info->bytes == *tensor::byte_count(type, count));
    CHECK(info->note.empty());
    const bool is_unsigned = tensor::row_of(type).name.substr(0, 1) == "U";
    std::vector<float> expected;
    for (std::size_t i = 0; i < count; ++i) {
        expected.push_back(static_cast<float>(i % 113) - (is_unsigned ? 0.0f : 7.0f));
    }
    if (type == tensor::dtype::boolean) {
        std::string truth;
        for (std::size_t i = 0; i < count; ++i) truth += i % 3 == 0 ? '\1' : '\0';
        CHECK(content(file, index_of(file, name)) == truth);
    } else if (type == tensor::dtype::c64 || type == tensor::dtype::c128) {
        const std::string bytes = content(file, index_of(file, name));
        const auto part = type == tensor::dtype::c64 ? tensor::dtype::f32 : tensor::dtype::f64;
        std::vector<float> parts(2 * count);
        io::widen(part, bytes_of(bytes), 0, parts);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK(parts[2 * i] == expected[i]);
            CHECK(parts[2 * i + 1] == expected[i] / 2);
        }
    } else {
        CHECK(values(file, name) == expected);
    }
}

struct named_type {
    const char* name;
    tensor::dtype type;
};

/// The arrays of 5x7 in the fixtures, by their names there.
inline const std::vector<named_type> fixture_types{
    {"bool", tensor::dtype::boolean}, {"i1", tensor::dtype::i8},
    {"u1", tensor::dtype::u8},        {"i2", tensor::dtype::i16},
    {"u2", tensor::dtype::u16},       {"i4", tensor::dtype::i32},
    {"u4", tensor::dtype::u32},       {"i8", tensor::dtype::i64},
    {"u8", tensor::dtype::u64},       {"f2", tensor::dtype::f16},
    {"f4", tensor::dtype::f32},       {"f8", tensor::dtype::f64},
    {"c8", tensor::dtype::c64},       {"c16", tensor::dtype::c128},
    {"big_i2", tensor::dtype::i16},   {"big_u2", tensor::dtype::u16},
    {"big_i4", tensor::dtype::i32},   {"big_u4", tensor::dtype::u32},
    {"big_i8", tensor::dtype::i64},   {"big_u8", tensor::dtype::u64},
    {"big_f2", tensor::dtype::f16},   {"big_f4", tensor::dtype::f32},
    {"big_f8", tensor::dtype::f64},   {"big_c8", tensor::dtype::c64},
    {"big_c16", tensor::dtype::c128},
};

/// Why a tensor is not read as numbers; checks that the list and the error on opening say so.
inline std::string note_of(const io::reader& file, const std::string& name) {
    const io::tensor_info* info = find(file, name);
    REQUIRE(info != nullptr);
    CHECK(info->type == tensor::dtype::other);
    has(error_of(base::error_kind::input, [&] { file.open(index_of(file, name)); }), info->note);
    return info->note;
}

}  // namespace mx::test

// SPDX-License-Identifier: Apache-2.0
// The format, codes and input sets of an elements file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/convert_element.hpp"
#include "libmx/conformance/verify/comparison.hpp"
#include "libmx/conformance/verify/implementations.hpp"
#include "libmx/conformance/verify/vector_file.hpp"

namespace mx::conformance::verify {

/// The format of a file of single values: an element format, the number row of a scale format, or
/// E8M0 (`number` is nullptr).
struct vector_format {
    std::string name;
    const format::element_format* number = nullptr;
    bool full_range = false;  ///< integers use -2^(n-1)
    code_table codes;

    bool has_nan() const { return number == nullptr || number->nan_code() >= 0; }
};

/// The format named `name`. Throws base::error (input) if there is none.
vector_format format_named(const vector_file& file, const std::string& name);

/// Compares the tensor `decode_table`: the value of each code.
void compare_decode_table(const vector_file& file, const vector_format& f, comparison& found);

/// Converts float32 bits (and a random word) like an implementation.
using converter = std::function<codec::converted(std::uint32_t x, std::uint32_t draw)>;
converter converter_of(const vector_format& f, const implementation& by,
                       const format::rounding_mode& mode);

/// The input sets of an elements file by name, as float32 bits: every bf16 pattern, every fp16
/// pattern, or the contents of `fp32.input`.
class input_sets {
  public:
    explicit input_sets(const vector_file& file) : file_(&file) {}
    /// Throws base::error (input) for an unknown name; `tensor` is the tensor that refers to it.
    const std::vector<std::uint32_t>& of(std::string_view set, std::string_view tensor);

  private:
    const vector_file* file_;
    std::map<std::string, std::vector<std::uint32_t>, std::less<>> sets_;
};

}  // namespace mx::conformance::verify

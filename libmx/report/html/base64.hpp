// SPDX-License-Identifier: Apache-2.0
// Bytes inside a page: RFC 4648 base64 and what is built of it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mx::report::html {

/// `bytes` in base64 with padding.
std::string base64(std::string_view bytes);

/// `values` as little-endian float32 in base64. Values that are all the same bits stand once.
std::string base64_floats(std::span<const float> values);

/// "sha256-..." of a Content-Security-Policy, from the digest in hexadecimal.
std::string policy_hash(std::string_view hexadecimal);

}  // namespace mx::report::html

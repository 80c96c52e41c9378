// SPDX-License-Identifier: Apache-2.0
// The policies with a name: files of this folder that cmake/mx_embed.cmake puts into the library.
#pragma once

#include <string_view>

namespace mx::policy {

/// A file of this folder and the SHA-256 of its bytes in hexadecimal.
struct asset {
    std::string_view text;
    std::string_view sha256;
};

asset inference_json();
asset training_json();

}  // namespace mx::policy

// SPDX-License-Identifier: Apache-2.0
// The style sheet and the script of a page. cmake/mx_embed.cmake embeds these files in the library,
// so that a page is self-contained.
#pragma once

#include <string_view>

namespace mx::report::html {

/// A file of this folder and the SHA-256 of its bytes in hexadecimal.
struct asset {
    std::string_view text;
    std::string_view sha256;
};

asset page_css();
asset page_js();

}  // namespace mx::report::html

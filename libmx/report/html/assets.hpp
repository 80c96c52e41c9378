// SPDX-License-Identifier: Apache-2.0
// The style sheet and the script of a page: files of this folder that cmake/mx_embed.cmake puts
// into the library, so that a page needs nothing beside it.
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

// SPDX-License-Identifier: Apache-2.0
// What a user types as an address, as what servers are asked for: the hub of Hugging Face, S3, and
// any server that answers ranges.
#pragma once

#include <string>
#include <vector>

#include "libmx/remote/http.hpp"

namespace mx::io {

struct remote_address {
    std::string path;      ///< how messages and results name the file: without secrets
    std::string url;       ///< what is asked for
    http_credentials who;  ///< for the host of `url` alone
    std::string advice;    ///< what to do where the server refuses
};

/// A repository of the hub at one commit.
struct hub_repository {
    std::string path;                ///< "hf://ORG/NAME@COMMIT"
    std::vector<std::string> files;  ///< paths in it, sorted
};

/// A typed hf:// address.
struct hub_place {
    std::string organisation, name, revision;
    std::string file;  ///< path in the repository, without a slash at its end; "" for all of it
};

/// Throws base::error (usage).
hub_place parse_hub_place(const std::string& path);

/// Asks the hub once for what the revision stands for. Throws base::error.
const hub_repository& resolve(const hub_place& place);

/// Throws base::error: usage for what is no address; and what resolve() throws.
remote_address address_of(const std::string& path);

}  // namespace mx::io

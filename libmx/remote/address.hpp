// SPDX-License-Identifier: Apache-2.0
// Addresses as typed, resolved to requests: the hub of Hugging Face, S3, and any server that
// supports ranges.
#pragma once

#include <string>
#include <vector>

#include "libmx/remote/http.hpp"

namespace mx::io {

struct remote_address {
    std::string path;      ///< the name of the file in messages and results: without secrets
    std::string url;       ///< the address that is requested
    http_credentials who;  ///< for the host of `url` alone
    std::string advice;    ///< what to do if the server refuses
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

/// Resolves the revision to a commit by one request to the hub. Throws base::error.
const hub_repository& resolve(const hub_place& place);

/// Throws base::error: usage for text that is not an address; and what resolve() throws.
remote_address address_of(const std::string& path);

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding by tables: of neighbours, those that are first in the order of merges become
// one token, until no pair has a merge.
#pragma once

#include <memory>

#include "libmx/tokens/tables.hpp"
#include "libmx/tokens/tokenizer.hpp"

namespace mx::tokens {

/// Throws base::error (unavailable) if the tables have patterns and this build no PCRE2.
std::unique_ptr<tokenizer> make_bpe_tokenizer(tables t);

}  // namespace mx::tokens

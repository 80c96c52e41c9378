// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/parts.hpp"

namespace mx::capture {

amounts quick_amounts() {
    amounts a;
    a.tiles = 2;
    a.hash_groups = 1;
    a.chain_tiles = 1;
    a.chain_groups = 0;
    a.cell_stride = 65537;
    a.stochastic = 4096;
    a.largest_product = 128;
    return a;
}

std::vector<part> parts_of(const chip& c, const amounts& a) {
    std::vector<part> parts;
    append_conversions(parts, c, a);
    append_instructions(parts, c, a);
    append_products(parts, c, a);
    return parts;
}

}  // namespace mx::capture

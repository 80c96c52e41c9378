// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/recipe_cell.hpp"

namespace mx::pages {

std::string breakable(const std::string& recipe, std::size_t room) {
    if (recipe.size() <= room) return recipe;
    std::string out;
    std::size_t line = 0;
    for (std::size_t at = 0; at < recipe.size();) {
        const std::size_t mark = recipe.find_first_of(",:", at);
        const std::size_t end = mark == std::string::npos ? recipe.size() : mark + 1;
        if (line > 0 && line + end - at > room) {
            out += ' ';
            line = 0;
        }
        out += recipe.substr(at, end - at);
        line += end - at;
        at = end;
    }
    return out;
}

}  // namespace mx::pages

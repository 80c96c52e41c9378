// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "libmx/base/text_tables.hpp"
#include "libmx/report/document.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report::html {

/// Number of rows that a page shows at a time; page.js reads it from the page.
inline constexpr std::size_t explorer_rows = 100;

/// Links from names in the tables of a page to the rows of its explorers.
class row_links {
  public:
    /// `ids` are the ids of the document's sections.
    row_links(const document& d, const std::vector<std::string>& ids);

    /// The id of the row of this name; empty if there is none. Of equal names, the first counts.
    std::string id_of(const std::string& name) const;
    /// Whether a table of the page has a link to the row with this id.
    bool led_to(const std::string& id) const { return led_to_.contains(id); }

  private:
    base::text_map<std::string> ids_;
    std::set<std::string> led_to_;
};

/// The worst rows of `e` by its first metric as a table, and all its values for the script.
/// `section` is the id of its section, which must have no other explorer.
void write_explorer(const explorer& e, const std::string& section, const row_links& links,
                    const sink& out);

}  // namespace mx::report::html

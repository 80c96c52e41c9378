// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/text_tables.hpp"

#include <set>

#include "tests/catch.hpp"

using mx::base::seeded_hash;

TEST_CASE("hashes of texts tell lengths, zeros and places apart") {
    std::set<std::size_t> seen;
    std::size_t texts = 0;
    for (std::size_t length = 0; length < 40; ++length) {
        seen.insert(seeded_hash()(std::string(length, '\0')));
        ++texts;
        for (std::size_t at = 0; at < length; ++at) {
            std::string text(length, '\0');
            text[at] = '\1';
            seen.insert(seeded_hash()(text));
            ++texts;
        }
    }
    CHECK(seen.size() == texts);
    CHECK(seeded_hash()("weight") == seeded_hash()(std::string("weight")));
}

TEST_CASE("tables find what they hold by views of it") {
    mx::base::text_map<int> table{{"a", 1}, {"b", 2}};
    CHECK(table.find(std::string_view("b"))->second == 2);
    CHECK(!table.contains("c"));
    CHECK(!mx::base::text_set{"a"}.insert("a").second);
}

// SPDX-License-Identifier: Apache-2.0
// The manifest of public checkpoints: every row complete and usable by datasets/fetch.sh.
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace {

using row = std::vector<std::string>;

/// The rows below the header line, comments left out.
std::vector<row> manifest_rows(row& header) {
    std::ifstream file(std::string(MX_SOURCE_DIR) + "/datasets/manifest.tsv");
    REQUIRE(file.good());
    std::vector<row> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind('#', 0) == 0) continue;
        row fields;
        std::istringstream text(line);
        for (std::string field; std::getline(text, field, '\t');) fields.push_back(field);
        if (header.empty()) {
            header = fields;
        } else {
            rows.push_back(fields);
        }
    }
    return rows;
}

bool only(const std::string& text, const std::string& allowed) {
    return !text.empty() && text.find_first_not_of(allowed) == std::string::npos;
}

}  // namespace

TEST_CASE("manifest: every row is complete and well-formed", "[manifest]") {
    row header;
    const std::vector<row> rows = manifest_rows(header);
    REQUIRE(header == row{"name", "file", "bytes", "sha256", "licence", "origin", "url", "notes"});
    REQUIRE(rows.size() >= 5);
    const std::string lower = "abcdefghijklmnopqrstuvwxyz";
    const std::string digits = "0123456789";
    std::set<std::string> names;
    std::set<std::string> files;
    for (const row& r : rows) {
        REQUIRE(r.size() == header.size());
        INFO(r[0]);
        for (const std::string& field : r) CHECK(!field.empty());
        CHECK(only(r[0], lower + digits + "-"));
        CHECK(names.insert(r[0]).second);
        // The file name is passed to a shell: a plain name without a folder.
        CHECK(only(r[1], lower + digits + "-."));
        CHECK(r[1].front() != '.');
        CHECK(r[1].front() != '-');
        CHECK(files.insert(r[1]).second);
        CHECK((r[2] == "-" || (only(r[2], digits) && r[2].front() != '0')));
        CHECK((r[3] == "-" || (only(r[3], digits + "abcdef") && r[3].size() == 64)));
        CHECK(r[4] != "-");
        CHECK(r[5] != "-");
        CHECK(r[6].rfind("https://", 0) == 0);
        CHECK(r[6].find_first_of(" \"'$`\\") == std::string::npos);
        // A file of known size was downloaded, so its checksum is known too.
        CHECK((r[2] == "-" || r[3] != "-"));
    }
}

// SPDX-License-Identifier: Apache-2.0
// The repository follows the rules of the source tree.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tests/architecture/scan.hpp"
#include "tests/catch.hpp"

namespace arch = mx::architecture;

TEST_CASE("include lines follow the direction of the rooms") {
    const auto exists = [](const std::string& path) {
        return std::filesystem::is_regular_file(std::filesystem::path(MX_SOURCE_DIR) / path);
    };
    const auto files = arch::repository(MX_SOURCE_DIR);
    std::vector<std::string> found;
    for (const arch::source_file& file : files) {
        const auto some = arch::include_violations(file, exists);
        found.insert(found.end(), some.begin(), some.end());
    }
    CAPTURE(fmt::format("{}", files.size()));
    for (const std::string& violation : found) UNSCOPED_INFO(violation);
    CHECK(found.empty());
}

TEST_CASE("headers open the namespace of their folder") {
    const auto found = arch::namespace_violations(arch::repository(MX_SOURCE_DIR));
    for (const std::string& violation : found) UNSCOPED_INFO(violation);
    CHECK(found.empty());
}

TEST_CASE("no room is larger than one subject needs") {
    const auto found = arch::size_violations(arch::repository(MX_SOURCE_DIR));
    for (const std::string& violation : found) UNSCOPED_INFO(violation);
    CHECK(found.empty());
}

TEST_CASE("every column of a table is defined once") {
    const auto found = arch::column_violations(arch::repository(MX_SOURCE_DIR));
    for (const std::string& violation : found) UNSCOPED_INFO(violation);
    CHECK(found.empty());
}

TEST_CASE("every source file is licensed and finished") {
    std::vector<std::string> found;
    const auto files = arch::repository(MX_SOURCE_DIR);
    for (const arch::source_file& file : files) {
        const auto some = arch::file_violations(file);
        found.insert(found.end(), some.begin(), some.end());
    }
    for (const std::string& violation : found) UNSCOPED_INFO(violation);
    CHECK(found.empty());
}

TEST_CASE("the scan reaches the sources") {
    const auto files = arch::repository(MX_SOURCE_DIR);
    const auto has = [&](const std::string& path) {
        return std::any_of(files.begin(), files.end(),
                           [&](const arch::source_file& f) { return f.path == path; });
    };
    CHECK(has("libmx/format/element_formats.hpp"));
    CHECK(has("tests/architecture/repository_test.cpp"));
    CHECK(has("CMakeLists.txt"));
    CHECK(has(".ci/run"));
    CHECK(has("scripts/reproduce.py"));
}

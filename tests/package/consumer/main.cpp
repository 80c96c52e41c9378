// SPDX-License-Identifier: Apache-2.0
// Analyses a raw file of two floats and finds the known error: under the floor rule, E4M3 turns 960
// into 896.
#include <cstdio>
#include <fstream>
#include <variant>

#include "libmx/base/status.hpp"
#include "libmx/pipeline/analyze.hpp"

int main() {
    const float values[] = {960.0f, 957.0f};
    std::ofstream("two_floats.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(values), sizeof values);
    try {
        const mx::pipeline::model model({"two_floats.bin"}, {"", "1x2", "F32", 0});
        mx::pipeline::analysis_request request;
        request.recipes.push_back(mx::codec::parse_recipe("mxfp8:scale=floor"));
        const auto analysis = mx::pipeline::analyze(model.select({}), request, {});
        const mx::report::record result = analysis.results[0];
        const auto* error = mx::report::find(result, "max_abs_error");
        std::printf("max_abs_error %g\n", std::get<double>(*error));
        return std::get<double>(*error) == 64.0 ? 0 : 1;
    } catch (const mx::base::error& e) {
        std::printf("%s\n", e.what());
        return 1;
    }
}

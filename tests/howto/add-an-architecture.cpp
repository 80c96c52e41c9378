// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-an-architecture.md: the vectors of Qwen3 under the configuration and names
// of the model that was added have the figures of Qwen3.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "libmx/eval/evaluation.hpp"
#include "tests/catch.hpp"

namespace {

std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    REQUIRE(text.find(from) != std::string::npos);
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
    }
    return text;
}

std::vector<double> figures_of(const std::filesystem::path& folder) {
    const mx::llm::model_weights model(folder.string());
    mx::lab::execution_context on(1);
    mx::eval::evaluation_request r;
    r.tokens = {3, 14, 15, 92, 65, 35, 89, 79};
    r.windows = mx::eval::windows_of(r.tokens.size(), 8, 8);
    return mx::eval::evaluate(model, on, {}, r).base.nll;
}

}  // namespace

TEST_CASE("an architecture that was added is evaluated") {
    const std::filesystem::path qwen3 = MX_SOURCE_DIR "/datasets/vectors/eval/qwen3";
    const std::filesystem::path sage = MX_SCRATCH "/sage";
    std::filesystem::create_directories(sage);
    std::ofstream(sage / "model.safetensors", std::ios::binary)
        << replaced(bytes_of(qwen3 / "model.safetensors"), "down_proj", "back_proj");
    std::ofstream(sage / "config.json")
        << replaced(replaced(bytes_of(qwen3 / "config.json"), "\"qwen3\"", "\"sage\""),
                    "\"intermediate_size\"", "\"ffn_size\"");
    const std::vector<double> figures = figures_of(sage);
    CHECK(figures.size() == 7);
    CHECK(figures == figures_of(qwen3));
}

// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-an-architecture.md: the vectors of Qwen3 under the configuration and names
// of the model that was added have the figures of Qwen3.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "libmx/eval/evaluation.hpp"
#include "tests/catch.hpp"

namespace {

// Copies a file with every occurrence of `from` replaced by `to`.
void copy_with(const std::filesystem::path& source, const std::filesystem::path& target,
               const std::string& from, const std::string& to) {
    std::ifstream in(source, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++count) {
        text.replace(at, from.size(), to);
        at += to.size();
    }
    REQUIRE(count > 0);
    std::ofstream(target, std::ios::binary) << text;
}

std::vector<double> figures_of(const std::filesystem::path& folder) {
    const mx::eval::model_weights model(folder.string());
    mx::lab::machine on(1);
    mx::eval::evaluation_request r;
    r.tokens = {3, 14, 15, 92, 65, 35, 89, 79};
    r.windows = mx::eval::windows_of(r.tokens.size(), 8, 8);
    return mx::eval::evaluate(model, on, {}, r).base.nll;
}

}  // namespace

TEST_CASE("an architecture that was added is evaluated") {
    const std::filesystem::path qwen3 = std::string(MX_SOURCE_DIR) + "/datasets/vectors/eval/qwen3";
    const std::filesystem::path sage = std::string(MX_SCRATCH) + "/sage";
    std::filesystem::create_directories(sage);
    copy_with(qwen3 / "model.safetensors", sage / "model.safetensors", "down_proj", "back_proj");
    copy_with(qwen3 / "config.json", sage / "step.json", "\"intermediate_size\"", "\"ffn_size\"");
    CHECK_THROWS_WITH(figures_of(sage), Catch::Matchers::ContainsSubstring("no config.json"));
    copy_with(sage / "step.json", sage / "config.json", "\"model_type\": \"qwen3\"",
              "\"model_type\": \"sage\"");
    CHECK(figures_of(sage) == figures_of(qwen3));
    std::filesystem::remove(sage / "config.json");
}

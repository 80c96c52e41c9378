// SPDX-License-Identifier: Apache-2.0
// Recorded gradients and losses of the published code, and the effect of a changed byte.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/experiments/replay.hpp"
#include "tests/catch.hpp"
#include "tests/io/scratch_dir.hpp"

namespace mx::experiments {
namespace {

namespace fs = std::filesystem;

std::string recorded() { return std::string(MX_SOURCE_DIR) + "/datasets/vectors/training"; }

TEST_CASE("recorded trainings replay within their bounds") {
    const auto cases = recorded_cases(recorded());
    REQUIRE(cases.size() == 1);
    const auto files = replay(cases.front(), {});
    CHECK(files.size() == 10);
    for (const auto& v : files) {
        INFO(v.file);
        CHECK(v.differences == 0);
        CHECK(v.compared > 300);
    }
}

TEST_CASE("a changed byte of a recorded gradient is found with its place") {
    struct change {
        const char* scheme;
        int byte;  // of the first element of the first gradient
    };
    // The lowest byte if runs agree in every bit, the upper one if they do not.
    for (const auto& [scheme, byte] : {change{"e4m3", 0}, change{"told", 0}, change{"bf16_act", 0},
                                       change{"fp32", 3}, change{"bf16_act_all", 1}}) {
        const test::scratch_dir dir;
        const std::string folder = dir / "copy";
        fs::copy(recorded(), folder);
        const std::string path = folder + "/proxy-d64." + scheme + ".safetensors";
        fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        std::uint64_t header = 0;
        file.read(reinterpret_cast<char*>(&header), 8);
        const auto at = static_cast<std::streamoff>(8 + header + static_cast<std::uint64_t>(byte));
        file.seekg(at);
        const int stored = file.get();
        file.seekp(at);
        file.put(static_cast<char>(stored ^ 1));
        file.close();
        std::uint64_t differences = 0;
        for (const auto& v : replay(recorded_cases(folder).front(), {})) {
            differences += v.differences;
            if (v.differences == 0) continue;
            CHECK(v.file == path);
            CHECK(v.first.front().tensor == "set0.layers.0.fc1.weight");
            CHECK(v.first.front().index == 0);
        }
        INFO(scheme);
        CHECK(differences > 0);
    }
}

TEST_CASE("a case that lacks a file is refused") {
    const test::scratch_dir dir;
    const std::string folder = dir / "copy";
    fs::copy(recorded(), folder);
    fs::remove(folder + "/proxy-d64.told.safetensors");
    CHECK_THROWS_AS(replay(recorded_cases(folder).front(), {}), base::error);
}

}  // namespace
}  // namespace mx::experiments

// SPDX-License-Identifier: Apache-2.0
// Checkpoints in a folder: their list, and when one is complete.
#include "libmx/engine/checkpoints.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/io/scratch_dir.hpp"

using namespace mx;
using namespace mx::test;

namespace {

// A safetensors file of one tensor of two bfloat16 numbers.
std::string one_tensor(const std::string& name) {
    const std::string header =
        "{\"" + name + "\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}";
    return little(header.size(), 8) + header + "\x80\x3f\x80\x3f";
}

// Checks that no beginning of the file passes for the whole.
void grows_to(const scratch_dir& dir, const std::string& name, const std::string& whole) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
        INFO(size << " of " << whole.size() << " bytes");
        dir.file(name, whole.substr(0, size));
        CHECK_FALSE(engine::look_at(dir / name).missing.empty());
    }
    dir.file(name, whole);
    const engine::checkpoint_look look = engine::look_at(dir / name);
    CHECK(look.missing.empty());
    CHECK(look.sealed);
}

}  // namespace

TEST_CASE("checkpoints are listed in natural order, shards and others left out") {
    const scratch_dir dir;
    for (const char* name :
         {"step1000.safetensors", "step200.safetensors", "s.npz", "s.pth", "notes.txt",
          "config.json", ".hidden.safetensors", "m-00001-of-00002.safetensors",
          "m-00002-of-00002.safetensors", "m.safetensors.index.json", "run.json", "watch.jsonl"}) {
        dir.file(name, "x");
    }
    for (const char* name : {"logs", "checkpoint-30", "checkpoint-4", "dcp"}) {
        std::filesystem::create_directory(dir / name);
    }
    dir.file("checkpoint-30/model.safetensors", "x");
    dir.file("checkpoint-4/model.safetensors.index.json", "x");
    dir.file("dcp/.metadata", "x");
    REQUIRE(::mkfifo((dir / "pipe.safetensors").c_str(), 0600) == 0);
    CHECK(engine::checkpoints_in(dir.path()) ==
          std::vector<std::string>{"checkpoint-4", "checkpoint-30", "dcp",
                                   "m.safetensors.index.json", "s.npz", "s.pth",
                                   "step200.safetensors", "step1000.safetensors"});
    CHECK_FALSE(error_of(base::error_kind::input, [&] {
                    engine::checkpoints_in(dir / "nowhere");
                }).empty());
}

TEST_CASE("the step of a checkpoint is the last number before its ending") {
    CHECK(engine::step_in("step200.safetensors") == 200);
    CHECK(engine::step_in("runs/3/checkpoint-500") == 500);
    CHECK(engine::step_in("iter_0000100") == 100);
    CHECK(engine::step_in("epoch2-step30.h5") == 30);
    CHECK(engine::step_in("v1.5") == 5);
    CHECK(engine::step_in("global_step7.safetensors.index.json") == 7);
    CHECK(engine::step_in("model.safetensors") == std::nullopt);
    CHECK(engine::step_in("step99999999999999999999.npz") == std::nullopt);
}

TEST_CASE("no beginning of a safetensors file is complete") {
    const scratch_dir dir;
    grows_to(dir, "a.safetensors", one_tensor("w"));
}

TEST_CASE("an index is complete with all of its shards") {
    const scratch_dir dir;
    const std::string index = dir.file(
        "m.safetensors.index.json",
        R"({"weight_map":{"a":"m-00001-of-00002.safetensors","b":"m-00002-of-00002.safetensors"}})");
    dir.file("m-00001-of-00002.safetensors", one_tensor("a"));
    CHECK(engine::look_at(index).missing.find("is missing") != std::string::npos);
    const std::string last = one_tensor("b");
    dir.file("m-00002-of-00002.safetensors", last.substr(0, last.size() - 1));
    CHECK(engine::look_at(index).missing.find("cut short") != std::string::npos);
    dir.file("m-00002-of-00002.safetensors", last);
    const engine::checkpoint_look look = engine::look_at(index);
    CHECK(look.missing.empty());
    CHECK(look.sealed);
    // A directory with it is as complete as the index, and not before it can be read.
    CHECK(engine::look_at(dir.path()).sealed);
    dir.file("m.safetensors.index.json", R"({"weight_map":{"a":"m-00001-of)");
    CHECK_FALSE(engine::look_at(dir.path()).missing.empty());
}

TEST_CASE("numbered files are complete when all are there, others want a second look") {
    const scratch_dir dir;
    CHECK(engine::look_at(dir.path()).missing == "holds no checkpoint yet");
    dir.file("m-00003-of-00003.safetensors", one_tensor("c"));
    dir.file("m-00001-of-00003.safetensors", one_tensor("a"));
    CHECK(engine::look_at(dir.path()).missing ==
          "2 of the 3 files m-*-of-00003.safetensors are there");
    dir.file("m-00002-of-00003.safetensors", one_tensor("b"));
    CHECK(engine::look_at(dir.path()).sealed);
    dir.file("more.safetensors", one_tensor("d"));
    const engine::checkpoint_look some = engine::look_at(dir.path());
    CHECK(some.missing.empty());
    CHECK_FALSE(some.sealed);
    dir.file("again.safetensors", one_tensor("e"));
    CHECK(engine::look_at(dir.path()).traces != some.traces);

    dir.file("w.npz", "");
    CHECK(engine::look_at(dir / "w.npz").missing == "is empty");
    dir.file("w.npz", "PK");
    const engine::checkpoint_look early = engine::look_at(dir / "w.npz");
    CHECK(early.missing.empty());
    CHECK_FALSE(early.sealed);
    dir.file("w.npz", "PK and more");
    CHECK(engine::look_at(dir / "w.npz").traces != early.traces);
}

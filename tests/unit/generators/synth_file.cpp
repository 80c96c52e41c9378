// SPDX-License-Identifier: Apache-2.0
// Synthetic checkpoints as files: the same bytes for any number of threads, the planned contents,
// and no remains of an interrupted write.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "datasets/generators/checkpoint_plan.hpp"
#include "datasets/generators/tensor_source.hpp"
#include "datasets/generators/write_checkpoint.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/reader.hpp"
#include "tests/catch.hpp"

namespace fs = std::filesystem;
using namespace mx::synth;

namespace {

/// A fresh folder, removed at the end of the test.
struct scratch {
    fs::path folder = fs::temp_directory_path() / ("mx-synth-test-" + std::to_string(::getpid()));
    scratch() { fs::create_directories(folder); }
    ~scratch() {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
};

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Has tensors of more than one chunk, so that several threads work.
std::vector<tensor_spec> plan() {
    return plan_checkpoint(find_preset("bulk"), {mx::tensor::dtype::bf16, 40u << 20});
}

}  // namespace

TEST_CASE("synth: one file for any number of threads", "[synth]") {
    const scratch at;
    std::string first;
    for (const int threads : {1, 2, 7}) {
        const fs::path path = at.folder / (std::to_string(threads) + ".safetensors");
        write_control control;
        control.threads = threads;
        write_checkpoint(path.string(), plan(), 5, {{"seed", "5"}}, control);
        const std::string bytes = contents(path);
        CHECK(bytes.size() > total_bytes(plan()));
        if (first.empty()) first = bytes;
        CHECK((bytes == first));
    }
}

TEST_CASE("synth: the file holds what was planned", "[synth]") {
    const scratch at;
    const std::string path = (at.folder / "tiny.safetensors").string();
    const std::vector<tensor_spec> specs = plan_checkpoint(find_preset("tiny"), {});
    std::uint64_t last = 0;
    std::uint64_t all = 0;
    write_control control;
    control.on_progress = [&](std::uint64_t done, std::uint64_t total) {
        CHECK(done > last);
        last = done;
        all = total;
    };
    write_checkpoint(path, specs, 0, {{"preset", "tiny"}}, control);
    CHECK(last == all);
    const auto reader = mx::io::open_model(path);
    CHECK(reader->metadata().at("preset") == "tiny");
    REQUIRE(reader->tensors().size() == specs.size());
    for (std::size_t i = 0; i < reader->tensors().size(); ++i) {
        const mx::io::tensor_info& info = reader->tensors()[i];
        const auto spec = std::find_if(specs.begin(), specs.end(),
                                       [&](const tensor_spec& s) { return s.name == info.name; });
        REQUIRE(spec != specs.end());
        CHECK(info.type == spec->type);
        CHECK(info.shape == spec->shape);
        std::vector<std::byte> stored(static_cast<std::size_t>(info.bytes));
        std::vector<std::byte> drawn(stored.size());
        reader->open(i)->read(0, stored);
        tensor_source(*spec, 0).fill(0, drawn);
        CHECK((stored == drawn));
    }
}

TEST_CASE("synth: a stopped or failing write leaves nothing", "[synth]") {
    const scratch at;
    const std::string path = (at.folder / "stopped.safetensors").string();
    std::atomic<bool> stop{false};
    write_control control;
    control.threads = 2;
    control.cancel = &stop;
    control.on_progress = [&](std::uint64_t done, std::uint64_t) {
        if (done > (1u << 20)) stop = true;
    };
    try {
        write_checkpoint(path, plan(), 0, {}, control);
        FAIL("it was not stopped");
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == mx::base::error_kind::cancelled);
    }
    CHECK(fs::is_empty(at.folder));
    try {
        write_checkpoint((at.folder / "missing" / "x.safetensors").string(), plan(), 0, {}, {});
        FAIL("it was written");
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == mx::base::error_kind::output);
    }
    CHECK(fs::is_empty(at.folder));
}

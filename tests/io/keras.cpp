// SPDX-License-Identifier: Apache-2.0
// Files of Keras 3: weights, and whole models with the weights in a zip.
#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

TEST_CASE("Keras 3: weights and models", "[keras][hdf5]") {
    for (const char* name : {"keras.weights.h5", "keras.keras"}) {
        INFO(name);
        const auto file = io::open_model(fixture(name));
        check_fixture(*file, "layers/dense/vars/0", dtype::f32, {5, 7});
        check_fixture(*file, "layers/dense/vars/1", dtype::f32, {7});
        check_fixture(*file, "layers/dense_1/vars/0", dtype::f32, {7, 3});
        check_fixture(*file, "layers/dense_1/vars/1", dtype::f32, {3});
        CHECK(find(*file, "layers/dense/vars/0")->file == fixture(name));
        REQUIRE(file->files().size() == 1);
        CHECK(file->files()[0].second == slurp(fixture(name)).size());
    }
}

TEST_CASE("Keras 3: damaged models are refused", "[keras][hostile]") {
    const scratch_dir dir;
    const std::string sound = slurp(fixture("keras.keras"));
    std::string damaged = sound;
    const std::size_t weights = damaged.find("\x89HDF");
    REQUIRE(weights != std::string::npos);
    damaged[weights + 100] = static_cast<char>(damaged[weights + 100] ^ 1);
    has(open_error(dir.file("m.keras", damaged)), "checksum is wrong");
    for (std::size_t length = 0; length < sound.size(); length += 997) {
        open_error(dir.file("m.keras", sound.substr(0, length)));
    }
}

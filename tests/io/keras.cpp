// SPDX-License-Identifier: Apache-2.0
// Files of Keras 3: weights, and whole models with the weights in a zip.
#include "libmx/io/keras_layers.hpp"
#include "libmx/io/no_product.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/zip_members.hpp"

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
        for (const char* kernel : {"layers/dense/vars/0", "layers/dense_1/vars/0"}) {
            const io::contraction& k = find(*file, kernel)->sums_over;
            CHECK((k.first == 0 && k.last == 1));
            has(k.why, "Keras layer 'dense");
        }
        CHECK_FALSE(find(*file, "layers/dense/vars/1")->sums_over.known());
    }
}

TEST_CASE("Keras: layers say which axes of their variables they sum over", "[keras]") {
    const auto stated = [](const std::string& name, const tensor::shape& shape,
                           const std::string& config = {}) {
        std::vector<io::tensor_info> tensors(1);
        tensors.front().name = name;
        tensors.front().shape = shape;
        io::state_keras_contractions(tensors, config);
        INFO(name << ": " << tensors.front().sums_over.why);
        return std::pair(tensors.front().sums_over.first, tensors.front().sums_over.last);
    };
    using axes = std::pair<int, int>;
    CHECK(stated("layers/conv2d_3/vars/0", {3, 3, 8, 16}) == axes{0, 3});
    CHECK(stated("layers/conv2d_transpose/vars/0", {3, 3, 16, 8}) == axes{3, 4});
    CHECK(stated("layers/depthwise_conv2d/vars/0", {3, 3, 8, 1}) == axes{0, 2});
    CHECK(stated("layers/separable_conv1d/vars/0", {5, 8, 1}) == axes{0, 1});
    CHECK(stated("layers/separable_conv1d/vars/1", {1, 8, 16}) == axes{0, 2});
    CHECK(stated("layers/lstm/cell/vars/0", {24, 64}) == axes{0, 1});
    CHECK(stated("layers/gru_1/cell/vars/1", {16, 48}) == axes{0, 1});
    CHECK(stated("layers/bidirectional/forward_layer/cell/vars/0", {24, 64}) == axes{0, 1});
    CHECK(stated("layers/multi_head_attention/query_dense/vars/0", {64, 4, 16}) == axes{0, 1});
    CHECK(stated("layers/multi_head_attention/output_dense/vars/0", {4, 16, 64}) == axes{0, 2});
    CHECK(stated("layers/embedding/vars/0", {100, 16}) ==
          axes{io::only_looked_up, io::only_looked_up});
    CHECK(stated("layers/dense/vars/1", {64}) == axes{0, 0});
    CHECK(stated("optimizer/vars/3", {64, 64}) == axes{0, 0});
    // Names that the configuration explains.
    const std::string config = R"({"config": {"layers": [
        {"class_name": "Dense", "config": {"name": "head"}},
        {"class_name": "DepthwiseConv2D", "config": {"name": "stem"}},
        {"class_name": "EinsumDense", "config": {"name": "mix", "equation": "abc,cde->abde"}},
        {"class_name": "EinsumDense", "config": {"name": "out", "equation": "abcd,cde->abe"}},
        {"class_name": "Bidirectional", "config": {"name": "both", "layer":
            {"class_name": "LSTM", "config": {"name": "rnn"}}}}]}})";
    CHECK(stated("head/head/kernel:0", {64, 10}, config) == axes{0, 1});
    CHECK(stated("model_weights/stem/stem/depthwise_kernel:0", {3, 3, 8, 1}, config) == axes{0, 2});
    CHECK(stated("rnn/lstm_cell/recurrent_kernel:0", {16, 64}, config) == axes{0, 1});
    CHECK(stated("mix/kernel:0", {64, 4, 16}, config) == axes{0, 1});
    CHECK(stated("layers/einsum_dense/vars/0", {64, 4, 16}, config) == axes{0, 1});
    CHECK(stated("layers/einsum_dense_1/vars/0", {4, 16, 64}, config) == axes{0, 2});
    // The second model of a session: paths count layers of a class, names go on counting.
    const std::string second = R"({"config": {"layers": [
        {"class_name": "EinsumDense",
         "config": {"name": "einsum_dense_1", "equation": "abc,cde->abde"}},
        {"class_name": "EinsumDense",
         "config": {"name": "einsum_dense_2", "equation": "abde,dec->abc"}}]}})";
    CHECK(stated("layers/einsum_dense/vars/0", {64, 4, 16}, second) == axes{0, 1});
    CHECK(stated("layers/einsum_dense_1/vars/0", {4, 16, 64}, second) == axes{0, 2});
    CHECK(stated("einsum_dense_1/kernel:0", {64, 4, 16}, second) == axes{0, 1});
    for (const char* damaged : {"{", "[]", R"({"class_name": 1, "config": {}})", "null", ""}) {
        CHECK(stated("layers/dense/vars/0", {5, 7}, damaged) == axes{0, 1});
    }
}

TEST_CASE("Keras 3: weights that unpack to many times the file are not unpacked",
          "[keras][hostile]") {
    const scratch_dir dir;
    // 1.1 MiB of noise, of which the directory says that they are 1.1 GiB of packed weights.
    std::string noise;
    for (std::uint32_t i = 0; noise.size() < 1200000; ++i) {
        noise += little(i * 2654435761u ^ i >> 7, 4);
    }
    std::string zip = slurp(write_zip(dir / "m.keras", {{"model.weights.h5", noise, true}}));
    const std::size_t directory = zip.find("PK\x01\x02");
    REQUIRE(directory != std::string::npos);
    zip.replace(directory + 24, 4, little(1181116006, 4));
    has(open_error(dir.file("m.keras", zip)),
        "model.weights.h5 unpacks to 1181116006 bytes, more than 16 times the file");
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

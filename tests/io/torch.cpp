// SPDX-License-Identifier: Apache-2.0
// Checkpoints that PyTorch wrote (tests/io/data/make_torch_fixtures.py).
#include <cstring>

#include "tests/io/fixture_values.hpp"
#include "tests/io/pickles.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

std::unique_ptr<io::reader> fixture_file(const std::string& name) {
    return io::open_model(fixture(name));
}

}  // namespace

TEST_CASE("torch: every dtype", "[torch]") {
    const auto file = fixture_file("torch_dtypes.pt");
    for (const named_type& each : std::vector<named_type>{{"float32", dtype::f32},
                                                          {"float64", dtype::f64},
                                                          {"float16", dtype::f16},
                                                          {"bfloat16", dtype::bf16},
                                                          {"uint8", dtype::u8},
                                                          {"int8", dtype::i8},
                                                          {"int16", dtype::i16},
                                                          {"int32", dtype::i32},
                                                          {"int64", dtype::i64},
                                                          {"bool", dtype::boolean},
                                                          {"uint16", dtype::u16},
                                                          {"uint32", dtype::u32},
                                                          {"uint64", dtype::u64},
                                                          {"complex64", dtype::c64},
                                                          {"complex128", dtype::c128}}) {
        check_fixture(*file, each.name, each.type, {5, 7});
    }
    check_fixture(*file, "scalar", dtype::f32, {});
    check_fixture(*file, "empty", dtype::f32, {3, 0, 2});
    for (const named_type& each :
         std::vector<named_type>{{"float8_e4m3fn", dtype::f8_e4m3},
                                 {"float8_e5m2", dtype::f8_e5m2},
                                 {"float8_e4m3fnuz", dtype::f8_e4m3fnuz},
                                 {"float8_e5m2fnuz", dtype::f8_e5m2fnuz}}) {
        INFO(each.name);
        CHECK(find(*file, each.name)->type == each.type);
        const std::vector<float> found = values(*file, each.name);
        for (std::size_t i = 0; i < 16; ++i) {  // integers up to 8 are exact in all of them
            CHECK(found[i] == static_cast<float>(i) - 7.0f);
        }
    }
    CHECK(file->tensors().size() == 21);
    io::open_options options;
    options.as = "f8_e8m0";
    const auto again = io::open_model(fixture("torch_dtypes.pt"), options);
    CHECK(find(*again, "uint8")->type == dtype::f8_e8m0);
    CHECK(find(*again, "int8")->type == dtype::i8);
    CHECK(file->metadata().empty());
}

TEST_CASE("torch: views that are not contiguous", "[torch]") {
    const auto file = fixture_file("torch_views.pt");
    check_fixture(*file, "transposed", dtype::f32, {5, 7});
    check_fixture(*file, "stepped", dtype::f32, {5, 7});
    check_fixture(*file, "permuted", dtype::i16, {3, 4, 5});
    check_fixture(*file, "offset", dtype::f32, {5, 7});
    check_fixture(*file, "channels_last", dtype::f32, {2, 3, 4, 5});
    std::vector<float> row;
    std::vector<float> column;
    std::vector<float> overlapping;
    for (int i = 0; i < 21; ++i) row.push_back(static_cast<float>(i % 7) - 7.0f);
    for (int i = 0; i < 12; ++i) column.push_back(static_cast<float>(i / 4) - 7.0f);
    for (int i = 0; i < 15; ++i)
        overlapping.push_back(static_cast<float>(i / 5 * 2 + i % 5) - 7.0f);
    CHECK(values(*file, "row") == row);
    CHECK(values(*file, "column") == column);
    CHECK(values(*file, "overlapping") == overlapping);
    has(note_of(*file, "negative"), "resolve_neg()");
}

TEST_CASE("torch: names, ties and what is not built", "[torch]") {
    const auto file = fixture_file("torch_nested.pt");
    for (const char* name :
         {"model.embedding", "model.head", "optimizer.state.0.exp_avg", "recorder.first"}) {
        check_fixture(*file, name, dtype::f32, {5, 7});
    }
    check_fixture(*file, "model.first_rows", dtype::f32, {2, 7});
    check_fixture(*file, "history.0", dtype::f64, {2, 3});
    check_fixture(*file, "history.1.0", dtype::u8, {3});
    check_fixture(*file, "3", dtype::f32, {2});
    check_fixture(*file, "recorder.inner.second", dtype::i8, {5, 7});
    check_fixture(*file, "high_precision", dtype::bf16, {5, 7});
    // A whole module has the names of its state_dict.
    check_fixture(*file, "module.0.weight", dtype::f32, {3, 4});
    CHECK(find(*file, "module.1.running_mean")->shape == tensor::shape{3});
    CHECK(values(*file, "optimizer.state.0.step") == std::vector<float>{1.0f});

    has(note_of(*file, "quantized"), "dequantize()");
    has(note_of(*file, "sparse"), "to_dense()");
    has(note_of(*file, "wrapper"), "__main__.Wrapper; mx executes nothing");
    CHECK(file->tensors().size() == 22);

    CHECK(find(*file, "model.head")->tied_to == "model.embedding");
    CHECK(find(*file, "model.first_rows")->tied_to == "model.embedding");
    CHECK(find(*file, "model.embedding")->occupied_bytes() == 140);
    const auto& metadata = file->metadata();
    CHECK(metadata.at("model.head") == "shares its storage with model.embedding");
    CHECK(metadata.at("model.first_rows") == "shares its storage with model.embedding");
    has(metadata.at("configuration"), "__main__.Configuration");
    CHECK(metadata.size() == 3);
}

TEST_CASE("torch: a tensor, an object, a script, the other byte order", "[torch]") {
    const auto single = fixture_file("torch_tensor.pt");
    REQUIRE(single->tensors().size() == 1);
    check_fixture(*single, "torch_tensor", dtype::f32, {5, 7});

    has(open_error(fixture("torch_object.pt")), "__main__.Configuration; mx builds no objects");
    has(open_error(fixture("torch_old.pt")),
        "a PyTorch file from before version 1.6, which mx does not read; save it again");

    const auto script = fixture_file("torch_script.pt");
    check_fixture(*script, "weight", dtype::f32, {5, 7});
    check_fixture(*script, "steps", dtype::i64, {3});

    const auto big = fixture_file("torch_big_endian.pt");
    check_fixture(*big, "float32", dtype::f32, {5, 7});
    check_fixture(*big, "bfloat16", dtype::bf16, {5, 7});
    check_fixture(*big, "int64", dtype::i64, {5, 7});
    check_fixture(*big, "complex64", dtype::c64, {5, 7});
    check_fixture(*big, "uint8", dtype::u8, {5, 7});
}

TEST_CASE("torch: every fixture cut anywhere is refused or read without harm", "[torch][hostile]") {
    const scratch_dir dir;
    const std::string sound = slurp(fixture("torch_views.pt"));
    for (std::size_t length = 0; length < sound.size(); length += 13) {
        open_error(dir.file("cut.pt", sound.substr(0, length)));
    }
}

TEST_CASE("torch: deflated archives and the hand-written one", "[torch]") {
    const scratch_dir dir;
    for (const bool packed : {false, true}) {
        const auto file = io::open_model(
            torch_zip(dir / "x.pt", p_dict({{"a", p_four()}, {"b", p_storage("0", 4)}}), packed));
        CHECK(values(*file, "a") == std::vector<float>{1, 2, 3, 4});
        CHECK(values(*file, "b") == std::vector<float>{1, 2, 3, 4});
        CHECK(file->metadata().at("b") == "shares its storage with a");
        CHECK(find(*file, "b")->tied_to == "a");
        CHECK(find(*file, "b")->occupied_bytes() == 0);
        const std::uint64_t held = find(*file, "a")->occupied_bytes();
        CHECK((packed ? held > 0 && held != 16 : held == 16));
    }
}

TEST_CASE("torch: checksums are not compared, as PyTorch may leave them out", "[torch]") {
    const scratch_dir dir;
    std::string bytes = slurp(torch_zip(dir / "x.pt", p_dict({{"a", p_four()}})));
    const std::size_t data = bytes.find(four_floats);
    REQUIRE(data != std::string::npos);
    bytes[data + 3] = '\x40';
    const auto file = io::open_model(dir.file("y.pt", bytes));
    CHECK(values(*file, "a") == std::vector<float>{4, 2, 3, 4});
}

TEST_CASE("torch: packed FP4 counts its elements, not its bytes", "[torch]") {
    const scratch_dir dir;
    const std::string packed =
        p_call(p_global("torch._utils", "_rebuild_tensor_v3"),
               {p_storage("0", 16, "UntypedStorage"), p_int(0), p_ints({2, 8}), p_ints({8, 1}),
                "\x89", p_call(p_global("collections", "OrderedDict"), {}),
                p_global("torch", "float4_e2m1fn_x2")});
    const auto file = io::open_model(torch_zip(dir / "x.pt", p_dict({{"w", packed}})));
    CHECK(file->tensors()[0].type == dtype::f4);
    CHECK(file->tensors()[0].shape == tensor::shape{2, 16});
    CHECK(file->tensors()[0].bytes == 16);
    CHECK(content(*file, 0) == four_floats);
}

TEST_CASE("torch: the one key that everything stands below is left out when it is a wrapper",
          "[torch]") {
    const scratch_dir dir;
    const auto names = [&dir](const std::string& root) {
        const auto file = io::open_model(torch_zip(dir / "x.pt", root));
        std::vector<std::string> all;
        for (const io::tensor_info& t : file->tensors()) all.push_back(t.name);
        return all;
    };
    const std::string two = p_dict({{"fc.weight", p_four()}, {"fc.bias", p_four()}});
    using list = std::vector<std::string>;
    CHECK(names(p_dict({{"model_state_dict", two}, {"epoch", p_int(3)}})) ==
          list{"fc.weight", "fc.bias"});
    // Not a wrapper by its name, or not the only one.
    CHECK(names(p_dict({{"encoder", two}})) == list{"encoder.fc.weight", "encoder.fc.bias"});
    CHECK(names(p_dict({{"model", two}, {"ema", p_dict({{"w", p_four()}})}})) ==
          list{"model.fc.weight", "model.fc.bias", "ema.w"});
    CHECK(names(p_dict({{"model", two}, {"w", p_four()}})) ==
          list{"model.fc.weight", "model.fc.bias", "w"});
    // A flat state_dict keeps keys that begin this way; so does a tensor that is the value itself.
    CHECK(names(p_dict({{"model.a", p_four()}, {"model.b", p_four()}})) ==
          list{"model.a", "model.b"});
    CHECK(names(p_dict({{"model", p_four()}})) == list{"model"});
}

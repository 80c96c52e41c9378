// SPDX-License-Identifier: Apache-2.0
// PyTorch archives with false contents, and commands in them that are not executed.
#include <filesystem>

#include "tests/io/fixture_values.hpp"
#include "tests/io/pickles.hpp"

using namespace mx;
using namespace mx::test;

namespace {

std::string tensor_error(const std::string& tensor) {
    const scratch_dir dir;
    return open_error(torch_zip(dir / "x.pt", p_dict({{"w", tensor}})));
}

}  // namespace

TEST_CASE("torch: nothing is executed", "[torch][hostile]") {
    const scratch_dir dir;
    const std::string mark = dir / "executed";
    for (const char* module : {"os", "posix", "nt", "subprocess", "builtins", "__builtin__"}) {
        const std::string call =
            p_call(p_global(module, "system"), {p_text("touch '" + mark + "'")});
        has(open_error(torch_zip(dir / "x.pt", call)),
            std::string("an object of ") + module + ".system; mx builds no objects");
        // Next to tensors it is skipped and named.
        const auto file =
            io::open_model(torch_zip(dir / "x.pt", p_dict({{"w", p_four()}, {"c", call}})));
        CHECK(values(*file, "w") == std::vector<float>{1, 2, 3, 4});
        has(file->metadata().at("c"), std::string(module) + ".system: not built");
        // In place of a storage, or around a tensor, it makes the tensor unreadable.
        has(tensor_error(p_tensor(call, 0, {4}, {1})), "its storage is not described");
        const auto around = io::open_model(
            torch_zip(dir / "x.pt", p_dict({{"w", p_call(p_global(module, "eval"), {p_four()})}})));
        REQUIRE(around->tensors().size() == 1);
        has(around->tensors()[0].note, std::string(module) + ".eval; mx executes nothing");
    }
    CHECK(!std::filesystem::exists(mark));
}

TEST_CASE("torch: views outside their storage", "[torch][hostile]") {
    const std::int64_t huge = INT64_MAX;
    const auto view = [](std::int64_t offset, const std::vector<std::int64_t>& shape,
                         const std::vector<std::int64_t>& strides) {
        return p_tensor(p_storage("0", 4), offset, shape, strides);
    };
    for (const std::string& tensor : {view(1, {4}, {1}), view(4, {1}, {1}), view(5, {0}, {1}),
                                      view(0, {2}, {4}), view(huge, {1}, {1}), view(0, {2}, {huge}),
                                      view(huge, {2}, {huge}), view(0, {3, 2}, {huge, huge})}) {
        has(tensor_error(tensor), "tensor 'w': its view reaches beyond its storage of 4 elements");
    }
    has(tensor_error(view(0, {huge, huge}, {0, 0})), "its extents are too large");
    has(tensor_error(view(-1, {1}, {1})), "not described as in PyTorch");
    has(tensor_error(view(0, {-1}, {1})), "not described as in PyTorch");
    has(tensor_error(view(0, {4}, {-1})), "not described as in PyTorch");
    has(tensor_error(view(0, {4}, {1, 1})), "not described as in PyTorch");
    has(tensor_error(p_tensor(p_storage("0", 5), 0, {4}, {1})),
        "its storage should have 20 bytes, entry 'archive/data/0' has 16");
    has(tensor_error(p_tensor(p_storage("0", huge), 0, {4}, {1})), "is too large");
    has(tensor_error(p_tensor(p_storage("../../0", 4), 0, {4}, {1})),
        "entry 'archive/data/../../0', is missing");
    has(tensor_error(p_tensor(p_storage("0", 4, "StrangeStorage"), 0, {4}, {1})),
        "of class 'torch.StrangeStorage', which mx does not support");
    has(tensor_error(p_tensor("N", 0, {4}, {1})), "its storage is not described");
}

TEST_CASE("torch: an expanded view cannot be a bomb", "[torch][hostile]") {
    const scratch_dir dir;
    const auto file = io::open_model(
        torch_zip(dir / "x.pt",
                  p_dict({{"bomb", p_tensor(p_storage("0", 4), 0, {std::int64_t{1} << 40}, {0})},
                          {"w", p_four()}})));
    has(find(*file, "bomb")->note, "and this tensor has 4398046511104 bytes");
    CHECK(values(*file, "w") == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("torch: archives that are not right", "[torch][hostile]") {
    const scratch_dir dir;
    const std::string sound = p_pickle(p_dict({{"w", p_four()}}));
    const auto refused = [&](const std::vector<member>& members) {
        return open_error(write_zip(dir / "x.pt", members));
    };
    has(refused({{"a/data.pkl", sound}}), "tensor 'w': its storage, entry 'a/data/0', is missing");
    has(refused({{"a/data.pkl", sound}, {"b/data.pkl", sound}}), "a second data.pkl");
    has(refused({{"a/data.pkl", sound}, {"a/byteorder", "middle"}}), "neither 'little' nor 'big'");
    has(refused({{"a/data.pkl", ""}, {"a/data/0", four_floats}}), "the pickle ends early");
    has(refused({{"a/b/data.pkl", sound}}), "is a zip archive without .npy arrays");
    // The root may be the archive itself.
    CHECK(io::open_model(write_zip(dir / "y.pt", {{"data.pkl", sound}, {"data/0", four_floats}}))
              ->tensors()
              .size() == 1);
}

TEST_CASE("torch: names with control characters are kept, and escaped in messages",
          "[torch][hostile]") {
    const scratch_dir dir;
    const std::string name = "a\n\x1b[31m../b";
    const auto file = io::open_model(torch_zip(dir / "x.pt", p_dict({{name, p_four()}})));
    CHECK(file->tensors()[0].name == name);
    has(open_error(
            torch_zip(dir / "x.pt", p_dict({{name, p_tensor(p_storage("7", 4), 0, {4}, {1})}}))),
        "tensor 'a\\x0a\\x1b[31m../b': ");
}

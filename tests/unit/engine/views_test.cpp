// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/views.hpp"

#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

namespace mx {
namespace {

using tensor::dtype;

std::vector<std::string> tied_names(const std::vector<std::string>& names) {
    auto file = std::make_unique<tests::memory_model>();
    for (const std::string& name : names) {
        file->add(name + "_blocks", dtype::u8, {2, 1, 16}, std::vector<std::uint8_t>(32));
        if (name != names.front()) file->tie(names.front() + "_blocks");
        file->add(name + "_scales", dtype::u8, {2, 1}, std::vector<std::uint8_t>(2, 127));
    }
    std::vector<std::unique_ptr<io::reader>> files;
    files.push_back(std::move(file));
    const auto view = engine::make_view(files, {});
    REQUIRE(view != nullptr);
    std::vector<std::string> tied;
    for (const io::tensor_info& t : view->tensors()) tied.push_back(t.name + ": " + t.tied_to);
    return tied;
}

}  // namespace

// Names that a string holds in itself, and names that it holds elsewhere.
TEST_CASE("quantized tensors whose codes are shared are tied by their own names") {
    CHECK(tied_names({"a", "b", "c"}) == std::vector<std::string>{"a: ", "b: a", "c: a"});
    const std::string name = "model.layers.0.mlp.experts.up";
    CHECK(tied_names({name, name + "2"}) ==
          std::vector<std::string>{name + ": ", name + "2: " + name});
}

}  // namespace mx

// SPDX-License-Identifier: Apache-2.0
// Models of several safetensors files.
#include <filesystem>
#include <fstream>

#include "libmx/io/remarks.hpp"
#include "libmx/io/writer.hpp"
#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

void shard(const std::string& path, const std::vector<std::pair<std::string, std::string>>& data) {
    std::vector<io::planned_array> plan;
    for (const auto& [name, text] : data) plan.push_back({name, dtype::u8, {text.size()}});
    const auto writer = io::create_safetensors(path, plan, {});
    for (std::size_t i = 0; i < data.size(); ++i) writer->write(i, 0, bytes_of(data[i].second));
    writer->commit();
}

std::string refused(const scratch_dir& dir, const std::string& index) {
    return open_error(dir.file("m.safetensors.index.json", index));
}

}  // namespace

TEST_CASE("a sharded model is read as one", "[sharded]") {
    const scratch_dir dir;
    std::filesystem::create_directory(dir / "sub");
    shard(dir / "one.safetensors", {{"a", "first"}, {"unlisted", "x"}});
    shard(dir / "sub/two.safetensors", {{"c", "third"}, {"b", "second"}});
    const std::string index = dir.file(
        "model.safetensors.index.json",
        " {\"metadata\":{\"total_size\":16,\"format\":\"pt\"},\"other\":[{}],\"weight_map\":"
        "{\"b\":\"sub/two.safetensors\",\"a\":\"one.safetensors\",\"c\":\"sub/two.safetensors\"}}");
    for (const std::string& path : {index, dir.path()}) {
        std::unique_ptr<io::reader> file;
        if (path == dir.path()) std::filesystem::rename(dir / "one.safetensors", dir / "o");
        if (path == dir.path()) std::filesystem::create_symlink(dir / "o", dir / "one.safetensors");
        file = io::open_model(path);
        REQUIRE(file->tensors().size() == 3);
        CHECK(content(*file, index_of(*file, "a")) == "first");
        CHECK(content(*file, index_of(*file, "b")) == "second");
        CHECK(content(*file, index_of(*file, "c")) == "third");
        CHECK(find(*file, "a")->file == dir / "one.safetensors");
        CHECK(find(*file, "unlisted") == nullptr);
        CHECK(file->metadata().at("total_size") == "16");
        REQUIRE(file->files().size() == 3);
        CHECK(file->files()[0].first == dir / "model.safetensors.index.json");
        CHECK(file->files()[1].second == slurp(dir / "one.safetensors").size());
    }
}

TEST_CASE("tensors and files that the index omits are named", "[sharded]") {
    const scratch_dir dir;
    shard(dir / "one.safetensors", {{"a", "first"}});
    const std::string index =
        dir.file("model.safetensors.index.json", "{\"weight_map\":{\"a\":\"one.safetensors\"}}");
    CHECK(io::remarks_of(*io::open_model(index)).empty());
    // Names of the index in another file, and files that are no safetensors, are no omission.
    shard(dir / "copy.safetensors", {{"a", "again"}});
    dir.file("broken.safetensors", "x");
    CHECK(io::remarks_of(*io::open_model(index)).empty());
    shard(dir / "one.safetensors", {{"a", "first"}, {"extra", "x"}});
    shard(dir / "mtp.safetensors", {{"b", "x"}, {"c", "x"}});
    for (const std::string& path : {index, dir.path()}) {
        const auto remarks = io::remarks_of(*io::open_model(path));
        REQUIRE(remarks.size() == 1);
        CHECK(remarks[0] == "not in the index, and left out: extra of " +
                                (dir / "one.safetensors") + ", 2 tensors of " +
                                (dir / "mtp.safetensors") + ", such as b");
    }
}

TEST_CASE("a model with a false index", "[sharded][hostile]") {
    const scratch_dir dir;
    shard(dir / "one.safetensors", {{"a", "first"}});
    has(refused(dir, "{\"weight_map\":{\"a\":\"two.safetensors\"}}"),
        "tensor 'a': its shard '" + (dir / "two.safetensors") + "' is missing");
    has(refused(dir, "{\"weight_map\":{\"z\":\"one.safetensors\"}}"),
        "tensor 'z': is not in its shard");
    for (const std::string path : {"../one.safetensors", "x/../../y", "/etc/passwd", ""}) {
        has(refused(dir, "{\"weight_map\":{\"a\":\"" + path + "\"}}"),
            "is outside the directory of the index");
    }
    has(refused(dir, "{\"weight_map\":{\"a\":\"b\",\"a\":\"b\"}}"),
        "the index has the key 'a' twice");
    has(refused(dir, "{\"weight_map\":{\"a\":3}}"), "does not give a file name");
    has(refused(dir, "{\"weight_map\":{\"a\":{}}}"), "does not give a file name");
    has(refused(dir, "{\"weight_map\":[]}"), "weight_map is not an object");
    has(refused(dir, "{\"weight_map\":1}"), "weight_map is not an object");
    has(refused(dir, "{\"a\":1}"), "the index has no weight_map");
    has(refused(dir, "{\"a\":"), "the index is not valid JSON");
    dir.file("bad.safetensors", std::string("\x09\0\0\0\0\0\0\0{}", 10));
    has(refused(dir, "{\"weight_map\":{\"a\":\"bad.safetensors\"}}"), "bad.safetensors: at byte 0");
}

TEST_CASE("a directory stands for the one model in it", "[sharded]") {
    const scratch_dir dir;
    has(open_error(dir.path()), "holds 0 *.safetensors.index.json and 0 *.safetensors");
    shard(dir / "one.safetensors", {{"a", "first"}});
    CHECK(io::open_model(dir.path())->tensors().size() == 1);
    shard(dir / "two.safetensors", {{"b", "second"}});
    has(open_error(dir.path()), "and 2 *.safetensors; name one");
}

TEST_CASE("directories of other formats are named, also with a folder per step", "[sharded]") {
    const scratch_dir dir;
    std::filesystem::create_directories(dir / "run/100");
    std::ofstream(dir / "run/100/_METADATA") << "{}";
    for (const char* of : {"run/100", "run"}) has(open_error(dir / of), "looks like an Orbax");
    shard(dir / "run/one.safetensors", {{"a", "first"}});
    CHECK(io::open_model(dir / "run")->tensors().size() == 1);
}

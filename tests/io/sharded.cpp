// SPDX-License-Identifier: Apache-2.0
// Models of several safetensors files.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "libmx/io/input_paths.hpp"
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

std::string index_error(const scratch_dir& dir, const std::string& index) {
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
    has(index_error(dir, "{\"weight_map\":{\"a\":\"two.safetensors\"}}"),
        "tensor 'a': its shard '" + (dir / "two.safetensors") + "' is missing");
    has(index_error(dir, "{\"weight_map\":{\"z\":\"one.safetensors\"}}"),
        "tensor 'z': is not in its shard");
    for (const std::string path :
         {"../one.safetensors", "x/../../y", "/etc/passwd", "", "%2e%2e/x",
          "x/%2E./%252e%252E/../y", "http://127.0.0.1:9/x", "s3://bucket/x", "./hf://org/name/x"}) {
        has(index_error(dir, "{\"weight_map\":{\"a\":\"" + path + "\"}}"),
            "is outside the directory of the index");
    }
    has(index_error(dir, "{\"weight_map\":{\"a\":\"b\",\"a\":\"b\"}}"),
        "the index has the key 'a' twice");
    has(index_error(dir, "{\"weight_map\":{\"a\":3}}"), "does not give a file name");
    has(index_error(dir, "{\"weight_map\":{\"a\":{}}}"), "does not give a file name");
    has(index_error(dir, "{\"weight_map\":[]}"), "weight_map is not an object");
    has(index_error(dir, "{\"weight_map\":1}"), "weight_map is not an object");
    has(index_error(dir, "{\"a\":1}"), "the index has no weight_map");
    has(index_error(dir, "{\"a\":"), "the index is not valid JSON");
    dir.file("bad.safetensors", std::string("\x09\0\0\0\0\0\0\0{}", 10));
    has(index_error(dir, "{\"weight_map\":{\"a\":\"bad.safetensors\"}}"),
        "bad.safetensors: at byte 0");
}

TEST_CASE("files name others in their folder alone, and no addresses", "[sharded][hostile]") {
    using io::path_beside;
    CHECK(path_beside("m.json", "./a//b") == "a/b");
    CHECK(path_beside("d/m.json", "a..b") == "d/a..b");
    CHECK(path_beside("https://host/d/m.json", "x/a") == "https://host/d/x/a");
    CHECK(path_beside("hf://org/name@c0/m.json", "a b") == "hf://org/name@c0/a b");
    for (const std::string file : {"m.json", "d/m.json", "/d/m.json", "https://host/d/m.json"}) {
        for (const std::string named :
             {"http://h/x", "s3://b/x", "hf://o/n/x", "./x/../y", "..", "a/..", "/x", "",
              "%2e%2e/x", "a/.%2E/x", "%252e%252e/x", "%2fx"}) {
            INFO(file << " names " << named);
            CHECK_FALSE(path_beside(file, named));
        }
        CHECK_FALSE(path_beside(file, std::string("a\0b", 3)));
    }
    CHECK_FALSE(path_beside("https://host", "evil/x"));  // its folder would be https:

    // By a bare name, so that there is no folder in front of what the index names.
    const scratch_dir dir;
    shard(dir / "one.safetensors", {{"a", "first"}});
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(dir.path());
    const auto said = [](const std::string& shard) {
        std::ofstream("m.safetensors.index.json") << R"({"weight_map":{"a":")" << shard << "\"}}";
        return open_error("m.safetensors.index.json");
    };
    for (const char* address : {"http://127.0.0.1:9/x", "s3://bucket/x", "hf://org/name/x"}) {
        has(said(address), "is outside the directory of the index");
    }
    std::ofstream("m.safetensors.index.json") << R"({"weight_map":{"a":"./one.safetensors"}})";
    CHECK(io::open_model("m.safetensors.index.json")->tensors().size() == 1);
    std::filesystem::current_path(before);
}

TEST_CASE("shards without an index are read if all of them are there", "[sharded]") {
    const scratch_dir dir;
    const auto name = [&](int i) { return dir / fmt::format("m-{:05}-of-00003.safetensors", i); };
    shard(name(3), {{"c", "third"}});
    has(open_error(dir.path()),
        "has no index and only 1 of the 3 shards of 'm': 00001, 00002 of 00003 are missing; fetch");
    CHECK(io::open_model(name(3))->tensors().size() == 1);  // named by the user
    shard(name(1), {{"a", "first"}});
    const auto paths = [&] { return io::input_paths({dir.path()}); };
    has(error_of(base::error_kind::input, [&] { paths(); }),
        "has no index and only 2 of the 3 shards of 'm': 00002 of 00003 is missing");
    shard(name(2), {{"b", "second"}});
    CHECK(paths().size() == 3);
    // Of another set; and numbers from 0.
    shard(dir / "n-00001-of-00002.safetensors", {{"n", "x"}});
    has(error_of(base::error_kind::input, [&] { paths(); }), "shards of 'n'");
    shard(dir / "n-00000-of-00002.safetensors", {{"o", "x"}});
    shard(dir / "extra.safetensors", {{"e", "x"}});
    CHECK(paths().size() == 6);
}

TEST_CASE("shards that are missing among named files are counted", "[sharded]") {
    using list = std::vector<std::string>;
    CHECK(io::missing_shards({"a/m-00001-of-00002.gguf", "a/m-00002-of-00002.gguf", "x-y-of-3"})
              .empty());
    CHECK(io::missing_shards({"m-0-of-2.npz", "m-1-of-2.npz", "m-2-of-2.npz"}).empty());
    CHECK(io::missing_shards({"a/m-00001-of-00002.gguf", "b/m-00002-of-00002.gguf"}) ==
          list{"1 of the 2 shards of 'm': 00002 of 00002 is missing",
               "1 of the 2 shards of 'm': 00001 of 00002 is missing"});
    CHECK(io::missing_shards({"m-2-of-18446744073709551615.pt"}) ==
          list{"1 of the 18446744073709551615 shards of 'm': 00001, 00003, 00004, 00005 and "
               "18446744073709551610 more of 18446744073709551615 are missing"});
}

TEST_CASE("two shards of an index are two files", "[sharded]") {
    const scratch_dir dir;
    shard(dir / "a.safetensors", {{"a", "first"}, {"b", "second"}});
    const std::string index = dir / "m.safetensors.index.json";
    std::ofstream(index) << R"({"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})";
    std::filesystem::create_hard_link(dir / "a.safetensors", dir / "b.safetensors");
    has(open_error(index), "b.safetensors' is the same file as '");
    std::filesystem::remove(dir / "b.safetensors");
    std::filesystem::create_symlink("a.safetensors", dir / "b.safetensors");
    has(open_error(index), "b.safetensors' is the same file as '");
    std::filesystem::remove(dir / "b.safetensors");
    std::filesystem::copy_file(dir / "a.safetensors", dir / "b.safetensors");
    CHECK(io::open_model(index)->tensors().size() == 2);
}

TEST_CASE("while shards are replaced, their index says so", "[sharded]") {
    const scratch_dir dir;
    const std::string index = dir / "m.safetensors.index.json";
    const auto writer = [&] {
        return io::create_safetensors_shards(index, {{"a", dtype::u8, {4}}, {"b", dtype::u8, {4}}},
                                             {}, 4);
    };
    writer()->commit();
    CHECK(io::open_model(dir.path())->tensors().size() == 2);
    // A writer that ends after the first of its files.
    {
        const auto ends = writer();
        const std::string second = dir / "m-00002-of-00002.safetensors";
        std::filesystem::remove(second);
        std::filesystem::create_directories(second + "/in the way");
        CHECK_THROWS_AS(ends->commit(), base::error);
        std::filesystem::remove_all(second);
    }
    has(open_error(dir.path()), "its files are not complete: mx is writing them, or ended before");
    writer()->commit();  // the same again
    CHECK(io::open_model(dir.path())->tensors().size() == 2);

    // Two writers put their files in place in turn.
    std::filesystem::remove(dir / "m-00001-of-00002.safetensors");
    const auto waits = writer();
    const int folder = ::open(dir.path().c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(::flock(folder, LOCK_EX) == 0);
    std::thread other([&] { waits->commit(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK_FALSE(std::filesystem::exists(dir / "m-00001-of-00002.safetensors"));
    ::close(folder);
    other.join();
    CHECK(std::filesystem::exists(dir / "m-00001-of-00002.safetensors"));
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

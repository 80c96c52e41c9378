// SPDX-License-Identifier: Apache-2.0
// Attacks that every reader must withstand: files that change while they are read, bombs, circular
// links, archives with overlapping entries. docs/security.md lists the guarantees.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <sstream>

#include "libmx/io/input_paths.hpp"
#include "libmx/io/readers.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/model_file.hpp"
#include "tests/io/zip_members.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

namespace fs = std::filesystem;

// A sample of each format, with the file that contains the numbers.
struct sample {
    const char* name;
    const char* numbers;
};
constexpr sample samples[] = {{"version2.npy", "version2.npy"},
                              {"numpy.npz", "numpy.npz"},
                              {"numpy_deflated.npz", "numpy_deflated.npz"},
                              {"h5py.h5", "h5py.h5"},
                              {"gguf.gguf", "gguf.gguf"},
                              {"safetensors.safetensors", "safetensors.safetensors"},
                              {"sharded.safetensors.index.json", "safetensors.safetensors"},
                              {"torch_views.pt", "torch_views.pt"},
                              {"torch_distributed", "torch_distributed/__0_0.distcp"},
                              {"onnx.onnx", "onnx.onnx"},
                              {"onnx_external.onnx", "onnx_external.data"},
                              {"keras.keras", "keras.keras"}};

bool readable(const sample& each) {
    return std::string(each.name).find("onnx") == std::string::npos || !io::onnx_support().empty();
}

// Reads everything; how many tensors were refused. Only input errors are allowed.
int refused_tensors(const io::reader& file) {
    int refused = 0;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        if (!file.tensors()[i].note.empty() || file.tensors()[i].bytes > 1 << 20) continue;
        try {
            content(file, i);
        } catch (const base::error& e) {
            CHECK(static_cast<int>(e.kind()) == static_cast<int>(base::error_kind::input));
            ++refused;
        }
    }
    return refused;
}

// Resident memory of this process.
std::uint64_t resident_bytes() {
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    REQUIRE(file != nullptr);
    unsigned long long total = 0, resident = 0;
    const int read = std::fscanf(file, "%llu %llu", &total, &resident);
    std::fclose(file);
    REQUIRE(read == 2);
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string zeros_npy(std::size_t count) {
    const scratch_dir dir;
    io::create_npy(dir / "a.npy", {"a", dtype::u8, {count}})->commit();
    return slurp(dir / "a.npy");
}

}  // namespace

TEST_CASE("files of every format may shrink while they are read", "[hostile]") {
    for (const sample& each : samples) {
        if (!readable(each)) continue;
        INFO(each.name);
        const scratch_dir dir;
        fs::copy(fixture(""), dir.path(), fs::copy_options::recursive);
        const auto file = io::open_model(dir / each.name);
        CHECK(refused_tensors(*file) == 0);
        const auto again = io::open_model(dir / each.name);
        fs::resize_file(dir / each.numbers, 16);
        const int refused = refused_tensors(*again);
        // The contents of .keras are unpacked on opening, and small entries of an archive may have
        // been read with the directory.
        if (std::string(each.name) != "keras.keras") CHECK(refused > 0);
    }
}

TEST_CASE("files of every format may be overwritten while they are read", "[hostile]") {
    for (const sample& each : samples) {
        if (!readable(each)) continue;
        for (const char byte : {'\0', '\xff', 'P'}) {
            INFO(each.name << " " << static_cast<int>(byte));
            const scratch_dir dir;
            fs::copy(fixture(""), dir.path(), fs::copy_options::recursive);
            const auto file = io::open_model(dir / each.name);
            const std::size_t size = slurp(dir / each.numbers).size();
            std::FILE* out = std::fopen((dir / each.numbers).c_str(), "r+");
            REQUIRE(out != nullptr);
            const std::string bytes(size, byte);
            CHECK(std::fwrite(bytes.data(), 1, size, out) == size);
            std::fclose(out);
            refused_tensors(*file);  // an error or some numbers, and an end
        }
    }
}

TEST_CASE("a file that another takes the place of is read to its end", "[hostile]") {
    const scratch_dir dir;
    const std::string path =
        write_model(dir / "m.safetensors", {{"a", dtype::u8, {3}, std::string("old")}});
    const auto file = io::open_model(path);
    write_model(path, {{"a", dtype::u8, {3}, std::string("new")}});  // renames over it
    CHECK(content(*file, 0) == "old");
}

TEST_CASE("a zip bomb costs no memory", "[npz][hostile]") {
    const scratch_dir dir;
    const std::size_t count = 128 << 20;
    std::string path;
    {
        const std::string zeros = zeros_npy(count);
        path = write_zip(dir / "bomb.npz", {{"a.npy", zeros, true}});
    }
    REQUIRE(fs::file_size(path) < count / 500);
    const std::uint64_t before = resident_bytes();
    const auto file = io::open_model(path);
    CHECK(file->tensors()[0].elements == count);
    CHECK(resident_bytes() < before + (16 << 20));  // nothing is unpacked for the listing
    const auto source = file->open(0);
    std::string last(100, 'x');
    source->read(count - last.size(), std::as_writable_bytes(std::span(last)));
    CHECK(last == std::string(100, '\0'));
    CHECK(resident_bytes() < before + (64 << 20));
}

TEST_CASE("archives whose entries overlap are refused", "[npz][hostile]") {
    // One entry of a thousand zeros, and a directory that names it again and again.
    const scratch_dir dir;
    const std::string sound = slurp(write_zip(dir / "x.npz", {{"0.npy", zeros_npy(1000), true}}));
    const std::size_t at = sound.find("PK\x01\x02");
    const std::size_t end = sound.find("PK\x05\x06");
    REQUIRE(end != std::string::npos);
    const auto repeated_directory = [&](int times) {
        std::string bytes = sound.substr(0, at);
        std::string directory;
        for (int i = 0; i < times; ++i) {
            std::string entry = sound.substr(at, end - at);
            entry.replace(entry.find("0.npy"), 1, 1, static_cast<char>('0' + i));
            directory += entry;
        }
        std::string tail = sound.substr(end);
        tail.replace(8, 2, little(static_cast<std::uint64_t>(times), 2));
        tail.replace(10, 2, little(static_cast<std::uint64_t>(times), 2));
        tail.replace(12, 4, little(directory.size(), 4));
        return dir.file("d.npz", bytes + directory + tail);
    };
    CHECK(io::open_model(repeated_directory(1))->tensors().size() == 1);
    // The directory takes space as well, so that a few could still be valid.
    has(open_error(repeated_directory(70)), "the entries overlap");
}

TEST_CASE("links and folders that lead in circles", "[inputs][hostile]") {
    const scratch_dir dir;
    fs::create_symlink("b", dir / "a");
    fs::create_symlink("a", dir / "b");
    has(open_error(dir / "a"), "Too many levels of symbolic links");
    // Folders are not searched recursively, so a folder inside itself is not special.
    fs::create_directory_symlink(".", dir / "again");
    has(open_error(dir / "again/again/again"), "holds 0 *.safetensors.index.json");
    has(error_of(base::error_kind::input, [&] { io::input_paths({dir / "a"}); }),
        "is a cyclic symbolic link");
    // A shard that is such a link, an index, or the index itself.
    const std::string index = "m.safetensors.index.json";
    for (const std::string& shard : {std::string("a"), std::string("again"), index}) {
        INFO(shard);
        dir.file(index, "{\"weight_map\":{\"w\":\"" + shard + "\"}}");
        open_error(dir / index);
    }
}

TEST_CASE("pipes and devices in place of files are not waited for", "[inputs][hostile]") {
    const scratch_dir dir;
    REQUIRE(::mkfifo((dir / "pipe.safetensors").c_str(), 0600) == 0);
    has(open_error(dir.path()), "is not a regular file");  // a directory with a pipe in it
    has(open_error("/dev/zero"), "is not a regular file");
    dir.file("m.safetensors.index.json", "{\"weight_map\":{\"w\":\"pipe.safetensors\"}}");
    has(open_error(dir / "m.safetensors.index.json"), "is not a regular file");
}

TEST_CASE("every test that docs/security.md names is there", "[docs]") {
    const std::string source = MX_SOURCE_DIR;
    std::string tests;
    for (const char* folder : {"/tests/io", "/tests/unit"}) {
        for (const auto& entry : fs::recursive_directory_iterator(source + folder)) {
            if (entry.path().extension() == ".cpp") tests += slurp(entry.path().string());
        }
    }
    std::istringstream page(slurp(source + "/docs/security.md"));
    int named = 0;
    for (std::string line; std::getline(page, line);) {
        if (line.empty() || line[0] != '|') continue;
        for (std::size_t at = line.find('"'); at != std::string::npos;
             at = line.find('"', at + 1)) {
            const std::size_t end = line.find('"', at + 1);
            REQUIRE(end != std::string::npos);
            const std::string test = line.substr(at, end - at + 1);
            INFO(test);
            CHECK(tests.find("TEST_CASE(" + test) != std::string::npos);
            ++named;
            at = end;
        }
    }
    CHECK(named > 20);
}

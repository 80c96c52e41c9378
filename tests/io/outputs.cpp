// SPDX-License-Identifier: Apache-2.0
// Output files appear whole or not at all.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "libmx/io/readers.hpp"
#include "libmx/io/writer.hpp"
#include "tests/io/scratch_dir.hpp"

using namespace mx;
using namespace mx::test;
using base::error_kind;
using tensor::dtype;

namespace {

// Standard output led into a file of ours for a while.
class captured_stdout {
  public:
    explicit captured_stdout(int to) : saved_(::dup(STDOUT_FILENO)) { ::dup2(to, STDOUT_FILENO); }
    ~captured_stdout() {
        ::dup2(saved_, STDOUT_FILENO);
        ::close(saved_);
    }
    captured_stdout(const captured_stdout&) = delete;
    captured_stdout& operator=(const captured_stdout&) = delete;

  private:
    int saved_;
};

mode_t mode_of(const std::string& path) {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
}

void write_text(const std::string& path, const std::string& text) {
    io::output_file out(path);
    out.append(text);
    out.commit();
}

// A separate $TMPDIR, to see what remains in it.
class own_tmpdir {
  public:
    own_tmpdir() {
        if (const char* old = std::getenv("TMPDIR")) saved_ = old;
        ::setenv("TMPDIR", dir.path().c_str(), 1);
    }
    ~own_tmpdir() {
        if (saved_.empty()) {
            ::unsetenv("TMPDIR");
        } else {
            ::setenv("TMPDIR", saved_.c_str(), 1);
        }
    }
    scratch_dir dir;

  private:
    std::string saved_;
};

// A limit on the size of files, which a write meets as it meets a full disk.
class own_limit {
  public:
    explicit own_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        ::getrlimit(RLIMIT_FSIZE, &saved_);
        const rlimit limit{bytes, saved_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~own_limit() {
        ::setrlimit(RLIMIT_FSIZE, &saved_);
        std::signal(SIGXFSZ, handler_);
    }
    own_limit(const own_limit&) = delete;
    own_limit& operator=(const own_limit&) = delete;

  private:
    void (*handler_)(int);
    rlimit saved_{};
};

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("an output appears at commit, with nothing beside it", "[output]") {
    const scratch_dir dir;
    {
        io::output_file out(dir / "a.txt");
        out.append("hello ");
        CHECK(!std::filesystem::exists(dir / "a.txt"));
        out.append("world");
        out.commit();
    }
    CHECK(slurp(dir / "a.txt") == "hello world");
    CHECK(dir.names() == std::vector<std::string>{"a.txt"});
}

TEST_CASE("without commit nothing remains and the old file stays", "[output]") {
    const scratch_dir dir;
    dir.file("old.txt", "old");
    { io::output_file(dir / "new.txt").append("x"); }
    { io::output_file(dir / "old.txt").append(std::string(3 << 20, 'x')); }
    { io::create_safetensors(dir / "new.st", {{"a", dtype::u8, {9}}}, {}); }
    { io::create_npy(dir / "new.npy", {"a", dtype::u8, {9}}); }
    { io::create_hdf5(dir / "new.h5", {{"a", dtype::u8, {9}}}, {}); }
    CHECK(dir.names() == std::vector<std::string>{"old.txt"});
    CHECK(slurp(dir / "old.txt") == "old");
}

TEST_CASE("an interrupted program removes what is unfinished", "[output]") {
    const scratch_dir dir;
    io::output_file out(dir / "a.txt");
    out.append("x");
    CHECK(dir.names().size() == 1);
    io::discard_unfinished_outputs();
    CHECK(dir.names().empty());
    has(error_of(error_kind::output, [&] { out.commit(); }), "cannot put in place");
    CHECK(dir.names().empty());
}

TEST_CASE("long texts and bytes at places", "[output]") {
    const scratch_dir dir;
    const std::string line(1000, 'l');
    io::output_file out(dir / "long.txt");
    for (int i = 0; i < 5000; ++i) out.append(line);
    out.commit();
    CHECK(slurp(dir / "long.txt") == std::string(5000000, 'l'));

    io::output_file bytes(dir / "bytes");
    bytes.write_at(6, bytes_of("def"));
    bytes.write_at(0, bytes_of("abc"));
    bytes.commit();
    CHECK(slurp(dir / "bytes") == std::string("abc\0\0\0def", 9));
}

TEST_CASE("permissions: the umask's for new files, the old ones otherwise", "[output]") {
    const scratch_dir dir;
    const mode_t before = ::umask(027);
    write_text(dir / "new", "x");
    ::umask(before);
    CHECK(mode_of(dir / "new") == 0640);
    dir.file("old", "x");
    REQUIRE(::chmod((dir / "old").c_str(), 0604) == 0);
    write_text(dir / "old", "y");
    CHECK(mode_of(dir / "old") == 0604);
    CHECK(slurp(dir / "old") == "y");
}

TEST_CASE("symbolic links are followed", "[output]") {
    const scratch_dir dir;
    std::filesystem::create_directory(dir / "real");
    std::filesystem::create_symlink("real/file", dir / "link");
    std::filesystem::create_symlink(dir / "link", dir / "second");
    for (const char* text : {"first", "again"}) {  // leads nowhere yet, then to a file
        write_text(dir / "second", text);
        CHECK(slurp(dir / "real/file") == text);
        CHECK(std::filesystem::is_symlink(dir / "link"));
        CHECK(std::filesystem::is_symlink(dir / "second"));
    }
    std::filesystem::create_symlink("round", dir / "round");
    has(error_of(error_kind::output, [&] { write_text(dir / "round", "x"); }), "cannot write");
}

TEST_CASE("destinations that cannot be written are refused at once", "[output]") {
    const scratch_dir dir;
    const auto refused = [](const std::string& path) {
        return error_of(error_kind::output, [&] { io::output_file{path}; });
    };
    has(refused(dir.path()), "Is a directory");
    has(refused(dir / "missing/a"), "cannot create a file in its directory: No such file");
    has(refused(""), "name is empty");
    has(refused("/dev/fd/987"), "Bad file descriptor");
    dir.file("plain", "x");
    has(refused(dir / "plain/a"), "Not a directory");
    has(refused("/proc/mx-output"), "cannot create a file in its directory");
    if (::geteuid() != 0) {  // root may write anywhere
        REQUIRE(::chmod(dir.path().c_str(), 0500) == 0);
        has(refused(dir / "a"), "Permission denied");
        REQUIRE(::chmod(dir.path().c_str(), 0700) == 0);
        REQUIRE(::chmod((dir / "plain").c_str(), 0400) == 0);
        has(refused(dir / "plain"), "Permission denied");
    }
}

TEST_CASE("a full disk is an error", "[output]") {
    const own_tmpdir tmp;
    for (const std::size_t count : {std::size_t{1}, std::size_t{3} << 20}) {
        has(error_of(error_kind::output, [&] { write_text("/dev/full", std::string(count, 'x')); }),
            "/dev/full: cannot write: No space left on device");
    }
    has(error_of(error_kind::output,
                 [&] {
                     io::create_safetensors("/dev/full", {{"a", dtype::u8, {9}}}, {})->commit();
                 }),
        "No space left on device");
    has(error_of(error_kind::output,
                 [&] {
                     io::create_hdf5("/dev/full", {{"a", dtype::u8, {9}}}, {})->commit();
                 }),
        "No space left on device");
    CHECK(tmp.dir.names().empty());
    // A size beyond any disk is refused before anything is computed.
    const scratch_dir dir;
    const std::string huge = error_of(error_kind::output, [&] {
        io::create_safetensors(dir / "x", {{"a", dtype::u8, {std::uint64_t{1} << 58}}}, {});
    });
    has(huge, "cannot ");
    CHECK(dir.names().empty());
}

TEST_CASE("HDF5 survives a file that cannot be written, from its first byte to its last",
          "[output]") {
    const scratch_dir dir;
    std::vector<io::planned_array> plan;
    for (int i = 0; i < 200; ++i) {
        plan.push_back({"group/" + std::to_string(i) + "/array", dtype::u8, {500}});
    }
    io::create_hdf5(dir / "whole.h5", plan, {{"key", "value"}})->commit();
    const std::uintmax_t size = std::filesystem::file_size(dir / "whole.h5");
    REQUIRE(size > 100000);
    for (std::uintmax_t limit = 0; limit < size; limit += limit < 4096 ? 512 : 7919) {
        const own_limit most(limit);
        const std::string said = error_of(error_kind::output, [&] {
            io::create_hdf5(dir / "x.h5", plan, {{"key", "value"}})->commit();
        });
        has(said, "x.h5: cannot ");
        has(said, "File too large; raise the limit");
        CHECK(said.substr(said.find("x.h5")).find("0x") == std::string::npos);
    }
    // No file remains, and the library continues to work.
    CHECK(dir.names() == std::vector<std::string>{"whole.h5"});
    io::create_hdf5(dir / "x.h5", plan, {{"key", "value"}})->commit();
    CHECK(content_of(dir / "x.h5") == content_of(dir / "whole.h5"));
}

TEST_CASE("more arrays than mx reads in one file are refused", "[output]") {
    const scratch_dir dir;
    std::vector<io::planned_array> plan;
    for (std::size_t i = 0; i <= (1 << 18); ++i) {
        plan.push_back({std::to_string(i), dtype::u8, {1}});
    }
    has(error_of(error_kind::output,
                 [&] { io::create_safetensors(dir / "x.safetensors", plan, {}); }),
        "262145 arrays are more than the 262144 that mx reads in one file; write shards");
    CHECK(dir.names().empty());
    plan.pop_back();
    io::create_safetensors(dir / "x.safetensors", plan, {})->commit();
    CHECK(io::open_model(dir / "x.safetensors")->tensors().size() == plan.size());
    // Shards are split by count as well as by bytes.
    plan.push_back({"last", dtype::u8, {1}});
    const std::string index = dir / "y.safetensors.index.json";
    io::create_safetensors_shards(index, plan, {}, io::usual_shard_bytes)->commit();
    CHECK(std::filesystem::exists(dir / "y-00002-of-00002.safetensors"));
    CHECK(io::open_model(index)->tensors().size() == plan.size());
}

TEST_CASE("the name of another format is refused", "[output]") {
    const scratch_dir dir;
    const io::planned_array array{"a", dtype::u8, {9}};
    const auto refused = [&](const std::string& name) {
        return error_of(error_kind::usage,
                        [&] { io::create_safetensors(dir / name, {array}, {}); });
    };
    for (const std::string ending : {".npz", ".gguf", ".pt", ".pth", ".bin", ".onnx", ".zip",
                                     ".ckpt", ".keras", ".h5", ".npy", ".json", ".NPZ"}) {
        has(refused("x" + ending), "may end with .safetensors");
    }
    has(error_of(error_kind::usage, [&] { io::create_npy(dir / "x.npz", array); }), ".npy");
    has(error_of(error_kind::usage, [&] { io::create_hdf5(dir / "x.npz", {array}, {}); }), ".h5");
    CHECK(dir.names().empty());
    for (const std::string name : {"x", "x.st", "x.npz.safetensors", "x.SafeTensors", "npz"}) {
        io::create_safetensors(dir / name, {array}, {})->commit();
    }
    io::create_hdf5(dir / "x.HDF5", {array}, {})->commit();
}

TEST_CASE("standard output, devices and pipes are written in place", "[output]") {
    const scratch_dir dir;
    const own_tmpdir tmp;
    for (const std::string name : {"-", "/dev/stdout", "/dev/fd/1"}) {
        const std::string to = dir.file("stdout", "");
        const int sink = ::open(to.c_str(), O_RDWR | O_APPEND);
        REQUIRE(sink >= 0);
        {
            const captured_stdout capture(sink);
            write_text(name, "text;");
            write_text(name, std::string(2 << 20, 'x'));
            io::create_npy(name, {"a", dtype::u8, {3}})->commit();
        }
        ::close(sink);
        const std::string got = slurp(to);
        CHECK(got.substr(0, 6) == "text;x");
        CHECK(got.size() == 5 + (2 << 20) + 128 + 3);
    }
    const std::string pipe = dir / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::string got;
    std::thread listener([&] { got = slurp(pipe); });
    const auto writer = io::create_safetensors(pipe, {{"a", dtype::u8, {3}}}, {});
    writer->write(0, 0, bytes_of("abc"));
    writer->commit();
    listener.join();
    CHECK(got.substr(got.size() - 3) == "abc");
    CHECK(std::filesystem::is_fifo(pipe));
    write_text("/dev/null", "x");
    CHECK(std::filesystem::is_character_file("/dev/null"));
    CHECK(tmp.dir.names().empty());
}

TEST_CASE("a closed pipe is told apart, and kills nobody", "[output]") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    ::close(ends[0]);
    base::error_kind kind = error_kind::usage;
    {
        const captured_stdout capture(ends[1]);
        try {
            write_text("-", "x");
        } catch (const base::error& e) {
            kind = e.kind();
        }
    }
    ::close(ends[1]);
    CHECK(static_cast<int>(kind) == static_cast<int>(error_kind::closed_pipe));
}

TEST_CASE("arrays may be written by several threads", "[output][threads]") {
    const scratch_dir dir;
    for (const bool hdf5 : {false, true}) {
        const std::size_t count = 1 << 20;
        const std::vector<io::planned_array> plan{{"a", dtype::u8, {count}},
                                                  {"b", dtype::u8, {count}}};
        const auto writer = hdf5 ? io::create_hdf5(dir / "x", plan, {})
                                 : io::create_safetensors(dir / "x", plan, {});
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                for (std::size_t at = static_cast<std::size_t>(t) * 4096; at < count;
                     at += std::size_t{4} * 4096) {
                    const std::string piece(4096, static_cast<char>('a' + t));
                    writer->write(0, at, bytes_of(piece));
                    writer->write(1, count - 4096 - at, bytes_of(piece));
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        writer->commit();
        const auto file = io::open_model(dir / "x");
        const std::string a = content(*file, 0);
        const std::string b = content(*file, 1);
        int wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
            wrong += a[i] != static_cast<char>('a' + i / 4096 % 4);
            wrong += b[i] != static_cast<char>('a' + (count - 1 - i) / 4096 % 4);
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("plans that cannot be stored are refused", "[output]") {
    const scratch_dir dir;
    const auto refused = [&](const io::planned_array& array) {
        return error_of(error_kind::output,
                        [&] { io::create_safetensors(dir / "x", {array}, {}); });
    };
    has(refused({"a", dtype::other, {1}}), "safetensors has no dtype OTHER");
    has(refused({"a", dtype::c128, {1}}), "safetensors has no dtype C128");
    has(refused({"\xff", dtype::u8, {1}}), "is not UTF-8");
    has(refused({"__metadata__", dtype::u8, {1}}), "two arrays of this name");
    has(refused({"a", dtype::u8, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}}), "too large");
    has(error_of(error_kind::output,
                 [&] {
                     io::create_npy(dir / "x", {"a", dtype::f4, {2}});
                 }),
        ".npy has no dtype F4");
    const auto writer = io::create_npy(dir / "x", {"a", dtype::u8, {2}});
    has(error_of(error_kind::output, [&] { writer->write(0, 1, bytes_of("ab")); }),
        "outside array 0");
    CHECK_THROWS(writer->write(1, 0, {}));
}

// SPDX-License-Identifier: Apache-2.0
// .npz archives, sound and otherwise.
#include <thread>

#include "libmx/files/zip_archive.hpp"
#include "libmx/io/writer.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/zip_members.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

// An .npy array of `count` bytes, byte i = i * 7.
std::string byte_array(std::size_t count) {
    const scratch_dir dir;
    const auto writer = io::create_npy(dir / "a.npy", {"a", dtype::u8, {count}});
    std::string data(count, '\0');
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<char>(i * 7);
    writer->write(0, 0, bytes_of(data));
    writer->commit();
    return slurp(dir / "a.npy");
}

std::string archive(const scratch_dir& dir, const std::vector<member>& members) {
    return write_zip(dir / "x.npz", members);
}

std::string changed(std::string text, std::size_t at, const std::string& bytes) {
    return text.replace(at, bytes.size(), bytes);
}

}  // namespace

TEST_CASE("npz of NumPy, stored and deflated", "[npz]") {
    for (const char* name : {"numpy.npz", "numpy_deflated.npz"}) {
        const auto file = io::open_model(fixture(name));
        for (const named_type& each : fixture_types) {
            check_fixture(*file, each.name, each.type, {5, 7});
        }
        check_fixture(*file, "fortran2", dtype::f32, {5, 7});
        check_fixture(*file, "fortran3", dtype::f64, {3, 4, 5});
        check_fixture(*file, "fortran_big", dtype::c64, {4, 3, 2});
        check_fixture(*file, "scalar", dtype::f32, {});
        check_fixture(*file, "empty", dtype::f32, {3, 0, 2});
        for (const char* other : {"text", "object", "record", "time"}) {
            CHECK(find(*file, other)->type == dtype::other);
            CHECK(!find(*file, other)->note.empty());
        }
    }
}

TEST_CASE("npz: entries larger than the memory spool", "[npz]") {
    const scratch_dir dir;
    const std::size_t count = (16 << 20) + 12345;
    const std::string bytes = byte_array(count);
    const auto file =
        io::open_model(archive(dir, {{"a.npy", bytes, true}, {"b.npy", bytes, false}}));
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(content(*file, i) == bytes.substr(bytes.size() - count));
    }
}

TEST_CASE("npz: other entries are passed over", "[npz]") {
    const scratch_dir dir;
    const auto file = io::open_model(
        archive(dir, {{"readme.txt", "x", false}, {"sub/a.npy", byte_array(3), false}}));
    REQUIRE(file->tensors().size() == 1);
    CHECK(file->tensors()[0].name == "sub/a");
    CHECK(file->tensors()[0].file == dir / "x.npz");
}

TEST_CASE("npz: damage is noticed by the checksum", "[npz][hostile]") {
    const scratch_dir dir;
    for (const bool packed : {false, true}) {
        const std::string bytes = byte_array(1000);
        const std::string sound = slurp(archive(dir, {{"a.npy", bytes, packed}}));
        // The checksum is in the local header (byte 14) and in the directory (byte 16 of it).
        const std::size_t directory = sound.find("PK\x01\x02");
        std::string damaged = changed(sound, 14, "\x01\x02\x03\x04");
        damaged = changed(damaged, directory + 16, "\x01\x02\x03\x04");
        const auto file = io::open_model(dir.file("d.npz", damaged));
        has(error_of(base::error_kind::input, [&] { content(*file, 0); }),
            "tensor 'a.npy': the entry's checksum is wrong");
    }
}

TEST_CASE("npz: a stored entry read backwards in pieces is checked too", "[npz][hostile]") {
    const scratch_dir dir;
    std::string bytes = slurp(archive(dir, {{"a.npy", byte_array(1000), false}}));
    const std::size_t last = bytes.find("PK\x01\x02") - 1;
    bytes[last] = static_cast<char>(bytes[last] ^ 1);
    const auto file = io::open_model(dir.file("d.npz", bytes));
    const auto source = file->open(0);
    std::string part(100, ' ');
    for (std::size_t at = 900; at > 0; at -= 100) {
        source->read(at, std::as_writable_bytes(std::span(part)));
    }
    has(error_of(base::error_kind::input,
                 [&] { source->read(0, std::as_writable_bytes(std::span(part))); }),
        "checksum is wrong");
}

TEST_CASE("npz: archives with false headers", "[npz][hostile]") {
    const scratch_dir dir;
    const std::string sound = slurp(archive(dir, {{"a.npy", byte_array(1000), true}}));
    const std::size_t directory = sound.find("PK\x01\x02");
    const auto refused = [&](const std::string& bytes) {
        return open_error(dir.file("d.npz", bytes));
    };
    has(refused(sound.substr(0, sound.size() - 30)), "is not a valid zip archive");
    has(refused(changed(sound, directory + 24, little(0xfffffff0u, 4))),
        "packed bytes cannot hold");
    has(refused(changed(sound, directory + 24, little(1127, 4))), "ends 1 bytes early");
    has(refused(changed(sound, directory + 24, little(1129, 4))), "1 bytes follow the array");
    has(open_error(archive(dir, {{"a.npy", "no array at all", false}})),
        "tensor 'a': at byte 0: is not a .npy array");
    // A deflated stream that ends early, though the sizes agree.
    const std::string longer = byte_array(1000) + "x";
    const std::string over = slurp(archive(dir, {{"a.npy", longer, true}}));
    const std::size_t place = over.find("PK\x01\x02");
    const auto file = io::open_model(dir.file("d.npz", changed(over, place + 24, little(1128, 4))));
    has(error_of(base::error_kind::input, [&] { content(*file, 0); }),
        "longer than the archive says");
}

TEST_CASE("npz: every cut of a file is refused or read without harm", "[npz][hostile]") {
    const scratch_dir dir;
    const std::string sound = slurp(fixture("numpy_deflated.npz"));
    for (std::size_t length = 0; length < sound.size(); length += 97) {
        open_error(dir.file("cut.npz", sound.substr(0, length)));
    }
}

TEST_CASE("checksums of ranges in any order", "[npz]") {
    const std::string text = "The quick brown fox jumps over the lazy dog";
    const std::uint32_t crc = 0x414fa339u;  // the well-known one
    const auto part = [&](std::size_t at, std::size_t count) {
        return bytes_of(text).subspan(at, count);
    };
    io::range_checksum sound(text.size(), crc);
    CHECK(sound.add(30, part(30, 13)));
    CHECK(sound.add(5, part(5, 10)));
    CHECK(sound.add(10, part(10, 15)));  // overlaps a known part
    CHECK(sound.add(0, part(0, 6)));
    CHECK(sound.add(20, part(20, 12)));
    io::range_checksum wrong(text.size(), crc ^ 1);
    CHECK(wrong.add(1, part(1, 42)));
    CHECK(!wrong.add(0, part(0, 2)));
    io::range_checksum changing(text.size(), crc);
    CHECK(changing.add(1, part(1, 42)));
    CHECK(!changing.add(0, part(1, 1)));
}

TEST_CASE("readers are safe to use from several threads", "[npz][hdf5][threads]") {
    for (const char* name :
         {"numpy.npz", "numpy_deflated.npz", "h5py.h5", "safetensors.safetensors", "torch_views.pt",
          "torch_nested.pt", "torch_distributed"}) {
        const auto file = io::open_model(fixture(name));
        std::vector<std::string> expected;
        for (std::size_t i = 0; i < file->tensors().size(); ++i) {
            const auto& info = file->tensors()[i];
            expected.push_back(info.note.empty() && info.bytes < 100000 ? content(*file, i) : "");
        }
        std::vector<int> wrong(4, 0);
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < wrong.size(); ++t) {
            threads.emplace_back([&, t] {
                for (std::size_t i = 0; i < expected.size(); ++i) {
                    if (expected[i].empty()) continue;
                    wrong[t] += content(*file, i) != expected[i];
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        CHECK(wrong == std::vector<int>(4, 0));
    }
}

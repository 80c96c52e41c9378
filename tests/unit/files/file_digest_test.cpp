// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <fstream>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/files/file_digest.hpp"
#include "tests/catch.hpp"
#include "tests/io/scratch_dir.hpp"

namespace io = mx::io;
namespace base = mx::base;

namespace {

std::string digest_of(const std::string& bytes) {
    const mx::test::scratch_dir dir;
    const std::string path = dir / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    return io::sha256_of(path);
}

}  // namespace

// FIPS 180-4 examples of NIST, and its long message of a million 'a'; the last ones cross the
// pieces in which files are read (sha256sum agrees).
TEST_CASE("SHA-256 of files gives the known answers") {
    CHECK(digest_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(digest_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(digest_of(std::string(1000000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    CHECK(digest_of(std::string((1 << 20) + 1, 'a')) ==
          "4a3f0c0c213adea174f9a3d4c13177315b588bdb2e9c1012d3d0bf0453ca0f6a");
    CHECK(digest_of(std::string(1 << 20, 'a')) ==
          "9bc1b2a288b26af7257a36277ae3816a7d4f16e89c1e7e77d0a5c48bad62b360");
}

TEST_CASE("a digest of what is no file fails") {
    CHECK_THROWS_AS(io::sha256_of("/nowhere/at/all"), base::error);
    CHECK_THROWS_AS(io::sha256_of("/"), base::error);
}

TEST_CASE("a digest can be interrupted") {
    const mx::test::scratch_dir dir;
    const std::string path = dir / "file";
    std::ofstream(path) << "abc";
    std::atomic<bool> cancel = true;
    try {
        io::sha256_of(path, &cancel);
        FAIL("not interrupted");
    } catch (const base::error& e) {
        CHECK(e.kind() == base::error_kind::cancelled);
    }
    cancel = false;
    CHECK(io::sha256_of(path, &cancel).size() == 64);
}

// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/file_digest.hpp"

#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "libmx/base/parallel.hpp"
#include "libmx/base/task.hpp"
#include "libmx/io/piped_file.hpp"

namespace mx::io {
namespace {

constexpr std::size_t digest_piece = std::size_t{1} << 20;

// The library fails only if it was built or configured without SHA-256.
void require(int worked) {
    if (worked != 1) throw std::runtime_error("libcrypto offers no SHA-256");
}

}  // namespace

std::string sha256_of(const std::string& path, const std::atomic<bool>* cancel) {
    const shared_file file = open_named(path);
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free);
    if (context == nullptr) throw std::bad_alloc();
    require(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr));

    const std::uint64_t size = file->size();
    base::task reading("computing SHA-256", size);
    std::vector<std::byte> buffer(
        static_cast<std::size_t>(std::min<std::uint64_t>(size, digest_piece)));
    for (std::uint64_t at = 0; at < size; at += buffer.size()) {
        base::stop_if(cancel);
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(size - at, digest_piece));
        file->read(at, std::span(buffer).first(count));
        require(EVP_DigestUpdate(context.get(), buffer.data(), count));
        reading.step(count);
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    require(EVP_DigestFinal_ex(context.get(), digest.data(), &length));

    return fmt::format("{:02x}", fmt::join(std::span(digest).first(length), ""));
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// The runs without libFuzzer: every sample and every past find unchanged, then seeded mutations of
// them. Prints the seed of each input before trying it, so that a crash identifies it.
// Usage: PROGRAM MUTATIONS SEED SAMPLES [FOLDER...] (folders; those after the samples have past
// finds)
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/json_mutation.hpp"
#include "tests/fuzz/reader_target.hpp"

namespace {

namespace fs = std::filesystem;
using bytes = std::vector<std::uint8_t>;

constexpr std::size_t largest_sample = 256 << 10;

bytes read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    if (!fs::exists(folder)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

// Numbers at which size checks go wrong.
constexpr std::uint64_t awkward[] = {0,
                                     1,
                                     0x7f,
                                     0x80,
                                     0xff,
                                     0x7fff,
                                     0xffff,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff};

void mutate_once(bytes& input, const std::vector<bytes>& samples, std::mt19937_64& random) {
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    if (random() % 4 == 0 && mx::fuzz::mutate_json(input, random)) return;
    const std::size_t at = below(input.size());
    switch (below(7)) {
        case 0:
            if (!input.empty()) input[at] ^= static_cast<std::uint8_t>(1U << below(8));
            break;
        case 1:
            if (!input.empty()) input[at] = static_cast<std::uint8_t>(random());
            break;
        case 2:
            input.resize(at);
            break;
        case 3: {
            const std::size_t count = std::min(below(16) + 1, input.size() - at);
            input.erase(input.begin() + static_cast<std::ptrdiff_t>(at),
                        input.begin() + static_cast<std::ptrdiff_t>(at + count));
            break;
        }
        case 4: {
            const std::uint64_t number = awkward[below(std::size(awkward))];
            const std::size_t width = std::size_t{1} << below(4);
            for (std::size_t i = 0; i < width && at + i < input.size(); ++i) {
                input[at + i] = static_cast<std::uint8_t>(number >> 8 * i);
            }
            break;
        }
        case 5: {  // a piece of another sample
            const bytes& other = samples[below(samples.size())];
            const std::size_t from = below(other.size());
            const std::size_t count = std::min(below(64) + 1, other.size() - from);
            input.insert(input.begin() + static_cast<std::ptrdiff_t>(at),
                         other.begin() + static_cast<std::ptrdiff_t>(from),
                         other.begin() + static_cast<std::ptrdiff_t>(from + count));
            break;
        }
        default: {  // a piece twice
            const std::size_t count = std::min(below(64) + 1, input.size() - at);
            const bytes piece(input.begin() + static_cast<std::ptrdiff_t>(at),
                              input.begin() + static_cast<std::ptrdiff_t>(at + count));
            input.insert(input.begin() + static_cast<std::ptrdiff_t>(below(input.size() + 1)),
                         piece.begin(), piece.end());
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        fmt::print(stderr, "usage: {} MUTATIONS SEED SAMPLES [FOLDER...]\n", argv[0]);
        return 2;
    }
    const std::uint64_t mutations = std::strtoull(argv[1], nullptr, 10);
    const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
    std::vector<bytes> samples;
    for (const fs::path& path : files_in(argv[3])) {
        bytes sample = read_file(path);
        if (!mx::fuzz::belongs(path.string())) continue;
        mx::fuzz::try_input(sample.data(), sample.size());
        if (sample.size() <= largest_sample) samples.push_back(std::move(sample));
    }
    std::size_t finds = 0;
    for (int i = 4; i < argc; ++i) {
        for (const fs::path& path : files_in(argv[i])) {
            fmt::print("{}\n", path.string());
            bytes find = read_file(path);
            mx::fuzz::try_input(find.data(), find.size());
            if (find.size() <= largest_sample) samples.push_back(std::move(find));
            ++finds;
        }
    }
    // Without a sample, any bytes are an input.
    std::mt19937_64 any(seed);
    for (int missing = samples.empty() ? 64 : 0; missing > 0; --missing) {
        bytes& sample = samples.emplace_back(256);
        for (std::uint8_t& b : sample) b = static_cast<std::uint8_t>(any());
    }
    for (std::uint64_t n = 0; n < mutations; ++n) {
        std::mt19937_64 random(seed * 1000003 + n);
        bytes input = samples[random() % samples.size()];
        for (std::uint64_t left = random() % 6 + 1; left > 0; --left) {
            mutate_once(input, samples, random);
        }
        fmt::print("\rmutation {} of seed {}", n, seed);
        std::fflush(stdout);
        mx::fuzz::try_input(input.data(), input.size());
    }
    fmt::print("\n{} samples, {} past finds, {} mutations: no failure\n", samples.size(), finds,
               mutations);
    return 0;
}

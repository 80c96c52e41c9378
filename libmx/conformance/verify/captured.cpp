// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/captured.hpp"

#include <fmt/format.h>

#include <charconv>

namespace mx::conformance::verify {

bool is_recording(const vector_file& file) {
    return file.find("recorded_from_hardware") != nullptr;
}

bool is_placed(const vector_file& file) {
    const std::string* where = file.find("placement");
    return where == nullptr || *where != no_placement;
}

bool has_generated_inputs(const vector_file& file) {
    const std::string* inputs = file.find("inputs");
    return inputs != nullptr && *inputs == "generated";
}

std::uint64_t generator_seed(const vector_file& file, std::string_view version) {
    const std::string& made = file.at("generator");
    if (made != version) {
        file.fail(
            fmt::format("its inputs are of generator '{}'; this program has '{}'. Verify it "
                        "with the mx that it was recorded with",
                        made, version));
    }
    const std::string& text = file.at("seed");
    std::uint64_t seed = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (status != std::errc{} || end != text.data() + text.size()) {
        file.fail(fmt::format("its metadata says seed={}; a whole number is called for", text));
    }
    return seed;
}

std::vector<std::uint64_t> words64(const vector_file& file, const std::string& tensor,
                                   std::uint64_t count) {
    const auto halves = file.u32(tensor, 2 * count);
    std::vector<std::uint64_t> words(halves.size() / 2);
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = halves[2 * i] | std::uint64_t{halves[2 * i + 1]} << 32;
    }
    return words;
}

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace mx::conformance::verify

// SPDX-License-Identifier: Apache-2.0
// Stochastic rounding with given random bits against gfloat's, which is defined by the same
// comparison; the library and the oracle alike.
#include <cmath>
#include <cstdint>
#include <string>

#include "libmx/base/bits.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/oracle/rounding.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/conformance/vectors.hpp"
#include "tests/memory_model.hpp"

namespace {

// The random words, which do not fit a float32.
std::vector<std::uint32_t> words_of(const std::string& path) {
    const auto bytes = mx::tests::bytes_of(*mx::io::open_model(path), "rbits");
    std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

}  // namespace

TEST_CASE("stochastic rounding equals gfloat's for the same random bits") {
    int compared = 0;
    for (const std::string& path : mx::tests::vector_files("stochastic")) {
        const auto v = mx::tests::read_vectors(path);
        const auto& f = *mx::format::find_element_format(v.metadata.at("element"));
        const auto params = mx::format::params_of(f, false);
        const auto list = mx::oracle::list_values(f, false);
        const std::vector<float>& x = v.tensor.at("input");
        const std::vector<std::uint32_t> draws = words_of(path);
        REQUIRE(draws.size() == x.size());
        for (const int k : {8, 16, 23}) {
            CAPTURE(path, k);
            const auto expected =
                v.codes("gfloat.StochasticFastest.k" + std::to_string(k) + ".code");
            const mx::format::rounding_mode mode{mx::format::rounding::stochastic, {}, k};
            const mx::oracle::rounding_choice choice{mode.how, mode.ties, k};
            std::uint64_t library = 0;
            std::uint64_t oracle = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const auto bits = mx::base::bits_of(x[i]);
                const auto code = mx::format::cast_code(params, mode, bits, true, draws[i]);
                library += code != expected[i] ? 1 : 0;
                oracle +=
                    mx::oracle::cast(list, x[i], choice, draws[i], true) != expected[i] ? 1 : 0;
            }
            CHECK(library == 0);
            CHECK(oracle == 0);
            CHECK(x.size() >= 2000);
            ++compared;
        }
    }
    CHECK(compared == 15);
}

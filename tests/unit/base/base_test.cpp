// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "libmx/base/exact_sum.hpp"
#include "libmx/base/glob.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/secrets.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/stored_path.hpp"
#include "libmx/base/suggest.hpp"
#include "tests/catch.hpp"

using namespace mx::base;

TEST_CASE("exact_sum rounds once, whatever the order and the cancellation") {
    exact_sum s;
    for (const double v : {1e300, 3.25, -1e300, 5e-324, -3.25}) s.add(v);
    CHECK(s.value() == 5e-324);
    s.add(-5e-324);
    CHECK(s.value() == 0.0);

    // 1 + 2^-53 + 2^-106: the tie is broken upward by the last bit only.
    exact_sum tie;
    tie.add(1.0);
    tie.add(0x1p-53);
    CHECK(tie.value() == 1.0);
    tie.add(0x1p-106);
    CHECK(tie.value() == 1.0 + 0x1p-52);

    exact_sum largest;
    largest.add(std::numeric_limits<double>::max());
    CHECK(largest.value() == std::numeric_limits<double>::max());
    largest.add(std::numeric_limits<double>::max());
    CHECK(std::isinf(largest.value()));
    exact_sum negative;
    negative.add(-0x1p-1074);
    negative.add(-0x1p-1000);
    CHECK(negative.value() == -0x1p-1000);
}

TEST_CASE("exact_sum is the same for every grouping of the terms") {
    std::mt19937_64 random(7);
    std::vector<double> terms(5000);
    for (double& t : terms) {
        t = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 600) - 300);
        if (random() % 2 == 0) t = -t;
    }
    exact_sum all;
    for (const double t : terms) all.add(t);
    for (const std::size_t parts : {2u, 3u, 17u}) {
        std::vector<exact_sum> part(parts);
        for (std::size_t i = terms.size(); i-- > 0;) part[i % parts].add(terms[i]);
        exact_sum merged;
        for (const exact_sum& p : part) merged.merge(p);
        CHECK(merged.value() == all.value());
        CHECK(merged == all);
    }
}

TEST_CASE("exact_sum adds a term many times as it adds it one by one") {
    std::mt19937_64 random(8);
    for (int i = 0; i < 200; ++i) {
        double term = std::ldexp(static_cast<double>(random() >> 11),
                                 static_cast<int>(random() % 2000) - 1074);
        if (random() % 2 == 0) term = -term;
        // times = a * 2^k: the term is added a times, scaled by doubling sums.
        const std::uint64_t a = random() % 50;
        const auto k = static_cast<int>(random() % 58);
        exact_sum expected, at_once;
        for (std::uint64_t n = 0; n < a; ++n) expected.add(term);
        for (int n = 0; n < k; ++n) expected.merge(exact_sum(expected));
        at_once.add(1.0);
        at_once.add(term, a << k);
        at_once.add(-1.0);
        CHECK(at_once == expected);
    }
}

TEST_CASE("Philox4x32-10 gives the published answers") {
    // Random123 known-answer tests.
    const philox_words zero = philox4x32_10({{0, 0, 0, 0}}, 0, 0);
    CHECK(zero.word[0] == 0x6627e8d5u);
    CHECK(zero.word[3] == 0x9b00dbd8u);
    const philox_words ones = philox4x32_10({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u);
    CHECK(ones.word[0] == 0x408f276du);
    CHECK(ones.word[1] == 0x41c83b0eu);
    CHECK(ones.word[2] == 0xa20bc7c6u);
    CHECK(ones.word[3] == 0x6d5451fdu);
    CHECK(tensor_id("a") == 0xaf63dc4c8601ec8cu);  // FNV-1a test vector
}

TEST_CASE("globs match whole names") {
    CHECK(glob_match("*", ""));
    CHECK(glob_match("*.weight", "layers.0.weight"));
    CHECK_FALSE(glob_match("*.weight", "layers.0.weights"));
    CHECK(glob_match("layers.?.w[qk]", "layers.3.wk"));
    CHECK_FALSE(glob_match("layers.?.w[!qk]", "layers.3.wk"));
    CHECK(glob_match("a[0-9]b", "a5b"));
    CHECK(glob_match("a\\*b", "a*b"));
    CHECK_FALSE(glob_match("a\\*b", "axb"));
    CHECK(glob_match("x[", "x["));
    CHECK(glob_match("*a*a*a*", "bananana"));
    CHECK_FALSE(glob_match(std::string(50, '*') + "z", std::string(2000, 'a')));
}

TEST_CASE("a pattern made of a text matches that text only") {
    for (const char* text : {"w", "a*b", "a?b", "[ab]", "a\\b", ""}) {
        CAPTURE(text);
        CHECK(glob_match(exact_glob(text), text));
        CHECK_FALSE(glob_match(exact_glob(text), std::string(text) + "x"));
    }
    CHECK_FALSE(glob_match(exact_glob("a*b"), "aab"));
    CHECK_FALSE(glob_match(exact_glob("a?b"), "aab"));
    CHECK_FALSE(glob_match(exact_glob("[ab]"), "a"));
}

TEST_CASE("an unknown word is answered with the nearest known one") {
    CHECK(nearest("flor", {"floor", "ceil", "even"}) == "floor");
    CHECK(nearest("CIEL", {"floor", "ceil", "even"}) == "ceil");
    CHECK(nearest("x", {}).empty());
}

TEST_CASE("a pattern that matches nothing is explained by the names that contain it") {
    const std::vector<std::string_view> names{"wte.weight",
                                              "model.layers.0.self_attn.q_proj.weight",
                                              "model.layers.1.self_attn.q_proj.weight"};
    CHECK(no_match("q_proj", "-t", names) ==
          "it is a part of 'model.layers.0.self_attn.q_proj.weight'; -t '*q_proj*' matches such "
          "names");
    CHECK(no_match("Q_PROJ", "-t", names) == no_match("q_proj", "-t", names));
    CHECK(no_match("wte.wieght", "-t", names) == "the nearest name is 'wte.weight'");
    CHECK(no_match("", "-t", names).starts_with("the nearest"));
    CHECK(no_match("x", "-t", {}) == "there are no tensors");
    // Nothing rather than a word that has little in common.
    CHECK(similar("recpie", {"recipe", "role"}) == "recipe");
    CHECK(similar("topp", {"top", "dtype"}) == "top");
    CHECK(similar("topp", {"dtype", "threads"}).empty());
    CHECK(similar("blocks", {"as", "backend"}).empty());
    CHECK(similar("x", {}).empty());
}

TEST_CASE("binary16 conversion is nearest even, saturating, and inverts widening") {
    for (std::uint32_t h = 0; h < 0x10000; ++h) {
        const auto bits = static_cast<std::uint16_t>(h);
        const float x = float_from_half(bits);
        if (!std::isfinite(x)) continue;
        REQUIRE(half_saturated(x) == bits);
        // Half way to the next value: to the even one.
        if ((h & 0x7fffu) < 0x7bffu) {
            const float next = float_from_half(static_cast<std::uint16_t>(bits + 1));
            const std::uint16_t even = (h & 1u) != 0 ? static_cast<std::uint16_t>(bits + 1) : bits;
            REQUIRE(half_saturated(x + (next - x) / 2) == even);
        }
    }
    CHECK(half_saturated(1e30f) == 0x7bff);
    CHECK(half_saturated(-65520.0f) == 0xfbff);
    CHECK(half_saturated(0x1p-149f) == 0);
    CHECK(half_saturated(0x1p-25f) == 0);
    CHECK(half_saturated(0x1.000002p-25f) == 1);
}

TEST_CASE("parallel_for visits every index once and lets the first exception out") {
    for (const int threads : {1, 2, 5}) {
        std::vector<std::atomic<int>> seen(1000);
        parallel_for(1000, threads, nullptr, [&](std::uint64_t i, int) { ++seen[i]; });
        bool once = true;
        for (const auto& n : seen) once = once && n == 1;
        CHECK(once);
        CHECK_THROWS_WITH(parallel_for(1000, threads, nullptr,
                                       [](std::uint64_t i, int) {
                                           if (i == 3) {
                                               throw error(error_kind::input, "third");
                                           }
                                       }),
                          "third");
        std::atomic<bool> cancel{true};
        CHECK_THROWS_AS(parallel_for(10, threads, &cancel, [](std::uint64_t, int) {}), error);
    }
}

TEST_CASE("names from files are printed without control characters") {
    CHECK(printable("a\nb\x1b[31m") == "a\\x0ab\\x1b[31m");
    CHECK(printable("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
    CHECK(printable("\xc2\x9b!") == "\\xc2\\x9b!");
    CHECK(printable("\xff") == "\\xff");
    CHECK(printable("\xe2") == "\\xe2");
    // Characters that reverse text or end a line are not control characters in Unicode, but act as
    // such.
    CHECK(printable("a\xe2\x80\xae"
                    "b") == "a\\xe2\\x80\\xaeb");
    CHECK(printable("\xe2\x80\xa8\xe2\x81\xa9") == "\\xe2\\x80\\xa8\\xe2\\x81\\xa9");
    CHECK(printable("\xe2\x80\xa7\xe2\x80\xaf") == "\xe2\x80\xa7\xe2\x80\xaf");
    // Characters that are not seen: of zero width, marks of direction, a soft hyphen, a byte order
    // mark, an annotation, a selector of variants, tags.
    for (const char* hidden :
         {"\xe2\x80\x8b", "\xe2\x80\x8d", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xd8\x9c", "\xc2\xad",
          "\xef\xbb\xbf", "\xef\xbf\xb9", "\xe2\x81\xa0", "\xe2\x81\xaa", "\xe1\xa0\x8e",
          "\xef\xb8\x8f", "\xf3\xa0\x81\x81", "\xf3\xa0\x84\x80"}) {
        std::string codes;
        for (const char* c = hidden; *c != 0; ++c) {
            codes += fmt::format("\\x{:02x}", static_cast<unsigned char>(*c));
        }
        CHECK(printable(std::string("a") + hidden + "b") == "a" + codes + "b");
    }
    // Their neighbours are.
    for (const char* shown : {"\xc2\xac", "\xc2\xae", "\xd8\x9b", "\xe2\x80\x90", "\xef\xbf\xbc",
                              "\xef\xbb\xbe", "\xf0\x9f\x98\x80", "\xf3\x9f\xbf\xbd"}) {
        CHECK(printable(shown) == shown);
    }
    const error e(error_kind::input, "bad", {"f", "t", 12});
    CHECK(std::string(e.what()) == "f: tensor 't': at byte 12: bad");
}

TEST_CASE("secrets that a server repeats are in no output") {
    mx::base::hide_secret("hf_Token-of-a-test");
    mx::base::hide_secret("short");
    CHECK(printable("a hf_token-OF-A-test b, short") == "a (secret) b, short");
    CHECK(mx::base::without_secrets("hf_Token-of-a-testhf_Token-of-a-test") == "(secret)(secret)");
    const error e(error_kind::input, "hf_Token-of-a-test", {"hf_Token-of-a-test", {}, {}});
    CHECK(std::string(e.what()) == "(secret): (secret)");
}

TEST_CASE("paths in files stay in their folder") {
    using mx::base::stays_inside;
    for (const char* fine :
         {"a", "a/b", "./a", "a..b", "...", "a%20b", "100%", "%zz", "a:b", "%"}) {
        CHECK(stays_inside(fine));
    }
    for (const char* not_fine :
         {"", "/a", "..", "../a", "a/..", "a/../b", "http://h/a", "x/s3://b", "%2e%2e", "%2E./a",
          "%252e%252e/a", "%2Fa", "a%00b", "http:%2f/h"}) {
        INFO(not_fine);
        CHECK_FALSE(stays_inside(not_fine));
    }
}

TEST_CASE("messages that quote a whole file are cut, between characters") {
    std::string text = "says ";
    while (text.size() < 5000) text += "\xc3\xbc";
    const mx::base::error e(mx::base::error_kind::input, text, {"file", {}, {}});
    const std::string line = e.what();
    CHECK(line.size() < 1100);
    CHECK(line.starts_with("file: says \xc3\xbc"));
    CHECK(line.ends_with("\xc3\xbc..."));
    // Names as well.
    const std::string long_name(100000, '\x01');
    const mx::base::error named(mx::base::error_kind::input, "bad", {long_name, long_name, 1});
    CHECK(std::string(named.what()).size() < 8100);
    CHECK(std::string(named.what()).ends_with("\\x01...': at byte 1: bad"));
    const std::string whole(900, 'x');
    CHECK(mx::base::error(mx::base::error_kind::input, whole).what() == whole);
}

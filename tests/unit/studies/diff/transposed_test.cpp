// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/transposed.hpp"

#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;
using tensor::dtype;

namespace {

// Matrices of rows x columns, `count` of them.
struct matrices {
    std::uint64_t count, rows, columns;
    std::vector<float> values;
};

matrices random(std::uint64_t count, std::uint64_t rows, std::uint64_t columns, unsigned seed) {
    std::mt19937 draw(seed);
    std::normal_distribution<float> normal;
    matrices m{count, rows, columns, {}};
    for (std::uint64_t i = 0; i < count * rows * columns; ++i) m.values.push_back(normal(draw));
    return m;
}

matrices swapped(const matrices& m) {
    matrices t{m.count, m.columns, m.rows, std::vector<float>(m.values.size())};
    for (std::uint64_t c = 0; c < m.count; ++c) {
        for (std::uint64_t i = 0; i < m.rows; ++i) {
            for (std::uint64_t j = 0; j < m.columns; ++j) {
                const std::uint64_t first = c * m.rows * m.columns;
                t.values[first + j * m.rows + i] = m.values[first + i * m.columns + j];
            }
        }
    }
    return t;
}

// With an error as that of a format.
matrices rounded(matrices m, float by) {
    for (std::size_t i = 0; i < m.values.size(); ++i) m.values[i] *= i % 2 == 0 ? 1 + by : 1 - by;
    return m;
}

void add(tests::memory_model& to, const std::string& name, const matrices& m) {
    if (m.count == 1) {
        to.add(name, dtype::f32, {m.rows, m.columns}, m.values);
    } else {
        to.add(name, dtype::f32, {m.count, m.rows, m.columns}, m.values);
    }
}

std::vector<diff::transposed_tensor> found(const tests::memory_model& a,
                                           const tests::memory_model& b) {
    std::vector<engine::tensor_ref> chosen = a.all();
    for (const engine::tensor_ref& t : b.all()) chosen.push_back(t);
    const std::vector<const io::reader*> dumps{&a, &b};
    return diff::find_transposed(dumps, chosen);
}

}  // namespace

TEST_CASE("transposed tensors are found by their shapes, square ones by a sample") {
    tests::memory_model a, b;
    const matrices wide = random(2, 8, 24, 1), square = random(1, 64, 64, 2),
                   stack = random(3, 16, 16, 3), own = random(1, 64, 64, 4);
    add(a, "wide", wide);
    add(b, "wide", swapped(wide));
    add(a, "square", square);
    add(b, "square", rounded(swapped(square), 0.1F));
    add(a, "stack", stack);
    add(b, "stack", swapped(stack));
    add(a, "same", own);
    add(b, "same", rounded(own, 0.1F));
    add(a, "other", own);
    add(b, "other", random(1, 64, 64, 5));
    add(a, "tall", random(1, 8, 24, 6));
    add(b, "tall", random(1, 24, 9, 7));
    const matrices zeros{1, 4, 4, std::vector<float>(16)};
    add(a, "zeros", zeros);
    add(b, "zeros", zeros);
    add(a, "only in a", square);
    const auto all = found(a, b);
    REQUIRE(all.size() == 3);
    CHECK(all[0].name == "wide");
    CHECK_FALSE(all[0].nrmse);
    CHECK(all[1].name == "square");
    CHECK(*all[1].nrmse > 1);
    CHECK(*all[1].transposed_nrmse < 0.2);
    CHECK(all[2].name == "stack");
    CHECK(*all[2].transposed_nrmse == 0);
    // From bfloat16 as well: 0x3f80 is 1.
    tests::memory_model c, d;
    c.add("w", dtype::bf16, {2, 2}, std::vector<std::uint16_t>{0x3f80, 0x4000, 0x4080, 0x3f80});
    d.add("w", dtype::bf16, {2, 2}, std::vector<std::uint16_t>{0x3f80, 0x4080, 0x4000, 0x3f80});
    CHECK(found(c, d).size() == 1);
    CHECK(found(c, c).empty());
}

TEST_CASE("transposed tensors of several layers have one pattern if it fits no other tensor") {
    tests::memory_model m;
    const matrices one = random(1, 2, 2, 1);
    for (const char* name : {"l.0.up", "l.1.up", "l.0.down", "l.1.down", "l.2.down", "a*[b]"}) {
        add(m, name, one);
    }
    const auto globs = [&](const std::vector<std::string>& names) {
        std::vector<diff::transposed_tensor> tensors;
        for (const std::string& n : names) tensors.push_back({n, {}, {}});
        return diff::globs_of(tensors, m);
    };
    CHECK(globs({"l.0.up", "l.1.up"}) == std::vector<std::string>{"l.*.up"});
    CHECK(globs({"l.0.up"}) == std::vector<std::string>{"l.0.up"});
    CHECK(globs({"l.0.down", "l.1.down"}) == std::vector<std::string>{"l.0.down", "l.1.down"});
    CHECK(globs({"a*[b]"}) == std::vector<std::string>{"a\\*\\[b]"});
}

// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/panel_reader.hpp"

#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace {

using mx::engine::read_ahead;
constexpr std::uint64_t panel = std::uint64_t{1} << 20;
constexpr double fast = 1e-6;
constexpr double slow = 1;

using range = std::pair<std::uint64_t, std::uint64_t>;

struct watched_source final : mx::io::byte_source {
    void read(std::uint64_t, std::span<std::byte>) const override {}
    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        asked.emplace_back(offset, bytes);
    }
    mutable std::vector<range> asked;
};

// A pass of some panels, the first of which takes `first` seconds and the others `rest`.
void run_pass(read_ahead& ahead, const watched_source& source, std::size_t pass, int panels,
              double first, double rest) {
    for (int i = 0; i < panels; ++i) {
        const auto next = static_cast<std::uint64_t>(i + 1) * panel;
        ahead.after_read(source, pass, panel, next, i == 0 ? first : rest);
    }
}

}  // namespace

TEST_CASE("a file in the cache is left alone") {
    read_ahead ahead;
    const watched_source source;
    run_pass(ahead, source, 0, 100, fast, fast);
    CHECK(source.asked.empty());
}

TEST_CASE("after a slow read the bytes that follow are asked for, each once") {
    read_ahead ahead;
    const watched_source source;
    run_pass(ahead, source, 0, 40, slow, fast);
    REQUIRE(source.asked.size() == 3);
    std::uint64_t next = panel;
    for (const range& r : source.asked) {
        CHECK(r == range{next, read_ahead::window});
        next += read_ahead::window;
    }
    // Requests are ahead of the reads by at least half a window.
    CHECK(next >= 40 * panel + read_ahead::window / 2);
}

TEST_CASE("asking stops when reads stay fast, and begins anew with the next slow one") {
    read_ahead ahead;
    const watched_source source;
    run_pass(ahead, source, 0, 1000, slow, fast);
    const std::size_t asked = source.asked.size();
    CHECK(asked < 1000 * panel / read_ahead::window);
    ahead.after_read(source, 0, panel, 2000 * panel, slow);
    REQUIRE(source.asked.size() == asked + 1);
    CHECK(source.asked.back() == range{2000 * panel, read_ahead::window});
}

TEST_CASE("another pass begins where it begins") {
    read_ahead ahead;
    const watched_source source;
    run_pass(ahead, source, 0, 40, slow, slow);
    source.asked.clear();
    ahead.after_read(source, 1, panel, panel, fast);
    REQUIRE(source.asked.size() == 1);
    CHECK(source.asked.front() == range{panel, read_ahead::window});
}

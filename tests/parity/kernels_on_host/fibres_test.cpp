// SPDX-License-Identifier: Apache-2.0
// The emulated device detects behaviour that CUDA leaves undefined.
#include "tests/parity/kernels_on_host/fibres.hpp"

#include <numeric>
#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace {

using card::extent;
using card::here;

std::string failure_of(const card::grid& g, const std::function<void()>& thread) {
    try {
        card::run(g, thread);
    } catch (const card::failure& e) {
        return e.what();
    }
    return {};
}

card::grid grid_of(extent blocks, extent threads, std::size_t shared = 0) {
    return {blocks, threads, shared, nullptr};
}

bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every thread of a grid runs once, and knows where it is") {
    std::vector<int> seen(3 * 2 * 20 * 4);
    card::run(grid_of({3, 2}, {20, 4}), [&] {
        const card::position& p = here();
        const unsigned block = p.block.y * p.grid.x + p.block.x;
        const unsigned thread = p.thread.y * p.block_size.x + p.thread.x;
        CHECK(p.lane == thread % card::warp_size);
        seen[block * 80 + thread] += 1;
    });
    CHECK(seen == std::vector<int>(seen.size(), 1));
}

TEST_CASE("what a block writes is there behind its barrier, and not before") {
    constexpr unsigned threads = 96;
    for (const bool with_barrier : {true, false}) {
        CAPTURE(with_barrier);
        unsigned wrong = 0;
        card::run(grid_of({4}, {threads}), [&] {
            auto& shared = card::shared<unsigned[threads]>(__LINE__);
            const unsigned own = here().thread.x;
            for (unsigned round = 0; round < 5; ++round) {
                shared[own] = round * 1000 + own;
                if (with_barrier) card::sync_block();
                const unsigned other = (own + 50) % threads;
                wrong += shared[other] != round * 1000 + other ? 1u : 0u;
                if (with_barrier) card::sync_block();
            }
        });
        CHECK((wrong == 0) == with_barrier);
    }
}

TEST_CASE("shared memory is another one for every block, and holds nonsense") {
    card::run(grid_of({5}, {1}), [&] {
        auto& shared = card::shared<unsigned[3]>(__LINE__);
        for (unsigned& word : shared) {
            CHECK(word == 0xa5a5a5a5u);
            word = 0;
        }
    });
}

TEST_CASE("lanes of a warp exchange words") {
    card::run(grid_of({2}, {64}), [&] {
        const unsigned own = here().thread.x;
        unsigned sum = own;
        for (unsigned mask = 16; mask != 0; mask /= 2) {
            sum += card::exchange("exchange", ~0u, sum)[here().lane ^ mask];
        }
        CHECK(sum == (own < 32 ? 31u * 16 : 31u * 16 + 32 * 32));
    });
}

TEST_CASE("lanes that do not meet are named") {
    const card::grid one_warp = grid_of({1}, {32});
    CHECK(contains(failure_of(one_warp,
                              [] {
                                  if (here().lane != 7) card::exchange("exchange", ~0u, 0);
                              }),
                   "waits in vain at exchange"));
    CHECK(contains(
        failure_of(one_warp, [] { card::exchange(here().lane < 9 ? "one" : "other", ~0u, 0); }),
        "other while others of its warp wait at one"));
    CHECK(contains(failure_of(one_warp, [] { card::exchange("exchange", 0xffffu, 0); }),
                   "of a part of a warp"));
    CHECK(contains(failure_of(grid_of({1}, {64}),
                              [] {
                                  if (here().thread.x < 32) card::sync_block();
                              }),
                   "waits in vain at __syncthreads"));
    CHECK(contains(failure_of(grid_of({1}, {33}),
                              [] {
                                  if (here().thread.x == 32) return;
                                  card::sync_block();
                              }),
                   "of block (0, 0): waits in vain at __syncthreads"));
    CHECK(contains(failure_of(one_warp, [] { card::shared<char[49153]>(__LINE__); }),
                   "more shared memory"));
    // And after all that a kernel runs.
    CHECK(failure_of(one_warp, [] { card::exchange("exchange", ~0u, 0); }) == "");
}

TEST_CASE("grids that no device takes are refused") {
    for (const auto& [blocks, threads, shared] : {std::tuple{extent(0), extent(32), 0u},
                                                  {extent(1, 65536), extent(32), 0u},
                                                  {extent(1), extent(33, 32), 0u},
                                                  {extent(1), extent(0), 0u},
                                                  {extent(1), extent(32), 49153u}}) {
        card::start(grid_of(blocks, threads, shared), [] {});
        CHECK(card::last_error() == 9);
        CHECK(card::last_error() == 0);
    }
}

// SPDX-License-Identifier: Apache-2.0
// The use of a device's memory by batches: every slice, every shortage, every failure; the host is
// the device.
#include <algorithm>
#include <atomic>
#include <limits>
#include <set>

#include "libmx/base/cuda/pooled_device.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/batch_layout.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panels.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/parity/segments.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;
using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;
using mx::tests::matrix_part;
using mx::tests::stored_matrix;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t any_room = std::size_t{1} << 30;

std::size_t launches = 0;
std::size_t failing_launch = no_limit;
std::atomic<bool>* raised_by_launch = nullptr;

// A kernel that needs memory does not start while batches have more than this.
std::size_t room_beside_kernel = no_limit;
host_device* device_of_kernel = nullptr;

void counted_start(const cuda::launch& l, mx::base::cuda::stream& on) {
    if (launches++ == failing_launch) {
        throw mx::base::error(mx::base::error_kind::unavailable, "the device is lost");
    }
    if (device_of_kernel != nullptr &&
        device_of_kernel->held(memory_kind::device) > room_beside_kernel) {
        throw mx::base::cuda::out_of_memory("the card has no room (starting the kernel)");
    }
    if (raised_by_launch != nullptr) raised_by_launch->store(true);
    cuda::start_on_host(l, on);
}

// Work for a batch, with the reference's results.
struct task {
    stored_matrix matrix;
    matrix_part part;
    std::vector<codec::recipe> recipes;
    std::vector<std::byte> expected;

    task(mx::tensor::dtype type, std::uint64_t rows, std::uint64_t cols, const matrix_part& of,
         const std::string& block,
         const std::vector<std::string>& texts = {"mxfp4", "mxfp8:round=stochastic,seed=3",
                                                  "mxfp6:offset=fp16"})
        : part(of) {
        const std::vector<mx::tests::block_kind> kinds(mx::tests::block_kinds.begin(),
                                                       mx::tests::block_kinds.end());
        for (const std::string& one : texts) {
            const char* const joint = one.find(':') == std::string::npos ? ":" : ",";
            recipes.push_back(codec::parse_recipe(one + joint + "block=" + block));
        }
        matrix = mx::tests::make_matrix(type, rows, cols, kinds, *recipes.front().element, 5);
        const auto reference = codec::backend_named("scalar").make_quantizer();
        expected = everything(*reference, matrix, part, recipes);
    }

    std::vector<std::byte> by(codec::quantizer& batch) const {
        return everything(batch, matrix, part, recipes);
    }

    // The largest memory of a segment under a recipe on a device.
    std::size_t least_bytes() const {
        std::string reason;
        const auto grid =
            mx::engine::lay_out({matrix.rows, matrix.cols}, recipes.front(), reason)->grid;
        std::size_t most = 0;
        mx::engine::for_each_segment(
            grid, {0, 1, part.row, part.rows, part.col, part.cols},
            [&](const mx::engine::segment_in_panel& s) {
                const codec::placed_segment segment{
                    {77, s.first, matrix.cols, s.rows, s.cols, grid.block_rows, grid.block_cols},
                    0,
                    0};
                for (std::size_t r = 0; r < recipes.size(); ++r) {
                    const auto params = codec::params_of(recipes[r]);
                    const codec::recipe_request recipe = mx::tests::asked_of(params, r);
                    const auto l = cuda::lay_out({{matrix.type, nullptr, s.cols}, s.rows, s.cols},
                                                 {&segment, 1}, {&recipe, 1});
                    most = std::max(most, l.there_bytes + l.back_bytes + l.scratch_bytes);
                }
            });
        return most;
    }
};

// Several segments in a row and several rows of them, the last ones short; also columns out of the
// middle of a matrix, and segments of many rows.
const std::vector<task>& tasks() {
    using mx::tensor::dtype;
    static const std::vector<task> all = [] {
        std::vector<task> t;
        t.emplace_back(dtype::bf16, 5, 9000, matrix_part{0, 5, 0, 9000}, "1x32");
        t.emplace_back(dtype::f32, 6, 12800, matrix_part{1, 4, 4096, 8192}, "1x16");
        t.emplace_back(dtype::f16, 150, 131, matrix_part{0, 150, 0, 131}, "4x4");
        t.emplace_back(dtype::bf16, 3, 9000, matrix_part{0, 3, 0, 9000}, "1x32",
                       std::vector<std::string>{"mxint4:dialect=microxcaling", "mxfp4", "nvfp4"});
        return t;
    }();
    return all;
}

struct heard {
    std::vector<std::string> lines;
    mx::base::notices notices{[this](const std::string& line) { lines.push_back(line); }};
};

std::unique_ptr<codec::quantizer> batch_on(mx::base::cuda::device& device,
                                           const cuda::slice_limits& limits) {
    return cuda::make_device_quantizer(device, counted_start, limits);
}

// The limits of slices that are cut for memory, or for elements.
std::vector<cuda::slice_limits> all_limits() {
    std::vector<cuda::slice_limits> all;
    for (std::size_t bytes = 1; bytes < 4000000; bytes += bytes / 3 + 1) {
        if (bytes > 2000 || bytes == 1) all.push_back({bytes, any_room});
    }
    for (std::uint64_t elements = 1; elements < 60000; elements += elements / 2 + 1) {
        all.push_back({any_room, elements});
    }
    return all;
}

}  // namespace

TEST_CASE("slices of every size leave the same bytes") {
    for (const task& t : tasks()) {
        std::set<std::size_t> counts;
        for (const cuda::slice_limits& limits : all_limits()) {
            CAPTURE(t.matrix.cols, limits.bytes, limits.elements);
            host_device device;
            launches = 0;
            const auto batch = batch_on(device, limits);
            CHECK((t.by(*batch) == t.expected));
            counts.insert(launches);
            // Two slices exist at a time, each within the limit if possible.
            const std::size_t most = 2 * std::max(limits.bytes, t.least_bytes());
            CHECK(device.peak(memory_kind::device) <= most);
            CHECK(device.peak(memory_kind::pinned) <= most);
        }
        CAPTURE(t.matrix.cols);
        CHECK(*counts.begin() == 1);
        CHECK(counts.size() > 4);
    }
}

TEST_CASE("a batch is used again for other values, larger and smaller ones") {
    host_device device;
    {
        const auto batch = batch_on(device, {30000, any_room});
        for (int round = 0; round < 2; ++round) {
            for (const task& t : tasks()) CHECK((t.by(*batch) == t.expected));
        }
        CHECK(device.held(memory_kind::device) != 0);
    }
    CHECK(device.held(memory_kind::device) == 0);
    CHECK(device.held(memory_kind::pinned) == 0);
}

TEST_CASE("one refusal of memory makes slices smaller, wherever it comes") {
    for (const task& t : tasks()) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{40000}, any_room}) {
            for (std::size_t n = 0;; ++n) {
                CAPTURE(t.matrix.cols, bytes, n);
                host_device device({}, [&](std::size_t number) { return number == n; });
                heard said;
                const auto batch = batch_on(device, {bytes, any_room});
                batch->steer(&said.notices, nullptr);
                CHECK((t.by(*batch) == t.expected));
                CHECK(said.lines.empty());
                if (device.asked() <= n) break;
            }
        }
    }
}

TEST_CASE("without memory from any moment on the CPU takes over, and says so once") {
    for (const task& t : tasks()) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{40000}, any_room}) {
            std::size_t enough = 0;
            {
                host_device device;
                t.by(*batch_on(device, {bytes, any_room}));
                enough = device.asked();
            }
            REQUIRE(enough >= 3);
            for (std::size_t n = 0; n <= enough; ++n) {
                CAPTURE(t.matrix.cols, bytes, n);
                host_device device({}, [&](std::size_t number) { return number >= n; });
                heard said;
                const auto batch = batch_on(device, {bytes, any_room});
                batch->steer(&said.notices, nullptr);
                CHECK((t.by(*batch) == t.expected));
                CHECK((t.by(*batch) == t.expected));
                CHECK(said.lines.size() == (n < enough ? 1u : 0u));
                if (n < enough) CHECK(device.held(memory_kind::device) == 0);
            }
        }
    }
}

TEST_CASE("a card is used down to the least that the work needs") {
    for (const task& t : tasks()) {
        const std::size_t least = t.least_bytes();
        for (const std::size_t room :
             {std::size_t{0}, least - 1, least, 2 * least - 1, 3 * least, 7 * least}) {
            CAPTURE(t.matrix.cols, room, least);
            host_device device({room, no_limit});
            heard said;
            const auto batch = batch_on(device, {});
            batch->steer(&said.notices, nullptr);
            CHECK((t.by(*batch) == t.expected));
            CHECK(device.peak(memory_kind::device) <= room);
            REQUIRE(said.lines.size() == (room < least ? 1u : 0u));
            if (room >= least) continue;
            const std::string end = "; continuing with backend " +
                                    std::string(codec::best_backend().name) +
                                    ", which gives the same bytes";
            CHECK(said.lines.front() ==
                  "backend cuda: the GPU is out of memory (0 MiB free of 0 MiB, 1 MiB are needed)" +
                      end);
        }
        host_device device({no_limit, 10});
        heard said;
        const auto batch = batch_on(device, {});
        batch->steer(&said.notices, nullptr);
        CHECK((t.by(*batch) == t.expected));
        REQUIRE(said.lines.size() == 1);
        CHECK(
            said.lines.front().find(
                "the host has no pinned memory left (1 MiB are needed); continuing with backend") !=
            std::string::npos);
    }
}

TEST_CASE("a device without room is an error where nobody would hear of it") {
    host_device device({0, 0});
    const auto batch = batch_on(device, {});
    try {
        tasks().front().by(*batch);
        FAIL("went on");
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == mx::base::error_kind::unavailable);
        CHECK(e.message().find("no pinned memory") != std::string::npos);
    }
}

TEST_CASE("a failure of the device is an error at once, and leaves nothing under way") {
    const task& t = tasks().front();
    host_device device;
    heard said;
    {
        const auto batch = batch_on(device, {1, any_room});
        batch->steer(&said.notices, nullptr);
        for (const std::size_t n : {0u, 1u, 2u, 7u}) {
            CAPTURE(n);
            launches = 0;
            failing_launch = n;
            CHECK_THROWS_WITH(t.by(*batch), "the device is lost");
            failing_launch = no_limit;
            CHECK(launches == n + 1);
            CHECK((t.by(*batch) == t.expected));
        }
        failing_launch = 0;
        launches = 0;
        CHECK_THROWS_WITH(t.by(*batch), "the device is lost");
        failing_launch = no_limit;
    }
    CHECK(said.lines.empty());
    CHECK(device.held(memory_kind::device) == 0);
    CHECK(device.held(memory_kind::pinned) == 0);
}

TEST_CASE("a batch stops between two slices") {
    const task& t = tasks().front();
    host_device device;
    std::atomic<bool> cancel{false};
    const auto batch = batch_on(device, {1, any_room});
    batch->steer(nullptr, &cancel);
    launches = 0;
    raised_by_launch = &cancel;
    try {
        t.by(*batch);
        FAIL("went on");
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == mx::base::error_kind::cancelled);
    }
    raised_by_launch = nullptr;
    CHECK(launches == 1);
    cancel = false;
    CHECK((t.by(*batch) == t.expected));
}

TEST_CASE("memory that was given back serves the next batch") {
    host_device device;
    mx::base::cuda::pooled_device pool(device);
    std::size_t most = 0;
    for (const cuda::slice_limits& limits : {cuda::slice_limits{40000, any_room}, {}}) {
        for (const task& t : tasks()) {
            CAPTURE(t.matrix.cols, limits.bytes);
            CHECK((t.by(*batch_on(pool, limits)) == t.expected));
            const std::size_t before = device.asked();
            CHECK((t.by(*batch_on(pool, limits)) == t.expected));
            const std::size_t streams = limits.bytes == 40000 ? 2 : 1;
            CHECK(device.asked() <= before + streams);
            most = std::max({most, limits.bytes, t.least_bytes()});
            // As much again is kept.
            CHECK(device.peak(memory_kind::device) <= 4 * most);
        }
    }
    CHECK(device.held(memory_kind::device) != 0);
    pool.trim();
    CHECK(device.held(memory_kind::device) == 0);
    CHECK(device.held(memory_kind::pinned) == 0);
}

TEST_CASE("memory that grows frees nothing, up to twice what is in use") {
    host_device device;
    mx::base::cuda::pooled_device pool(device);
    std::size_t all = 0;
    for (std::size_t bytes = 1024; bytes <= 65536; bytes *= 2) {
        pool.give_back(memory_kind::pinned, pool.take(memory_kind::pinned, bytes), bytes);
        CHECK(device.held(memory_kind::pinned) == (all += bytes));
    }
    // In small steps, pieces that have become too small add up to more.
    for (std::size_t bytes = 66000; bytes <= 660000; bytes += 1000) {
        pool.give_back(memory_kind::pinned, pool.take(memory_kind::pinned, bytes), bytes);
        CHECK(device.held(memory_kind::pinned) <= 2 * bytes);
    }
}

TEST_CASE("memory that is kept is no shortage") {
    for (const task& t : tasks()) {
        CAPTURE(t.matrix.cols);
        const std::size_t least = t.least_bytes();
        host_device device({2 * least, no_limit});
        mx::base::cuda::pooled_device pool(device);
        heard said;
        for (const cuda::slice_limits& limits : {cuda::slice_limits{1, any_room}, {}}) {
            const auto batch = batch_on(pool, limits);
            batch->steer(&said.notices, nullptr);
            CHECK((t.by(*batch) == t.expected));
        }
        CHECK(pool.memory().free == 2 * least);
        auto* const all = pool.take(memory_kind::device, 2 * least);
        pool.give_back(memory_kind::device, all, 2 * least);
        CHECK(said.lines.empty());
    }
}

TEST_CASE("a kernel that finds no room gets what a batch can do without") {
    for (const task& t : tasks()) {
        CAPTURE(t.matrix.cols);
        host_device device;
        mx::base::cuda::pooled_device pool(device);
        heard said;
        device_of_kernel = &device;
        room_beside_kernel = 2 * t.least_bytes();
        {
            const auto batch = batch_on(pool, {});
            batch->steer(&said.notices, nullptr);
            CHECK((t.by(*batch) == t.expected));
        }
        device_of_kernel = nullptr;
        CHECK(said.lines.empty());
    }
}

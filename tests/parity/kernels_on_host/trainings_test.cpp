// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of training runs, by the host: products against chains of std::fma, files of
// runs against those of the CPU.
#include <cstring>
#include <functional>
#include <limits>
#include <new>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/lab/array.hpp"
#include "libmx/lab/cuda/captured_work.hpp"
#include "libmx/lab/product.hpp"
#include "libmx/lab/training.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/parity/kernels_on_host/array_kernels.hpp"
#include "tests/parity/kernels_on_host/entries.hpp"
#include "tests/parity/training_cases.hpp"

namespace {

using card::counted_cases;
using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;
using mx::lab::cuda::device_arrays;
using mx::lab::cuda::starters;

const starters by_kernels{
    [](const mx::lab::job& what, std::uint64_t count, mx::base::cuda::stream& on) {
        card::check(card::enqueue_job(&what, count, on.handle()));
    },
    [](const mx::lab::cuda::product_launch& l, mx::base::cuda::stream& on) {
        card::check(card::enqueue_chains(&l, on.handle()));
    }};

// The same with products by the CPU: the kernel of products, which a test below compares alone,
// computes whole tiles, most of which small networks leave empty.
const starters with_fast_products{
    by_kernels.job, [](const mx::lab::cuda::product_launch& l, mx::base::cuda::stream& on) {
        static_cast<mx::base::cuda::host_stream*>(on.handle())->queue([l] {
            mx::lab::execution_context here;
            for (std::uint64_t i = 0; i < l.count; ++i) {
                const float* const b = l.b.data + i / l.b_shared * l.b_step;
                mx::lab::multiply(here,
                                  {l.a.data + i * l.a_step, l.a.rows, l.depth, l.a.transposed},
                                  {b, l.b.rows, l.depth, l.b.transposed}, l.c + i * l.c_step);
            }
        });
    }};

std::unique_ptr<device_arrays> made(host_device& on, const starters& start = by_kernels) {
    return std::make_unique<device_arrays>(on, start, card::array_kernels);
}

mx::lab::run_request short_run() {
    mx::lab::run_request r;
    r.shape.width = 32;
    r.shape.depth = 1;
    r.batch = 16;
    r.steps = 2;
    r.settings = mx::lab::parse_settings("all=mxfp8");
    return r;
}

std::vector<float> values_after(mx::lab::execution_context on) {
    mx::lab::training t(short_run(), std::move(on));
    while (!t.finished()) t.step();
    return t.values();
}

}  // namespace

TEST_CASE("the kernel of training runs leaves chains of fused multiply-adds") {
    host_device device;
    counted_cases all;
    mx::tests::compare_products([&] { return made(device); }, 1, std::ref(all));
    CHECK(all.count == 135);
    CHECK(device.held(memory_kind::device) == 0);
    CHECK(device.held(memory_kind::pinned) == 0);
}

TEST_CASE("a training on a device leaves the files of one without") {
    host_device device;
    counted_cases all;
    mx::tests::compare_trainings([&] { return made(device, with_fast_products); }, 1,
                                 std::ref(all));
    CHECK(all.count == 74);
    mx::tests::compare_trainings([&] { return made(device); }, 10, std::ref(all));
    CHECK(all.count == 82);
    CHECK(device.held(memory_kind::device) == 0);
    CHECK(device.held(memory_kind::pinned) == 0);
}

namespace {

std::size_t jobs_and_products;

const starters counting{[](const mx::lab::job& j, std::uint64_t count, mx::base::cuda::stream& on) {
                            ++jobs_and_products;
                            by_kernels.job(j, count, on);
                        },
                        [](const mx::lab::cuda::product_launch& l, mx::base::cuda::stream& on) {
                            ++jobs_and_products;
                            with_fast_products.product(l, on);
                        }};

}  // namespace

TEST_CASE("a step sends no array to the device") {
    constexpr std::size_t quantizations = 4 * 2 * 6;  // layers, products of each, operands
    // The parameters' places are sent once more for the norm of the gradient; each quantization has
    // its parameters and extents of segments. An activation has 16384 bytes or more.
    for (const auto& [settings, most] :
         {std::pair{"all=none", std::size_t{320}}, {"all=mxfp8", 320 + quantizations * 6000}}) {
        CAPTURE(settings);
        host_device device;
        std::size_t sent = 0;
        device.observe([&](const std::byte*, std::size_t bytes) { sent += bytes; });
        mx::lab::run_request r = short_run();
        r.shape.width = 64;
        r.shape.depth = 4;
        r.batch = 64;
        r.settings = mx::lab::parse_settings(settings);
        mx::lab::training t(r, mx::lab::execution_context(1, made(device, counting), nullptr));
        while (!t.finished()) {
            sent = jobs_and_products = 0;
            t.step();
        }
        CHECK(sent <= most);
        CHECK(jobs_and_products == 114);
    }
}

TEST_CASE("from the fourth step on, the passes of a run are graphs") {
    // The batch, the loss, the norm of the gradient, and Adam, of each parameter that trains.
    constexpr std::size_t rest = 25, norm_biases = 4;
    constexpr std::size_t passes = 77, of_teacher = 12;
    for (const auto& [settings, most] :
         {std::pair{"all=none", rest},
          {"scheme=su.coded.e4m3 teacher=quantized", rest - norm_biases},
          {"all=mxfp8", rest},
          // Draws differ in each step.
          {"all=mxfp4:round=stochastic", rest + passes},
          // The host needs the largest magnitude of each matrix.
          {"all=nvfp4", rest + passes}}) {
        CAPTURE(settings);
        host_device device;
        mx::lab::run_request r = short_run();
        r.shape.depth = 4;
        r.steps = 5;
        r.settings = mx::lab::parse_settings(settings);
        mx::lab::training t(r, mx::lab::execution_context(1, made(device, counting), nullptr));
        std::vector<std::size_t> by_step;
        while (!t.finished()) {
            jobs_and_products = 0;
            t.step();
            by_step.push_back(jobs_and_products);
        }
        CHECK(by_step[0] >= rest - norm_biases + passes + of_teacher);
        CHECK(by_step[3] == most);
        CHECK(by_step[4] == most);
    }
}

TEST_CASE("products beside each other leave the bits of the CPU, also as a graph") {
    host_device device;
    counted_cases all;
    mx::tests::compare_graphs([&] { return made(device, with_fast_products); }, std::ref(all));
    CHECK(all.count == 2);
    CHECK(device.held(memory_kind::device) == 0);
}

TEST_CASE("work is captured the second time, unless a graph cannot contain it") {
    host_device device;
    mx::lab::execution_context on(1, made(device), nullptr);
    mx::lab::array x, sum;
    sum.put(on, std::vector<float>(3));
    x.reserve(on, 100);
    int calls = 0;
    std::vector<float> sent{1, 2, 4};
    mx::lab::cuda::captured_work work;
    // Adds what it sends.
    const auto run = [&](const std::function<void()>& more = {}) {
        work.run(*on.device(), [&] {
            ++calls;
            mx::lab::send(on, std::span<const float>(sent), x.data());
            on.run(mx::lab::jobs::add{{}, sum.data(), x.data(), sum.data()}, 3);
            if (more) more();
        });
    };
    const auto sums = [&] { return sum.get(on, 3); };
    SECTION("what it sends is in the graph") {
        for (int i = 0; i < 5; ++i) run();
        CHECK(calls == 2);
        CHECK((sums() == std::vector<float>{5, 10, 20}));
        sent = {0, 0, 1};
        run();
        CHECK((sums() == std::vector<float>{6, 12, 24}));
        work.forget();
        run();
        CHECK(calls == 3);
        CHECK((sums() == std::vector<float>{6, 12, 25}));
    }
    SECTION("memory that it may have used was freed") {
        for (int i = 0; i < 3; ++i) run();
        {
            mx::lab::array other;
            other.reserve(on, 1);
        }
        for (int i = 0; i < 3; ++i) run();
        CHECK(calls == 4);
        CHECK((sums() == std::vector<float>{6, 12, 24}));
    }
    SECTION("it waits") {
        for (int i = 0; i < 4; ++i) run([&] { on.wait(); });
        CHECK(calls == 5);  // once in vain
        CHECK((sums() == std::vector<float>{4, 8, 16}));
    }
    SECTION("it receives") {
        for (int i = 0; i < 4; ++i) run([&] { sums(); });
        CHECK(calls == 5);
        CHECK((sums() == std::vector<float>{4, 8, 16}));
    }
    SECTION("it allocates and frees") {
        for (int i = 0; i < 4; ++i) run([&] { mx::lab::array().reserve(on, 1); });
        CHECK(calls == 5);
        CHECK((sums() == std::vector<float>{4, 8, 16}));
    }
    SECTION("it frees for the first time") {
        run();
        mx::lab::array other;
        other.reserve(on, 1);
        for (int i = 0; i < 2; ++i) run([&] { other.leave_device(); });
        CHECK(calls == 4);
        CHECK((sums() == std::vector<float>{3, 6, 12}));
    }
    SECTION("it sends more than the first time") {
        run();
        sent.resize(100);
        for (int i = 0; i < 3; ++i) run();
        CHECK(calls == 5);
        CHECK((sums() == std::vector<float>{4, 8, 16}));
    }
    SECTION("it fails before a product beside it is joined") {
        mx::lab::array product;
        product.reserve(on, 1);
        run();
        CHECK_THROWS_AS(run([&] {
                            const mx::lab::operand_view row{x.data(), 1, 3};
                            mx::lab::multiply_beside(on, row, row, product.data());
                            throw std::bad_alloc();
                        }),
                        std::bad_alloc);
        CHECK((sums() == std::vector<float>{2, 4, 8}));
        work.forget();
        for (int i = 0; i < 3; ++i) run();
        CHECK((sums() == std::vector<float>{5, 10, 20}));
    }
    SECTION("it fails otherwise") {
        run();
        CHECK_THROWS_AS(run([] { throw std::bad_alloc(); }), std::bad_alloc);
        run();
        run();
        CHECK((sums() == std::vector<float>{3, 6, 12}));
    }
}

TEST_CASE("rotations leave the bits of the CPU, there and back") {
    host_device device;
    mx::lab::execution_context on(1, made(device), nullptr);
    // Rests of 16 + 4 and of 4 + 2 + 1; bases of 12 and 20.
    constexpr std::size_t rows = 52, cols = 87;
    std::vector<float> x(rows * cols);
    mx::lab::simd::scalar_kernels.normal({3, 1}, 0, x.size(), x.data());
    x[3] = x[100] = -0.0f;
    x[200] = std::numeric_limits<float>::infinity();
    for (const int size : {2, 16, 32, 12, 24, 40}) {
        for (const auto what :
             {mx::transform::kind::hadamard, mx::transform::kind::random_hadamard}) {
            for (const auto along : {mx::transform::run::row, mx::transform::run::column}) {
                for (const bool back : {false, true}) {
                    CAPTURE(size, static_cast<int>(along), back);
                    const mx::transform::rotation r{what, size, 5, {}};
                    std::vector<float> expected = x;
                    const mx::transform::float_rows all{expected.data(), rows, cols, cols};
                    (back ? mx::transform::rotate_back : mx::transform::rotate)(r, all, along);
                    mx::lab::array there;
                    float* const to = there.put(on, std::span<const float>(x));
                    on.device()->quantizer().rotate(r, to, rows, cols, along, back);
                    const std::vector<float> got = there.get(on, x.size());
                    CHECK(std::memcmp(got.data(), expected.data(), 4 * x.size()) == 0);
                }
            }
        }
    }
}

TEST_CASE("a mirrored array is the newest of its copies") {
    host_device device;
    mx::lab::execution_context on(1, made(device), nullptr), here;
    const auto doubled = [](const mx::lab::execution_context& where, std::span<float> x) {
        where.run(mx::lab::jobs::scale{{}, 2.0f, x.data()}, x.size());
    };
    mx::lab::mirrored x;
    x.assign(5, 1.0f);
    doubled(on, x.change_there(on));
    CHECK(x.here().front() == 2);
    x.change_here().front() = 3;
    doubled(on, x.change_there(on));
    doubled(here, x.change_there(here));
    CHECK((x.here() == std::vector<float>{12, 8, 8, 8, 8}));
    CHECK(x.there(on).size() == 5);
    CHECK(x.there(on).data() != x.here().data());
    x.assign(1, 7.0f);
    CHECK(device.held(memory_kind::device) == 0);
}

TEST_CASE("a training goes on with the CPU where the device has no room, and says so once") {
    const std::vector<float> expected = values_after(mx::lab::execution_context());
    host_device plenty;
    CHECK((values_after(mx::lab::execution_context(1, made(plenty, with_fast_products), nullptr)) ==
           expected));
    const std::size_t enough = plenty.asked();
    REQUIRE(enough >= 30);
    for (std::size_t n = 0; n < enough; ++n) {
        CAPTURE(n);
        host_device device({}, [&](std::size_t number) { return number >= n; });
        CHECK_THROWS_AS(
            values_after(mx::lab::execution_context(1, made(device, with_fast_products), nullptr)),
            mx::base::cuda::out_of_memory);
        std::vector<std::string> lines;
        mx::base::notices notices([&](const std::string& line) { lines.push_back(line); });
        host_device again({}, [&](std::size_t number) { return number >= n; });
        CHECK((values_after(mx::lab::execution_context(1, made(again, with_fast_products),
                                                       &notices)) == expected));
        REQUIRE(lines.size() == 1);
        CHECK(lines.front().find("continuing with backend") != std::string::npos);
        CHECK(again.held(memory_kind::device) == 0);
        CHECK(again.held(memory_kind::pinned) == 0);
    }
}

TEST_CASE("several runs share a device") {
    const std::vector<float> expected = values_after(mx::lab::execution_context());
    host_device device;
    std::vector<std::vector<float>> all(3);
    mx::base::parallel_for(all.size(), 3, nullptr, [&](std::uint64_t i, int) {
        all[i] =
            values_after(mx::lab::execution_context(1, made(device, with_fast_products), nullptr));
    });
    for (const std::vector<float>& one : all) CHECK((one == expected));
}

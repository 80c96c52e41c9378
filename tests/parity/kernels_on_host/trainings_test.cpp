// SPDX-License-Identifier: Apache-2.0
// The CUDA kernel of training runs, by the host: products against chains of std::fma, files of runs
// against those of the CPU.
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/lab/training.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/parity/kernels_on_host/entries.hpp"
#include "tests/parity/training_cases.hpp"

namespace {

using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;
using mx::lab::cuda::device_products;

void start(const mx::lab::cuda::product_launch& l, mx::base::cuda::stream& on) {
    if (card::enqueue_chains(&l, on.handle()) != 0) {
        throw mx::base::error(mx::base::error_kind::unavailable, "no such grid");
    }
}

std::unique_ptr<device_products> made(host_device& on) {
    return std::make_unique<device_products>(on, start, 1);
}

struct counted_cases {
    std::size_t count = 0;
    void operator()(const std::string& what, const std::string& difference) {
        CAPTURE(what);
        CHECK(difference == "");
        ++count;
    }
};

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

TEST_CASE("a training with a device leaves the files of one without") {
    host_device device;
    counted_cases all;
    mx::tests::compare_trainings([&] { return made(device); }, std::ref(all));
    CHECK(all.count == 5);
    CHECK(device.asked() > 0);
}

TEST_CASE("operands and results larger than a part are copied whole") {
    // More than two parts of 4 MiB, the last one short.
    constexpr std::size_t many = 2'300'001;
    std::vector<float> a(many), c(many);
    mx::lab::simd::scalar_kernels.normal({3, 1}, 0, many, a.data());
    const float b = 3.0f;
    host_device device;
    // In place of the kernel, which would take minutes.
    const auto scale = [](const mx::lab::cuda::product_launch& l, mx::base::cuda::stream& on) {
        static_cast<mx::base::cuda::host_stream&>(on).queue([l] {
            for (std::size_t i = 0; i < l.a.rows; ++i) l.c[i] = l.a.data[i] * *l.b.data;
        });
    };
    device_products by(device, scale, 1);
    by.multiply({a.data(), many, 1}, {&b, 1, 1}, c.data());
    bool same = true;
    for (std::size_t i = 0; i < many; ++i) same = same && c[i] == a[i] * b;
    CHECK(same);
    CHECK(device.peak(memory_kind::pinned) == std::size_t{8} << 20);
}

TEST_CASE("small products stay on the CPU") {
    host_device device;
    const device_products by(device, start);
    const float* const none = nullptr;
    CHECK(by.takes({none, 256, 256}, {none, 256, 256}));
    CHECK_FALSE(by.takes({none, 256, 256}, {none, 255, 256}));
}

TEST_CASE("a training goes on with the CPU where the device has no room, and says so once") {
    const std::vector<float> expected = values_after(mx::lab::execution_context());
    host_device plenty;
    CHECK((values_after(mx::lab::execution_context(1, made(plenty), nullptr)) == expected));
    const std::size_t enough = plenty.asked();
    REQUIRE(enough >= 7);
    for (std::size_t n = 0; n < enough; ++n) {
        CAPTURE(n);
        host_device device({}, [&](std::size_t number) { return number >= n; });
        CHECK_THROWS_AS(values_after(mx::lab::execution_context(1, made(device), nullptr)),
                        mx::base::cuda::no_room);
        std::vector<std::string> lines;
        mx::base::notices notices([&](const std::string& line) { lines.push_back(line); });
        host_device again({}, [&](std::size_t number) { return number >= n; });
        CHECK((values_after(mx::lab::execution_context(1, made(again), &notices)) == expected));
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
        all[i] = values_after(mx::lab::execution_context(1, made(device), nullptr));
    });
    for (const std::vector<float>& one : all) CHECK((one == expected));
}

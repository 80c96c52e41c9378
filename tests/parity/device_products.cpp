// SPDX-License-Identifier: Apache-2.0
// Emulated products on a device; the host is the device. Operands in parts, tiles loaded and
// released, and too little memory for either.
#include <random>
#include <set>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/backends.hpp"
#include "libmx/gemm/cuda/device_engine.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/gemm/one_step.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/parity/gemm_operands.hpp"

namespace {

using namespace mx::gemm;
using namespace mx::tests;
using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;

// A row of an operand on the device in a step: its bytes, and factors if they are plain.
struct device_row {
    const std::byte* bytes;
    const factor* factors;
    const scale_factor* scales;

    device_row(const step_kind& kind, const cuda::device_operand& x, std::size_t row,
               std::size_t step) {
        const auto length = static_cast<std::size_t>(kind.rule.length);
        const std::size_t at = row * x.steps + step;
        factors = reinterpret_cast<const factor*>(x.rows) + at * length;
        scales = x.scales + at * groups_of(kind);
        const auto size = static_cast<unsigned>(cuda::form_of(kind) == cuda::operand_form::split
                                                    ? split_bytes(kind.rule.length)
                                                    : sizeof(packed_row));
        bytes = x.panels == 0
                    ? nullptr
                    : x.panel(row / cuda::panel_rows, step, size) + row % cuda::panel_rows * size;
    }
};

template <int length>
std::uint32_t unsplit(const step_kind& kind, const device_row& a, const device_row& b,
                      std::uint32_t c) {
    return fused_step(kind.rule, split_row<length>(a.bytes), split_row<length>(b.bytes), c);
}

std::uint32_t step_of(const step_kind& kind, const device_row& a, const device_row& b,
                      std::uint32_t c) {
    if (cuda::form_of(kind) == cuda::operand_form::plain) {
        return one_step(kind, a.factors, b.factors, a.scales, b.scales, c);
    }
    if (cuda::form_of(kind) == cuda::operand_form::packed) {
        return packed_step(kind.rule, kind.least_exponent,
                           *reinterpret_cast<const packed_row*>(a.bytes),
                           *reinterpret_cast<const packed_row*>(b.bytes), c);
    }
    if (kind.rule.length == 32) return unsplit<32>(kind, a, b, c);
    if (kind.rule.length == 16) return unsplit<16>(kind, a, b, c);
    return kind.rule.length == 8 ? unsplit<8>(kind, a, b, c) : unsplit<4>(kind, a, b, c);
}

// The work of the kernel.
void start(const cuda::tile_launch& l, mx::base::cuda::stream& on) {
    static_cast<mx::base::cuda::host_stream&>(on).queue([l] {
        for (std::size_t r = 0; r < l.where.rows; ++r) {
            for (std::size_t c = 0; c < l.where.cols; ++c) {
                std::uint32_t& sum = l.acc[r * l.where.cols + c];
                for (std::size_t i = 0; i < l.steps.count; ++i) {
                    const std::size_t at = l.steps.at(i);
                    sum = step_of(l.kind, {l.kind, l.a, l.where.row + r, at},
                                  {l.kind, l.b, l.where.col + c, at}, sum);
                }
            }
        }
    });
}

host_device* backend_device = nullptr;
std::string nothing_missing() { return {}; }
std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m,
                             int threads) {
    return cuda::make_device_engine(*backend_device, start, a, b, m, threads);
}
const backend on_host{{"host", "the device's engine", nothing_missing}, cuda::computes, make};

struct product {
    accumulator model;
    operand a, b;
    std::vector<std::uint32_t> c;

    product(const char* name, const char* format, std::uint32_t scaling, std::size_t rows,
            std::size_t columns, std::size_t depth)
        : model(parse_accumulator(name)) {
        const operand_format* f = nullptr;
        for (const operand_format& row : operand_formats) {
            if (row.name == format) f = &row;
        }
        REQUIRE(f != nullptr);
        REQUIRE(takes(model, *f, *f, scaling));
        std::mt19937_64 random(9);
        const auto kind = operand_kind::finite_bits;
        a = make_operand(*f, kind, side::left, scaling, rows, depth, random);
        b = make_operand(*f, kind, side::right, scaling, columns, depth, random);
        c = make_accumulators(gives_f16(model), kind, rows * columns, random);
    }

    std::vector<std::uint32_t> by(const backend& which, int threads = 1,
                                  mx::base::notices* notices = nullptr) const {
        multiply_control control;
        control.threads = threads;
        control.notices = notices;
        arrangement how;
        how.slices = 2;
        return multiply_by(which, a, b, c, model, how, control);
    }
};

const backend& plain() { return backend_named("scalar"); }

// Operands of one part, of several, packed, and plain with and without scales by group.
const std::vector<product>& products() {
    static const std::vector<product> all = [] {
        std::vector<product> p;
        p.emplace_back("sm90.wgmma.fp8", "e4m3", 0u, 37, 41, 300);
        p.emplace_back("sm90.wgmma.fp8", "e5m2", 0u, 2000, 3, 640);
        p.emplace_back("sm100.mxf4nvf4", "e2m1", scales_ue4m3_16, 65, 20, 200);
        p.emplace_back("sm80.tf32", "tf32", 0u, 33, 32, 50);
        p.emplace_back("cdna3.fp8", "e4m3fnuz", 0u, 37, 41, 70);
        p.emplace_back("sm100.mxf4nvf4:zero=kept", "e2m1", scales_ue4m3_16, 65, 20, 200);
        return p;
    }();
    return all;
}

}  // namespace

TEST_CASE("products on a device leave the bits of the plain loop") {
    for (const product& p : products()) {
        host_device device;
        backend_device = &device;
        CAPTURE(p.model.name);
        CHECK((p.by(on_host, 2) == p.by(plain())));
        CHECK(device.held(memory_kind::device) == 0);
        CHECK(device.held(memory_kind::pinned) == 0);
        CHECK(device.peak(memory_kind::device) >= cuda::resident_bytes(p.a, p.b, p.model));
    }
}

TEST_CASE("products go on with the CPU where a device has no room, and say so once") {
    for (const product& p : products()) {
        CAPTURE(p.model.name);
        const auto expected = p.by(plain());
        std::size_t enough = 0;
        {
            host_device device;
            backend_device = &device;
            p.by(on_host);
            enough = device.asked();
        }
        REQUIRE(enough >= 9);
        for (std::size_t n = 0; n <= enough; ++n) {
            CAPTURE(n);
            host_device device({}, [&](std::size_t number) { return number >= n; });
            backend_device = &device;
            std::vector<std::string> lines;
            mx::base::notices notices([&](const std::string& line) { lines.push_back(line); });
            CHECK((p.by(on_host, 1, &notices) == expected));
            CHECK((p.by(on_host, 1, &notices) == expected));
            CHECK(lines.size() == 1);
            CHECK(device.held(memory_kind::device) == 0);
            if (n == enough) CHECK(device.asked() > enough);
        }
    }
}

TEST_CASE("threads wait for one another where there is room for one tile only") {
    const product p("sm90.wgmma.fp8", "e4m3", 0u, 1030, 1030, 32);
    const std::size_t tile = 1024 * 1024 * sizeof(std::uint32_t);
    const std::size_t operands = cuda::resident_bytes(p.a, p.b, p.model);
    host_device device({operands + tile, std::numeric_limits<std::size_t>::max()});
    backend_device = &device;
    std::vector<std::string> lines;
    mx::base::notices notices([&](const std::string& line) { lines.push_back(line); });
    CHECK((p.by(on_host, 4, &notices) == p.by(plain(), 2)));
    CHECK(lines.empty());
    CHECK(device.peak(memory_kind::device) == operands + tile);

    host_device smaller({operands + tile - 1, std::numeric_limits<std::size_t>::max()});
    backend_device = &smaller;
    CHECK((p.by(on_host, 4, &notices) == p.by(plain(), 2)));
    REQUIRE(lines.size() == 1);
    CHECK(lines.front().find("continuing with backend " + std::string(best_backend().name)) !=
          std::string::npos);
}

TEST_CASE("operands larger than a device are refused before anything is unpacked") {
    product p("sm90.wgmma.fp8", "e4m3", 0u, 2, 2, 32);
    CHECK(cuda::resident_bytes(p.a, p.b, p.model) == 2 * cuda::panel_rows * 208);
    host_device device({1023, 1023});
    backend_device = &device;
    CHECK_THROWS_AS(p.by(on_host), mx::base::cuda::out_of_memory);
    CHECK(device.asked() == 0);
    for (const auto& [rows, depth] : {std::pair{std::size_t{1} << 60, std::size_t{1} << 10},
                                      {std::size_t{1} << 62, std::size_t{1}},
                                      {std::size_t{3}, ~std::size_t{0}}}) {
        p.a.rows = rows;
        p.a.depth = depth;
        CHECK(cuda::resident_bytes(p.a, p.b, p.model) == ~std::uint64_t{0});
        host_device any;
        CHECK_THROWS_AS(cuda::make_device_engine(any, start, p.a, p.b, p.model, 1),
                        mx::base::cuda::out_of_memory);
        CHECK(any.asked() == 0);
    }
}

// SPDX-License-Identifier: Apache-2.0
// The kernels that count words, by the host, with slices, shortages and failures: their totals are
// those of the reference.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "libmx/base/status.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/counted_totals.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/codec/cuda/device_words.hpp"
#include "libmx/codec/cuda/number_bounds.hpp"
#include "libmx/engine/tensor_counts.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/parity/counted_cases.hpp"
#include "tests/parity/kernels_on_host/entries.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;
using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;
using mx::block::segment_stats;
using mx::tensor::dtype;
using namespace mx::tests;

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

std::size_t launches = 0, failing_launch = never;
bool lost = false;  // whether the device fails, or only lacks memory
std::atomic<std::size_t> host_words = 0;

void check(int code) {
    if (code != 0) throw mx::base::error(mx::base::error_kind::unavailable, "no such grid");
}

constexpr cuda::word_queue kernels{
    [](const cuda::word_launch& l, mx::base::cuda::stream& on) {
        if (launches++ == failing_launch) {
            if (lost) throw mx::base::error(mx::base::error_kind::unavailable, "it is lost");
            throw mx::base::cuda::no_room("the card has no room (starting the kernel)");
        }
        check(card::enqueue_words(&l, on.handle()));
    },
    [](std::uint32_t* at, std::uint32_t count, mx::base::cuda::stream& on) {
        check(card::enqueue_clear(at, count, on.handle()));
    }};

void count_here(const std::uint16_t* words, std::size_t size, std::size_t blocks,
                codec::word_tables& to) {
    host_words += size * blocks;
    codec::count_words(words, size, blocks, to);
}

// Slices of 8192 words; 32 tables of bf16, 8 of f16.
constexpr cuda::word_limits small{8192, 1u << 18, 2048};

struct heard {
    std::vector<std::string> lines;
    mx::base::notices notices{[this](const std::string& line) { lines.push_back(line); }};
};

// Segments are added in two calls.
void add(codec::word_counts& counts, const laid_out& job) {
    const auto segments = std::span(job.segments);
    const std::size_t half = segments.size() / 2;
    counts.add(job.values, segments.first(half), nullptr);
    counts.add(job.values, segments.subspan(half), nullptr);
    counts.settle();
}

void compare(const codec::word_counts& counts, const laid_out& job) {
    const codec::word_counts* const only = &counts;
    const std::vector<segment_stats> got = codec::counted_totals(std::span(&only, 1));
    const std::vector<segment_stats> expected = by_reference(job);
    for (std::size_t r = 0; r < got.size(); ++r) {
        CAPTURE(r);
        CHECK(difference(got[r], expected[r]) == "");
    }
}

std::unique_ptr<codec::word_counts> counts_on(host_device& device, const laid_out& job, dtype type,
                                              const cuda::word_limits& limits,
                                              mx::base::notices* notices = nullptr) {
    return std::make_unique<codec::word_counts>(
        type, job.asked, count_here,
        cuda::make_word_device(device, kernels, type, count_here, notices, limits));
}

stored_matrix matrix_of(dtype type, std::uint64_t rows, std::uint64_t cols,
                        const std::vector<block_kind>& kinds) {
    return make_matrix(type, rows, cols, kinds, *mx::format::find_element_format("e4m3"), 9);
}

std::vector<codec::recipe> recipes_in(const std::string& block) {
    std::vector<std::string> texts;
    for (const char* preset : {"mxfp4", "mxint8", "nvfp4", "mxfp8", "mxfp4:dialect=torchao"}) {
        const char* const joint = std::strchr(preset, ':') == nullptr ? ":" : ",";
        texts.push_back(preset + std::string(joint) + "block=" + block);
    }
    return codec::parse_recipes(texts);
}

// For runs through the pipeline.
host_device* pipeline_device = nullptr;
std::string nothing_missing() { return {}; }
std::unique_ptr<codec::device_meter> no_meter() { return nullptr; }
std::unique_ptr<codec::quantizer> pipeline_quantizer() {
    return cuda::make_device_quantizer(*pipeline_device, cuda::start_on_host);
}
codec::word_passes pipeline_passes() { return {count_here, nullptr}; }
std::unique_ptr<codec::word_device> pipeline_words(dtype type, codec::word_pass host,
                                                   mx::base::notices* notices) {
    return cuda::make_word_device(*pipeline_device, kernels, type, host, notices, small);
}
const codec::backend counting{{"counting", "as a device counts", nothing_missing, true},
                              pipeline_quantizer,
                              codec::make_host_caster,
                              no_meter,
                              nullptr,
                              nullptr,
                              pipeline_passes,
                              pipeline_words,
                              cuda::takes_numbers};

}  // namespace

TEST_CASE("kernels count what the reference counts, in blocks of every shape") {
    for (const dtype type : {dtype::bf16, dtype::f16}) {
        const stored_matrix usual = matrix_of(type, 40, 1056, usual_kinds);
        const stored_matrix every = matrix_of(type, 70, 531, every_kind);
        for (const char* block : {"1x16", "1x32", "1x64", "1x128", "1x256", "1x512", "16x1", "4x4",
                                  "16x16", "1x8", "1x48", "32x32"}) {
            CAPTURE(block, mx::tensor::row_of(type).name);
            for (const stored_matrix* m : {&usual, &every}) {
                const laid_out job = lay_out(*m, recipes_in(block));
                host_device device;
                const auto counts = counts_on(device, job, type, small);
                add(*counts, job);
                compare(*counts, job);
            }
        }
    }
}

TEST_CASE("the device counts nearly all of what is normally distributed") {
    stored_matrix m{dtype::bf16, 64, 4096, {}};
    const std::uint64_t elements = m.rows * m.cols;
    m.bytes.resize(elements * 2);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < m.bytes.size(); i += 2) {
        // The second half has classes of its own.
        const float x = std::ldexp(normal(random), i < m.bytes.size() / 2 ? 0 : 10);
        const auto word = static_cast<std::uint16_t>(mx::base::bits_of(x) >> 16);
        std::memcpy(m.bytes.data() + i, &word, 2);
    }
    for (const char* block : {"1x32", "1x16", "1x128"}) {
        CAPTURE(block);
        const laid_out job = lay_out(m, recipes_in(block));
        host_device device;
        const auto counts = counts_on(device, job, dtype::bf16, {1u << 13, 1u << 21, 1u << 15});
        host_words = launches = 0;
        add(*counts, job);
        CHECK(launches == (elements - (1u << 15)) >> 13);
        CHECK(host_words < elements / 4);
        compare(*counts, job);
        CHECK(!counts->full());
    }
}

TEST_CASE("counts of words that are cleared begin again on a device") {
    const stored_matrix first = matrix_of(dtype::bf16, 32, 512, every_kind);
    const stored_matrix second = matrix_of(dtype::bf16, 19, 1000, usual_kinds);
    const auto recipes = codec::parse_recipes({"mxfp4", "mxfp8", "mxint8"});
    const laid_out before = lay_out(first, recipes), after = lay_out(second, recipes);
    host_device device;
    const auto counts = counts_on(device, before, dtype::bf16, small);
    add(*counts, before);
    counts->clear();
    add(*counts, after);
    compare(*counts, after);
}

TEST_CASE("any bit pattern, and more classes than a device has tables") {
    std::mt19937 random(11);
    for (const unsigned binades : {3u, 60u, 255u}) {
        stored_matrix m{dtype::bf16, 24, 2048, {}};
        m.bytes.resize(m.rows * m.cols * 2);
        for (std::size_t i = 0; i < m.bytes.size(); i += 2) {
            const auto bits = static_cast<std::uint32_t>(random());
            const std::uint32_t exponent = 255u - bits / 256 % (binades + 1);
            const auto word = static_cast<std::uint16_t>((bits & 0x807fu) | exponent << 7);
            const bool is_finite = exponent != 255 || binades == 255;
            const std::uint16_t own = is_finite ? word : std::uint16_t{0};
            std::memcpy(m.bytes.data() + i, &own, 2);
        }
        for (const char* block : {"1x32", "1x16"}) {
            CAPTURE(binades, block);
            const laid_out job = lay_out(m, recipes_in(block));
            host_device device;
            const auto counts = counts_on(device, job, dtype::bf16, {4096, 8 * 8192, 4096});
            add(*counts, job);
            compare(*counts, job);
        }
    }
}

TEST_CASE("blocks whose smallest magnitude is at a border of what the device counts") {
    // About to have the code of the largest, or in the last of 32 binades.
    const std::uint64_t below = GENERATE(0u, 4064u);
    stored_matrix m{dtype::bf16, 128 * 65, 16, {}};
    for (std::uint64_t row = 0; row < m.rows; ++row) {
        const auto largest = static_cast<std::uint16_t>(0x3f80 + row % 128);
        const auto least = static_cast<std::uint16_t>(largest - row / 128 - below);
        for (std::uint64_t col = 0; col < m.cols; ++col) {
            const std::uint16_t word = col == row % m.cols ? largest : least;
            m.bytes.push_back(static_cast<std::byte>(word & 0xff));
            m.bytes.push_back(static_cast<std::byte>(word >> 8));
        }
    }
    for (const codec::recipe& r : recipes_in("1x16")) {
        CAPTURE(codec::to_string(r));
        const laid_out job = lay_out(m, {r});
        host_device device;
        const auto counts = counts_on(device, job, dtype::bf16, small);
        add(*counts, job);
        compare(*counts, job);
    }
}

TEST_CASE("without room on the device, the host counts") {
    const stored_matrix m = matrix_of(dtype::bf16, 40, 1056, usual_kinds);
    const laid_out job = lay_out(m, recipes_in("1x32"));
    const auto counted = [&](host_device& device, mx::base::notices* notices) {
        launches = 0;
        const auto counts = counts_on(device, job, dtype::bf16, small, notices);
        add(*counts, job);
        compare(*counts, job);
        return launches;
    };
    host_device any;
    const std::size_t all = counted(any, nullptr);
    CHECK(all > 3);
    for (std::size_t refused = 0; refused < any.asked(); ++refused) {
        CAPTURE(refused);
        host_device device({}, [&](std::size_t number) { return number == refused; });
        heard said;
        // The second slot, allocated last, can be done without.
        const bool needed = refused < 4;
        CHECK(counted(device, &said.notices) == (needed ? 0 : all));
        CHECK(said.lines.size() == (needed ? 1 : 0));
        host_device again({}, [&](std::size_t number) { return number == refused; });
        if (needed) CHECK_THROWS_AS(counted(again, nullptr), mx::base::cuda::no_room);
    }
    for (failing_launch = 0; failing_launch < all; ++failing_launch) {
        CAPTURE(failing_launch);
        heard said;
        host_device device;
        CHECK(counted(device, &said.notices) == failing_launch + 1);
        CHECK(said.lines.size() == 1);
        CHECK(device.held(memory_kind::device) == 0);
        lost = true;
        CHECK_THROWS_AS(counted(device, &said.notices), mx::base::error);
        lost = false;
    }
    failing_launch = never;
}

TEST_CASE("an analysis on a device that counts has the figures of the reference") {
    for (const std::size_t room : {never, std::size_t{0}}) {
        host_device device({.device = room});
        pipeline_device = &device;
        std::vector<std::string> lines;
        const auto listener = std::make_shared<mx::base::notices>(
            [&](const std::string& line) { lines.push_back(line); });
        launches = 0;
        std::size_t cases = 0;
        const auto on_case = [&](const std::string& what, const std::string& difference) {
            CAPTURE(what, room);
            CHECK(difference == "");
            ++cases;
        };
        compare_counts(counting, 96, false, on_case, listener);
        CHECK(cases == 16);
        CHECK((launches != 0) == (room != 0));
        CHECK(lines.size() == (room != 0 ? 0 : 1));
        launches = 0;
        if (room != 0) compare_counts(counting, 96, true, on_case, listener);
        CHECK(launches == 0);
    }
}

TEST_CASE("a device counts large tensors whose quantizing takes longer than their copy") {
    const auto counted = [](const std::string& text, std::size_t recipes, std::uint64_t size,
                            std::uint64_t elements) {
        const codec::block_params params = codec::params_of(codec::parse_recipe(text));
        const std::vector<codec::recipe_request> asked(recipes, {.params = &params});
        mx::engine::run_control control;
        control.backend = &counting;
        control.threads = 1;
        const mx::block::grid rows{.over = {1, elements >> 12, 4096}, .block_cols = size};
        return mx::engine::is_counted(control, rows, elements, asked);
    };
    const std::string ue5m3 = "nvfp4:scale_format=ue5m3";
    CHECK(counted(ue5m3, 4, 16, 1u << 30));
    CHECK(!counted(ue5m3, 1, 16, 1u << 30));
    CHECK(!counted(ue5m3, 4, 16, 1u << 20));
    CHECK(!counted(ue5m3, 4, 24, 1u << 30));
    CHECK(!counted(ue5m3, 4, 8, 1u << 30));
    // NVFP4 has a body of its own, up to blocks of 16.
    CHECK(!counted("nvfp4", 4, 16, 1u << 30));
    CHECK(counted("nvfp4", 60, 16, 1u << 30));
    CHECK(counted("nvfp4", 4, 32, 1u << 30));
    CHECK(!counted("mxfp4", 9, 32, 1ull << 32));
    CHECK(counted("mxfp4", 100, 32, 1ull << 32));
}

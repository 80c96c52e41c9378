// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of quantization themselves, grids, shared memory and exchanges, by the host: one
// case of several of those that a device is put to.
#include <array>
#include <numeric>

#include "libmx/base/status.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/codec/cuda/element_stream.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_kernels.hpp"
#include "libmx/format/decode.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/parity/device_cases.hpp"
#include "tests/parity/element_cases.hpp"
#include "tests/parity/kernels_on_host/entries.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;
using mx::base::cuda::host_stream;

std::string nothing_missing() { return {}; }
// A device with large panels; it is never measured.
std::unique_ptr<codec::device_meter> no_meter() { return nullptr; }

mx::base::cuda::host_device& host() {
    static mx::base::cuda::host_device one;
    return one;
}

void check(int code) {
    if (code != 0) throw mx::base::error(mx::base::error_kind::unavailable, "no such grid");
}

template <std::uint32_t by_instruction>
void start(const cuda::launch& l, mx::base::cuda::stream& on) {
    cuda::launch own = l;
    own.by_instruction = by_instruction;
    check(card::enqueue_segments(&own, on.handle()));
}

void start_elements(const cuda::element_launch& l, mx::base::cuda::stream& on) {
    check(card::enqueue_elements(&l, on.handle()));
}

template <std::uint32_t by_instruction>
std::unique_ptr<codec::quantizer> make_quantizer() {
    return cuda::make_device_quantizer(host(), start<by_instruction>);
}

template <std::uint32_t by_instruction>
constexpr codec::backend kernels{{"kernels", "as a device runs them", nothing_missing, true},
                                 make_quantizer<by_instruction>,
                                 codec::make_host_caster,
                                 no_meter};

// Compares and counts.
class judge {
  public:
    void operator()(const std::string& what, const std::string& difference) {
        CAPTURE(what);
        CHECK(difference == "");
        ++count;
    }
    std::size_t count = 0;
};

const codec::backend& arithmetic = kernels<0>;
const codec::backend& instructions = kernels<~0u>;

}  // namespace

TEST_CASE("kernels leave the bytes of the reference, segment by segment") {
    judge one;
    mx::tests::compare_segments(arithmetic, std::ref(one), 13);
    mx::tests::compare_dialect_segments(arithmetic, std::ref(one), 13);
    CHECK(one.count > 100);
}

TEST_CASE("kernels of rows leave the bytes of the reference, by arithmetic and by instruction") {
    judge one;
    mx::tests::compare_rows(arithmetic, std::ref(one), 13);
    mx::tests::compare_rows(instructions, std::ref(one), 17);
    CHECK(one.count > 100);
}

TEST_CASE("the kernels of NVFP4 leave the bytes of the reference") {
    judge one;
    mx::tests::compare_numbers(arithmetic, std::ref(one), 11);
    CHECK(one.count == 113);
}

TEST_CASE("kernels widen values that are stored as codes") {
    judge one;
    mx::tests::compare_codes(arithmetic, std::ref(one));
    CHECK(one.count == 64);
}

TEST_CASE("kernels leave the bytes of the reference, panel by panel") {
    judge one;
    mx::tests::compare_matrices(instructions, std::ref(one), 5);
    CHECK(one.count == 30);
}

TEST_CASE("the kernel of casts leaves the bytes of the host") {
    judge one;
    const auto batch = cuda::make_streamed_elements(host(), start_elements, nullptr, 20000);
    mx::tests::compare_casts(*batch, std::ref(one));
    // More values than threads.
    const auto long_batch = cuda::make_streamed_elements(host(), start_elements, nullptr);
    mx::tests::compare_long_cast(*long_batch, 2048 * 256 + 777, std::ref(one));
    CHECK(one.count > 500);
}

TEST_CASE("the kernel of codes widens as many as there are") {
    std::array<std::uint16_t, 256> table;
    for (std::size_t code = 0; code < table.size(); ++code) {
        table[code] = static_cast<std::uint16_t>(code * 257u + 3u);
    }
    for (const std::uint64_t count : {1u, 3u, 4u, 1023u, 1024u, 1025u, 5002u}) {
        const std::uint64_t groups = count / cuda::codes_at_once + 1;
        for (const bool packed : {false, true}) {
            CAPTURE(count, packed);
            const auto code = [&](std::uint64_t i) { return i * 7 % (packed ? 16 : 256); };
            std::vector<cuda::code_group> codes(groups);
            auto* const bytes = reinterpret_cast<std::uint8_t*>(codes.data());
            for (std::uint64_t i = 0; i < count; ++i) {
                bytes[packed ? i / 2 : i] |=
                    static_cast<std::uint8_t>(packed ? code(i) << i % 2 * 4 : code(i));
            }
            std::vector<cuda::value_group> values(groups);
            cuda::launch l{};
            l.codes = {bytes, count, table.data(), values.data(), packed};
            host_stream on;
            check(card::enqueue_segments(&l, on.handle()));
            on.wait();
            for (std::uint64_t i = 0; i < groups * cuda::codes_at_once; ++i) {
                const std::uint16_t expected = i < count ? table[code(i)] : std::uint16_t{0};
                CHECK(values[i / cuda::codes_at_once].value[i % cuda::codes_at_once] == expected);
            }
        }
    }
}

TEST_CASE("conversions are compared word by word") {
    for (const std::string_view name : cuda::row_formats) {
        CAPTURE(name);
        const auto& f = *mx::format::find_element_format(name);
        cuda::expected_conversion expected{mx::format::params_of(f, false), {}};
        for (std::uint32_t code = 0; code < 256; ++code) {
            expected.value[code] = mx::format::decode(f, code);
        }
        const auto differences = [&](const cuda::word_range& words) {
            unsigned long long count = 0;
            host_stream on;
            check(card::compare_conversions(std::string(name).c_str(), &expected, &words, &count,
                                            on.handle()));
            on.wait();
            return count;
        };
        const cuda::word_range bf16{0, 1u << 16, 1u << 16, true};
        CHECK(differences(bf16) == 0);
        CHECK(differences({0, 40961, 100000, true}) == 0);
        // All words whose code has another value, in either half.
        expected.value[1] *= 2;
        std::uint64_t wrong = 0;
        for (std::uint32_t h = 0; h < 1u << 16; ++h) {
            if ((h & 0x7f80u) == 0x7f80u) continue;
            wrong += mx::format::cast_code(expected.element, {}, h << 16, true, 0) == 1 ? 1u : 0u;
        }
        CHECK(wrong > 0);
        CHECK(differences(bf16) >= wrong);
    }
}

TEST_CASE("the kernels of the meter read and copy all words once") {
    for (const std::size_t words :
         {4u, 400u, 1536u * 4u, 11000u * 4u, 1536u * 8u * 4u + 12u, 100000u}) {
        CAPTURE(words);
        std::vector<std::uint32_t> from(words + 4), to(words + 4);
        std::iota(from.begin(), from.end(), 77u);
        const auto aligned = [](std::vector<std::uint32_t>& v) {
            const auto at = reinterpret_cast<std::uintptr_t>(v.data());
            return v.data() + (16 - at % 16) % 16 / 4;
        };
        std::uint32_t* const x = aligned(from);
        std::uint32_t* const y = aligned(to);
        std::uint32_t sum = 5;
        host_stream on;
        const auto* const bytes = reinterpret_cast<const std::byte*>(x);
        check(card::enqueue_read(bytes, words * 4, &sum, on.handle()));
        check(card::enqueue_copy(reinterpret_cast<std::byte*>(y), bytes, words * 4, on.handle()));
        on.wait();
        CHECK(sum == std::accumulate(x, x + words, 5u));
        CHECK(std::equal(x, x + words, y));
    }
}

// SPDX-License-Identifier: Apache-2.0
// Compares the device's conversion instructions with the emulator: every float32, every code, and a
// large sample of stochastic roundings. Instructions that the device lacks are named.
#include <initializer_list>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "apps/mx_capture/cuda/device_memory.hpp"
#include "apps/mx_capture/cuda/kernels.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_kernels.hpp"
#include "libmx/conformance/vectors/conversion_inputs.hpp"
#include "libmx/conformance/vectors/output_hash.hpp"
#include "libmx/format/element_formats.hpp"
#include "tests/gpu/card_test.hpp"

namespace {

using namespace mx::conformance::vectors;
using mx::tests::selection;
namespace capture = mx::capture;
namespace cuda = mx::codec::cuda;

constexpr std::uint64_t all_words = std::uint64_t{1} << 32;
constexpr std::uint64_t seed = 9;

template <typename Row>
const Row& kernel_of(std::string_view ptx, std::initializer_list<std::span<const Row>> lists) {
    for (const std::span<const Row> rows : lists) {
        for (const Row& row : rows) {
            if (row.ptx == ptx) return row;
        }
    }
    throw mx::base::error(mx::base::error_kind::unavailable,
                          "no kernel issues " + std::string(ptx));
}

// False if the device has no such instruction; the kernel is not started then.
bool was_started(std::string_view what) {
    const cudaError_t code = cudaGetLastError();
    if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction) {
        return false;
    }
    capture::check(code, what);
    capture::check(cudaDeviceSynchronize(), what);
    return true;
}

class report {
  public:
    void compared(std::string_view what, std::uint64_t cases, std::uint64_t different,
                  const std::string& first = {}) {
        std::cout << what << ": " << cases << " cases, " << different << " differ" << first
                  << std::endl;
        ++rows_;
        wrong_ += different != 0 ? 1u : 0u;
    }
    void missing(std::string_view what) { missing_.insert(std::string(what)); }

    int result() const {
        if (!missing_.empty()) {
            std::cout << "not on this device:";
            for (const std::string& m : missing_) std::cout << ' ' << m;
            std::cout << "\n";
        }
        if (rows_ == 0) {
            std::cout << "skipped: the device has no conversion instruction\n";
            return 77;
        }
        return wrong_ == 0 ? 0 : 1;
    }

  private:
    std::set<std::string> missing_;
    std::size_t rows_ = 0, wrong_ = 0;
};

// What backend cuda uses: both halves of pairs, and back, compared on the device.
void compare_paths(const selection& cases, report& to) {
    for (const auto& paths : {cuda::fp8_paths(), cuda::narrow_paths()}) {
        for (const cuda::instruction_path& p : paths) {
            if (!cases.wants(p.narrow)) continue;
            if (p.has_code() != cudaSuccess) {
                to.missing(p.narrow);
                continue;
            }
            to.compared(std::string(p.narrow) + " and " + std::string(p.widen),
                        2 * (all_words / cases.every),
                        cuda::differences(p, {0, static_cast<std::uint32_t>(cases.every),
                                              all_words / cases.every, false}));
        }
    }
}

void compare_codes(const narrowing& row, const std::vector<std::uint32_t>& floats, bool all,
                   report& to) {
    const auto& kernel = kernel_of<capture::narrow_kernel>(
        row.instruction, {capture::fp8_narrow_kernels(), capture::narrow_kernels()});
    // Packed sources take the upper half of a float32's bits, or binary16: all of them.
    const bool packed = row.from != conversion_input::f32;
    std::vector<std::uint32_t> words = packed ? all_halves(row.from) : floats;
    std::vector<std::uint32_t> inputs = words;
    if (packed) {
        for (std::uint32_t i = 0; i < inputs.size(); ++i) inputs[i] = i;
    }
    if (words.size() % 2 != 0) {
        words.push_back(words.back());
        inputs.push_back(inputs.back());
    }
    const capture::device_array<std::uint32_t> there(inputs);
    const capture::device_array<std::uint8_t> codes(words.size());
    kernel.convert(there.data(), codes.data(), words.size());
    if (!was_started(row.instruction)) return to.missing(row.instruction);
    const narrower emulated(row);
    const std::vector<std::uint8_t> got = codes.values();
    std::uint64_t different = 0;
    std::string first;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (got[i] == emulated(words[i])) continue;
        if (different++ == 0) {
            first = ", first that of " + std::to_string(words[i]) + ": " + std::to_string(got[i]);
        }
    }
    to.compared(row.instruction, words.size(), different, first);
    if (packed || different != 0 || !all) return;
    // All float32, a hash for every sign and exponent.
    const capture::device_array<std::uint64_t> hash(float_cells);
    kernel.hash(hash.data(), 1);
    capture::finish(row.instruction);
    const std::vector<std::uint64_t> hashes = hash.values();
    std::uint64_t cells = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : cells)
    for (std::uint32_t cell = 0; cell < float_cells; ++cell) {
        std::uint64_t sum = 0;
        for (std::uint32_t i = 0; i < cell_floats; ++i) {
            const std::uint32_t x = cell << 23 | i;
            sum += hash_term(x, emulated(x));
        }
        cells += sum != hashes[cell] ? 1u : 0u;
    }
    to.compared(std::string(row.instruction) + ", all float32 by sign and exponent", float_cells,
                cells);
}

void compare_values(const widening& row, report& to) {
    const auto& kernel = kernel_of<capture::widen_kernel>(
        row.instruction, {capture::fp8_widen_kernels(), capture::widen_kernels()});
    const auto* const f = mx::format::find_element_format(row.format);
    const std::size_t count = f == nullptr ? 256 : static_cast<std::size_t>(f->codes());
    const capture::device_array<std::uint16_t> values(count);
    kernel.convert(values.data(), count);
    if (!was_started(row.instruction)) return to.missing(row.instruction);
    const std::vector<std::uint16_t> got = values.values();
    std::uint64_t different = 0;
    for (std::uint32_t code = 0; code < count; ++code) {
        different += got[code] != widened(row, code) ? 1u : 0u;
    }
    to.compared(row.instruction, count, different);
}

// cvt.rs is one of the emulator's orders of random bytes.
void compare_stochastic(const stochastic_narrowing& row, report& to) {
    constexpr std::size_t random_cases = std::size_t{1} << 24;
    const auto& kernel =
        kernel_of<capture::stochastic_kernel>(row.instruction, {capture::stochastic_kernels()});
    const std::vector<stochastic_input> inputs = stochastic_inputs(row, seed, random_cases);
    std::vector<std::uint32_t> words;
    words.reserve(5 * inputs.size());
    for (const stochastic_input& in : inputs) {
        words.insert(words.end(), in.x.begin(), in.x.end());
        words.push_back(in.random);
    }
    const capture::device_array<std::uint32_t> there(words), results(inputs.size());
    kernel.convert(there.data(), results.data(), inputs.size());
    if (!was_started(row.instruction)) return to.missing(row.instruction);
    const std::vector<std::uint32_t> got = results.values();
    std::uint64_t least = inputs.size();
    std::string best;
    for (const random_byte_order& order : random_byte_orders) {
        std::uint64_t different = 0;
#pragma omp parallel for reduction(+ : different)
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const std::uint32_t expected =
                stochastic_result(row, order, inputs[i].x.data(), inputs[i].random);
            different += got[i] != expected ? 1u : 0u;
        }
        if (different >= least && !best.empty()) continue;
        least = different;
        best = order.name;
    }
    to.compared(row.instruction, inputs.size(), least, ", random bytes " + best);
}

int compare(const selection& cases) {
    report to;
    std::cout << "backend cuda converts by instruction:";
    for (const std::string_view f : cuda::row_formats) {
        if ((cuda::bodies_by_instruction() >> cuda::row_body_of(f) & 1u) != 0)
            std::cout << ' ' << f;
    }
    std::cout << "\n";
    compare_paths(cases, to);
    const std::vector<std::uint32_t> floats = stratified_floats(seed);
    for (const narrowing& row : narrowings()) {
        if (cases.wants(row.instruction)) compare_codes(row, floats, cases.every == 1, to);
    }
    for (const widening& row : widenings) {
        if (cases.wants(row.instruction)) compare_values(row, to);
    }
    for (const stochastic_narrowing& row : stochastic_narrowings) {
        if (cases.wants(row.instruction)) compare_stochastic(row, to);
    }
    return to.result();
}

}  // namespace

int main(int argc, char** argv) { return mx::tests::exit_code_of(argc, argv, compare); }

// SPDX-License-Identifier: Apache-2.0
// Files of kind `cvt`: one conversion instruction. Narrowing: all.code for all of bfloat16 (or
// binary16), strata.code for stratified float32, cells.hash for every `cell_stride`-th float32 by
// sign and exponent. Widening: codes.value. Stochastic: results.word.
#include <fmt/format.h>

#include "libmx/conformance/vectors/conversion_inputs.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/conformance/verify/verify.hpp"

namespace mx::conformance::verify {
namespace {

template <typename Row>
const Row& known(const vector_file& file, const Row* row) {
    if (row != nullptr) return *row;
    file.fail("its metadata says conversion={}, which this version does not know",
              file.at("conversion"));
}

// A tensor that is not compared would otherwise count as verified.
void require_tensors(const vector_file& file, std::size_t count) {
    if (file.tensors().size() == count) return;
    file.fail("has {} tensors; a recording of this conversion has {}", file.tensors().size(),
              count);
}

void compare_codes(const vector_file& file, const std::string& tensor,
                   const vectors::narrower& convert, const std::vector<std::uint32_t>& x,
                   comparison& found) {
    const auto expected = file.u8(tensor, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        found.check_integer({i, {}, {}, x[i]}, expected[i], convert(x[i]));
    }
}

void compare_cells(const vector_file& file, const vectors::narrower& convert, comparison& found) {
    const auto expected = words64(file, "cells.hash", vectors::float_cells);
    const auto stride =
        static_cast<std::uint32_t>(integer_of(file, "cell_stride", 1, vectors::cell_floats));
    const std::vector<std::uint64_t> hash = vectors::cell_hashes(convert, stride);
    for (std::size_t cell = 0; cell < hash.size(); ++cell) {
        found.check_integer({cell, {}, {}, static_cast<std::uint32_t>(cell) << 23}, expected[cell],
                            hash[cell]);
    }
}

std::string verify_narrowing(const vector_file& file, comparison& found) {
    const vectors::narrowing& row = known(file, vectors::find_narrowing(file.at("conversion")));
    const std::uint64_t seed = generator_seed(file, vectors::conversion_inputs_version);
    const vectors::narrower convert(row);
    found.about("all.code", std::string(row.format));
    compare_codes(file, "all.code", convert, vectors::all_halves(row.from), found);
    if (row.from != vectors::conversion_input::f32) {
        require_tensors(file, 1);
        return std::string(row.instruction);
    }
    found.about("strata.code", std::string(row.format));
    compare_codes(file, "strata.code", convert, vectors::stratified_floats(seed), found);
    if (!row.relu) {
        found.about("cells.hash", std::string(row.format));
        compare_cells(file, convert, found);
    }
    require_tensors(file, row.relu ? 2 : 3);
    return std::string(row.instruction);
}

std::string verify_widening(const vector_file& file, comparison& found) {
    const vectors::widening& row = known(file, vectors::find_widening(file.at("conversion")));
    const auto expected = file.u16("codes.value", row.codes());
    require_tensors(file, 1);
    found.about("codes.value", std::string(row.format));
    for (std::uint32_t code = 0; code < expected.size(); ++code) {
        found.check_integer({code, {}, {}, {}}, expected[code], vectors::widened(row, code));
    }
    return std::string(row.instruction);
}

// The assignment of random bytes to values is not known for every chip: use the order that fits
// best.
std::string verify_stochastic_narrowing(const vector_file& file, comparison& found) {
    const vectors::stochastic_narrowing& row =
        known(file, vectors::find_stochastic_narrowing(file.at("conversion")));
    const int random = integer_of(file, "random_inputs", 0, 1 << 24);
    // Check the outputs before generating the inputs.
    if (file.info("results.word").elements < static_cast<std::uint64_t>(random)) {
        file.fail_in("results.word", "has fewer values than its metadata says: random_inputs={}",
                     random);
    }
    const auto inputs =
        vectors::stochastic_inputs(row, generator_seed(file, vectors::conversion_inputs_version),
                                   static_cast<std::size_t>(random));
    const auto expected = file.u32("results.word", inputs.size());
    require_tensors(file, 1);
    const vectors::random_byte_order* best = nullptr;
    std::size_t fewest = inputs.size() + 1;
    for (const vectors::random_byte_order& order : vectors::random_byte_orders) {
        std::size_t different = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const auto got =
                vectors::stochastic_result(row, order, inputs[i].x.data(), inputs[i].random);
            different += got != expected[i] ? 1 : 0;
        }
        if (different >= fewest) continue;
        fewest = different;
        best = &order;
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the list of orders is not empty
    found.about("results.word", std::string(best->name));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        found.check_integer(
            {i, {}, {}, inputs[i].x[0]}, expected[i],
            vectors::stochastic_result(row, *best, inputs[i].x.data(), inputs[i].random));
    }
    return row.values == 2 ? std::string(row.instruction)
                           : fmt::format("{}, random bytes {}", row.instruction, best->name);
}

}  // namespace

std::string verify_cvt(const vector_file& file, const verify_options&, comparison& found) {
    const std::string& list = file.at("list");
    if (list == "narrowing") return verify_narrowing(file, found);
    if (list == "widening") return verify_widening(file, found);
    if (list == "stochastic") return verify_stochastic_narrowing(file, found);
    file.fail("its metadata says list={}; narrowing, widening or stochastic is expected", list);
}

}  // namespace mx::conformance::verify

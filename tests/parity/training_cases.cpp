// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/training_cases.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/lab/product.hpp"
#include "libmx/lab/run_folder.hpp"

namespace mx::tests {
namespace {

namespace fs = std::filesystem;

enum class numbers { normal, small, special };

// Products of small numbers round to zeros of both signs and to subnormals. One special number in
// 37 leaves outputs that are finite.
std::vector<float> make_numbers(numbers kind, std::uint64_t tensor, std::size_t count) {
    constexpr std::uint32_t special[] = {0x7fc00001, 0xffc00000, 0x7f800001, 0x7f800000,
                                         0xff800000, 0x00000001, 0x80000001, 0x007fffff,
                                         0x80000000, 0x00000000, 0x7f7fffff, 0xff7fffff};
    std::vector<float> x(count);
    lab::simd::scalar_kernels.normal({7, tensor}, 0, count, x.data());
    for (std::size_t i = 0; i < count; ++i) {
        if (kind == numbers::small) x[i] = std::ldexp(x[i], -70 - static_cast<int>(i % 9));
        if (kind == numbers::special && i % 37 == 11) {
            x[i] = base::float_from_bits(special[i / 37 % std::size(special)]);
        }
    }
    return x;
}

float at(const lab::operand_view& x, std::size_t r, std::size_t k) {
    return x.transposed ? x.data[k * x.rows + r] : x.data[r * x.depth + k];
}

std::vector<float> chains(const lab::operand_view& a, const lab::operand_view& b) {
    std::vector<float> c;
    for (std::size_t i = 0; i < a.rows; ++i) {
        for (std::size_t j = 0; j < b.rows; ++j) {
            float sum = 0;
            for (std::size_t k = 0; k < a.depth; ++k) sum = std::fma(at(a, i, k), at(b, j, k), sum);
            c.push_back(base::is_nan(sum) ? base::quiet_nan() : sum);
        }
    }
    return c;
}

std::string difference(const std::vector<float>& got, const std::vector<float>& expected) {
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = expected.size(); i-- > 0;) {
        if (base::bits_of(got[i]) == base::bits_of(expected[i])) continue;
        ++wrong;
        first = i;
    }
    if (wrong == 0) return {};
    return fmt::format("{} of {} outputs differ, the first at {}: {:08x} for {:08x}", wrong,
                       got.size(), first, base::bits_of(got[first]),
                       base::bits_of(expected[first]));
}

// Every file of a run by its name.
std::map<std::string, std::string> files_of(const lab::run_request& r, lab::execution_context on) {
    std::string folder = (fs::temp_directory_path() / "mx-training.XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder for a run");
    lab::training t(r, std::move(on));
    lab::run_plan plan;
    plan.folder = folder;
    plan.dumps = {2};
    lab::run(t, plan);
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::ifstream in(entry.path(), std::ios::binary);
        files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(in), {}};
    }
    fs::remove_all(folder);
    return files;
}

}  // namespace

void compare_products(const products_maker& make, std::uint64_t every, const case_judge& on_case) {
    struct extents {
        std::size_t rows, columns, depth;
    };
    constexpr extents shapes[] = {{1, 1, 1},     {1, 3, 8},      {7, 5, 9},   {64, 64, 16},
                                  {65, 1, 700},  {3, 200, 33},   {70, 66, 7}, {128, 128, 40},
                                  {257, 300, 8}, {300, 385, 61}, {2, 3, 1000}};
    const auto by = make();
    lab::execution_context on(1, make(), nullptr);
    std::uint64_t turn = 0;
    for (const extents& s : shapes) {
        for (const numbers kind : {numbers::normal, numbers::small, numbers::special}) {
            const std::vector<float> a = make_numbers(kind, 1, s.rows * s.depth);
            const std::vector<float> b = make_numbers(kind, 2, s.columns * s.depth);
            for (const unsigned turned : {0u, 1u, 2u, 3u}) {
                if (turn++ % every != 0) continue;
                const lab::operand_view left{a.data(), s.rows, s.depth, turned % 2 != 0};
                const lab::operand_view right{b.data(), s.columns, s.depth, turned / 2 != 0};
                const std::vector<float> expected = chains(left, right);
                std::vector<float> c(expected.size(), -1.0f);
                by->multiply(left, right, c.data());
                on_case(fmt::format("{} x {} x {}, numbers {}, transposed {}", s.rows, s.columns,
                                    s.depth, static_cast<int>(kind), turned),
                        difference(c, expected));
            }
        }
    }
    for (const extents& s : {extents{3, 4, 0}, {0, 4, 5}, {3, 0, 5}}) {
        const std::vector<float> x(20, 1.0f);
        std::vector<float> c(s.rows * s.columns, -1.0f);
        lab::multiply(on, {x.data(), s.rows, s.depth}, {x.data(), s.columns, s.depth}, c.data());
        on_case(fmt::format("{} x {} x {}", s.rows, s.columns, s.depth),
                difference(c, std::vector<float>(c.size())));
    }
}

void compare_trainings(const products_maker& make, const case_judge& on_case) {
    struct setting {
        const char* settings;
        double rate;
    };
    for (const setting& s :
         {setting{"all=none", 0.01}, setting{"all=mxfp8", 0.01},
          setting{"scheme=su.told.e4m3 dgrad-dy=mxfp4:round=stochastic wgrad-x=nvfp4", 0.01},
          setting{"all=none", 1e30}, setting{"all=mxfp8", 1e30}}) {
        lab::run_request r;
        r.shape.width = 40;  // no multiple of a block
        r.shape.depth = 2;
        r.batch = 24;
        r.steps = 6;
        r.rate = s.rate;
        r.settings = lab::parse_settings(s.settings);
        const auto expected = files_of(r, lab::execution_context());
        const auto got = files_of(r, lab::execution_context(1, make(), nullptr));
        std::string different;
        if (got.size() != expected.size()) different += "other files; ";
        for (const auto& [name, bytes] : expected) {
            const auto file = got.find(name);
            if (file == got.end() || file->second != bytes) different += name + " differs; ";
        }
        on_case(fmt::format("{} at rate {}", s.settings, s.rate), different);
    }
}

}  // namespace mx::tests

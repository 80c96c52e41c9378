// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/device_cases.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "libmx/block/stored_codes.hpp"
#include "libmx/codec/cuda/nvfp4_bounds.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "tests/parity/segments.hpp"

namespace mx::tests {
namespace {

using codec::detail;
using codec::recipe;
using tensor::dtype;

constexpr std::array types{dtype::f32, dtype::bf16, dtype::f16};
const std::vector<block_kind> all_kinds(block_kinds.begin(), block_kinds.end());

class comparison {
  public:
    comparison(const codec::backend& d,
               const std::function<void(const std::string&, const std::string&)>& on_case,
               std::uint64_t every)
        : backend_(d), on_case_(on_case), every_(every) {}

    // Alternates between types and between results per block.
    void run(const recipe& r, std::uint64_t rows, std::uint64_t cols) {
        run(r, [&](dtype type, std::uint64_t seed) {
            return make_matrix(type, rows, cols, all_kinds, *r.element, seed);
        });
    }

    // The same for a matrix of its own.
    template <typename Make>
    void run(const recipe& r, Make&& make) {
        const std::uint64_t which = cases_++;
        if (which % every_ != 0) return;
        const dtype type = types[which % types.size()];
        const auto wanted = static_cast<detail>(which / 3 % 3);
        const bool parts = which % 2 == 0;
        const stored_matrix m = make(type, 100 + which);
        const auto expected = everything(*backends_here().front(), m, r, wanted, parts);
        const auto got = everything(backend_, m, r, wanted, parts);
        std::size_t at = 0;
        while (at < got.size() && at < expected.size() && got[at] == expected[at]) ++at;
        std::string what;
        if (got != expected) what = "differs from byte " + std::to_string(at);
        on_case_(codec::to_string(r) + ", " + std::string(tensor::row_of(type).name) + ", " +
                     std::to_string(m.rows) + "x" + std::to_string(m.cols) + ", detail " +
                     std::to_string(static_cast<int>(wanted)),
                 what);
    }

  private:
    const codec::backend& backend_;
    const std::function<void(const std::string&, const std::string&)>& on_case_;
    std::uint64_t every_;
    std::uint64_t cases_ = 0;
};

// Every dialect with each of its rules, elements and roundings, and dialect ocp under scales that
// are not powers of two.
std::vector<recipe> dialect_recipes() {
    std::vector<recipe> all;
    for (const codec::dialect& by : codec::dialects()) {
        for (const auto& rule : scale::scale_rules) {
            for (const auto& f : format::element_formats) {
                for (const auto& round : format::roundings) {
                    const bool has = by.blocks && codec::lists(by.rules, rule.name) &&
                                     (by.elements.empty() || codec::lists(by.elements, f.name));
                    if (!has) continue;
                    std::string text = "mxfp8:dialect=" + std::string(by.name);
                    text += ",scale_format=" + std::string(codec::first_of(rule.scale_format));
                    text += ",element=" + std::string(f.name);
                    text += ",scale=" + std::string(rule.name);
                    text += ",round=" + std::string(round.name);
                    try {
                        const recipe r = codec::parse_recipe(text);
                        if (!codec::params_of(r).ocp) all.push_back(r);
                    } catch (const base::error&) {
                        // Not a valid combination.
                    }
                }
            }
        }
    }
    for (const char* text :
         {"nvfp4:four_over_six=mse", "nvfp4:four_over_six=mae", "nvfp4:four_over_six=abs_max",
          "nvfp4:four_over_six=mse,round=stochastic,seed=3", "nvfp4:dialect=te,round=stochastic",
          "mxfp4:dialect=microxcaling,flush_subnormals=true",
          "mxint8:dialect=microxcaling,int_min=full", "fp8_1x128:scale=amax-pow2",
          "mxfp4:dialect=tetrajet,round=stochastic,random_bits=7"}) {
        all.push_back(codec::parse_recipe(text));
    }
    return all;
}

// `rows` x `cols` values as stored.
template <typename Value>
stored_matrix matrix_of(dtype type, std::uint64_t rows, std::uint64_t cols, Value&& value) {
    stored_matrix m{type, rows, cols, {}};
    for (std::uint64_t i = 0; i < rows * cols; ++i) {
        const float x = value(i);
        const std::uint32_t bits = base::bits_of(x);
        const auto high = static_cast<std::uint16_t>(bits >> 16 | (base::is_nan(x) ? 0x40u : 0u));
        std::uint16_t half = base::half_saturated(x);
        const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
        if (!base::is_finite(x)) half = sign | (base::is_nan(x) ? 0x7e01u : 0x7c00u);
        const void* const from = type == dtype::f32    ? static_cast<const void*>(&x)
                                 : type == dtype::bf16 ? static_cast<const void*>(&high)
                                                       : static_cast<const void*>(&half);
        const std::size_t size = type == dtype::f32 ? 4 : 2;
        m.bytes.resize(m.bytes.size() + size);
        std::memcpy(m.bytes.data() + m.bytes.size() - size, from, size);
    }
    return m;
}

// Ordinary values; every 37th, which is in another lane in each block, is a NaN of either sign,
// Inf, a subnormal number or a zero.
stored_matrix lone_specials(dtype type, std::uint64_t rows, std::uint64_t cols,
                            std::uint64_t seed) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    const std::array specials{
        base::quiet_nan(), inf, -inf, base::float_from_bits(0xffc00000u), 0.0f, 0x1p-140f, -0.0f};
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    return matrix_of(type, rows, cols, [&](std::uint64_t i) {
        const float x = normal(random);
        return i % 37 == seed % 37 ? specials[i / 37 % specials.size()] : x;
    });
}

// Small integers: under many scales their errors are equal, so that only exact sums decide.
stored_matrix small_integers(dtype type, std::uint64_t rows, std::uint64_t cols,
                             std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return matrix_of(type, rows, cols, [&](std::uint64_t i) {
        const auto numbers = std::uint64_t{2} << (seed + i / cols) % 5 * 2;
        return static_cast<float>(random() % numbers) - 1.0f;
    });
}

std::vector<std::byte> bytes_of(const analysis::matrix_totals& m) {
    std::vector<std::byte> out;
    const auto put = [&](const void* from, std::size_t size) {
        const auto* bytes = static_cast<const std::byte*>(from);
        out.insert(out.end(), bytes, bytes + size);
    };
    const metrics::totals& t = m.totals;
    put(&t.count, sizeof t.count);
    put(&t.block, sizeof t.block);
    block::each_exact_sum(
        [&](const base::exact_sum& s) {
            const std::string text = s.text() + ' ';
            put(text.data(), text.size());
        },
        t.sum);
    put(&t.max_error, sizeof t.max_error);
    put(&t.max_x, sizeof t.max_x);
    if (m.histograms) put(m.histograms.get(), sizeof *m.histograms);
    return out;
}

// Normally distributed numbers with some zeros, like trained weights, and rows of a wide range, in
// which float32 cannot represent a sum of errors.
stored_matrix weights(dtype type, std::uint64_t rows, std::uint64_t cols) {
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal;
    return matrix_of(type, rows, cols, [&](std::uint64_t i) {
        float x = normal(random) * 0.02f;
        const std::uint64_t row = i / cols;
        if (row % 5 == 1) x = std::ldexp(x, -static_cast<int>(random() % 24));
        if (row % 5 == 2 && random() % 7 == 0) x = 0;
        if (row % 5 == 3) x = std::ldexp(x, -100);
        return x;
    });
}

stored_matrix weights_of(dtype type, std::uint64_t rows, std::uint64_t cols, std::uint64_t) {
    return weights(type, rows, cols);
}

// Blocks at the ends of what one lane, eight lanes and a warp process, where lanes share a decision
// or leave it to exact sums, and where blocks end with the matrix.
void compare_lanes(comparison& c) {
    for (const char* shape : {"1x1", "1x16", "1x32", "1x33", "1x128", "16x16", "1x1024", "1x1025",
                              "41x25", "128x128", "7x300"}) {
        for (const char* preset :
             {"nvfp4:", "nvfp4:four_over_six=mse,", "nvfp4:four_over_six=abs_max,",
              "nvfp4:scale=search,", "nvfp4:scale=search-single-level,search=mae,",
              "nvfp4:scale_format=ue5m3,", "nvfp4:scale_format=ue5m3,dialect=quark,",
              "nvfp4:dialect=te,", "nvfp4:dialect=te,four_over_six=mae,", "mxfp4:scale=search,",
              "mxfp6:dialect=amd-hip,", "mxfp4:dialect=modelopt,", "fp8_128x128:dialect=te,"}) {
            const std::string text = std::string(preset) + "block=" + shape;
            recipe r;
            try {
                r = codec::parse_recipe(text);
            } catch (const base::error&) {
                continue;  // dialect te has four-over-six for some blocks only
            }
            const auto cols = static_cast<std::uint64_t>(r.block.cols);
            const auto rows = static_cast<std::uint64_t>(r.block.rows);
            // A whole block, one element more, and several cut at both ends.
            for (const auto& [high, wide] :
                 {std::pair{rows, cols}, {rows + 1, cols + 1}, {2 * rows + 1, 3 * cols - 1}}) {
                c.run(r, [&, h = high, w = wide](dtype type, std::uint64_t seed) {
                    return seed % 2 == 0 ? lone_specials(type, h, w, seed)
                                         : small_integers(type, h, w, seed);
                });
            }
        }
    }
}

// Magnitudes of any two binades by row, from far below to far above those that bodies of rows take.
stored_matrix any_range(dtype type, std::uint64_t rows, std::uint64_t cols, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return matrix_of(type, rows, cols, [&](std::uint64_t i) {
        const int range = type == dtype::f16 ? 13 : 125;
        const int exponent =
            static_cast<int>((i / cols * 37 + seed) % (2 * 125)) * range / 125 - range;
        const auto bits = static_cast<std::uint32_t>(random());
        const float x = base::float_from_bits((bits & 0x807fffffu) | 0x3f800000u);
        return std::ldexp(x, exponent + static_cast<int>(bits >> 24 & 1u));
    });
}

// A tensor with one row of large numbers, so that block scales of the others are subnormal or zero.
stored_matrix small_blocks(dtype type, std::uint64_t rows, std::uint64_t cols, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    return matrix_of(type, rows, cols, [&](std::uint64_t i) {
        const float x = normal(random);
        return i < cols ? x * 100 : std::ldexp(x, -static_cast<int>(i / 64 % 16));
    });
}

// Blocks of different scales whose largest errors differ in the last places of float32: a float32
// error tells too little.
stored_matrix even_errors(dtype type, std::uint64_t rows, std::uint64_t cols, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const float largest = 1000.0f + 0.37f * static_cast<float>(seed);  // of the tensor
    const double g = static_cast<double>(largest / 2688);
    double scale = 1;
    return matrix_of(type, rows, cols, [&](std::uint64_t i) {
        if (i == 0) return largest;
        const std::uint64_t in_block = i % cols % 16;
        if (in_block == 0) {
            scale = static_cast<double>(8 + random() % 8) / 8 * g;
            return static_cast<float>(6 * scale);
        }
        // The scale is between g and 2 g, so that both lie within a tenth of a quantum of 3.
        const double error = 0.1 * g * (in_block % 2 == 0 ? 1 : -1);
        return in_block < 3 ? static_cast<float>(3 * scale + error) : 0.0f;
    });
}

std::vector<codec::recipe> nvfp4_recipes() {
    std::vector<codec::recipe> all;
    // Scales of tensors that do not fit: block scales overflow, or are the smallest or zero.
    for (const char* text :
         {"nvfp4:outer=given:0.01", "nvfp4:outer=given:30000",
          "nvfp4:dialect=modelopt,outer=given:0.01", "nvfp4:dialect=torchao,outer=given:30000",
          "nvfp4:dialect=te,outer=given:20"}) {
        all.push_back(codec::parse_recipe(text));
    }
    for (const codec::dialect& by : codec::dialects()) {
        for (const char* scale : {"two-level", "single-level"}) {
            for (const char* round : {"rtne", "away", "nearest-ties-to-zero", "zero"}) {
                for (const char* block : {"1x16", "1x8", "1x7"}) {
                    const std::string text = "nvfp4:dialect=" + std::string(by.name) +
                                             ",scale=" + scale + ",round=" + round +
                                             ",block=" + block;
                    try {
                        recipe r = codec::parse_recipe(text);
                        const codec::block_params p = codec::params_of(r, {base::bits_of(1000.0f)});
                        if (codec::cuda::takes_nvfp4(p, 1, 16)) all.push_back(r);
                    } catch (const base::error&) {
                        // Not a valid combination.
                    }
                }
            }
        }
    }
    return all;
}

std::vector<codec::recipe> row_recipes() {
    std::vector<codec::recipe> all;
    for (const std::string_view format : codec::cuda::row_formats) {
        for (const auto& rule : scale::scale_rules) {
            if (rule.scale_format != "e8m0" || scale::is_random(rule) || scale::is_search(rule.id))
                continue;
            for (const char* block : {"", ",block=1x16", ",block=1x7"}) {
                all.push_back(codec::parse_recipe("mxfp8:element=" + std::string(format) +
                                                  ",scale=" + std::string(rule.name) + block));
            }
        }
    }
    return all;
}

}  // namespace

void compare_segments(const codec::backend& d,
                      const std::function<void(const std::string&, const std::string&)>& on_case,
                      std::uint64_t every) {
    comparison c(d, on_case, every);
    std::uint64_t turn = 0;
    for (const auto& f : format::element_formats) {
        for (const auto& rule : scale::scale_rules) {
            // Dialect ocp has no random scales; searched ones are among the dialect recipes.
            if (rule.scale_format != "e8m0" || scale::is_random(rule) ||
                scale::is_search(rule.id)) {
                continue;
            }
            for (const char* round : {"rtne", "away", "nearest-ties-to-zero", "zero", "up", "down",
                                      "stochastic,seed=5", "stochastic,random_bits=11"}) {
                const char* offset =
                    std::array{"", "", ",offset=fp16", ",offset=fp16,range=half"}[turn++ % 4];
                c.run(codec::parse_recipe("mxfp8:element=" + std::string(f.name) + ",scale=" +
                                          std::string(rule.name) + ",round=" + round + offset),
                      3, 32 * 40 + 9);
            }
        }
    }
    for (const char* text : {"mxint8:int_min=symmetric,int_emax=log2max",
                             "mxint4:int_min=full,int_emax=1", "mxfp4_e3m0:ties=even"}) {
        for (int i = 0; i < 9; ++i) c.run(codec::parse_recipe(text), 2, 32 * 140 + 1);
    }
    for (const char* shape : {"1x32", "1x16", "1x2", "1x7", "1x33", "1x100", "1x5000", "32x1",
                              "5x1", "200x1", "4x4", "3x5", "16x16", "64x96"}) {
        for (const char* preset : {"mxfp4:", "mxfp8:round=stochastic,", "mxfp6:offset=fp16,"}) {
            const recipe r = codec::parse_recipe(std::string(preset) + "block=" + shape);
            for (const auto& [rows, cols] :
                 {std::pair{1, 1}, {1, 4099}, {67, 131}, {130, 33}, {257, 3}}) {
                c.run(r, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols));
            }
        }
    }
}

void compare_dialect_segments(
    const codec::backend& d,
    const std::function<void(const std::string&, const std::string&)>& on_case,
    std::uint64_t every) {
    comparison c(d, on_case, every);
    for (const recipe& r : dialect_recipes()) c.run(r, 3, 32 * 40 + 9);
    for (const char* shape : {"1x32", "1x16", "1x7", "1x33", "1x100", "1x5000", "32x1", "200x1",
                              "4x4", "3x5", "64x96", "128x128"}) {
        for (const char* preset :
             {"nvfp4:", "nvfp4:four_over_six=mae,", "nvfp4:dialect=torchao,",
              "fp8_1x128:", "fp8_1x128:dialect=te,", "mxfp8:dialect=microxcaling,",
              "mxfp4:dialect=quark,", "mxfp4:dialect=tetrajet,round=stochastic,"}) {
            const recipe r = codec::parse_recipe(std::string(preset) + "block=" + shape);
            for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 4099}, {67, 131}, {257, 3}}) {
                c.run(r, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols));
            }
        }
    }
    compare_lanes(c);
    for (const char* shape : {"1x32", "1x7", "1x100", "1x5000"}) {
        const recipe r = codec::parse_recipe(
            std::string("mxfp8:dialect=systems-scaling,scale=floor-bump,block=") + shape);
        for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 9001}, {5, 131}, {257, 3}}) {
            for (int i = 0; i < 9; ++i) {
                c.run(r, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols));
            }
        }
    }
}

void compare_matrices(const codec::backend& d,
                      const std::function<void(const std::string&, const std::string&)>& on_case,
                      std::uint64_t every) {
    std::vector<recipe> recipes;
    for (const char* text :
         {"mxfp4", "mxfp8:scale=even", "mxfp4:block=32x1", "mxint8:block=4x4",
          "mxfp6:round=stochastic,seed=3", "mxfp4:offset=fp16", "mxfp8:block=64x64",
          "mxfp4:axis=flat", "mxfp4:transform=hadamard", "nvfp4", "nvfp4:four_over_six=mse",
          "mxfp4:dialect=torchao", "mxfp8:dialect=microxcaling,round=rtne", "fp8_128x128",
          "mxfp8:dialect=systems-scaling,scale=floor-bump"}) {
        recipes.push_back(codec::parse_recipe(text));
    }
    std::uint64_t turn = 0;
    for (const dtype type : types) {
        const auto m = make_matrix(type, std::max<std::uint64_t>(1, 300 / every), 1100, all_kinds,
                                   *recipes.front().element, 7);
        const analysis::matrix in{type, m.bytes.data(), m.rows, m.cols, "name"};
        for (const bool histograms : {false, true}) {
            if (turn++ % every != 0) continue;
            engine::run_control control;
            control.threads = 2;
            control.backend = backends_here().front();
            const auto expected = analyze_matrix(in, recipes, histograms, control, true);
            control.backend = &d;
            const auto got = analyze_matrix(in, recipes, histograms, control, true);
            for (std::size_t r = 0; r < recipes.size(); ++r) {
                on_case("matrix of " + std::string(tensor::row_of(type).name) + " under " +
                            codec::to_string(recipes[r]),
                        bytes_of(got[r]) == bytes_of(expected[r]) ? "" : "totals differ");
            }
        }
    }
}

void compare_rows(const codec::backend& d,
                  const std::function<void(const std::string&, const std::string&)>& on_case,
                  std::uint64_t every) {
    const auto recipes = row_recipes();
    std::uint64_t turn = 0;
    for (const recipe& r : recipes) {
        for (const dtype type : types) {
            if (turn % every != 0) {
                ++turn;
                continue;
            }
            // Rows that begin at sixteen bytes, and rows that do not.
            const std::uint64_t cols = turn++ % 2 == 0 ? 32 * 40 : 32 * 40 + 9;
            for (const bool trained : {false, true}) {
                const auto m = trained ? weights(type, 5, cols)
                                       : make_matrix(type, 3, cols, all_kinds, *r.element, turn);
                for (const detail wanted : {detail::none, detail::codes}) {
                    const auto expected = everything(*backends_here().front(), m, r, wanted, false);
                    on_case(codec::to_string(r) + ", " + std::string(tensor::row_of(type).name) +
                                ", rows of " + std::to_string(cols) + (trained ? ", weights" : "") +
                                (wanted == detail::none ? "" : ", codes"),
                            everything(d, m, r, wanted, false) == expected ? "" : "differs");
                }
            }
        }
    }
    // Recipes of every kind, next to one for another body.
    std::vector<recipe> some{codec::parse_recipe("mxfp4:round=stochastic")};
    for (std::size_t i = 0; i < recipes.size(); i += 11) some.push_back(recipes[i]);
    std::uint64_t matrix_turn = 0;
    for (const dtype type : {dtype::bf16, dtype::f32}) {
        for (const auto& [rows, cols] : {std::pair{300, 1100}, {77, 64}, {5000, 40}, {3, 33000}}) {
            if (matrix_turn++ % every != 0) continue;
            const auto m =
                weights(type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols));
            const analysis::matrix in{type, m.bytes.data(), m.rows, m.cols, "name"};
            engine::run_control control;
            control.threads = 1;
            control.backend = backends_here().front();
            const auto expected = analyze_matrix(in, some, false, control, false);
            control.backend = &d;
            const auto got = analyze_matrix(in, some, false, control, false);
            for (std::size_t r = 0; r < some.size(); ++r) {
                on_case("matrix " + std::to_string(rows) + "x" + std::to_string(cols) + " of " +
                            std::string(tensor::row_of(type).name) + " under " +
                            codec::to_string(some[r]),
                        bytes_of(got[r]) == bytes_of(expected[r]) ? "" : "totals differ");
            }
        }
    }
}

void compare_numbers(const codec::backend& d,
                     const std::function<void(const std::string&, const std::string&)>& on_case,
                     std::uint64_t every) {
    constexpr std::array make{weights_of, lone_specials, small_integers,
                              any_range,  small_blocks,  even_errors};
    std::uint64_t turn = 0;
    for (const recipe& r : nvfp4_recipes()) {
        for (const dtype type : types) {
            for (std::size_t i = 0; i <= make.size(); ++i) {
                if (turn++ % every != 0) continue;
                // Rows that begin at sixteen bytes, and rows that do not.
                const std::uint64_t rows = 5 + turn % 3;
                const std::uint64_t cols = turn % 2 == 0 ? 16 * 70 : 16 * 70 + 9;
                const auto m = i < make.size()
                                   ? make[i](type, rows, cols, turn)
                                   : make_matrix(type, rows, cols, all_kinds, *r.element, turn);
                const auto expected =
                    everything(*backends_here().front(), m, r, detail::none, false);
                on_case(codec::to_string(r) + ", " + std::string(tensor::row_of(type).name) +
                            ", values " + std::to_string(i) + ", rows of " + std::to_string(cols),
                        everything(d, m, r, detail::none, false) == expected ? "" : "differs");
            }
        }
    }
}

void compare_codes(const codec::backend& d,
                   const std::function<void(const std::string&, const std::string&)>& on_case,
                   std::uint64_t every) {
    std::uint64_t turn = 0;
    for (const tensor::dtype_row& row : tensor::dtypes) {
        if (!block::stores_codes(row.id)) continue;
        stored_matrix stored{row.id, 7, 32 * 40 + 10, {}};
        const bool packed = row.bits == 4;
        stored_matrix widened{dtype::f32, stored.rows, stored.cols, {}};
        std::mt19937_64 random(8);
        for (std::uint64_t i = 0; i < stored.rows * stored.cols; ++i) {
            // Blocks of small numbers, and some of any.
            const std::uint64_t any = random();
            const std::uint64_t code = packed            ? any % 16
                                       : i / 32 % 5 == 0 ? any & 255u
                                                         : (any & 0x80u) | (any >> 8) % 60u;
            if (packed && i % 2 == 1) {
                stored.bytes.back() |= static_cast<std::byte>(code << 4);
            } else {
                stored.bytes.push_back(static_cast<std::byte>(code));
            }
            const float x = block::numbers_of(row.id)[code];
            const auto* const bytes = reinterpret_cast<const std::byte*>(&x);
            widened.bytes.insert(widened.bytes.end(), bytes, bytes + sizeof x);
        }
        for (const char* text :
             {"mxfp4", "mxfp8:block=4x4,round=stochastic", "mxfp6:offset=fp16", "nvfp4",
              "mxfp4:dialect=quark", "mxint8:dialect=microxcaling,block=7x1", "mxfp8:element=e5m2",
              "mxfp4:block=1x25"}) {
            const recipe r = codec::parse_recipe(text);
            const auto wanted = turn % 2 == 0 ? detail::codes : detail::none;
            const bool parts = turn % 3 == 0;
            if (turn++ % every != 0) continue;
            const auto expected = everything(*backends_here().front(), widened, r, wanted, parts);
            on_case(codec::to_string(r) + " of " + std::string(row.name),
                    everything(d, stored, r, wanted, parts) == expected ? "" : "differs");
        }
    }
}

}  // namespace mx::tests

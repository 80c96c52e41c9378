// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/device_cases.hpp"

#include <array>
#include <cstring>

#include "libmx/format/element_formats.hpp"
#include "libmx/pipeline/analyze_matrix.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "tests/parity/segments.hpp"

namespace mx::tests {
namespace {

using quantize::detail;
using quantize::recipe;
using tensor::dtype;

constexpr std::array types{dtype::f32, dtype::bf16, dtype::f16};
const std::vector<block_kind> all_kinds(block_kinds.begin(), block_kinds.end());

class comparison {
  public:
    comparison(const quantize::driver& d,
               const std::function<void(const std::string&, const std::string&)>& on_case,
               std::uint64_t every)
        : driver_(d), on_case_(on_case), every_(every) {}

    // Types and what is wanted per block take turns.
    void run(const recipe& r, std::uint64_t rows, std::uint64_t cols) {
        const std::uint64_t which = cases_++;
        if (which % every_ != 0) return;
        const dtype type = types[which % types.size()];
        const auto wanted = static_cast<detail>(which / 3 % 3);
        const bool parts = which % 2 == 0;
        const auto m = make_matrix(type, rows, cols, all_kinds, *r.element, 100 + which);
        const auto expected = everything(*drivers_here().front(), m, r, wanted, parts);
        const auto got = everything(driver_, m, r, wanted, parts);
        std::size_t at = 0;
        while (at < got.size() && at < expected.size() && got[at] == expected[at]) ++at;
        std::string what;
        if (got != expected) what = "differs from byte " + std::to_string(at);
        on_case_(quantize::to_string(r) + ", " + std::string(tensor::row_of(type).name) + ", " +
                     std::to_string(rows) + "x" + std::to_string(cols) + ", detail " +
                     std::to_string(static_cast<int>(wanted)),
                 what);
    }

  private:
    const quantize::driver& driver_;
    const std::function<void(const std::string&, const std::string&)>& on_case_;
    std::uint64_t every_;
    std::uint64_t cases_ = 0;
};

std::vector<std::byte> bytes_of(const pipeline::matrix_totals& m) {
    std::vector<std::byte> out;
    const auto put = [&](const void* from, std::size_t size) {
        const auto* bytes = static_cast<const std::byte*>(from);
        out.insert(out.end(), bytes, bytes + size);
    };
    const metrics::totals& t = m.totals;
    put(&t.count, sizeof t.count);
    put(&t.block, sizeof t.block);
    for (const base::exact_sum* s : {&t.sum.error2, &t.sum.x2, &t.sum.xd, &t.sum.d2, &t.sum.error,
                                     &t.part.clamp, &t.part.underflow, &t.part.grid}) {
        const double value = s->value();
        put(&value, sizeof value);
    }
    put(&t.max_error, sizeof t.max_error);
    put(&t.max_x, sizeof t.max_x);
    if (m.histograms) put(m.histograms.get(), sizeof *m.histograms);
    return out;
}

}  // namespace

void compare_segments(const quantize::driver& d,
                      const std::function<void(const std::string&, const std::string&)>& on_case,
                      std::uint64_t every) {
    comparison c(d, on_case, every);
    std::uint64_t turn = 0;
    for (const auto& f : format::element_formats) {
        for (const auto& rule : scale::scale_rules) {
            // Dialect ocp has no random scales.
            if (rule.scale_format != "e8m0" || rule.id == scale::rule_id::stochastic) continue;
            for (const char* round : {"rtne", "away", "nearest-ties-to-zero", "zero", "up", "down",
                                      "stochastic,seed=5", "stochastic,random_bits=11"}) {
                const char* offset =
                    std::array{"", "", ",offset=fp16", ",offset=fp16,range=half"}[turn++ % 4];
                c.run(quantize::parse_recipe("mxfp8:element=" + std::string(f.name) + ",scale=" +
                                             std::string(rule.name) + ",round=" + round + offset),
                      3, 32 * 40 + 9);
            }
        }
    }
    for (const char* text : {"mxint8:int_min=symmetric,int_emax=log2max",
                             "mxint4:int_min=full,int_emax=1", "mxfp4_e3m0:ties=even"}) {
        for (int i = 0; i < 9; ++i) c.run(quantize::parse_recipe(text), 2, 32 * 140 + 1);
    }
    for (const char* shape : {"1x32", "1x16", "1x2", "1x7", "1x33", "1x100", "1x5000", "32x1",
                              "5x1", "200x1", "4x4", "3x5", "16x16", "64x96"}) {
        for (const char* preset : {"mxfp4:", "mxfp8:round=stochastic,", "mxfp6:offset=fp16,"}) {
            const recipe r = quantize::parse_recipe(std::string(preset) + "block=" + shape);
            for (const auto& [rows, cols] :
                 {std::pair{1, 1}, {1, 4099}, {67, 131}, {130, 33}, {257, 3}}) {
                c.run(r, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols));
            }
        }
    }
}

void compare_matrices(const quantize::driver& d,
                      const std::function<void(const std::string&, const std::string&)>& on_case) {
    std::vector<recipe> recipes;
    for (const char* text : {"mxfp4", "mxfp8:scale=even", "mxfp4:block=32x1", "mxint8:block=4x4",
                             "mxfp6:round=stochastic,seed=3", "mxfp4:offset=fp16",
                             "mxfp8:block=64x64", "mxfp4:axis=flat", "mxfp4:transform=hadamard"}) {
        recipes.push_back(quantize::parse_recipe(text));
    }
    for (const dtype type : types) {
        const auto m = make_matrix(type, 300, 1100, all_kinds, *recipes.front().element, 7);
        const pipeline::matrix in{type, m.bytes.data(), m.rows, m.cols, "name"};
        for (const bool histograms : {false, true}) {
            pipeline::run_control control;
            control.threads = 2;
            control.driver = drivers_here().front();
            const auto expected = analyze_matrix(in, recipes, histograms, control, true);
            control.driver = &d;
            const auto got = analyze_matrix(in, recipes, histograms, control, true);
            for (std::size_t r = 0; r < recipes.size(); ++r) {
                on_case("matrix of " + std::string(tensor::row_of(type).name) + " under " +
                            quantize::to_string(recipes[r]),
                        bytes_of(got[r]) == bytes_of(expected[r]) ? "" : "totals differ");
            }
        }
    }
}

}  // namespace mx::tests

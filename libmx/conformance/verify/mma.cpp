// SPDX-License-Identifier: Apache-2.0
// Files of kind `mma`: tiles of one matrix instruction or of chains of it, by distribution. DIST.A
// is T x M x K, DIST.B T x N x K, DIST.C and DIST.D T x M x N; DIST.SFA and DIST.SFB contain one
// scale per block of K.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/gemm/accumulators.hpp"

namespace mx::conformance::verify {
namespace {

struct tiles {
    std::size_t count, m, n, k;
};

struct mma_run {
    const vector_file& file;
    comparison& found;
    const vectors::mma_case& what;
    const gemm::accumulator& model;
};

void require_shape(const vector_file& file, const std::string& tensor,
                   const std::vector<std::uint64_t>& shape) {
    const tensor::shape& found = file.info(tensor).shape;
    if (std::equal(found.begin(), found.end(), shape.begin(), shape.end())) return;
    file.fail_in(tensor, "is {}; the operands call for {}", tensor::to_string(found),
                 tensor::to_string(tensor::shape(shape.begin(), shape.end())));
}

tiles tiles_of(const vector_file& file, const std::string& dist) {
    const tensor::shape& a = file.info(dist + ".A").shape;
    const tensor::shape& b = file.info(dist + ".B").shape;
    if (a.size() != 3 || a[0] == 0 || a[1] == 0 || a[2] == 0) {
        file.fail_in(dist + ".A", "is {}; tiles x rows x k is expected", tensor::to_string(a));
    }
    if (b.size() != 3 || b[1] == 0 || b[0] != a[0] || b[2] != a[2]) {
        file.fail_in(dist + ".B", "is {}; tiles x columns x k like {}.A, {}, is expected",
                     tensor::to_string(b), dist, tensor::to_string(a));
    }
    require_shape(file, dist + ".C", {a[0], a[1], b[1]});
    require_shape(file, dist + ".D", {a[0], a[1], b[1]});
    return {static_cast<std::size_t>(a[0]), static_cast<std::size_t>(a[1]),
            static_cast<std::size_t>(b[1]), static_cast<std::size_t>(a[2])};
}

operand_stack operand_of(const mma_run& run, const std::string& dist, char side, const tiles& t) {
    const gemm::operand_format* format = side == 'A' ? run.what.a : run.what.b;
    operand_stack s{vectors::empty_operand(run.what, format, side == 'A' ? t.m : t.n, t.k),
                    mma_codes(run.file, fmt::format("{}.{}", dist, side), *format)};
    if (run.what.scale == nullptr) return s;
    const std::size_t blocks = (t.k + s.one.scale_block - 1) / s.one.scale_block;
    const std::string tensor = fmt::format("{}.SF{}", dist, side);
    require_shape(run.file, tensor, {t.count, s.one.rows, blocks});
    s.scales = run.file.u8(tensor, t.count * s.one.rows * blocks);
    return s;
}

void compare_distribution(mma_run& run, const std::string& dist) {
    const tiles t = tiles_of(run.file, dist);
    if (run.file.find("k_total") != nullptr) {
        const std::size_t stated = size_of(run.file, "k_total", 1, 1 << 30);
        if (stated != t.k) {
            run.file.fail_in(dist + ".A", "has {} elements along k; the metadata says {}", t.k,
                             stated);
        }
    }
    const operand_stack a = operand_of(run, dist, 'A', t);
    const operand_stack b = operand_of(run, dist, 'B', t);
    const std::uint64_t outputs = t.count * t.m * t.n;
    const auto c = run.file.words(dist + ".C", run.what.f16 ? 16 : 32, outputs);
    const auto d = run.file.words(dist + ".D", run.what.f16 ? 16 : 32, outputs);
    run.found.about(dist + ".D", to_string(run.model));
    compare_tiles(a, b, c, d, run.model, run.found);
}

// The distributions: the names before ".D". Every other tensor must belong to one of them.
std::vector<std::string> distributions_of(const vector_file& file, bool scaled) {
    constexpr std::array parts{".A", ".B", ".C", ".D", ".SFA", ".SFB"};
    std::vector<std::string> names;
    for (const io::tensor_info& t : file.tensors()) {
        const std::size_t dot = t.name.rfind('.');
        const std::string last = dot == std::string::npos ? "" : t.name.substr(dot);
        const auto known = std::ranges::find(parts, last);
        const bool scale = last.starts_with(".SF");
        if (known == parts.end() || (scale && !scaled)) {
            file.fail_in(t.name, "is not a tensor that this version knows in an mma file");
        }
        const std::string dist = t.name.substr(0, dot);
        if (!file.has(dist + ".D")) file.fail_in(t.name, "stands without {}.D", dist);
        if (last == ".D") names.push_back(dist);
    }
    return names;
}

bool f16_of(const vector_file& file, std::string_view key) {
    const std::string& name = file.at(key);
    if (name != "f16" && name != "f32") {
        file.fail("its metadata says {}={}; accumulators are f32 or f16", key, name);
    }
    return name == "f16";
}

}  // namespace

std::string verify_mma(const vector_file& file, const verify_options& options, comparison& found) {
    if (has_generated_inputs(file)) return verify_captured_mma(file, options, found);
    vectors::mma_case what = mma_case_of(file);
    what.f16 = f16_of(file, "acc_format");
    what.instruction_k = size_of(file, "instruction_k", 1, 1 << 20);
    std::optional<gemm::accumulator> model = options.accumulator;
    // A recording contains no parameters.
    if (!model && is_recording(file)) model = captured_model_of(file, what);
    if (!is_placed(file) || (!model && is_recording(file))) {
        found.skip(is_placed(file) ? no_model : not_placed, 1, file.tensors().size());
        return "no model";
    }
    if (!model) model = mma_model_of(file, what, "rounding");
    require_result(file, *model, what.f16);
    mma_run run{file, found, what, *model};
    for (const std::string& dist : distributions_of(file, what.scale != nullptr)) {
        compare_distribution(run, dist);
    }
    return fmt::format("{}: {} x {}", to_string(*model), what.a->name, what.b->name);
}

}  // namespace mx::conformance::verify

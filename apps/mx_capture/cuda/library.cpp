// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/cuda/library.hpp"

#include <fmt/format.h>

#include "libmx/base/status.hpp"

#if __has_include(<cublasLt.h>)

#include <cublasLt.h>
#include <dlfcn.h>

#include <array>

#include "apps/mx_capture/cuda/device_memory.hpp"
#include "libmx/block/scale_swizzle.hpp"
#include "libmx/conformance/vectors/mma_model.hpp"

namespace mx::capture {
namespace {

[[noreturn]] void decline(const std::string& why) {
    throw base::error(base::error_kind::unavailable, why);
}

// The functions of cuBLASLt that are called.
struct cublaslt {
// clang-format off
#define MX_CUBLASLT_CALLS(X) \
    X(Create) \
    X(Destroy) \
    X(GetVersion) \
    X(MatmulDescCreate) \
    X(MatmulDescDestroy) \
    X(MatmulDescSetAttribute) \
    X(MatrixLayoutCreate) \
    X(MatrixLayoutDestroy) \
    X(MatmulPreferenceCreate) \
    X(MatmulPreferenceDestroy) \
    X(MatmulPreferenceSetAttribute) \
    X(MatmulAlgoGetHeuristic) \
    X(MatmulAlgoConfigGetAttribute) \
    X(Matmul)
// clang-format on
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define MX_DECLARE(name) decltype(&cublasLt##name) name = nullptr;
    MX_CUBLASLT_CALLS(MX_DECLARE)
#undef MX_DECLARE
    bool loaded = false;

    cublaslt() {
        void* library = nullptr;
        // The toolkit's default folder is not in every machine's search path.
        for (const char* name : {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13",
                                 "libcublasLt.so", "libcublasLt.so.12"}) {
            if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        }
        if (library == nullptr) return;
        loaded = true;
#define MX_LOAD(name)                                                          \
    name = reinterpret_cast<decltype(name)>(dlsym(library, "cublasLt" #name)); \
    loaded = loaded && (name) != nullptr;
        MX_CUBLASLT_CALLS(MX_LOAD)
#undef MX_LOAD
    }
};

const cublaslt& library() {
    static const cublaslt calls;
    return calls;
}

void check_library(cublasStatus_t status, std::string_view what) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    decline(fmt::format("cuBLASLt {}: status {}", what, static_cast<int>(status)));
}

// A handle that is destroyed with its owner.
template <typename T>
class owned {
  public:
    explicit owned(cublasStatus_t (*destroy)(T)) : destroy_(destroy) {}
    ~owned() {
        if (value_ != nullptr) destroy_(value_);
    }
    owned(const owned&) = delete;
    owned& operator=(const owned&) = delete;
    T* out() { return &value_; }
    T get() const { return value_; }

  private:
    T value_ = nullptr;
    cublasStatus_t (*destroy_)(T);
};

cudaDataType_t type_of(const gemm::operand_format& f) {
    if (f.name == "e4m3") return CUDA_R_8F_E4M3;
    if (f.name == "e5m2") return CUDA_R_8F_E5M2;
    return CUDA_R_4F_E2M1;
}

// Codes in the library's layout: bytes, or two 4-bit codes in one, the first in its low half.
std::vector<std::uint8_t> packed(const gemm::operand& x) {
    const bool nibbles = x.format->code_bits() == 4;
    std::vector<std::uint8_t> bytes(nibbles ? x.codes.size() / 2 : x.codes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(nibbles ? x.codes[2 * i] | x.codes[2 * i + 1] << 4
                                                     : x.codes[i]);
    }
    return bytes;
}

// Empty without scales.
std::vector<std::uint8_t> swizzled(const gemm::operand& x) {
    if (x.scaling == 0) return {};
    const std::size_t columns = x.depth / x.scale_block;
    std::vector<std::uint8_t> scales(block::swizzled_bytes(x.rows, columns));
    block::swizzle(std::as_bytes(std::span(x.scales)), x.rows, columns,
                   std::as_writable_bytes(std::span(scales)));
    return scales;
}

template <typename T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which, const T& value) {
    check_library(library().MatmulDescSetAttribute(desc, which, &value, sizeof value),
                  "attribute of a product");
}

struct algorithm_fact {
    const char* name;
    cublasLtMatmulAlgoConfigAttributes_t attribute;
};
constexpr std::array algorithm_facts{
    algorithm_fact{"algorithm_id", CUBLASLT_ALGO_CONFIG_ID},
    algorithm_fact{"tile_id", CUBLASLT_ALGO_CONFIG_TILE_ID},
    algorithm_fact{"split_k", CUBLASLT_ALGO_CONFIG_SPLITK_NUM},
    algorithm_fact{"reduction_scheme", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME},
    algorithm_fact{"stages_id", CUBLASLT_ALGO_CONFIG_STAGES_ID},
    algorithm_fact{"inner_shape_id", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID},
    algorithm_fact{"cluster_shape_id", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID},
};

// 16-bit fields fill the lower half of a zeroed word.
std::map<std::string, std::string> facts_of(const cublasLtMatmulAlgo_t& algorithm) {
    std::map<std::string, std::string> facts;
    for (const algorithm_fact& f : algorithm_facts) {
        for (const std::size_t size : {sizeof(std::uint32_t), sizeof(std::uint16_t)}) {
            std::uint32_t value = 0;
            std::size_t written = 0;
            if (library().MatmulAlgoConfigGetAttribute(&algorithm, f.attribute, &value, size,
                                                       &written) != CUBLAS_STATUS_SUCCESS) {
                continue;
            }
            facts[f.name] = fmt::format("{}", value);
            break;
        }
    }
    // The value if k is not divided.
    if (facts["split_k"].empty() || facts["split_k"] == "0") facts["split_k"] = "1";
    return facts;
}

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
constexpr int repeats = 3;

}  // namespace

std::string cublaslt_version() {
    if (!library().loaded) return {};
    const std::size_t v = library().GetVersion();
    return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

// The library's matrices are column-major. It computes D transposed = B A transposed: its first
// operand is our B and its second our A, both with k contiguous.
library_product multiply_by_cublaslt(const library_problem& p) {
    if (!library().loaded) decline("libcublasLt cannot be loaded");
    const gemm::operand a = vectors::generated_a(p.what, p.seed, p.rows);
    const gemm::operand b = vectors::generated_b(p.what, p.seed, p.columns);
    const device_array<std::uint8_t> first(packed(b));
    const device_array<std::uint8_t> second(packed(a));
    const device_array<std::uint8_t> first_scales(swizzled(b));
    const device_array<std::uint8_t> second_scales(swizzled(a));
    const device_array<std::uint8_t> workspace(workspace_bytes);
    const cudaDataType_t out = p.bf16 ? CUDA_R_16BF : CUDA_R_32F;
    const std::size_t outputs = p.rows * p.columns;

    const cublaslt& call = library();
    owned<cublasLtHandle_t> handle(call.Destroy);
    check_library(call.Create(handle.out()), "handle");
    owned<cublasLtMatmulDesc_t> desc(call.MatmulDescDestroy);
    check_library(call.MatmulDescCreate(desc.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
    set(desc.get(), CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(desc.get(), CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    if (p.what.scale != nullptr) {
        const cublasLtMatmulMatrixScale_t mode = p.what.scale->format == "ue4m3"
                                                     ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3
                                                     : CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
        set(desc.get(), CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
        set(desc.get(), CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
        set<const void*>(desc.get(), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, first_scales.data());
        set<const void*>(desc.get(), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, second_scales.data());
    } else {
        // Without pointers the scale of a tensor is 1.
        const std::int8_t fast = p.fast_accumulation ? 1 : 0;
        set(desc.get(), CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast);
    }
    const std::uint64_t depth = p.what.depth();
    owned<cublasLtMatrixLayout_t> layout_a(call.MatrixLayoutDestroy);
    owned<cublasLtMatrixLayout_t> layout_b(call.MatrixLayoutDestroy);
    owned<cublasLtMatrixLayout_t> layout_d(call.MatrixLayoutDestroy);
    const auto create = [&](auto& layout, cudaDataType_t type, std::uint64_t rows,
                            std::size_t cols) {
        const auto pitch = static_cast<std::int64_t>(rows);
        check_library(call.MatrixLayoutCreate(layout.out(), type, rows, cols, pitch), "layout");
    };
    create(layout_a, type_of(*b.format), depth, p.columns);
    create(layout_b, type_of(*a.format), depth, p.rows);
    create(layout_d, out, p.columns, p.rows);

    owned<cublasLtMatmulPreference_t> preference(call.MatmulPreferenceDestroy);
    check_library(call.MatmulPreferenceCreate(preference.out()), "preference");
    check_library(call.MatmulPreferenceSetAttribute(preference.get(),
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof workspace_bytes),
                  "preference");
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    check_library(call.MatmulAlgoGetHeuristic(handle.get(), desc.get(), layout_a.get(),
                                              layout_b.get(), layout_d.get(), layout_d.get(),
                                              preference.get(), 1, &found, &count),
                  "has no algorithm for these formats");
    if (count == 0) decline("cuBLASLt has no algorithm for these formats");

    const float alpha = 1.0F;
    const float beta = 0.0F;
    std::vector<std::vector<std::uint8_t>> results;
    for (int i = 0; i < repeats; ++i) {
        const device_array<std::uint8_t> d(outputs * (p.bf16 ? 2 : 4));
        check_library(
            call.Matmul(handle.get(), desc.get(), &alpha, first.data(), layout_a.get(),
                        second.data(), layout_b.get(), &beta, d.data(), layout_d.get(), d.data(),
                        layout_d.get(), &found.algo, workspace.data(), workspace_bytes, nullptr),
            "product");
        finish("cuBLASLt");
        results.push_back(d.values());
    }
    library_product product;
    product.facts = facts_of(found.algo);
    product.facts["library"] = "cuBLASLt " + cublaslt_version();
    product.facts["repeats"] = fmt::format("{}", repeats);
    product.facts["repeats_equal"] =
        results[0] == results[1] && results[0] == results[2] ? "true" : "false";
    const std::vector<std::uint8_t>& bytes = results[0];
    for (std::size_t i = 0; i < outputs; ++i) {
        const std::size_t width = p.bf16 ? 2 : 4;
        std::uint32_t word = 0;
        for (std::size_t j = 0; j < width; ++j) {
            word |= static_cast<std::uint32_t>(bytes[i * width + j]) << (8 * j);
        }
        product.outputs.push_back(word);
    }
    return product;
}

}  // namespace mx::capture

#else

namespace mx::capture {

std::string cublaslt_version() { return {}; }

library_product multiply_by_cublaslt(const library_problem&) {
    throw base::error(base::error_kind::unavailable, "built without cublasLt.h");
}

}  // namespace mx::capture

#endif

// SPDX-License-Identifier: Apache-2.0
// Quantizes an array under a recipe, measures the error, and multiplies arrays as a matrix unit
// would. Results are those of the `mx` command, bit for bit, on every backend and for any number of
// threads, and in whatever floating-point environment the caller is (rounding mode, subnormals,
// traps), which is as before afterwards. Nothing here prints or exits; every failure is an
// mx::error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx {

namespace analysis {
class statistics;
}

/// The one exception type. kind() says what failed, place() where, what() all of it in one line.
using base::error;
using base::error_kind;

using tensor::dtype;
using tensor::shape;

/// How values become codes and scales; docs/guide/recipes.md.
using codec::recipe;
/// Parses `PRESET[:key=value,...]`, such as "nvfp4:scale=two-level", or a recipe without blocks,
/// such as "bf16" or "e4m3:scale=tensor". Throws mx::error (usage) naming the part that is wrong
/// and the nearest valid one.
using codec::parse_recipe;
/// The canonical spelling: parse_recipe(to_string(r)) == r.
using codec::to_string;

/// The figures of one tensor under one recipe, by their names in JSON; NaN where undefined.
using metrics::row;

/// A tensor that is read when it is used: an array in memory, which must outlive the view and is
/// never copied as a whole, or a tensor of a file. Copies are cheap and refer to the same tensor.
class view {
  public:
    /// One axis.
    view(std::span<const float> values);
    view(const std::vector<float>& values) : view(std::span(values)) {}
    /// `rows` x `cols` values in C order. Throws mx::error (usage) if `values` has another size.
    view(std::span<const float> values, std::uint64_t rows, std::uint64_t cols);
    /// Values of any dtype, little-endian, the first one at `data`. `strides` are in elements, may
    /// be zero or negative, and are those of C order unless given; types of less than a byte take
    /// no strides. Throws mx::error (usage) if numbers of axes differ or extents overflow.
    view(const void* data, dtype type, shape extents, std::vector<std::int64_t> strides = {});
    view(std::shared_ptr<const io::reader> file, std::size_t index)
        : file_(std::move(file)), index_(index) {}

    /// The name in the file; "" in memory. Stochastic roundings draw by it and by an element's
    /// index.
    const std::string& name() const { return info().name; }
    /// The same tensor under another name.
    view named(std::string name) const;
    dtype type() const { return info().type; }
    const shape& extents() const { return info().shape; }
    std::uint64_t elements() const { return info().elements; }
    /// What the file's header says about the tensor.
    const io::tensor_info& info() const { return file_->tensors()[index_]; }
    io::tensor_ref ref() const { return {file_.get(), index_}; }
    const std::shared_ptr<const io::reader>& file() const { return file_; }

    /// All values as float32 in C order; those that float32 cannot represent are rounded once.
    /// Throws mx::error (input) if they are not real numbers.
    std::vector<float> values() const;
    /// `count` values from index `first` on. Throws mx::error (usage) beyond the last.
    std::vector<float> values(std::uint64_t first, std::uint64_t count) const;

  private:
    std::shared_ptr<const io::reader> file_;
    std::size_t index_ = 0;
};

/// How a call runs; no result depends on it.
struct run_options {
    int threads = 0;                ///< 0: as many as the machine has
    std::string_view backend = {};  ///< "scalar", "avx2", "cuda", ...; "": the fastest one here
    const std::atomic<bool>* cancel = nullptr;  ///< raise it to stop: mx::error (cancelled)
};

/// A quantized tensor: codes, scales, and what else its recipe keeps.
class blocks {
  public:
    const mx::recipe& recipe() const { return recipe_; }
    const shape& extents() const { return extents_; }
    /// The number of blocks along each axis.
    const shape& grid() const { return grid_; }

    /// The codes as in files: 4-bit codes two to a byte, low nibble first; 6-bit codes four in
    /// three bytes; others one to a byte.
    const std::vector<std::byte>& packed_codes() const { return packed_; }
    /// One code per element in C order, right-aligned: unpacked by each call.
    std::vector<std::uint8_t> codes() const;
    /// One scale per block in C order of the grid, without outer scales: decoded by each call.
    /// NaN: the block contains a NaN or Inf.
    std::vector<float> scales() const;
    /// The scales' own codes (E8M0, UE4M3); empty where scales are float32.
    std::span<const std::uint8_t> scale_codes() const { return scale_codes_; }
    /// Bits of binary16 offsets, one per block; empty if the recipe has no offsets.
    std::span<const std::uint16_t> offsets() const { return offsets_; }
    /// The factor of all scales, as the dialect stores it; none if the recipe has no tensor scale.
    std::optional<float> tensor_scale() const { return tensor_scale_; }
    /// Under outer=row, col or ROWSxCOLS, the factor of the scales of every row, column or tile, as
    /// the dialect stores it, in C order of the outer grid; else empty.
    const std::vector<float>& outer_scales() const { return outer_scales_; }
    /// The number of rows, columns or tiles with an outer scale along each axis; at least two axes.
    /// Empty without.
    const shape& outer_grid() const { return outer_grid_; }

    /// From parts that were stored separately; scales as codes if the format has codes. Throws
    /// mx::error (usage) if sizes do not fit.
    static blocks from_parts(const mx::recipe& r, shape extents, std::vector<std::uint8_t> codes,
                             std::vector<std::uint8_t> scale_codes, std::vector<float> scales,
                             std::vector<std::uint16_t> offsets = {},
                             std::optional<float> tensor_scale = {},
                             std::vector<float> outer_scales = {});
    /// The same with packed codes.
    static blocks from_packed(const mx::recipe& r, shape extents, std::vector<std::byte> packed,
                              std::vector<std::uint8_t> scale_codes, std::vector<float> scales,
                              std::vector<std::uint16_t> offsets = {},
                              std::optional<float> tensor_scale = {},
                              std::vector<float> outer_scales = {});
    /// Moves the packed codes out; the blocks have no codes afterwards.
    std::vector<std::byte> take_packed_codes() { return std::move(packed_); }

  private:
    friend blocks quantize(const view&, const mx::recipe&, const run_options&);
    mx::recipe recipe_;
    shape extents_, grid_, outer_grid_;
    std::vector<std::byte> packed_;
    std::vector<std::uint8_t> scale_codes_;
    std::vector<float> scales_;  // where the format has no codes
    std::vector<std::uint16_t> offsets_;
    std::optional<float> tensor_scale_;
    std::vector<float> outer_scales_;
};

/// Codes and scales of a tensor under a recipe. Throws mx::error: usage if the tensor lacks the
/// recipe's axis, for recipes without blocks, and for floor-bump of dialect systems-scaling, whose
/// scales differ within a block; input for values that are not real numbers; unavailable;
/// cancelled.
blocks quantize(const view& x, const recipe& r, const run_options& how = {});

/// The values of codes and scales: offset + scale * value, rounded to float32 once, and rotated
/// back if the recipe rotates. Empty blocks give an empty vector.
std::vector<float> dequantize(const blocks& q, const run_options& how = {});

/// The quantized values as the recipe's dialect returns them, including those that have no code.
/// Takes every recipe with blocks. Throws as quantize does.
std::vector<float> fake_quantize(const view& x, const recipe& r, const run_options& how = {});
/// The same into memory of the caller, with as many values. It may be the input's, if that is
/// float32 in C order.
void fake_quantize(const view& x, const recipe& r, std::span<float> to,
                   const run_options& how = {});
/// The same as `type`, F32, BF16 or F16, with space for as many values at `to`: the float32 result
/// is rounded once, to nearest even. Throws mx::error (usage) for other types.
void fake_quantize(const view& x, const recipe& r, dtype type, void* to,
                   const run_options& how = {});

/// The figures of a tensor under a recipe: those of `mx analyze`.
row measure(const view& x, const recipe& r, const run_options& how = {});
/// Under several recipes, with one read.
std::vector<row> measure(const view& x, std::span<const recipe> recipes,
                         const run_options& how = {});

/// How values are cast without a scale.
struct cast_options {
    format::rounding round = format::rounding::rtne;
    bool saturate = true;    ///< false: beyond the largest value NaN or Inf, if the format has them
    std::uint64_t seed = 0;  ///< of stochastic rounding
};

/// Casts to an element format ("e4m3", "e2m1", "int8", ...) or a scale format with codes ("e8m0",
/// "ue4m3"), and returns the values. Throws mx::error (usage) naming the nearest format.
std::vector<float> cast(const view& x, std::string_view element, const cast_options& options = {},
                        const run_options& how = {});

/// A times the transpose of B, A of M x K and B of N x K, K along the blocks: M x N float32 as the
/// accumulator model adds them ("exact", "sm100.mxf8f6f4", ...; `mx explain accumulators` lists
/// them). Throws mx::error (usage) if the model does not take such operands, and for recipes with
/// an axis of their own, outer scales from a file, or scales that differ within a block.
std::vector<float> multiply(const view& a, const recipe& recipe_a, const view& b,
                            const recipe& recipe_b, std::string_view accumulate,
                            const run_options& how = {});

// Arrays in the memory of a CUDA device: values stay there, and so do results, with the bytes of
// the host. Work is queued on the stream of the caller, and memory that it needs is freed in the
// order of that stream. A call waits for the stream only if it needs a number on the host: the
// largest magnitude of an array for recipes with a scale of the tensor, and figures. What the
// device has no kernels for (see copies) is copied to the host and back, with the same result. In a
// build without CUDA, and while a stream is captured in a graph, these functions throw mx::error
// (unavailable).

/// A stream of a device.
struct device_stream {
    int device = 0;          ///< its ordinal
    void* stream = nullptr;  ///< a cudaStream_t
};

/// F32, BF16 or F16 in C order without gaps.
struct device_array {
    void* data = nullptr;  ///< aligned to the element
    dtype type = dtype::f32;
    shape extents;
};

/// Packed codes, scale codes and offsets, as in mx::blocks.
struct device_blocks {
    std::uint8_t *codes = nullptr, *scale_codes = nullptr;
    std::uint16_t* offsets = nullptr;  ///< null if the recipe has none
};

/// Why no device can be used, for the middle of a sentence; empty if one can.
std::string missing_device();

/// What makes fake_quantize and measure copy such an array under `r`, or with `packed` quantize and
/// dequantize refuse it, for the middle of a sentence; empty: nothing.
std::string copies(const recipe& r, const shape& extents, bool packed = false);

/// As on the host. `to` has x's extents, and may be x. Throws mx::error (usage) for other types.
void fake_quantize(const device_array& x, const recipe& r, std::string_view name,
                   const device_array& to, const device_stream& on);

/// Returns the scale of the tensor as stored, none if the recipe has none. Throws mx::error
/// (usage) where copies(r, x.extents, true) says something.
std::optional<float> quantize(const device_array& x, const recipe& r, std::string_view name,
                              const device_blocks& to, const device_stream& on);

/// The values of codes and scales of an array of `to`'s extents, rounded once.
void dequantize(const device_blocks& from, std::optional<float> tensor_scale, const recipe& r,
                const device_array& to, const device_stream& on);

/// `to` is F32.
void cast(const device_array& x, std::string_view element, const cast_options& options,
          std::string_view name, const device_array& to, const device_stream& on);

std::vector<row> measure(const device_array& x, std::span<const recipe> recipes,
                         std::string_view name, const device_stream& on);
/// Adds the array to each of `all`, which are of one name.
void update(std::span<analysis::statistics* const> all, const device_array& x,
            const device_stream& on);

/// An opened checkpoint.
class model {
  public:
    using iterator = std::vector<view>::const_iterator;
    iterator begin() const { return tensors_.begin(); }
    iterator end() const { return tensors_.end(); }
    std::size_t size() const { return tensors_.size(); }
    const view& operator[](std::size_t i) const { return tensors_.at(i); }
    /// The tensor of this name. Throws mx::error (usage) naming the nearest.
    const view& operator[](std::string_view name) const;
    /// Tensors whose name matches (*, ?, [set]). Throws mx::error (usage) if none does.
    model select(const std::string& glob) const;

  private:
    friend model open(const std::string& path, const io::open_options& options);
    std::vector<view> tensors_;
};

/// Opens a file, a directory or a pattern; only headers are read. Quantized checkpoints appear
/// decoded; indices and other integers are left out, as by the command. Throws mx::error (input).
model open(const std::string& path, const io::open_options& options = {});

}  // namespace mx

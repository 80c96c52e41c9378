// SPDX-License-Identifier: Apache-2.0
// The interface of file readers: names and shapes from headers alone, bytes on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// The bytes of one stored tensor: C order, little-endian, packed as its dtype says.
/// Implementations are safe to call from several threads at once and hold no more than a bounded
/// amount of memory (64 MiB), whatever the tensor's size.
class byte_source {
  public:
    virtual ~byte_source() = default;
    /// Fills `out` from byte `offset` of the tensor. Throws base::error (input) naming file,
    /// tensor and offset when the file ends early, changed, or fails its checksum.
    virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
    /// Announces that these bytes of the tensor are read soon, so that the system can fetch them.
    /// Never fails; does nothing if stored bytes are not those of the tensor.
    virtual void expect(std::uint64_t offset, std::uint64_t bytes) const;
    /// All bytes of the tensor, aligned to its elements, if they are in memory; else null.
    virtual const std::byte* in_memory() const { return nullptr; }
};

/// The axes that a product with this tensor sums over: [first, last) of its shape, neighbours in
/// storage. One axis for a matrix; several for a convolution, whose sum runs over input channels
/// and window alike.
struct contraction {
    int first = 0, last = 0;
    std::string why;  ///< who says so, as a phrase: "MatMul node 'dense/MatMul', second operand"
    bool known() const { return first < last; }
};

/// The header's description of a tensor. `elements` and `bytes` are checked against the file.
struct tensor_info {
    std::string name;
    tensor::dtype type = tensor::dtype::f32;
    tensor::shape shape;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;  ///< bytes once unpacked to C order
    std::string file;         ///< path of the file that holds it (a shard, for sharded models)
    std::string note;         ///< why it is left out: not numbers (then OTHER), or not a weight
    std::string layout;       ///< how values are stored that are decoded when read, e.g. "mxfp4"
    std::string remark;       ///< how a decoded tensor or a view is formed, or why not
    std::uint64_t stored_bytes = 0;  ///< of all the arrays it is decoded from; 0: `bytes`
    std::string tied_to;    ///< the earlier tensor of the file with the same storage; else empty
    std::string missing;    ///< what a quantized tensor lacks that its siblings have; else empty
    contraction sums_over;  ///< as the file's own graph or configuration states it; else unknown

    /// Bytes that the tensor occupies in its file or files; 0 if an earlier tensor occupies them.
    std::uint64_t occupied_bytes() const { return tied_to.empty() ? file_bytes() : 0; }
    /// The same if no other tensor had them.
    std::uint64_t file_bytes() const { return stored_bytes != 0 ? stored_bytes : bytes; }
};

/// One opened file, or one sharded model. Opening reads headers only.
class reader {
  public:
    virtual ~reader() = default;
    virtual const std::vector<tensor_info>& tensors() const = 0;
    /// Opens tensor `index` of tensors() for reading; the source may outlive the reader.
    virtual std::unique_ptr<byte_source> open(std::size_t index) const = 0;
    /// Text metadata of the file (safetensors' __metadata__), empty if there is none.
    virtual const std::map<std::string, std::string>& metadata() const = 0;
    /// Files this model consists of, with their sizes in bytes, in the order they were given.
    virtual std::vector<std::pair<std::string, std::uint64_t>> files() const = 0;
};

/// A tensor of an opened file.
struct tensor_ref {
    const reader* file;
    std::size_t index;
    const tensor_info& info() const { return file->tensors()[index]; }
};

/// What the user can state about a file beyond its path.
struct open_options {
    std::string as;     ///< "" or the dtype to read 16-bit opaque / unsigned data as, e.g. "bf16"
    std::string shape;  ///< raw binary: "64x128"
    std::string dtype;  ///< raw binary: dtype name, safetensors' spelling, any case
    std::uint64_t offset = 0;  ///< raw binary: byte offset of the first element
};

/// While one exists, headers are being read, which look at no cancel flag.
class opening_scope {
  public:
    opening_scope() noexcept;
    ~opening_scope();
    opening_scope(const opening_scope&) = delete;
    opening_scope& operator=(const opening_scope&) = delete;
    /// Whether one exists. Safe in a signal handler.
    static bool any() noexcept;
};

/// Opens `path`, recognising the format by the file's first bytes, never by its name alone. Throws
/// base::error: input if it cannot be read or is malformed.
std::unique_ptr<reader> open_model(const std::string& path, const open_options& options = {});

}  // namespace mx::io

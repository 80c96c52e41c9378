// SPDX-License-Identifier: Apache-2.0
// Writers of arrays: everything is planned before the first byte, so that headers come first and
// nothing is stored in memory. The destination appears whole at commit() or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

struct planned_array {
    std::string name;
    tensor::dtype type = tensor::dtype::f32;
    tensor::shape shape;
};

/// Destination of a fixed set of arrays. write() may be called from several threads for disjoint
/// byte ranges, in any order; every byte never written is zero. Without commit() nothing remains.
/// Errors are base::error (output) naming the path.
class array_writer {
  public:
    virtual ~array_writer() = default;
    /// Stores `bytes` (little-endian, C order) at byte `offset` of array `index` of the plan.
    virtual void write(std::size_t index, std::uint64_t offset,
                       std::span<const std::byte> bytes) = 0;
    /// Flushes, checks, and renames the file to its final name.
    virtual void commit() = 0;
};

/// Throws base::error (usage) if `path` ends like a file of another format than `own`, the endings
/// of what is to be written: a .gguf that contains safetensors misleads its readers. Names without
/// an ending, or with an unknown one, are fine.
void check_ending(const std::string& path, std::initializer_list<std::string_view> own);

/// Whether `path` ends with `ending`, in lower or upper case.
bool has_ending(std::string_view path, std::string_view ending);

using metadata_map = std::map<std::string, std::string>;

/// Arrays in plan order, metadata as __metadata__; data aligned to 8 bytes per the specification.
/// Each of these throws base::error (usage) for the name of another format: see check_ending.
std::unique_ptr<array_writer> create_safetensors(const std::string& path,
                                                 const std::vector<planned_array>& plan,
                                                 const metadata_map& metadata);
/// How the index of a sharded checkpoint ends.
inline constexpr std::string_view shards_ending = ".safetensors.index.json";
/// What such an index holds as its "schema" while its files are put in place.
inline constexpr std::string_view unfinished_schema = "mx.unfinished";
/// The bytes of a shard that is not limited by the user.
inline constexpr std::uint64_t usual_shard_bytes = 5'000'000'000;
/// The arrays in shards next to the index `path`, in plan order: each has at most `most_bytes`
/// bytes of data, or a single array, and at most as many arrays as mx reads in one file. Metadata,
/// which describes all arrays, is in the index. Throws base::error (output) for a shard's name that
/// another file has.
std::unique_ptr<array_writer> create_safetensors_shards(const std::string& path,
                                                        const std::vector<planned_array>& plan,
                                                        const metadata_map& metadata,
                                                        std::uint64_t most_bytes);
/// A file that a model's folder has besides weights: a text, or the copy of a file.
struct companion_file {
    std::string name, text;
    std::string copy_of{};  ///< a path; empty: `text`
};
/// The files of the folder of a model that are neither weights, nor their index, nor
/// configurations: the tokenizer, chat templates, licences. Links are followed, subfolders left
/// out. In order of names. Throws base::error (input) for a folder of more than 10,000 files.
std::vector<companion_file> companions_in(const std::string& folder);
/// A model in a folder of its own: model.safetensors.index.json with its shards, as above, and the
/// `companions`. The folder appears with temporary files; these get their names at commit(), the
/// index last. Shards state {"format": "pt"}. Throws base::error (output) if `path` is anything but
/// an empty folder, or nothing yet.
std::unique_ptr<array_writer> create_model_folder(const std::string& path,
                                                  const std::vector<planned_array>& plan,
                                                  const std::vector<companion_file>& companions,
                                                  std::uint64_t most_bytes);
/// One array as .npy version 1.0 (BF16 and FP8 as <V2 / |V1, which is what ml_dtypes writes).
std::unique_ptr<array_writer> create_npy(const std::string& path, const planned_array& array);
/// Arrays as HDF5 datasets of the same shape; a '/' in a name makes groups; metadata becomes
/// string attributes of the root group.
std::unique_ptr<array_writer> create_hdf5(const std::string& path,
                                          const std::vector<planned_array>& plan,
                                          const metadata_map& metadata);

/// A text or byte output that appears whole or not at all: written under a temporary name in the
/// folder of `path` and renamed by commit(). "-" is standard output; an existing device, pipe or
/// socket is written to directly at commit() and never replaced; a symbolic link is followed, its
/// target replaced. The constructor checks at once that the destination can be written.
class output_file {
  public:
    explicit output_file(const std::string& path);
    ~output_file();
    output_file(output_file&&) noexcept;
    output_file& operator=(output_file&&) noexcept;

    void append(std::string_view text);
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);  ///< thread-safe
    void commit();

  private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// Removes every temporary file that is still uncommitted (called on the way out of Ctrl-C;
/// async-signal-unsafe, call it from normal code).
void discard_unfinished_outputs() noexcept;
/// The same in a signal handler that ends the process afterwards. False, and nothing is removed, if
/// a thread is creating or renaming one of them.
bool discard_unfinished_outputs_on_signal() noexcept;

}  // namespace mx::io

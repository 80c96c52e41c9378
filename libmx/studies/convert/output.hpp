// SPDX-License-Identifier: Apache-2.0
// The output of a conversion: converted arrays, and tensors copied as stored.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "libmx/studies/convert/convert.hpp"

namespace mx::convert {

/// The writer for `path` by its extension: .npy takes exactly one array, .h5 and .hdf5 are HDF5,
/// .safetensors.index.json are shards of at most `shard_bytes`, anything else is safetensors.
/// Throws base::error (usage) for several arrays in .npy, two arrays of the same name, and
/// extensions of formats that mx does not write.
std::unique_ptr<io::array_writer> create_destination(const std::string& path,
                                                     const std::vector<io::planned_array>& plan,
                                                     const io::metadata_map& metadata,
                                                     std::uint64_t shard_bytes);

/// The largest finite magnitude of each tensor; 0 where there is none.
std::vector<float> largest_magnitudes(const std::vector<engine::tensor_ref>& tensors,
                                      const engine::run_control& control);

/// The arrays of a conversion, and its result. Kept tensors are copied bit for bit, the widest
/// first and the narrowest last, so that each is aligned to its element size, which some libraries
/// require.
class output {
  public:
    conversion result;
    io::metadata_map metadata;

    /// Whether `t` can be converted: a tensor of real numbers. Other tensors are kept if possible,
    /// else listed in `result.skipped`.
    bool converts(const engine::tensor_ref& t);
    /// Keeps `t`, with `reason`. Returns false and does nothing if the output format cannot store
    /// it.
    bool keep(const engine::tensor_ref& t, const std::string& reason);
    /// Of a tensor that the input has quantized, what to set where a value changes: finish() says
    /// whether all are kept. Null of others.
    std::atomic<bool>* watch(const io::tensor_info& info);
    /// Plans an array and returns its index. Call after all keep() calls.
    std::size_t add(io::planned_array array);
    /// Creates the output. Call after all add() calls.
    io::array_writer& create(const destination& out);
    /// Copies every array that is not kept from the array of the same name in one of `files`.
    /// Throws base::error (input) if none has it.
    void copy_from(const std::vector<const io::reader*>& files, const engine::run_control& control);
    /// Writes the kept tensors, commits, and returns the result.
    conversion finish(const engine::run_control& control);

  private:
    struct kept_tensor {
        engine::tensor_ref tensor;
        std::size_t array;  ///< of the plan
    };
    void begin();
    void copy(const engine::tensor_ref& from, std::size_t array,
              const engine::run_control& control);
    void plan_kept(bool wide);
    void note_changed();

    struct watched_tensor {
        std::string name;
        std::unique_ptr<std::atomic<bool>> changed;
    };

    std::vector<kept_tensor> kept_;
    std::vector<watched_tensor> watched_;
    std::vector<io::planned_array> plan_;
    std::unique_ptr<io::array_writer> writer_;
};

/// Packed codes of one tensor, written to array `array` of `writer` in runs that need not start or
/// end on a byte boundary; packed like block::pack over the whole tensor. put() is safe to call
/// from several threads for disjoint runs. Codes that share a byte with a run that has not arrived
/// are held back.
class code_stream {
  public:
    code_stream(io::array_writer& writer, std::size_t array, int bits, std::uint64_t elements);
    void put(std::uint64_t first, std::span<const std::uint8_t> codes);

  private:
    // Codes of one packing unit that arrive in several pieces.
    struct piece {
        std::array<std::uint8_t, 4> code{};
        unsigned present = 0;
    };
    void put_edge(std::uint64_t first, std::span<const std::uint8_t> codes);

    io::array_writer& writer_;
    std::size_t array_;
    int bits_;
    std::uint64_t elements_;
    std::uint64_t unit_;
    std::mutex guard_;
    std::map<std::uint64_t, piece> waiting_;  // by index of the unit
};

}  // namespace mx::convert

// SPDX-License-Identifier: Apache-2.0
// What a conversion writes: converted arrays, and beside them what it hands on as it is stored.
#pragma once

#include <array>
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
/// anything else is safetensors. Throws base::error (usage) when .npy is asked for several arrays,
/// two arrays have one name, or the extension is that of a format which is not written.
std::unique_ptr<io::array_writer> create_destination(const std::string& path,
                                                     const std::vector<io::planned_array>& plan,
                                                     const io::metadata_map& metadata);

/// The arrays of a conversion, and its result. Tensors that are kept are copied bit for bit: the
/// widest come first in the file and the narrowest last, so that each lies at a multiple of its
/// element's size: some libraries cannot read others.
class output {
  public:
    conversion result;
    io::metadata_map metadata;

    /// Whether `t` can be converted: a tensor of real numbers. Others are kept where they can be,
    /// and else are in `result.skipped`.
    bool converts(const engine::tensor_ref& t);
    /// Keeps `t`, with `reason`. Does nothing and returns false where a file of ours cannot hold
    /// it.
    bool keep(const engine::tensor_ref& t, const std::string& reason);
    /// Plans an array, once all tensors that are kept are known, and returns its index.
    std::size_t add(io::planned_array array);
    /// Creates the output, once all arrays are planned.
    io::array_writer& create(const destination& out);
    /// Copies every array that is not kept from the one of the same name in one of `files`. Throws
    /// base::error (input) where none has it.
    void copy_from(const std::vector<const io::reader*>& files, const engine::run_control& control);
    /// Writes what is kept, commits, and returns the result.
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

    std::vector<kept_tensor> kept_;
    std::vector<io::planned_array> plan_;
    std::unique_ptr<io::array_writer> writer_;
};

/// Packed codes of one tensor, written in runs that need not start or end at a byte border: to
/// array `array` of `writer`, packed as block::pack does over the whole tensor. put() may be called
/// from several threads for disjoint runs; codes that share a byte with a run not yet seen wait for
/// it.
class code_stream {
  public:
    code_stream(io::array_writer& writer, std::size_t array, int bits, std::uint64_t elements);
    void put(std::uint64_t first, std::span<const std::uint8_t> codes);

  private:
    // Codes of one packing unit that arrive in pieces.
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

// SPDX-License-Identifier: Apache-2.0
// The zip file that torch.save writes: data.pkl, and one record per storage under data/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "libmx/base/text_tables.hpp"
#include "libmx/files/pytorch/pickle_graph.hpp"
#include "libmx/files/pytorch/torch_values.hpp"
#include "libmx/files/zip_archive.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// An opened archive: its pickle is read, its storages are not.
class torch_archive {
  public:
    /// Bytes [begin, begin + size) of `file`. Throws base::error (input) if they are not a valid
    /// archive of PyTorch, or its pickle has more than `most` bytes.
    torch_archive(shared_file file, std::uint64_t begin, std::uint64_t size,
                  std::uint64_t most = pickle_size_limit);

    const pickle_graph& graph() const { return *graph_; }

    /// Checks a view against the record with its bytes. Throws base::error (input) naming `name` if
    /// the record is missing or too short, or the view exceeds the storage.
    void check(const torch_tensor& tensor, const std::string& name) const;
    /// The bytes that the storage of a checked view takes in the archive.
    std::uint64_t bytes_in_file(const torch_tensor& tensor) const;
    /// Whether the elements of a checked view are read in place, so that its source holds no
    /// memory.
    bool in_place(const torch_tensor& tensor, const std::string& name) const;
    /// The elements of a checked view in C order, little-endian.
    std::unique_ptr<byte_source> open_tensor(const torch_tensor& tensor,
                                             const std::string& name) const;

  private:
    [[noreturn]] void fail(const std::string& tensor, const std::string& message) const {
        input_error(message, {zip_->path(), tensor, {}});
    }
    void find_records();
    void read_byte_order();
    void read_graph(std::uint64_t most);
    std::string whole(const zip_entry& entry) const;
    const zip_entry& record(const torch_tensor& tensor, const std::string& name) const;

    std::shared_ptr<zip_archive> zip_;
    std::string prefix_;
    base::text_map<zip_entry> records_;
    bool big_endian_ = false;
    std::optional<pickle_graph> graph_;
};

/// Whether the file is a valid zip archive with a data.pkl where PyTorch stores it.
bool is_torch_archive(const shared_file& file);

/// The tensor as `tensors()` lists it. F4 has twice the last extent that PyTorch counts.
tensor_info torch_info(const torch_dtype* type, const tensor::shape& shape, std::string note,
                       const std::string& name, const std::string& path,
                       std::optional<tensor::dtype> as);

}  // namespace mx::io

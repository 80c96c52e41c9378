// SPDX-License-Identifier: Apache-2.0
// The zip file that torch.save writes: data.pkl, and one record per storage under data/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "libmx/files/pytorch/pickle_graph.hpp"
#include "libmx/files/pytorch/torch_values.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// An opened archive: its pickle is read, its storages are not.
class torch_archive {
  public:
    /// Bytes [begin, begin + size) of `file`. Throws base::error (input) when they are no sound
    /// archive of PyTorch.
    static std::shared_ptr<const torch_archive> open(shared_file file, std::uint64_t begin,
                                                     std::uint64_t size);
    ~torch_archive();
    torch_archive(const torch_archive&) = delete;
    torch_archive& operator=(const torch_archive&) = delete;

    const std::string& path() const;
    const pickle_graph& graph() const;

    /// Checks a view against the record with its bytes. Throws base::error (input) naming `name`
    /// when the record is missing or too short, or the view reaches beyond the storage.
    void check(const torch_tensor& tensor, const std::string& name) const;
    /// The elements of a checked view in C order, little-endian.
    std::unique_ptr<byte_source> open_tensor(const torch_tensor& tensor,
                                             const std::string& name) const;

  private:
    struct parts;
    explicit torch_archive(std::unique_ptr<parts> p);
    std::unique_ptr<parts> parts_;
};

/// Whether the file is a sound zip archive with a data.pkl where PyTorch puts it.
bool is_torch_archive(const shared_file& file);

/// The tensor as `tensors()` lists it. F4 has twice the last extent that PyTorch counts.
tensor_info torch_info(const torch_dtype* type, const tensor::shape& shape, std::string note,
                       const std::string& name, const std::string& path,
                       std::optional<tensor::dtype> as);

}  // namespace mx::io

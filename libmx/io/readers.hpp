// SPDX-License-Identifier: Apache-2.0
// THE LIST of readers. A format is recognised by the file's bytes; to add one, add a row here and a
// .cpp file with its two functions.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/io/input_file.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// A file as a probe sees it.
struct file_probe {
    const shared_file& file;
    std::string_view head;  ///< the first bytes, at most 512
};

/// What readers of files share: the opened file and its description.
class file_reader : public reader {
  public:
    const std::vector<tensor_info>& tensors() const override { return tensors_; }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override { return files_; }

  protected:
    explicit file_reader(shared_file file)
        : file_(std::move(file)), files_{{file_->path(), file_->size()}} {}
    /// Throws base::error (input) that names the file and `tensor`.
    [[noreturn]] void fail(const std::string& tensor, const std::string& message) const {
        input_error(message, {file_->path(), tensor, {}});
    }
    /// limit_decoded (read_budget.hpp) for all files of the model; open() must refuse what has a
    /// note. For readers of formats in which tensors may have more bytes than their files.
    void limit_repetition();

    shared_file file_;
    std::vector<tensor_info> tensors_;
    std::map<std::string, std::string> metadata_;
    std::vector<std::pair<std::string, std::uint64_t>> files_;
};

/// Counts elements and bytes of `info` by its shape and type; false if there are too many.
[[nodiscard]] bool count_bytes(tensor_info& info);

bool looks_like_npy(const file_probe& probe);
bool looks_like_pytorch(const file_probe& probe);
bool looks_like_distributed(const file_probe& probe);
bool looks_like_keras(const file_probe& probe);
bool looks_like_zip(const file_probe& probe);
bool looks_like_hdf5(const file_probe& probe);
bool looks_like_gguf(const file_probe& probe);
bool looks_like_safetensors_index(const file_probe& probe);
bool looks_like_safetensors(const file_probe& probe);
bool looks_like_onnx(const file_probe& probe);

/// What an index states, without a look at its shards.
struct shard_index {
    std::map<std::string, std::vector<std::string>> shards;  ///< path to the names of its tensors
    std::map<std::string, std::uint64_t> counts;  ///< whole numbers of the metadata: total_size
};
/// Throws base::error (input) if the file is no index or names a shard outside its folder.
shard_index read_shard_index(const std::string& path);

std::unique_ptr<reader> open_npy(shared_file file, const open_options& options);
std::unique_ptr<reader> open_pytorch(shared_file file, const open_options& options);
std::unique_ptr<reader> open_distributed(shared_file file, const open_options& options);
std::unique_ptr<reader> open_keras(shared_file file, const open_options& options);
std::unique_ptr<reader> open_npz(shared_file file, const open_options& options);
std::unique_ptr<reader> open_hdf5(shared_file file, const open_options& options);
std::unique_ptr<reader> open_gguf(shared_file file, const open_options& options);
std::unique_ptr<reader> open_safetensors_index(shared_file file, const open_options& options);
std::unique_ptr<reader> open_safetensors(shared_file file, const open_options& options);
std::unique_ptr<reader> open_onnx(shared_file file, const open_options& options);
std::unique_ptr<reader> open_raw(shared_file file, const open_options& options);

struct reader_format {
    std::string_view name;
    /// Recognises the format by its bytes; nullptr for raw binary, which has no mark.
    bool (*recognises)(const file_probe& probe);
    /// Throws base::error (input) if the file is malformed.
    std::unique_ptr<reader> (*open)(shared_file file, const open_options& options);
    /// Usual ending of the name; used only for a file whose bytes no reader recognises, so that the
    /// reader can say what is wrong with it.
    std::string_view ending;
    std::string_view summary;
    bool names_files = false;  ///< a file of it may name others in its folder
};

/// In the order in which they are tried.
inline constexpr std::array reader_formats{
    reader_format{"npy", looks_like_npy, open_npy, ".npy", "NumPy array, versions 1 to 3"},
    reader_format{"pytorch", looks_like_pytorch, open_pytorch, ".pt",
                  "zip files of torch.save (.pt, .pth, .bin); nothing in them is executed"},
    reader_format{"pytorch distributed", looks_like_distributed, open_distributed, ".metadata",
                  "directories of torch.distributed.checkpoint", true},
    reader_format{"keras", looks_like_keras, open_keras, ".keras", "Keras 3 models"},
    reader_format{"npz", looks_like_zip, open_npz, ".npz", "zip of NumPy arrays"},
    reader_format{"hdf5", looks_like_hdf5, open_hdf5, ".h5", "HDF5 datasets, Keras weights"},
    reader_format{"gguf", looks_like_gguf, open_gguf, ".gguf", "GGUF 2 and 3: every type of files"},
    reader_format{"safetensors index", looks_like_safetensors_index, open_safetensors_index,
                  ".index.json", "sharded safetensors model (weight_map)", true},
    reader_format{"safetensors", looks_like_safetensors, open_safetensors, ".safetensors",
                  "every dtype of the specification"},
    // The only one without a mark, so it is tried last.
    reader_format{"onnx", looks_like_onnx, open_onnx, ".onnx",
                  "ONNX initializers and constants, where built with Protobuf", true},
    reader_format{"raw", nullptr, open_raw, "", "bare elements, with --shape and --dtype"},
};

/// The names in the list by which files are recognised, separated by commas.
std::string readable_formats();

/// The version of Protobuf that reads ONNX files; empty if this build does not read them.
std::string onnx_support();

/// The name of the array of a file with a single one: the file's name without folders and ending;
/// "array" for a pipe.
std::string array_name(const std::string& path);

}  // namespace mx::io

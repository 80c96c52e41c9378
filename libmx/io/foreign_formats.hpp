// SPDX-License-Identifier: Apache-2.0
// THE LIST of formats that mx recognises only to name them in an error.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace mx::io {

struct foreign_format {
    std::size_t offset;  ///< where its mark is
    std::string_view mark;
    std::string_view name;
    std::string_view advice = {};
};

using namespace std::string_view_literals;

/// The first match is taken, so longer marks come before shorter ones.
inline constexpr std::array foreign_formats{
    foreign_format{0, "GGML"sv, "a GGML model"},
    foreign_format{4, "TFL3"sv, "a TensorFlow Lite model",
                   "save the result of tf.lite.Interpreter's get_tensor() with numpy.savez"},
    foreign_format{4, "ORTM"sv, "an ONNX Runtime model"},
    foreign_format{0, "sys_info\0"sv, "a PyTorch file from before version 0.2 (tar)",
                   "save it again in PyTorch: torch.save(torch.load(FILE), NEW_FILE)"},
    foreign_format{257, "ustar"sv, "a tar archive", "unpack it first"},
    foreign_format{0, "\x1f\x8b"sv, "gzip data", "unpack it first"},
    foreign_format{0, "\x28\xb5\x2f\xfd"sv, "Zstandard data", "unpack it first"},
    foreign_format{0, "\xfd\x37zXZ"sv, "xz data", "unpack it first"},
    foreign_format{0, "BZh"sv, "bzip2 data", "unpack it first"},
    foreign_format{0, "7z\xbc\xaf"sv, "a 7-Zip archive", "unpack it first"},
    foreign_format{0, "MATLAB 5.0"sv, "a MATLAB file"},
    foreign_format{0, "CDF\x01"sv, "a netCDF classic file"},
    foreign_format{0, "CDF\x02"sv, "a netCDF classic file"},
    foreign_format{0, "PAR1"sv, "a Parquet file"},
    foreign_format{0, "ARROW1"sv, "an Arrow file"},
    foreign_format{0, "version https://git-lfs"sv, "a Git LFS pointer",
                   "fetch the file itself with git lfs pull"},
    foreign_format{0,
                   "\x7f"
                   "ELF"sv,
                   "a program"},
    foreign_format{0, "\x89PNG"sv, "a PNG image"},
    foreign_format{0, "<!DOCTYPE"sv, "a web page"},
    foreign_format{0, "<html"sv, "a web page"},
    foreign_format{0, "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19"sv,
                   "a PyTorch file from before version 1.6",
                   "save it again in PyTorch: torch.save(torch.load(FILE), NEW_FILE)"},
    foreign_format{0, "\x80\x02"sv, "a Python pickle", "store its tensors with torch.save"},
    foreign_format{0, "\x80\x03"sv, "a Python pickle"},
    foreign_format{0, "\x80\x04"sv, "a Python pickle"},
    foreign_format{0, "\x80\x05"sv, "a Python pickle"},
};

/// Zip archives, recognised by the end of an entry's name.
struct foreign_archive {
    std::string_view entry;
    std::string_view name;
    std::string_view advice = {};
};

inline constexpr std::array foreign_archives{
    foreign_archive{"META-INF/MANIFEST.MF", "a Java archive"},
    foreign_archive{"[Content_Types].xml", "an office document"},
};

/// Directories, recognised by the name of a file in them.
inline constexpr std::array foreign_directories{
    foreign_archive{"manifest.ocdbt", "an Orbax checkpoint",
                    "restore it with orbax.checkpoint and save the arrays with numpy.savez"},
    foreign_archive{"_METADATA", "an Orbax checkpoint",
                    "restore it with orbax.checkpoint and save the arrays with numpy.savez"},
    foreign_archive{"_CHECKPOINT_METADATA", "an Orbax checkpoint",
                    "restore it with orbax.checkpoint and save the arrays with numpy.savez"},
    foreign_archive{"saved_model.pb", "a TensorFlow SavedModel",
                    "save its variables with numpy.savez"},
};

/// What a file beginning with `head` seems to be ("a GGML model") and what to do, in words.
foreign_format content_of(std::string_view head);

/// "looks like a GGUF model, which mx does not read", and the advice.
std::string complaint(std::string_view name, std::string_view advice);

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// THE TABLE of rooms with the rooms that each may include, and THE LIST of libraries that are
// confined to one place. docs/design/architecture.md has the same tables in words.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace mx::architecture {

/// A room and the rooms it may include besides itself, names separated by spaces.
struct room {
    std::string_view name;
    std::string_view may_include;
};

inline constexpr std::array rooms{
    room{"base", ""},
    room{"tensor", "base"},
    room{"format", "base"},
    room{"report", "base"},
    room{"scale", "base format"},
    room{"block", "base tensor format"},
    room{"transform", "base tensor format"},
    room{"optimize", "base"},
    room{"io", "base tensor format block"},
    room{"quantized", "base tensor format block io"},
    room{"files", "base tensor format block io"},
    room{"remote", "base tensor format block io"},
    room{"tokens", "base io"},
    room{"codec", "base tensor format block scale transform"},
    room{"gemm", "base tensor format block scale transform"},
    room{"metrics", "base tensor format block report"},
    room{"engine", "base tensor format report scale block transform io quantized codec metrics"},
    room{"lint", "base tensor report io quantized engine"},
    room{"analysis", "base tensor format report scale block transform io codec metrics engine"},
    room{"policy", "base tensor format report scale block transform codec metrics engine analysis"},
    // Studies do not include each other.
    room{"studies/cluster",
         "base tensor format report block io codec metrics engine analysis policy"},
    room{"studies/compare",
         "base tensor format report block io codec metrics engine analysis policy"},
    room{"studies/convert",
         "base tensor format report block io codec metrics engine analysis llm tokens"},
    room{"studies/diff", "base tensor format report block io codec metrics engine analysis"},
    // These two read tables and not tensors.
    room{"studies/fit", "base report io optimize"},
    room{"studies/project", "base format report io optimize"},
    room{"studies/gate", "base tensor format report block io codec metrics engine analysis policy"},
    room{"studies/plan",
         "base tensor format report block io codec metrics engine analysis policy llm"},
    room{"studies/products",
         "base tensor format report block io codec metrics engine analysis gemm"},
    room{"studies/rosetta",
         "base tensor format report block io quantized codec metrics engine analysis"},
    room{"studies/show", "base tensor format report block io codec metrics engine analysis policy"},
    room{"conformance",
         "base tensor format report scale block io files codec metrics engine analysis gemm"},
    room{"llm", "base tensor io engine"},
    room{"lab",
         "base tensor format report block transform io codec gemm engine studies/products llm"},
    room{"experiments", "base io report conformance lab"},
    room{"eval",
         "base tensor format report transform io codec gemm engine studies/products llm lab"},
    // Tables and sentences of the commands; in `pages` the review of a model.
    room{"pages/views",
         "base tensor format report scale codec engine analysis policy studies/cluster "
         "studies/compare studies/gate studies/products studies/rosetta studies/show"},
    room{"pages",
         "base tensor format report codec metrics engine analysis policy studies/compare "
         "studies/show pages/views"},
    // The output of the commands that measure and judge.
    room{"documents",
         "base tensor format report scale block io codec gemm metrics engine analysis lint policy "
         "studies/cluster studies/compare studies/convert studies/diff studies/gate studies/plan "
         "studies/show pages/views pages"},
    room{
        "bench",
        "base tensor format report scale block io codec metrics engine analysis gemm llm lab eval"},
    room{"api",
         "base tensor format report scale block transform io codec gemm metrics engine analysis "
         "studies/convert studies/products"},
    room{"oracle", "base format"},
    // datasets/generators: makes checkpoints, for `mx synth` and the tests.
    room{"generators", "base tensor io"},
};

/// A room with more lines contains more than one subject.
inline constexpr std::size_t most_lines_of_a_room = 6000;

/// Folders, including their subfolders, whose headers open another namespace than that of their
/// folder: mx::io instead of mx::io::gguf for libmx/io/gguf.
struct shared_namespace {
    std::string_view folder;
    std::string_view name;
};

inline constexpr std::array shared_namespaces{
    // One header for users of the library.
    shared_namespace{"libmx/api/mx", "mx"},
    // Names in a folder of io contain the format: gguf_header. The other three belong to io; they
    // are
    // separate rooms, `files` and `remote` because they need libraries.
    shared_namespace{"libmx/io", "mx::io"},
    shared_namespace{"libmx/quantized", "mx::io"},
    shared_namespace{"libmx/files", "mx::io"},
    shared_namespace{"libmx/remote", "mx::io"},
    shared_namespace{"libmx/pages", "mx::pages"},
};

/// The oracle is a second opinion: it may read the lists, never the code it judges.
inline constexpr std::array oracle_may_read{
    "libmx/format/element_formats.hpp",
    "libmx/format/scale_formats.hpp",
    "libmx/format/block_formats.hpp",
    "libmx/format/roundings.hpp",
    "libmx/base/random.hpp",
    "libmx/base/status.hpp",
};

/// Parts of the oracle that only tests use, with the same restrictions.
inline constexpr std::array<std::string_view, 2> oracle_in_tests{"tests/oracle/dot.",
                                                                 "tests/long/intervals."};

/// Where tables are made: each of their columns is defined once.
inline constexpr std::array<std::string_view, 4> rooms_with_tables{
    "apps/mx/", "libmx/documents/", "libmx/pages/", "libmx/studies/"};

/// The files of the apps that may name the oracle: `mx analyze --exact` and `mx verify --exact`.
inline constexpr std::array<std::string_view, 3> oracle_users{"apps/mx/commands/analyze_exact.cpp",
                                                              "apps/mx/oracle_recipe.hpp",
                                                              "apps/mx/commands/verify_exact.cpp"};

/// Headers that begin with `prefix` may be included only by files whose path begins with one of
/// the `places` (separated by spaces) and ends with `ending`.
struct confined_library {
    std::string_view prefix;
    std::string_view places;
    std::string_view ending;
};

inline constexpr std::array confined_libraries{
    confined_library{"boost/", "libmx/oracle/", ""},
    confined_library{"hwy/",
                     "libmx/base/simd/ libmx/codec/simd/ libmx/eval/simd/ libmx/gemm/simd/ "
                     "libmx/lab/simd/ "
                     "libmx/transform/simd/ "
                     "libmx/bench/memory_kernels",
                     ""},
    confined_library{"hdf5", "libmx/files/hdf5", ""},
    confined_library{"H5", "libmx/files/hdf5", ""},
    confined_library{"google/", "libmx/files/onnx/onnx_wire", ".cpp"},
    confined_library{
        "nlohmann/",
        "libmx/io/ libmx/quantized/ libmx/files/ libmx/remote/ libmx/report/ libmx/tokens/",
        ".cpp"},
    confined_library{"CLI/", "apps/mx/cli apps/mx_capture/main", ".cpp"},
    confined_library{"zip.h", "libmx/files/", ""},
    confined_library{"zlib.h", "libmx/files/", ".cpp"},
    confined_library{
        "cuda_runtime",
        "libmx/base/cuda/ libmx/codec/cuda/ libmx/gemm/cuda/ libmx/lab/cuda/ apps/mx_capture/cuda/",
        ""},
    confined_library{"mpi.h", "apps/mx/ranks", ".cpp"},
    confined_library{"nlopt", "libmx/optimize/minimize", ".cpp"},
    confined_library{"pcre2", "libmx/tokens/unicode libmx/lint/patterns", ".cpp"},
    confined_library{"utf8proc", "libmx/tokens/unicode", ".cpp"},
    confined_library{"curl/", "libmx/remote/http", ".cpp"},
    confined_library{"openssl/", "libmx/files/file_digest", ".cpp"},
};

}  // namespace mx::architecture

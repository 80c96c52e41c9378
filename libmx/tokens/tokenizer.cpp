// SPDX-License-Identifier: Apache-2.0
#include "libmx/tokens/tokenizer.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/tokens/tables.hpp"

namespace mx::tokens {
namespace {

namespace fs = std::filesystem;

tables tables_of(const std::string& path) {
    const bool folder = io::is_folder(path);
    const bool is_json = path.ends_with(".json") && !path.ends_with(".index.json");
    if (!folder) {
        const io::shared_file file = io::input_file::open(path);
        if (file->head(4) == "GGUF") return gguf_tables(file);
        if (is_json) return json_tables(file);
        const std::string name = fs::path(path).filename().string();
        if (name.starts_with("tok") && name.ends_with(".bin")) return llama2c_tables(file);
        if (path.ends_with(".model")) return sentencepiece_tables(file);
    }
    const std::string parent = folder ? path : fs::path(path).parent_path().string();
    std::string model;
    for (const std::string& file : io::paths_in(parent.empty() ? "." : parent)) {
        const fs::path name = fs::path(file).filename();
        if (name == "tokenizer.json") return json_tables(io::input_file::open(file));
        if (name == "tokenizer.model") model = file;
    }
    if (!model.empty()) return sentencepiece_tables(io::input_file::open(model));
    refuse_tokenizer(path, fmt::format("has no tokenizer.json or tokenizer.model{}",
                                       folder ? "" : " beside it"));
}

}  // namespace

std::unique_ptr<tokenizer> tokenizer_of(const std::string& path) {
    try {
        return make_bpe_tokenizer(tables_of(path));
    } catch (const tokenizer_error& e) {
        throw base::error(e.kind(),
                          e.message() +
                              "; encode the text with the model's own tokenizer and give its ids "
                              "with --tokens ids.npy",
                          e.place());
    }
}

}  // namespace mx::tokens

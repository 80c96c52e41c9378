// SPDX-License-Identifier: Apache-2.0
// Of the metadata tokenizer.ggml.* (ggml-org/ggml, docs/gguf.md).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/base/parsed.hpp"
#include "libmx/io/gguf/gguf_header.hpp"
#include "libmx/tokens/pre_tokenizers.hpp"
#include "libmx/tokens/tables.hpp"

namespace mx::tokens {
namespace {

constexpr std::array<std::string_view, 4> array_keys{
    "tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.scores",
    "tokenizer.ggml.token_type"};

class gguf_tokenizer {
  public:
    explicit gguf_tokenizer(const io::shared_file& file)
        : path_(file->path()), header_(io::read_gguf_header(file, array_keys)) {}

    tables read() {
        const std::string model = text("model");
        if (model.empty()) refuse("has no tokenizer in its metadata");
        if (model != "gpt2" && model != "llama") {
            refuse(fmt::format("its tokenizer '{}' is not read, only gpt2 and llama", model));
        }
        t_.byte_level = model == "gpt2";
        t_.kind = t_.byte_level ? "byte-level BPE" : "SentencePiece BPE";
        t_.spelled = std::move(header_.arrays[key("tokens")].texts);
        if (t_.spelled.empty()) refuse("tokenizer.ggml.tokens is missing");
        read_types();
        const bool default_bos = t_.byte_level ? read_byte_level() : read_sentencepiece();
        set_tokens(t_, path_, merges_);
        const std::string add = text("add_bos_token");
        if (add.empty() ? default_bos : add == "true") {
            const auto id = base::parsed<std::uint32_t>(text("bos_token_id"));
            if (!id || *id >= t_.spelled.size()) {
                refuse("tokenizer.ggml.bos_token_id is missing or not a token");
            }
            t_.bos = *id;
        }
        return std::move(t_);
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const { refuse_tokenizer(path_, what); }

    static std::string key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }

    // Of a scalar; empty if the file has none.
    std::string text(std::string_view name) const {
        const auto found = header_.metadata.find(key(name));
        return found == header_.metadata.end() ? std::string() : found->second;
    }

    void read_types() {
        using enum token_type;
        const std::vector<std::string>& spelled = t_.spelled;
        const std::vector<double>& types = header_.arrays[key("token_type")].numbers;
        if (types.size() != spelled.size()) {
            refuse(fmt::format("tokenizer.ggml.token_type has {} numbers for {} tokens",
                               types.size(), spelled.size()));
        }
        for (std::uint32_t id = 0; id < spelled.size(); ++id) {
            if (!(types[id] >= static_cast<int>(normal) && types[id] <= static_cast<int>(byte))) {
                refuse(fmt::format("token '{}' has the unknown type {}", spelled[id], types[id]));
            }
            const auto type = static_cast<token_type>(static_cast<int>(types[id]));
            t_.types.push_back(type);
            t_.in_words.push_back(type == normal || (type == user_defined && !t_.byte_level));
            if (type == control || type == user_defined || type == unknown) {
                t_.added.push_back({spelled[id], id, {}});
            }
        }
    }

    // Returns whether a text begins with BOS if the file does not say.
    bool read_byte_level() {
        const std::string name = text("pre");
        const auto* const row = std::ranges::find_if(pre_tokenizers, [&](const auto& p) {
            return !name.empty() && fmt::format(" {} ", p.names).find(fmt::format(" {} ", name)) !=
                                        std::string::npos;
        });
        if (row == pre_tokenizers.end()) {
            refuse(fmt::format("its pre-tokenizer '{}' (tokenizer.ggml.pre) is not known", name));
        }
        for (const std::string_view split : row->splits) {
            if (!split.empty()) t_.splits.push_back(split);
        }
        t_.nfc = row->nfc;
        t_.whole_words = row->whole_words;
        for (std::string& merge : header_.arrays[key("merges")].texts) {
            const std::size_t space = merge.find(' ', 1);
            if (space == std::string::npos) refuse(fmt::format("'{}' is no merge", merge));
            merge.erase(space, 1);
            merges_.push_back({std::move(merge), space});
        }
        if (merges_.empty()) refuse("tokenizer.ggml.merges is missing");
        return row->bos;
    }

    bool read_sentencepiece() {
        for (const double score : header_.arrays[key("scores")].numbers) {
            if (std::isnan(score)) refuse("a score is not a number");
            t_.scores.push_back(static_cast<float>(score));
        }
        if (t_.scores.size() != t_.in_words.size()) {
            refuse(fmt::format("tokenizer.ggml.scores has {} numbers for {} tokens",
                               t_.scores.size(), t_.in_words.size()));
        }
        if (text("remove_extra_whitespaces") == "true" || !text("precompiled_charsmap").empty()) {
            refuse("its tokenizer normalizes text in a way that is not known");
        }
        t_.escaped_spaces = true;
        if (text("add_space_prefix") != "false") t_.prefix = space_prefix::always;
        return true;
    }

    std::string path_;
    io::gguf_header header_;
    tables t_;
    std::vector<spelled_merge> merges_;
};

}  // namespace

tables gguf_tables(const io::shared_file& file) { return gguf_tokenizer(file).read(); }

}  // namespace mx::tokens

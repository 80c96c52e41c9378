// SPDX-License-Identifier: Apache-2.0
// What keys hold, and which file has the word where two state something, is that of llama.cpp's
// converter (ggml-org/llama.cpp@00bd27a, conversion/base.py, and gguf-py/gguf/vocab.py@0c1c9d3).
#include "libmx/tokens/gguf_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "libmx/base/parsed.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/io/model_config.hpp"
#include "libmx/tokens/pre_tokenizers.hpp"
#include "libmx/tokens/tables.hpp"

namespace mx::tokens {
namespace {

constexpr std::size_t most_template = std::size_t{1} << 20;
constexpr float score_of_added = -1000, score_of_unused = -10000;

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> special_keys{
    {{"bos", "bos"}, {"eos", "eos"}, {"unk", "unknown"}, {"pad", "padding"}}};

class folder_vocabulary {
  public:
    folder_vocabulary(io::gguf_metadata& to, const std::string& folder)
        : to_(to), folder_(folder), config_(io::read_model_config(folder)) {
        if (has("tokenizer_config.json")) {
            stated_ = io::read_entries(path("tokenizer_config.json"));
        }
    }

    void put(std::size_t vocabulary) {
        read();
        fill(vocabulary);
        text("model", t_.byte_level ? "gpt2" : "llama");
        text("pre", t_.byte_level ? pre_name() : "default");
        to_.put_texts(key("tokens"), t_.spelled);
        std::vector<std::int32_t> types;
        for (const token_type type : t_.types) types.push_back(static_cast<std::int32_t>(type));
        to_.put_numbers(key("token_type"), types);
        if (t_.byte_level) {
            std::vector<std::string> merges;
            for (const merge_rule& m : t_.merges) {
                merges.push_back(t_.spelled[m.left] + " " + t_.spelled[m.right]);
            }
            to_.put_texts(key("merges"), merges);
        } else {
            to_.put_reals(key("scores"), t_.scores);
            to_.put_flag(key("add_space_prefix"), t_.prefix != space_prefix::never);
        }
        put_special();
        put_template();
    }

  private:
    [[noreturn]] void refuse(const std::string& file, const std::string& what) const {
        io::input_error(what, {path(file), {}, {}});
    }
    std::string path(const std::string& file) const {
        return file.empty() ? folder_ : (std::filesystem::path(folder_) / file).string();
    }
    bool has(const std::string& file) const {
        std::error_code ignored;
        return std::filesystem::is_regular_file(path(file), ignored);
    }
    static std::string key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }
    void text(std::string_view name, std::string_view value) { to_.put_text(key(name), value); }

    static const std::string* find(const io::config_entries& in, const std::string& name) {
        const auto at = in.find(name);
        return at == in.end() ? nullptr : &at->second;
    }

    void read() {
        const bool json = has("tokenizer.json");
        if (!json && !has("tokenizer.model")) {
            refuse("", "has no tokenizer.json or tokenizer.model, and llama.cpp needs one");
        }
        tables of_json;
        if (json) of_json = json_tables(io::input_file::open(path("tokenizer.json")));
        if (of_json.byte_level) {
            t_ = std::move(of_json);
            return;
        }
        if (!has("tokenizer.model")) {
            refuse("tokenizer.json",
                   "has merges of SentencePiece without their scores, which llama.cpp needs: put "
                   "the model's tokenizer.model beside it");
        }
        t_ = sentencepiece_tables(io::input_file::open(path("tokenizer.model")));
        for (std::size_t id = 0; id < t_.spelled.size(); ++id) {
            if (t_.types[id] == token_type::user_defined &&
                t_.spelled[id].find(escaped_space) != std::string::npos) {
                refuse("tokenizer.model",
                       fmt::format("its user-defined piece '{}' has a space, and llama.cpp finds "
                                   "such pieces elsewhere in a text",
                                   t_.spelled[id]));
            }
        }
        if (json) add(of_json);
    }

    // What tokenizer.json adds to the pieces of tokenizer.model.
    void add(const tables& from) {
        const std::size_t own = t_.spelled.size();
        for (std::size_t id = 0; id < from.spelled.size(); ++id) {
            const bool added = from.types[id] != token_type::normal;
            if (id < own && from.spelled[id] == t_.spelled[id]) {
                if (added && t_.types[id] == token_type::normal) t_.types[id] = from.types[id];
                continue;
            }
            if (!added && !from.spelled[id].empty()) {
                refuse("tokenizer.json",
                       fmt::format("its token {} is '{}', that of tokenizer.model is {}", id,
                                   from.spelled[id],
                                   id < own ? fmt::format("'{}'", t_.spelled[id]) : "missing"));
            }
            resize(std::max(id + 1, t_.spelled.size()));
            t_.spelled[id] = from.spelled[id];
            t_.types[id] = from.types[id];
            t_.scores[id] = score_of_added;
        }
        t_.added = from.added;
        t_.bos = from.bos;
    }

    void resize(std::size_t tokens) {
        t_.spelled.resize(tokens);
        t_.types.resize(tokens, token_type::unused);
        if (!t_.byte_level) t_.scores.resize(tokens, score_of_unused);
    }

    void fill(std::size_t vocabulary) {
        if (t_.spelled.size() > vocabulary) {
            refuse("", fmt::format("its tokenizer has {} tokens, the model {}", t_.spelled.size(),
                                   vocabulary));
        }
        resize(vocabulary);
        base::text_set known;
        for (std::size_t id = 0; id < vocabulary; ++id) {
            if (t_.spelled[id].empty()) {
                t_.spelled[id] = fmt::format("[PAD{}]", id);
                t_.types[id] = token_type::unused;
            }
            // llama.cpp replaces U+2581 in no added token.
            if (t_.types[id] == token_type::user_defined) {
                t_.spelled[id] = with_spaces(t_.spelled[id]);
            }
            if (!known.insert(t_.spelled[id]).second) {
                refuse("", fmt::format("two of its tokens are '{}'", t_.spelled[id]));
            }
        }
    }

    std::string pre_name() const {
        const auto* const row = std::ranges::find_if(pre_tokenizers, [&](const auto& p) {
            std::vector<std::string_view> splits(p.splits.begin(), p.splits.end());
            std::erase(splits, std::string_view());
            return splits == t_.splits && p.nfc == t_.nfc && p.whole_words == t_.whole_words;
        });
        if (row == pre_tokenizers.end()) {
            refuse("tokenizer.json",
                   fmt::format("its pre-tokenizer ({}{}{}) has no name in llama.cpp that mx knows",
                               fmt::join(t_.splits, ", then "), t_.nfc ? ", NFC" : "",
                               t_.whole_words ? ", ignore_merges" : ""));
        }
        return std::string(row->names.substr(0, row->names.find(' ')));
    }

    std::optional<std::uint32_t> id_of(std::string_view kind) const {
        for (const char* const end : {"_token", "_token.content"}) {
            const std::string* const name = find(stated_, fmt::format("{}{}", kind, end));
            if (name == nullptr) continue;
            const auto at = std::ranges::find(t_.spelled, *name);
            if (at != t_.spelled.end()) {
                return static_cast<std::uint32_t>(at - t_.spelled.begin());
            }
        }
        for (const char* const end : {"_token_id", "_token_id.0"}) {
            const std::string* const number = find(config_, fmt::format("{}{}", kind, end));
            const auto id = number ? base::parsed<std::uint32_t>(*number) : std::nullopt;
            if (id && *id < t_.spelled.size()) return id;
        }
        return kind == "bos" ? t_.bos : std::nullopt;
    }

    std::optional<bool> stated_flag(const std::string& name) const {
        const std::string* const flag = find(stated_, name);
        if (flag == nullptr || (*flag != "true" && *flag != "false")) return std::nullopt;
        return *flag == "true";
    }

    void put_special() {
        for (const auto& [kind, name] : special_keys) {
            if (const auto id = id_of(kind))
                to_.put_number(key(fmt::format("{}_token_id", name)), *id);
        }
        const bool begins = stated_flag("add_bos_token").value_or(t_.bos.has_value());
        if (begins && !id_of("bos")) {
            refuse("tokenizer_config.json", "puts a BOS token before texts and does not say which");
        }
        to_.put_flag(key("add_bos_token"), begins);
        if (const auto ends = stated_flag("add_eos_token")) {
            to_.put_flag(key("add_eos_token"), *ends);
        }
    }

    void put_template() {
        const std::string* chat = find(stated_, "chat_template");
        for (std::size_t i = 0; chat == nullptr; ++i) {
            const std::string* const name = find(stated_, fmt::format("chat_template.{}.name", i));
            if (name == nullptr) break;
            if (*name == "default") {
                chat = find(stated_, fmt::format("chat_template.{}.template", i));
            }
        }
        std::string text_of_file;
        if (chat == nullptr && has("chat_template.jinja")) {
            const io::shared_file file = io::input_file::open(path("chat_template.jinja"));
            if (file->size() > most_template) {
                refuse("chat_template.jinja", fmt::format("has more than {} bytes", most_template));
            }
            text_of_file = file->head(static_cast<std::size_t>(file->size()));
            chat = &text_of_file;
        }
        if (chat != nullptr) to_.put_text("tokenizer.chat_template", *chat);
    }

    io::gguf_metadata& to_;
    std::string folder_;
    io::config_entries config_, stated_;
    tables t_;
};

}  // namespace

void put_gguf_vocabulary(io::gguf_metadata& to, const std::string& folder, std::size_t vocabulary) {
    folder_vocabulary(to, folder).put(vocabulary);
}

}  // namespace mx::tokens

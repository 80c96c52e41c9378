// SPDX-License-Identifier: Apache-2.0
// Of tokenizer.json (huggingface/tokenizers). Members that could change ids and are not read here
// are refused by name.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "libmx/base/parsed.hpp"
#include "libmx/io/strict_json.hpp"
#include "libmx/tokens/pre_tokenizers.hpp"
#include "libmx/tokens/tables.hpp"

namespace mx::tokens {
namespace {

constexpr std::uint64_t most_bytes = 128 << 20;
constexpr std::size_t most_members = 1 << 20;

// Vocabulary and merges, and all other scalars by their paths: "model/type",
// "added_tokens/0/content".
class tokenizer_listener final : public io::json_listener {
  public:
    std::vector<std::string> spelled;
    std::vector<spelled_merge> merges;
    std::map<std::string, std::string> members;  ///< null as an empty text

    void open(bool object) override {
        const bool in_pair = merges_open() && depth() == 4;
        if (depth() > 1) step();
        levels_.push_back({object, {}, 0});
        if (vocab_open() && depth() == 3 && !object) fail("the vocabulary is not that of BPE");
        if (in_pair) {
            if (object) fail("a merge is an object");
            parts_ = 0;
            merges.emplace_back();
        } else if ((vocab_open() && depth() > 3) || (merges_open() && depth() > 4)) {
            fail("a token or a merge is no text");
        }
        if (merges.size() > most_tokens) fail("more merges than mx reads");
    }
    void close() override {
        if (merges_open() && depth() == 4 && parts_ != 2) fail("a merge is not of two tokens");
        levels_.pop_back();
    }
    void key(const std::string& name) override { levels_.back().name = name; }
    void scalar(const io::json_scalar& value) override {
        if (depth() == 0) fail("the tokenizer is not a JSON object");
        if (vocab_open() && depth() == 3) return add_token(levels_.back().name, value);
        if (merges_open() && depth() >= 3) return add_merge(value);
        step();
        std::string path;
        for (const level& l : levels_) path += (path.empty() ? "" : "/") + l.name;
        if (members.size() == most_members) fail("more members than mx reads");
        members[path] = value.text;
    }

  private:
    struct level {
        bool object;
        std::string name;  // of the member or the index of the element at hand
        std::size_t elements;
    };

    void step() {
        level& l = levels_.back();
        if (!l.object) l.name = std::to_string(l.elements++);
    }
    bool within_model(std::string_view member) const {
        return levels_.size() > 2 && levels_[0].name == "model" && levels_[1].name == member;
    }
    bool vocab_open() const { return within_model("vocab"); }
    bool merges_open() const { return within_model("merges"); }

    void add_token(const std::string& text, const io::json_scalar& id) {
        if (id.is != io::json_scalar::type::natural || id.natural >= most_tokens) {
            fail(fmt::format("token '{}' has no id below {}", text, most_tokens));
        }
        if (id.natural >= spelled.size()) spelled.resize(id.natural + 1);
        if (!spelled[id.natural].empty()) {
            fail(fmt::format("'{}' and '{}' have one id", spelled[id.natural], text));
        }
        spelled[id.natural] = text;
    }

    void add_merge(const io::json_scalar& value) {
        if (value.is != io::json_scalar::type::text) fail("a merge is no text");
        if (depth() == 4) {
            if (++parts_ == 1) merges.back().left = value.text.size();
            merges.back().text += value.text;
            return;
        }
        std::string text = value.text;
        const std::size_t space = text.find(' ');
        if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
            fail(fmt::format("'{}' is no merge of two tokens", text));
        }
        merges.push_back({text.erase(space, 1), space});
        if (merges.size() > most_tokens) fail("more merges than mx reads");
    }

    std::vector<level> levels_;
    int parts_ = 0;  // of the pair at hand
};

class json_tokenizer {
  public:
    explicit json_tokenizer(const io::shared_file& file) : path_(file->path()) {
        if (file->size() > most_bytes) refuse(fmt::format("has more than {} bytes", most_bytes));
        io::parse_json(file, 0, file->size(), "tokenizer", read_);
    }

    tables read() {
        const std::string type = take("model/type");
        if ((!type.empty() && type != "BPE") || read_.merges.empty()) {
            refuse(fmt::format("its model '{}' is not BPE with merges", type));
        }
        read_steps("normalizer", "normalizers", &json_tokenizer::normalizer);
        read_steps("pre_tokenizer", "pretokenizers", &json_tokenizer::pre_tokenizer);
        if (!t_.byte_level && !t_.splits.empty()) refuse("it divides text into words, not bytes");
        t_.kind = t_.byte_level ? "byte-level BPE" : "SentencePiece BPE";
        t_.whole_words = take("model/ignore_merges") == "true";
        const bool byte_fallback = take("model/byte_fallback") == "true";
        // Of characters without a token, which encode() refuses.
        take("model/unk_token");
        take("model/fuse_unk");
        for (const char* const name :
             {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
            const std::string value = take(fmt::format("model/{}", name));
            if (!value.empty() && value != "0.0") {
                refuse(fmt::format("model.{} is '{}', which mx does not follow", name, value));
            }
        }
        read_added();
        set_tokens(t_, path_, read_.spelled, read_.merges);
        if (!t_.byte_level && !byte_fallback) t_.bytes.fill(no_token);
        read_bos("post_processor");
        for (const auto& [path, value] : read_.members) {
            for (const char* const part : {"model/", "normalizer", "pre_tokenizer"}) {
                if (path.starts_with(part) && !value.empty()) {
                    refuse(fmt::format("its {} '{}' is not known", path, value));
                }
            }
        }
        return std::move(t_);
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const { refuse_tokenizer(path_, what); }

    // The value at a path, once; empty if there is none. What is left at the end is not known.
    std::string take(const std::string& path) {
        const auto found = read_.members.find(path);
        if (found == read_.members.end()) return {};
        const std::string value = found->second;
        read_.members.erase(found);
        return value;
    }

    void require(const std::string& path, std::string_view wanted) {
        const std::string value = take(path);
        if (value != wanted) {
            refuse(fmt::format("its {} is '{}', which mx does not follow", path, value));
        }
    }

    // The steps of a sequence in order, or the only one.
    void read_steps(const std::string& path, const std::string& list,
                    void (json_tokenizer::*one)(const std::string&, const std::string&)) {
        const std::string type = take(path + "/type");
        if (type.empty()) return;
        if (type != "Sequence") return (this->*one)(path, type);
        for (int i = 0; read_.members.contains(fmt::format("{}/{}/{}/type", path, list, i)); ++i) {
            read_steps(fmt::format("{}/{}/{}", path, list, i), list, one);
        }
    }

    void normalizer(const std::string& path, const std::string& type) {
        if (type == "NFC") {
            t_.nfc = true;
        } else if (type == "Prepend") {
            require(path + "/prepend", escaped_space);
            t_.prefix = space_prefix::always;
        } else if (type == "Replace") {
            require(path + "/pattern/String", " ");
            require(path + "/content", escaped_space);
            t_.escaped_spaces = true;
        } else {
            refuse(fmt::format("its normalizer '{}' is not known", type));
        }
    }

    void pre_tokenizer(const std::string& path, const std::string& type) {
        if (t_.byte_level) refuse(fmt::format("its pre-tokenizer '{}' is after ByteLevel", type));
        if (type == "ByteLevel") {
            require(path + "/add_prefix_space", "false");
            take(path + "/trim_offsets");
            if (take(path + "/use_regex") != "false") t_.splits.push_back(patterns::gpt2);
            t_.byte_level = true;
        } else if (type == "Digits") {
            const bool single = take(path + "/individual_digits") == "true";
            t_.splits.push_back(single ? patterns::digit : patterns::digits);
        } else if (type == "Split") {
            split(path);
        } else if (type == "Metaspace") {
            metaspace(path);
        } else {
            refuse(fmt::format("its pre-tokenizer '{}' is not known", type));
        }
    }

    void split(const std::string& path) {
        const std::string behavior = take(path + "/behavior");
        take(path + "/invert");  // no difference: what matches is a part, and what is between
        const std::string text = take(path + "/pattern/String");
        // No space is left in the text.
        if (text == " " && t_.escaped_spaces) return;
        const std::string pattern = take(path + "/pattern/Regex");
        const auto* const known = std::ranges::find(known_patterns, std::string_view(pattern));
        if (known == known_patterns.end()) {
            refuse(fmt::format("it divides text by '{}', a pattern that is not known",
                               pattern.empty() ? text : pattern));
        }
        if (behavior != "Isolated") {
            refuse(fmt::format("its pre-tokenizer Split has the behavior '{}'", behavior));
        }
        t_.splits.push_back(*known);
    }

    void metaspace(const std::string& path) {
        require(path + "/replacement", escaped_space);
        require(path + "/split", "false");
        t_.escaped_spaces = t_.single_prefix = true;
        const std::string scheme = take(path + "/prepend_scheme");
        t_.prefix = scheme == "first"    ? space_prefix::first
                    : scheme == "always" ? space_prefix::always
                                         : space_prefix::never;
        if (t_.prefix == space_prefix::never && scheme != "never") {
            refuse(fmt::format("its pre-tokenizer Metaspace has the scheme '{}'", scheme));
        }
    }

    void read_added() {
        const bool changed_text = t_.escaped_spaces || t_.prefix != space_prefix::never;
        // Of an added token that the vocabulary lacks, the library ignores the id that is stated.
        auto next = static_cast<std::uint32_t>(
            std::ranges::count_if(read_.spelled, [](const auto& s) { return !s.empty(); }));
        std::vector<bool> added;
        for (int i = 0;; ++i) {
            const auto member = [&](const char* name) {
                return take(fmt::format("added_tokens/{}/{}", i, name));
            };
            const std::string id_text = member("id");
            if (id_text.empty()) break;
            const auto id = base::parsed<std::uint32_t>(id_text);
            const std::string text = member("content");
            if (!id || *id >= most_tokens) refuse(fmt::format("'{}' has no id", text));
            if (*id >= read_.spelled.size()) read_.spelled.resize(*id + 1);
            std::string& spelled = read_.spelled[*id];
            if (spelled.empty() && *id != next++) {
                refuse(fmt::format("'{}' has the id {}, not {}", text, *id, next - 1));
            }
            if (!spelled.empty() && spelled != text) {
                refuse(fmt::format("'{}' and '{}' have one id", spelled, text));
            }
            spelled = text;
            added_token token{text, *id, {}};
            for (const std::string_view option :
                 {"single_word", "lstrip", "rstrip", "normalized"}) {
                const bool set = member(option.data()) == "true";
                if (set && (option != "normalized" || changed_text)) token.unsupported = option;
            }
            t_.added.push_back(std::move(token));
            added.resize(std::max<std::size_t>(added.size(), *id + 1));
            added[*id] = true;
        }
        added.resize(read_.spelled.size());
        for (std::size_t id = 0; id < added.size(); ++id) t_.in_words.push_back(!added[id]);
    }

    // The special token before the text in a template.
    void read_bos(const std::string& path) {
        const std::string type = take(path + "/type");
        if (type.empty() || type == "ByteLevel") return;
        if (type == "Sequence") {
            for (int i = 0; read_.members.contains(fmt::format("{}/processors/{}/type", path, i));
                 ++i) {
                read_bos(fmt::format("{}/processors/{}", path, i));
            }
            return;
        }
        const std::string name = take(path + "/single/0/SpecialToken/id");
        const bool second = read_.members.contains(path + "/single/1/SpecialToken/id");
        const bool text_first = read_.members.contains(path + "/single/0/Sequence/id");
        if (type != "TemplateProcessing" || (second && !text_first)) {
            refuse(
                fmt::format("its post-processor '{}' is not one with at most a token before the "
                            "text",
                            type));
        }
        if (name.empty()) return;
        const auto id = base::parsed<std::uint32_t>(
            take(fmt::format("{}/special_tokens/{}/ids/0", path, name)));
        if (!id || *id >= t_.pieces.size()) refuse(fmt::format("'{}' is no token", name));
        t_.bos = *id;
    }

    std::string path_;
    tokenizer_listener read_;
    tables t_;
};

}  // namespace

tables json_tables(const io::shared_file& file) { return json_tokenizer(file).read(); }

}  // namespace mx::tokens

// SPDX-License-Identifier: Apache-2.0
// Of tokenizer.json (huggingface/tokenizers). Members are taken out as they are read, and what is
// left of a part that decides ids is refused by name.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "libmx/tokens/pre_tokenizers.hpp"
#include "libmx/tokens/tables.hpp"

namespace mx::tokens {
namespace {

using nlohmann::json;

constexpr std::uint64_t most_json = 128 << 20;
constexpr int most_values = 1 << 23;  // each takes some hundred bytes of memory
constexpr int deepest = 16;

// Removes a member and returns it; null if there is none.
json take(json& from, const char* name) {
    const auto found = from.is_object() ? from.find(name) : from.end();
    if (found == from.end()) return {};
    json value = std::move(*found);
    from.erase(found);
    return value;
}

std::string shown(const json& value) {
    return value.is_string() ? value.get<std::string>()
                             : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// As llama.cpp's converter decides it (ggml-org/llama.cpp@00bd27a, conversion/base.py).
bool is_control(const json& added, const std::string& text) {
    return added.value("special", false) || (text.starts_with("<|") && text.ends_with("|>"));
}

// Whether a text has more parts than mx reads. A callback of json::parse could count them, too, but
// with one the library looks through all that precedes a closed array or object in what holds it.
class part_counter final : public nlohmann::json_sax<json> {
  public:
    bool many() const { return values_ > most_values || depth_ > deepest; }

    bool null() override { return another(); }
    bool boolean(bool) override { return another(); }
    bool number_integer(number_integer_t) override { return another(); }
    bool number_unsigned(number_unsigned_t) override { return another(); }
    bool number_float(number_float_t, const string_t&) override { return another(); }
    bool string(string_t&) override { return another(); }
    bool binary(binary_t&) override { return another(); }
    bool key(string_t&) override { return another(); }
    bool start_object(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool start_array(std::size_t) override { return enter(); }
    bool end_array() override { return leave(); }
    bool parse_error(std::size_t, const std::string&, const json::exception&) override {
        return false;
    }

  private:
    bool another() {
        ++values_;
        return !many();
    }
    bool enter() {
        ++depth_;
        return another();
    }
    bool leave() {
        --depth_;
        return another();
    }

    int values_ = 0;
    int depth_ = 0;
};

class json_tokenizer {
  public:
    explicit json_tokenizer(const io::shared_file& file) : path_(file->path()) {
        if (file->size() > most_json) refuse(fmt::format("has more than {} bytes", most_json));
        const std::string text = file->head(static_cast<std::size_t>(file->size()));
        part_counter parts;
        if (!json::sax_parse(text, &parts) && parts.many()) refuse("has too many parts for mx");
        root_ = json::parse(text);  // which throws what is wrong with the text
    }

    tables read() {
        json model = take(root_, "model");
        if (const json type = take(model, "type"); !type.is_null() && type != "BPE") {
            refuse(fmt::format("its model {} is not BPE", shown(type)));
        }
        each_step(take(root_, "normalizer"), "normalizers", &json_tokenizer::normalizer);
        each_step(take(root_, "pre_tokenizer"), "pretokenizers", &json_tokenizer::pre_tokenizer);
        const bool changed_text = t_.escaped_spaces || t_.prefix != space_prefix::never;
        if (t_.byte_level ? changed_text : !t_.splits.empty()) {
            refuse("its words are neither those of byte-level BPE nor those of SentencePiece");
        }
        t_.kind = t_.byte_level ? "byte-level BPE" : "SentencePiece BPE";
        t_.whole_words = take(model, "ignore_merges") == true;
        const bool byte_fallback = take(model, "byte_fallback") == true;
        // Of characters without a token, which encode() refuses.
        take(model, "unk_token");
        take(model, "fuse_unk");
        const json vocabulary = take(model, "vocab");
        for (const auto& [token, id] : vocabulary.items()) spell(id, token);
        read_added(changed_text);
        std::vector<spelled_merge> merges;
        for (const json& merge : take(model, "merges")) merges.push_back(merge_of(merge));
        if (merges.empty()) refuse("has no merges");
        // A dropout of 0 is none, and so is an empty prefix or suffix.
        for (const char* const name :
             {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
            const json value = take(model, name);
            if (value != nullptr && value != 0.0 && value != "") model[name] = value;
        }
        finish("model", model);
        set_tokens(t_, path_, merges);
        if (!t_.byte_level && !byte_fallback) t_.bytes.fill(no_token);
        each_step(take(root_, "post_processor"), "processors", &json_tokenizer::post_processor);
        return std::move(t_);
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const { refuse_tokenizer(path_, what); }

    void finish(const std::string& part, const json& left) const {
        for (const auto& [name, value] : left.items()) {
            if (value.is_null()) continue;
            refuse(fmt::format("its {} has the {} {}, which mx does not follow", part, name,
                               shown(value)));
        }
    }

    // Gives the steps of a sequence, or the only one, to a member.
    void each_step(json step, const char* list,
                   void (json_tokenizer::*one_step)(const std::string& type, json& step)) {
        if (step.is_null()) return;
        const json type = take(step, "type");
        if (type == "Sequence") {
            for (json& one : take(step, list)) each_step(std::move(one), list, one_step);
        } else {
            (this->*one_step)(type.get<std::string>(), step);
            finish(type.get<std::string>(), step);
        }
    }

    void expect(json& step, const char* name, const json& expected) const {
        const json value = take(step, name);
        if (value == expected) return;
        refuse(fmt::format("its {} is {}, which mx does not follow", name, shown(value)));
    }

    void normalizer(const std::string& type, json& step) {
        if (type == "NFC") {
            t_.nfc = true;
        } else if (type == "Prepend") {
            expect(step, "prepend", escaped_space);
            t_.prefix = space_prefix::always;
        } else if (type == "Replace") {
            expect(step, "pattern", {{"String", " "}});
            expect(step, "content", escaped_space);
            t_.escaped_spaces = true;
        } else {
            refuse(fmt::format("its normalizer {} is not known", type));
        }
    }

    void pre_tokenizer(const std::string& type, json& step) {
        if (t_.byte_level) refuse(fmt::format("its pre-tokenizer {} is after ByteLevel", type));
        if (type == "ByteLevel") {
            expect(step, "add_prefix_space", false);
            take(step, "trim_offsets");
            if (take(step, "use_regex") != false) t_.splits.push_back(patterns::gpt2);
            t_.byte_level = true;
        } else if (type == "Digits") {
            const bool single = take(step, "individual_digits") == true;
            t_.splits.push_back(single ? patterns::digit : patterns::digits);
        } else if (type == "Split") {
            const json pattern = take(step, "pattern");
            take(step, "invert");  // what matches is a part, and so is what is between
            if (pattern == json{{"String", " "}} && t_.escaped_spaces) return step.clear();
            const std::string text = shown(pattern.contains("Regex") ? pattern["Regex"] : pattern);
            const auto* const known = std::ranges::find(known_patterns, std::string_view(text));
            if (known == known_patterns.end()) {
                refuse(fmt::format("it divides text by {}, a pattern that is not known", text));
            }
            t_.splits.push_back(*known);
            expect(step, "behavior", "Isolated");
        } else if (type == "Metaspace") {
            if (t_.prefix != space_prefix::never) refuse("Metaspace is after Prepend");
            const json scheme = take(step, "prepend_scheme");
            if (scheme != "never" && scheme != "first" && scheme != "always") {
                refuse(fmt::format("Metaspace has the prepend_scheme {}", shown(scheme)));
            }
            t_.prefix = scheme == "never"   ? space_prefix::never
                        : scheme == "first" ? space_prefix::first
                                            : space_prefix::always;
            t_.escaped_spaces = t_.single_prefix = true;
            expect(step, "replacement", escaped_space);
            expect(step, "split", false);
        } else {
            refuse(fmt::format("its pre-tokenizer {} is not known", type));
        }
    }

    // Only the token before the text is of interest.
    void post_processor(const std::string& type, json& step) {
        if (type != "ByteLevel") {
            const json single = take(step, "single");
            const auto special = [&](std::size_t i) {
                return i < single.size() && single[i].contains("SpecialToken");
            };
            if (type != "TemplateProcessing" || (special(0) && special(1))) {
                refuse(fmt::format("its {} puts other tokens than BOS before a text", type));
            }
            if (special(0)) {
                const auto name = single[0]["SpecialToken"].at("id").get<std::string>();
                const json id = step.at("special_tokens").at(name).at("ids").at(0);
                if (!id.is_number_unsigned() || id >= t_.pieces.size()) {
                    refuse(fmt::format("{} is no token", name));
                }
                t_.bos = id.get<std::uint32_t>();
            }
        }
        step.clear();
    }

    // Returns whether the id had no token.
    bool spell(const json& id, const std::string& text) {
        if (!id.is_number_unsigned() || id >= most_tokens) {
            refuse(
                fmt::format("'{}' has the id {}, not one below {}", text, shown(id), most_tokens));
        }
        const auto at = id.get<std::size_t>();
        if (at >= t_.spelled.size()) t_.spelled.resize(at + 1);
        const std::string before = std::exchange(t_.spelled[at], text);
        if (!before.empty() && before != text) {
            refuse(fmt::format("'{}' and '{}' have one id", before, text));
        }
        return before.empty();
    }

    void read_added(bool changed_text) {
        // Of an added token that the vocabulary lacks, the library ignores the id that is stated.
        auto next = static_cast<std::uint32_t>(
            std::ranges::count_if(t_.spelled, [](const auto& s) { return !s.empty(); }));
        t_.in_words.assign(t_.spelled.size(), true);
        t_.types.assign(t_.spelled.size(), token_type::normal);
        for (json& token : take(root_, "added_tokens")) {
            const json id = take(token, "id");
            const auto text = token.at("content").get<std::string>();
            if (spell(id, text) && id != next++) {
                refuse(fmt::format("'{}' has the id {}, not {}", text, shown(id), next - 1));
            }
            added_token& added = t_.added.emplace_back();
            added.text = text;
            added.id = id.get<std::uint32_t>();
            for (const char* const option : {"single_word", "lstrip", "rstrip", "normalized"}) {
                if (token.value(option, false) && (option[0] != 'n' || changed_text)) {
                    added.unsupported = option;
                }
            }
            t_.in_words.resize(t_.spelled.size());
            t_.in_words[added.id] = false;
            t_.types.resize(t_.spelled.size(), token_type::unused);
            t_.types[added.id] =
                is_control(token, text) ? token_type::control : token_type::user_defined;
        }
    }

    // "a b", or ["a", "b"] in newer files.
    spelled_merge merge_of(const json& merge) const {
        if (merge.is_array() && merge.size() == 2) {
            const auto left = merge[0].get<std::string>();
            return {left + merge[1].get<std::string>(), left.size()};
        }
        std::string text = shown(merge);
        const std::size_t space = text.find(' ');
        if (!merge.is_string() || space == std::string::npos || text.rfind(' ') != space) {
            refuse(fmt::format("'{}' is no merge of two tokens", text));
        }
        return {text.erase(space, 1), space};
    }

    std::string path_;
    json root_;
    tables t_;
};

}  // namespace

tables json_tables(const io::shared_file& file) {
    try {
        return json_tokenizer(file).read();
    } catch (const json::exception& problem) {
        refuse_tokenizer(file->path(),
                         fmt::format("is not a tokenizer in JSON ({})", problem.what()));
    }
}

}  // namespace mx::tokens

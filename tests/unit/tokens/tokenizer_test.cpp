// SPDX-License-Identifier: Apache-2.0
// Ids of datasets/vectors/tokenizers, made by other libraries, and files that are refused.
#include "libmx/tokens/tokenizer.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "libmx/base/bits.hpp"
#include "libmx/io/gguf/gguf_writer.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/tokens/gguf_vocabulary.hpp"
#include "libmx/tokens/tables.hpp"
#include "tests/io/gguf_bytes.hpp"
#include "tests/io/scratch_dir.hpp"

using namespace mx;
using namespace mx::test;
using nlohmann::json;
using tokens::tokenizer_of;

namespace {

json vectors(const std::string& name) {
    std::ifstream in(std::string(MX_SOURCE_DIR) + "/datasets/vectors/tokenizers/" + name + ".json");
    return json::parse(in);
}

// The tokenizer.json of a case.
json document(const json& each, const json& tables) {
    const json& table = tables[each["tables"]];
    json out = each["members"];
    out["added_tokens"] = table["added_tokens"];
    out["model"] = each["model"];
    out["model"]["type"] = "BPE";
    out["model"]["vocab"] = table["vocab"];
    out["model"]["merges"] = table["merges"];
    return out;
}

std::string texts(const std::vector<std::string>& all) {
    std::string out = little(8, 4) + little(all.size(), 8);
    for (const std::string& one : all) out += gguf::text(one);
    return out;
}

std::string numbers(std::uint32_t type, const std::vector<std::uint32_t>& all) {
    std::string out = little(type, 4) + little(all.size(), 8);
    for (const std::uint32_t one : all) out += little(one, 4);
    return out;
}

std::string key(const char* name) { return std::string("tokenizer.ggml.") + name; }

// The parts of the metadata of a GGUF file, to be changed before they are written.
struct gguf_parts {
    std::string model, pre;
    std::vector<std::string> tokens, merges;
    std::vector<std::uint32_t> types, scores;
    std::vector<std::string> more;

    std::string bytes() const {
        std::vector<std::string> entries = more;
        entries.push_back(gguf::entry(key("model"), 8, gguf::text(model)));
        entries.push_back(gguf::entry(key("pre"), 8, gguf::text(pre)));
        entries.push_back(gguf::entry(key("tokens"), 9, texts(tokens)));
        entries.push_back(gguf::entry(key("merges"), 9, texts(merges)));
        entries.push_back(gguf::entry(key("scores"), 9, numbers(6, scores)));
        entries.push_back(gguf::entry(key("token_type"), 9, numbers(5, types)));
        return gguf::model(entries, {}, 0);
    }
};

gguf_parts byte_level_parts(const std::string& pre, const json& table) {
    gguf_parts parts{"gpt2", pre, {}, {}, {}, {}, {}};
    const auto add = [&](const std::string& token, std::uint32_t id, std::uint32_t type) {
        while (parts.tokens.size() <= id) {
            parts.tokens.push_back("[PAD" + std::to_string(parts.tokens.size()) + "]");
            parts.types.push_back(5);
        }
        parts.tokens[id] = token;
        parts.types[id] = type;
    };
    for (const auto& [token, id] : table["vocab"].items()) add(token, id, 1);
    for (const json& token : table["added_tokens"]) add(token["content"], token["id"], 3);
    for (const json& merge : table["merges"]) {
        parts.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    }
    parts.more.push_back(gguf::entry(key("bos_token_id"), 4, little(0, 4)));
    return parts;
}

gguf_parts sentencepiece_parts(const json& table) {
    gguf_parts parts{"llama", "default", table["pieces"], {}, table["types"], {}, {}};
    for (const json& score : table["scores"]) {
        parts.scores.push_back(base::bits_of(score.get<float>()));
    }
    parts.more.push_back(gguf::entry(key("bos_token_id"), 4, little(1, 4)));
    return parts;
}

// As export of llama2.c writes it.
std::string llama2c_bytes(const json& table) {
    std::string out = little(64, 4);
    for (std::size_t i = 0; i < table["pieces"].size(); ++i) {
        std::string piece = table["pieces"][i];
        for (std::size_t at; (at = piece.find("\u2581")) != std::string::npos;) {
            piece.replace(at, 3, " ");
        }
        out += little(base::bits_of(table["scores"][i].get<float>()), 4);
        out += little(piece.size(), 4) + piece;
    }
    return out;
}

// Fields of a protobuf message: numbers below 128, and runs of bytes.
std::string field(char number, char value) { return {static_cast<char>(number << 3), value}; }
std::string field(char number, const std::string& bytes) {
    std::string length;
    std::size_t left = bytes.size();
    for (; left > 127; left >>= 7) length += static_cast<char>((left & 127) | 128);
    return static_cast<char>(number << 3 | 2) + length + static_cast<char>(left) + bytes;
}

std::string piece_bytes(const std::string& text, float score, char type) {
    const std::string stored = char{2 << 3 | 5} + little(base::bits_of(score), 4);
    return field(1, field(1, text) + stored + field(3, type));
}

// As the library of SentencePiece writes it; its numbers of fields above 15 take two bytes.
const std::string is_bpe = field(3, '\2');
const std::string falls_back = "\x98\x02\x01";
const std::string no_stripping = field(4, '\0');

std::string sentencepiece_bytes(const json& table, const json& user_defined,
                                const std::string& trainer = is_bpe + falls_back,
                                const std::string& normalizer = no_stripping) {
    std::string out;
    for (std::size_t i = 0; i < table["pieces"].size(); ++i) {
        out += piece_bytes(table["pieces"][i], table["scores"][i], table["types"][i].get<char>());
    }
    for (const json& text : user_defined) out += piece_bytes(text, 0, 4);
    return out + field(2, trainer) + field(3, normalizer);
}

void check_ids(const tokens::tokenizer& t, const json& each) {
    const json lines = vectors("texts");
    CHECK(each["ids"].size() == lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (each["ids"][i].is_null()) continue;
        const std::string text = lines[i];
        INFO(each["name"] << ", text " << i << ": " << text);
        const std::vector<std::uint32_t> ids = t.encode(text);
        CHECK(ids == each["ids"][i].get<std::vector<std::uint32_t>>());
    }
}

bool with_libraries() { return !tokens::unicode_support().empty(); }

std::string refused(const std::string& path, base::error_kind kind = base::error_kind::input) {
    return error_of(kind, [&] { tokenizer_of(path); });
}

}  // namespace

TEST_CASE("ids are those of other libraries", "[tokens]") {
    const scratch_dir dir;
    const json tables = vectors("tables");
    int compared = 0;
    for (const json& each : vectors("cases")) {
        const std::string name = each["name"];
        INFO(name);
        std::vector<std::string> paths;
        if (name == "sentencepiece") {
            paths = {dir.file("sp.gguf", sentencepiece_parts(tables["sentencepiece"]).bytes()),
                     dir.file("a.model", sentencepiece_bytes(tables["sentencepiece"], {}))};
        } else if (name == "user-defined") {
            paths = {dir.file("b.model",
                              sentencepiece_bytes(tables["sentencepiece"], each["user_defined"]))};
        } else if (name == "llama2.c") {
            paths = {dir.file("tok.bin", llama2c_bytes(tables["sentencepiece"]))};
        } else {
            if (each["tables"] == "byte_level" && !with_libraries()) continue;
            paths = {dir.file("tokenizer.json", document(each, tables).dump())};
        }
        if (each.contains("gguf") && !each["gguf"].is_null()) {
            paths.push_back(
                dir.file("a.gguf", byte_level_parts(each["gguf"], tables["byte_level"]).bytes()));
        }
        for (const std::string& path : paths) {
            INFO(path);
            const auto t = tokenizer_of(path);
            check_ids(*t, each);
            ++compared;
            // Of GGUF the default of the pre-tokenizer's name.
            const bool named = path.ends_with(".gguf") && name == "tekken";
            CHECK(t->bos() == (named                   ? std::optional<std::uint32_t>(0)
                               : each["bos"].is_null() ? std::nullopt
                                                       : std::optional<std::uint32_t>(
                                                             each["bos"].get<std::uint32_t>())));
        }
    }
    CHECK(compared == (with_libraries() ? 24 : 7));
}

TEST_CASE("a folder's tokenizer in GGUF gives the same ids", "[tokens]") {
    constexpr std::size_t vocabulary = 4096;  // more than there are tokens
    const json tables = vectors("tables");
    int compared = 0;
    for (const json& each : vectors("cases")) {
        const std::string name = each["name"];
        INFO(name);
        const bool model = name == "sentencepiece";
        const bool named = each.contains("gguf") && !each["gguf"].is_null();
        if (!model && (!named || !with_libraries())) continue;
        const scratch_dir dir;
        if (model) {
            dir.file("tokenizer.model", sentencepiece_bytes(tables["sentencepiece"], {}));
        } else {
            dir.file("tokenizer.json", document(each, tables).dump());
        }
        dir.file("tokenizer_config.json",
                 R"({"bos_token":{"content":"<s>"},"eos_token":"</s>","chat_template":"{{ x }}"})");
        io::gguf_metadata written;
        tokens::put_gguf_vocabulary(written, dir.path(), vocabulary);
        const std::string path = dir.path() + "/a.gguf";
        io::create_gguf(path, {}, written)->commit();
        const auto t = tokenizer_of(path);
        check_ids(*t, each);
        CHECK(t->vocabulary() == vocabulary);
        CHECK(t->bos().has_value() == !each["bos"].is_null());
        ++compared;
    }
    CHECK(compared == (with_libraries() ? 9 : 1));
}

TEST_CASE("tokenizers without a form in GGUF are refused", "[tokens]") {
    const json tables = vectors("tables");
    const auto refusal = [](const scratch_dir& dir, std::size_t vocabulary = 4096) {
        return error_of(base::error_kind::input, [&] {
            io::gguf_metadata written;
            tokens::put_gguf_vocabulary(written, dir.path(), vocabulary);
        });
    };
    const scratch_dir dir;
    CHECK(refusal(dir).ends_with(
        "has no tokenizer.json or tokenizer.model, and llama.cpp needs one"));
    for (const json& each : vectors("cases")) {
        const std::string name = each["name"];
        if (name == "digits" && with_libraries()) {
            dir.file("tokenizer.json", document(each, tables).dump());
            CHECK(refusal(dir).find("has no name in llama.cpp that mx knows") != std::string::npos);
        }
        if (name == "gpt2") {
            dir.file("tokenizer.json", document(each, tables).dump());
            CHECK(refusal(dir, 10).find("tokens, the model 10") != std::string::npos);
        }
        if (name == "user-defined") {
            const scratch_dir other;
            other.file("tokenizer.model",
                       sentencepiece_bytes(tables["sentencepiece"], each["user_defined"]));
            CHECK(refusal(other).find("user-defined piece") != std::string::npos);
        }
        if (name == "llama2") {
            dir.file("tokenizer.json", document(each, tables).dump());
            CHECK(refusal(dir).find("without their scores") != std::string::npos);
            dir.file("tokenizer.model", sentencepiece_bytes(tables["sentencepiece"], {}));
            CHECK(refusal(dir).find("that of tokenizer.model is") != std::string::npos);
        }
    }
}

TEST_CASE("the pieces of the ids are the text", "[tokens]") {
    const scratch_dir dir;
    const json tables = vectors("tables");
    const auto t =
        tokenizer_of(dir.file("sp.gguf", sentencepiece_parts(tables["sentencepiece"]).bytes()));
    CHECK(t->kind() == "SentencePiece BPE");
    CHECK(t->vocabulary() == 640);
    CHECK(t->piece(3) == std::string(1, '\0'));
    CHECK(t->piece(640).empty());
    std::string text;
    for (const std::uint32_t id : t->encode("a lighthouse, \U0001f600")) text += t->piece(id);
    CHECK(text == " a lighthouse, \U0001f600");
    if (!with_libraries()) return;
    const auto bytes =
        tokenizer_of(dir.file("b.gguf", byte_level_parts("gpt-2", tables["byte_level"]).bytes()));
    CHECK(bytes->kind() == "byte-level BPE");
    text.clear();
    for (const std::uint32_t id : bytes->encode("\xc3\xa9<|im_end|>\t\U0001f600")) {
        text += bytes->piece(id);
    }
    CHECK(text == "\xc3\xa9<|im_end|>\t\U0001f600");
}

TEST_CASE("a model's folder or a file in it leads to its tokenizer", "[tokens]") {
    const scratch_dir dir;
    const json cases = vectors("cases");
    const auto words =
        std::ranges::find(cases, json("llama2"), [](const json& c) { return c["name"]; });
    const std::string path = dir.file("tokenizer.json", document(*words, vectors("tables")).dump());
    const std::size_t count = vectors("tables")["words"]["vocab"].size();
    for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch.bin"}) {
        CHECK(tokenizer_of(dir.file(name, "PK\3\4"))->vocabulary() == count);
    }
    CHECK(tokenizer_of(dir.path())->kind() == "SentencePiece BPE");
    has(refused(dir.file("a.gguf", gguf::model({}, {}, 0))), "has no tokenizer in its metadata");
    const json table = vectors("tables")["sentencepiece"];
    const std::string model = dir.file("tokenizer.model", sentencepiece_bytes(table, {"new"}));
    CHECK(tokenizer_of(dir.path())->vocabulary() == count);
    std::filesystem::remove(path);
    CHECK(tokenizer_of(dir.path())->vocabulary() == 641);
    CHECK(tokenizer_of(dir / "model.safetensors")->vocabulary() == 641);
    std::filesystem::remove(model);
    has(refused(dir.path()), "has no tokenizer.json or tokenizer.model; encode the text with");
    has(refused(dir / "model.safetensors"), "has no tokenizer.json or tokenizer.model beside it");
    has(refused(dir / "missing"), "missing");
}

TEST_CASE("texts without ids are refused with the place", "[tokens]") {
    const scratch_dir dir;
    json tables = vectors("tables");
    const auto t =
        tokenizer_of(dir.file("sp.gguf", sentencepiece_parts(tables["sentencepiece"]).bytes()));
    const auto refused_text = [](const tokens::tokenizer& by, const std::string& text) {
        return error_of(base::error_kind::input, [&] { by.encode(text); });
    };
    CHECK(refused_text(*t, "ab\xff") == "the text is not UTF-8 at byte 2; convert it to UTF-8");
    has(refused_text(*t, "\xc3"), "not UTF-8 at byte 0");
    has(refused_text(*t, "a\xed\xa0\x80"), "not UTF-8 at byte 1");
    has(refused_text(*t, std::string((16 << 20) + 1, 'a')),
        "has 16777217 bytes, more than 16777216");
    json words = vectors("cases")[9];
    words["model"]["byte_fallback"] = false;
    const auto no_bytes = tokenizer_of(dir.file("tokenizer.json", document(words, tables).dump()));
    has(refused_text(*no_bytes, "\u2603"), "the tokenizer has no token for byte 0xe2");
    for (json& token : tables["words"]["added_tokens"]) token["lstrip"] = true;
    const auto strips = tokenizer_of(dir.file("tokenizer.json", document(words, tables).dump()));
    CHECK(strips->encode("text").size() > 1);
    has(refused_text(*strips, "text <s>"),
        "contains '<s>' at byte 5, an added token with the option "
        "lstrip");
}

TEST_CASE("parts of tokenizer.json that change ids are refused by name", "[tokens]") {
    const scratch_dir dir;
    const json sound = document(vectors("cases")[9], vectors("tables"));
    CHECK_NOTHROW(tokenizer_of(dir.file("tokenizer.json", sound.dump())));
    const auto with = [&](const char* pointer, const json& value) {
        json changed = sound;
        changed[json::json_pointer(pointer)] = value;
        return refused(dir.file("tokenizer.json", changed.dump()));
    };
    const auto nested = [&](std::size_t levels) {
        const std::string inner = std::string(levels - 1, '[') + std::string(levels - 1, ']');
        return refused(dir.file("tokenizer.json", "{\"x\":" + inner + "}"));
    };
    has(nested(17), "has too many parts for mx");
    has(nested(16), "has no merges");
    has(with("/model/type", "Unigram"), "its model Unigram is not BPE");
    has(with("/model/dropout", 0.1), "its model has the dropout 0.1, which mx does not follow");
    has(with("/model/end_of_word_suffix", "</w>"), "its model has the end_of_word_suffix </w>");
    has(with("/model/new", 1), "its model has the new 1");
    has(with("/model/vocab", json::array({1})), "'<unk>' has the id 0, not 1");
    has(with("/model/vocab/a", 4194304), "'a' has the id 4194304, not one below 4194304");
    has(with("/model/vocab/a", -1), "'a' has the id -1");
    has(with("/model/vocab/a", "b"), "'a' has the id b");
    has(with("/model/vocab/a", 0), "have one id");
    has(with("/model/merges", json::array({"a b c"})), "'a b c' is no merge of two tokens");
    has(with("/model/merges", json::array({"~ q"})), "merge 0 of '~' and 'q' is not of tokens");
    has(with("/model/merges", json::array({json::array({"a"})})), "'[\"a\"]' is no merge");
    has(with("/model/merges", json::array({1})), "'1' is no merge");
    has(with("/model/merges", json::array({json::array({1, 2})})), "is not a tokenizer in JSON");
    const json merge = sound["model"]["merges"][0];
    has(with("/model/merges", json::array({merge, merge})), "twice");
    has(with("/model/merges", json::array()), "has no merges");
    has(with("/normalizer", {{"type", "NFKC"}}), "its normalizer NFKC is not known");
    has(with("/normalizer", 7), "is not a tokenizer in JSON");
    has(with("/normalizer/normalizers/0/prepend", "_"),
        "its prepend is _, which mx does not follow");
    has(with("/normalizer/normalizers/1/pattern", {{"Regex", " "}}), "its pattern is {");
    has(with("/pre_tokenizer", {{"type", "Punctuation"}}), "its pre-tokenizer Punctuation is not");
    has(with("/pre_tokenizer", {{"type", "Digits"}, {"individual_digits", true}}),
        "its words are neither those of byte-level BPE nor");
    json split = {{"type", "Split"}, {"pattern", {{"Regex", "\\w+"}}}, {"behavior", "Isolated"}};
    has(with("/pre_tokenizer", split), "it divides text by \\w+, a pattern that is not known");
    split["pattern"]["Regex"] = "\\p{N}";
    split["behavior"] = "Removed";
    has(with("/pre_tokenizer", split), "its behavior is Removed");
    has(with("/pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", true}}),
        "its add_prefix_space is true");
    const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
    has(with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {bytes, split}}}),
        "its pre-tokenizer Split is after ByteLevel");
    has(with("/pre_tokenizer", {{"type", "Metaspace"}}), "Metaspace is after Prepend");
    const json metaspace = document(vectors("cases")[10], vectors("tables"));
    const auto with_metaspace = [&](const char* member, const json& value) {
        json changed = metaspace;
        changed["pre_tokenizer"][member] = value;
        return refused(dir.file("tokenizer.json", changed.dump()));
    };
    has(with_metaspace("replacement", "_"), "its replacement is _, which mx does not follow");
    has(with_metaspace("split", true), "its split is true");
    has(with_metaspace("prepend_scheme", "last"), "Metaspace has the prepend_scheme last");
    has(with_metaspace("new", 1), "its Metaspace has the new 1");
    has(with("/post_processor", {{"type", "BertProcessing"}}), "its BertProcessing puts other");
    has(with("/post_processor/single/1", sound["post_processor"]["single"][0]),
        "its TemplateProcessing puts other tokens than BOS before a text");
    has(with("/post_processor/special_tokens/<s>/ids", json::array({99999})), "<s> is no token");
    has(with("/post_processor/special_tokens/<s>/ids", json::array({1.0})), "<s> is no token");
    has(with("/added_tokens/0/id", 7), "have one id");
    has(with("/added_tokens/3", {{"id", 2000}, {"content", "<new>"}}),
        "'<new>' has the id 2000, not " + std::to_string(sound["model"]["vocab"].size()));
    std::string deep(40, '[');
    for (const std::string& text : {std::string("[]"), std::string("{"), deep + deep}) {
        has(refused(dir.file("tokenizer.json", text)), "--tokens ids.npy");
    }
}

TEST_CASE("parts of tokenizer.model that change ids are refused by name", "[tokens]") {
    const scratch_dir dir;
    const json table = vectors("tables")["sentencepiece"];
    const std::string sound = sentencepiece_bytes(table, {});
    const auto refused_bytes = [&](const std::string& bytes) {
        return refused(dir.file("tokenizer.model", bytes));
    };
    const auto with = [&](const std::string& trainer, const std::string& normalizer) {
        return refused_bytes(sentencepiece_bytes(table, {}, trainer, normalizer));
    };
    has(with(falls_back, no_stripping), "its model is unigram, not BPE");
    has(with(field(3, '\3'), no_stripping), "its model is not BPE");
    for (const std::string& normalizer :
         {std::string(), no_stripping + field(5, '\0'), no_stripping + field(2, "map")}) {
        has(with(is_bpe, normalizer), "it normalizes text or treats spaces in a way");
    }
    has(with(is_bpe + "\xc0\x01\x01", no_stripping), "treats spaces in a way");
    has(refused_bytes(sound + piece_bytes("new", 0, 5)), "its piece 'new' is of the type unused");
    for (const std::string& piece : {piece_bytes("", 0, 1), piece_bytes("new", NAN, 1),
                                     piece_bytes("new", 0, 0), piece_bytes("new", 0, 7)}) {
        has(refused_bytes(sound + piece), "its piece 640 is damaged");
    }
    has(refused_bytes(sound + piece_bytes("th", 0, 1)), "two tokens are 'th'");
    for (const std::string& bytes : {sound + "\x0a", sound + "\x0a\x7f", sound + "\x0b",
                                     sound + "\x08" + std::string(10, '\xff'), std::string()}) {
        has(refused_bytes(bytes), "is no model of SentencePiece; encode the text with");
    }
    const std::string other_bos = is_bpe + "\xf2\x02\x04</s>";
    CHECK(tokenizer_of(dir.file("a.model", sentencepiece_bytes(table, {}, other_bos)))->bos() == 2);
    CHECK_FALSE(
        tokenizer_of(dir.file("b.model", sentencepiece_bytes(table, {}, is_bpe + "\xf2\x02\x02th")))
            ->bos());
    // Without bytes for characters that are no piece, and without a space before the text.
    const auto plain = tokenizer_of(
        dir.file("c.model", sentencepiece_bytes(table, {}, is_bpe, no_stripping + field(3, '\0'))));
    CHECK(plain->encode("lighthouse").size() == 1);
    has(error_of(base::error_kind::input, [&] { plain->encode("\u2603"); }), "no token for byte");
    CHECK(plain->encode("").empty());
    // Numbers of eight bytes, and fields of later versions, are passed over.
    const std::string later = "\x79" + std::string(8, '\1') + field(14, "new");
    CHECK(tokenizer_of(dir.file("d.model", sound + later))->vocabulary() == 640);
}

TEST_CASE("text is normalized to NFC, Hangul that composes with nothing as well", "[tokens]") {
    if (!with_libraries()) return;
    CHECK(tokens::to_nfc("") == "");
    CHECK(tokens::to_nfc("e\u0323\u0302\u212b\u0958") == "\u1ec7\u00c5\u0915\u093c");
    CHECK(tokens::to_nfc("\u1100\u1161\u11a7\u11a8\u11a7") == "\uac00\u11a7\u11a8\u11a7");
    CHECK(tokens::to_nfc("\u1100\u1161\u11a8") == "\uac01");
}

TEST_CASE("of added tokens that begin alike, the longest is found", "[tokens]") {
    const scratch_dir dir;
    json words = document(vectors("cases")[9], vectors("tables"));
    const auto next = static_cast<std::uint32_t>(words["model"]["vocab"].size());
    std::uint32_t id = next;
    for (const char* const text : {"<a", "<a>b", "<a>bc", "<b"}) {
        words["added_tokens"].push_back({{"id", id++}, {"content", text}});
    }
    const auto t = tokenizer_of(dir.file("tokenizer.json", words.dump()));
    const auto ids = t->encode("<a>b<a>bc<a<b<a>");
    REQUIRE(ids.size() > 5);
    CHECK(std::vector(ids.begin(), ids.begin() + 5) ==
          std::vector{next + 1, next + 2, next, next + 3, next});
    CHECK(t->encode("<a>b<a").back() == next);
}

TEST_CASE("tokenizers of GGUF that are not known are refused by name", "[tokens]") {
    const scratch_dir dir;
    const json tables = vectors("tables");
    const auto with = [&](gguf_parts parts, const auto& change) {
        change(parts);
        return refused(dir.file("a.gguf", parts.bytes()));
    };
    const gguf_parts bytes = byte_level_parts("gpt-2", tables["byte_level"]);
    const gguf_parts words = sentencepiece_parts(tables["sentencepiece"]);
    has(with(bytes, [](auto& p) { p.model = "bert"; }), "its tokenizer 'bert' is not read");
    has(with(bytes, [](auto& p) { p.pre = "2"; }), "its pre-tokenizer '2' (tokenizer.ggml.pre)");
    has(with(bytes, [](auto& p) { p.pre = ""; }), "its pre-tokenizer '' (tokenizer.ggml.pre)");
    has(with(bytes, [](auto& p) { p.merges.clear(); }), "tokenizer.ggml.merges is missing");
    has(with(bytes, [](auto& p) { p.merges[0] = "ab"; }), "'ab' is no merge");
    has(with(bytes, [](auto& p) { p.types.pop_back(); }), "token_type has");
    has(with(bytes, [](auto& p) { p.types[5] = 9; }), "has the unknown type 9");
    has(with(bytes, [](auto& p) { p.tokens[9] = p.tokens[8]; }), "two tokens are");
    has(with(bytes, [](auto& p) { p.tokens.clear(), p.types.clear(); }), "tokens is missing");
    has(with(words, [](auto& p) { p.scores.pop_back(); }), "tokenizer.ggml.scores has 639 numbers");
    has(with(words, [](auto& p) { p.scores[3] = 0x7fc00000; }), "a score is not a number");
    has(with(bytes, [](auto& p) { p.tokens.back() = std::string(257, 'a'); }),
        "an added token of 257 bytes");
    has(with(words, [](auto& p) { p.more.clear(); }), "bos_token_id is missing");
    has(with(words,
             [](auto& p) {
                 p.more.push_back(gguf::entry(key("remove_extra_whitespaces"), 7, "\1"));
             }),
        "normalizes text");
    has(refused(dir.file("tok.bin", little(8, 4) + little(0, 4) + little(9, 4) + "123456789")),
        "is no tokenizer of llama2.c");
    has(refused(dir.file("tok.bin", little(8, 4))), "is no tokenizer of llama2.c");
}

TEST_CASE("without a prefix, SentencePiece begins as the text does", "[tokens]") {
    const scratch_dir dir;
    gguf_parts parts = sentencepiece_parts(vectors("tables")["sentencepiece"]);
    parts.more.push_back(gguf::entry(key("add_space_prefix"), 7, std::string(1, '\0')));
    parts.more.push_back(gguf::entry(key("add_bos_token"), 7, std::string(1, '\0')));
    const auto t = tokenizer_of(dir.file("sp.gguf", parts.bytes()));
    CHECK(!t->bos());
    std::string text;
    for (const std::uint32_t id : t->encode("the boats")) text += t->piece(id);
    CHECK(text == "the boats");
}

// A search through all pairs for each merge would take hours.
TEST_CASE("a word of a MiB takes seconds", "[tokens]") {
    const scratch_dir dir;
    const json tables = vectors("tables");
    std::string word;
    while (word.size() < (1 << 20)) word += "lighthousekeeper";
    const auto t =
        tokenizer_of(dir.file("sp.gguf", sentencepiece_parts(tables["sentencepiece"]).bytes()));
    CHECK(t->encode(word).size() > word.size() / 16);
    if (!with_libraries()) return;
    const auto bytes =
        tokenizer_of(dir.file("b.gguf", byte_level_parts("qwen2", tables["byte_level"]).bytes()));
    CHECK(bytes->encode(word).size() > word.size() / 16);
    CHECK(bytes->encode(std::string(1 << 20, ' ')).size() > 1000);
}

TEST_CASE("a build without PCRE2 and utf8proc says what to install", "[tokens]") {
    if (with_libraries()) {
        CHECK(tokens::unicode_support().find("utf8proc 2.") != std::string::npos);
        return;
    }
    const scratch_dir dir;
    const std::string path =
        dir.file("b.gguf", byte_level_parts("gpt-2", vectors("tables")["byte_level"]).bytes());
    has(refused(path, base::error_kind::unavailable), "install libpcre2-dev and libutf8proc-dev");
}

// SPDX-License-Identifier: Apache-2.0
// tokenizer.model: a ModelProto of google/sentencepiece (src/sentencepiece_model.proto). Its
// library is not used: only its BPE without a map of characters is needed, and bpe_tokenizer has
// that.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "libmx/tokens/tables.hpp"

namespace mx::tokens {
namespace {

constexpr std::uint64_t most_bytes = 64 << 20;

// The fields of a protobuf message, in order.
class message {
  public:
    message(std::string_view all, const std::string& path) : left_(all), path_(path) {}

    bool next() {
        if (left_.empty()) return false;
        const std::uint64_t tag = varint();
        field = tag >> 3;
        number = 0;
        bytes = {};
        switch (tag & 7) {
            case 0:
                number = varint();
                break;
            case 1:
                take(8);
                break;
            case 2:
                bytes = take(varint());
                break;
            case 5:
                bytes = take(4);
                for (std::size_t i = 4; i-- > 0;) {
                    number = number << 8 | static_cast<unsigned char>(bytes[i]);
                }
                break;
            default:
                refuse();
        }
        return true;
    }

    message inner() const { return {bytes, path_}; }

    std::uint64_t field = 0;
    std::uint64_t number = 0;  // of a varint or of four bytes
    std::string_view bytes;

  private:
    [[noreturn]] void refuse() const { refuse_tokenizer(path_, "is no model of SentencePiece"); }

    std::string_view take(std::uint64_t count) {
        if (count > left_.size()) refuse();
        const std::string_view taken = left_.substr(0, count);
        left_.remove_prefix(count);
        return taken;
    }

    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1)[0]);
            value |= std::uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) return value;
        }
        refuse();
    }

    std::string_view left_;
    const std::string& path_;
};

}  // namespace

tables sentencepiece_tables(const io::shared_file& file) {
    using enum token_type;
    enum model_type : std::uint64_t { unigram = 1, bpe, word, character };
    const std::string& path = file->path();
    const auto refuse = [&](const std::string& what) { refuse_tokenizer(path, what); };
    if (file->size() > most_bytes) refuse(fmt::format("has more than {} bytes", most_bytes));
    const std::string bytes = file->head(most_bytes);

    tables t;
    t.kind = "SentencePiece BPE";
    t.escaped_spaces = t.prepared_first = true;
    t.prefix = space_prefix::first;
    std::vector<std::string>& spelled = t.spelled;
    std::vector<token_type>& types = t.types;
    std::string_view bos = "<s>";
    std::uint64_t model = unigram;
    bool strips = true, escapes = true, mapped = false, byte_fallback = false, suffixes = false;
    for (message m(bytes, path); m.next();) {
        message part = m.inner();
        if (m.field == 1) {  // pieces
            std::string_view piece;
            float score = 0;
            auto type = static_cast<std::uint64_t>(normal);
            while (part.next()) {
                if (part.field == 1) piece = part.bytes;
                if (part.field == 2) score = std::bit_cast<float>(std::uint32_t(part.number));
                if (part.field == 3) type = part.number;
            }
            if (piece.empty() || std::isnan(score) || type < static_cast<std::uint64_t>(normal) ||
                type > static_cast<std::uint64_t>(byte) || spelled.size() == most_tokens) {
                refuse(fmt::format("its piece {} is damaged", spelled.size()));
            }
            spelled.emplace_back(piece);
            types.push_back(static_cast<token_type>(type));
            t.scores.push_back(score);
        } else if (m.field == 2) {  // trainer_spec
            while (part.next()) {
                if (part.field == 3) model = part.number;
                if (part.field == 24) suffixes = part.number != 0;
                if (part.field == 35) byte_fallback = part.number != 0;
                if (part.field == 46) bos = part.bytes;
            }
        } else if (m.field == 3) {  // normalizer_spec
            while (part.next()) {
                if (part.field == 2) mapped = !part.bytes.empty();
                if (part.field == 3) {
                    t.prefix = part.number != 0 ? space_prefix::first : space_prefix::never;
                }
                if (part.field == 4) strips = part.number != 0;
                if (part.field == 5) escapes = part.number != 0;
            }
        }
    }
    if (spelled.empty()) refuse("is no model of SentencePiece");
    if (model != bpe) {
        refuse(model == unigram ? "its model is unigram, not BPE" : "its model is not BPE");
    }
    if (mapped || strips || !escapes || suffixes) {
        refuse("it normalizes text or treats spaces in a way that mx does not follow");
    }
    for (std::uint32_t id = 0; id < spelled.size(); ++id) {
        // The library divides pieces that are not used into those that they were merged from.
        if (types[id] == unused) {
            refuse(fmt::format("its piece '{}' is of the type unused, which mx does not follow",
                               spelled[id]));
        }
        t.in_words.push_back(types[id] == normal || types[id] == user_defined);
        if (types[id] == user_defined) t.added.push_back({with_spaces(spelled[id]), id, {}});
        if (types[id] == control && spelled[id] == bos) t.bos = id;
    }
    set_tokens(t, path, {});
    if (!byte_fallback) t.bytes.fill(no_token);
    return t;
}

}  // namespace mx::tokens

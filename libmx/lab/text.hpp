// SPDX-License-Identifier: Apache-2.0
// Training text for language models as ids: generated, with known entropy, or from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace mx::lab {

/// Numbered sequences. A sequence depends on the seed, its number and its length alone.
class text_source {
  public:
    virtual ~text_source() = default;
    virtual void sequence(std::uint64_t seed, std::uint64_t number,
                          std::span<std::uint32_t> to) const = 0;
    /// Writes held-out sequence `number` of `count`, which shares no token with those of sequence()
    /// and is the same for all seeds. Returns false if nothing is held out because every sequence
    /// is new.
    virtual bool held_out(std::uint64_t, std::uint64_t, std::span<std::uint32_t>) const {
        return false;
    }
    /// The mean over t = 1 .. context of the entropy, in nats, of the token after the first t
    /// tokens of a sequence given these: a lower bound of every model's expected loss. nullopt if
    /// unknown.
    virtual std::optional<double> floor(std::size_t context) const = 0;
};

/// Lines of three kinds, drawn independently. A sequence begins with a line feed, then a line.
///   .LETTERS    probability 1/2. The order-2 Markov chain of 16 letters: of the two letters before
///               (a line begins with "aa") each pair has an order of the letters of its own, and
///               the letter of rank r = 1 .. 16 in it follows with probability ~ r^-2. After every
///               letter the line ends with probability 1/16.
///   =WORD=WORD  1/4. Eight letters, uniform and independent, and the same again.
///   #BRACKETS   1/4. 12 brackets of four kinds that match; where both an opening and a closing
///               one fit, each with probability 1/2; an opening one of any kind alike.
/// Probabilities are rounded to 2^-28. Orders do not depend on the seed: all seeds draw from one
/// distribution.
std::unique_ptr<text_source> made_text();

/// Nats per byte of made_text() in the limit of long sequences.
double made_text_entropy();

/// Windows at uniformly random positions of the first nine tenths of a file. Held-out windows are
/// evenly spaced in the rest. Throws base::error (input) if the file cannot be read or has fewer
/// than 10 (context + 1) bytes.
std::unique_ptr<text_source> text_of_file(const std::string& path, std::size_t context);
/// The same of the ids in a file (llm::read_tokens). Throws base::error (usage) for ids that are
/// not below `vocabulary`.
std::unique_ptr<text_source> text_of_ids(const std::string& path, std::size_t context,
                                         std::size_t vocabulary);

}  // namespace mx::lab

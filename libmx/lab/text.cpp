// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/lab/simd/kernels.hpp"
#include "libmx/llm/token_file.hpp"

namespace mx::lab {
namespace {

class made_lines final : public text_source {
  public:
    made_lines() {
        double all = 0;
        for (std::size_t r = 0; r < letters; ++r) all += weight(r);
        double below = 0;
        for (std::size_t r = 0; r < letters; ++r) {
            below += weight(r);
            upto_[r] = r + 1 == letters ? std::uint64_t{1} << 32
                                        : static_cast<std::uint64_t>(below / all * one);
        }
        // A permutation of the letters for each pair.
        const base::random_key key{0, base::tensor_id("text.orders")};
        for (std::size_t pair = 0; pair < letters * letters; ++pair) {
            auto& order = order_[pair];
            for (std::size_t i = 0; i < letters; ++i) order[i] = static_cast<std::uint8_t>(i);
            for (std::size_t i = letters - 1; i > 0; --i) {
                const std::uint64_t u = base::random_u32(key, pair * letters + i);
                std::swap(order[i], order[u * (i + 1) >> 32]);
            }
        }
        describe();
    }

    void sequence(std::uint64_t seed, std::uint64_t number,
                  std::span<std::uint32_t> to) const override {
        const base::random_key key{seed, base::tensor_id("data.text")};
        const std::uint64_t first = number * to.size();
        writer w;
        for (std::size_t i = 0; i < to.size(); ++i) {
            to[i] = i == 0 ? '\n' : next(w, base::random_u32(key, first + i));
        }
    }

    std::optional<double> floor(std::size_t context) const override {
        double sum = 0;
        walk(context, [&](double h) { sum += h; });
        return sum / static_cast<double>(context);
    }

    // By the renewal theorem: expected entropy of a line divided by its expected length.
    double rate() const {
        double sum = 0, length = 0;
        std::vector<double> share(states_.size());
        share[0] = 1;
        // Only the states of letters have cycles; their probabilities decay by 1/16 per step.
        for (std::size_t t = 0; t < 2000; ++t) {
            std::vector<double> after(states_.size());
            for (std::size_t s = 0; s < states_.size(); ++s) {
                sum += share[s] * states_[s].entropy;
                length += share[s];
                for (const auto& [to, p] : states_[s].next) {
                    if (to != 0) after[to] += share[s] * p;
                }
            }
            share = after;
        }
        return sum / length;
    }

  private:
    static constexpr std::size_t letters = 16, word = 8, brackets = 12;
    static constexpr std::string_view opening = "([{<", closing = ")]}>";
    static constexpr double one = 4294967296.0;             // 2^32, probability 1
    static constexpr std::uint32_t line_end = 0x10000000u;  // 1/16
    static constexpr std::uint32_t half = 0x80000000u, three_quarters = 0xc0000000u;

    // Sum of -p log p.
    static double entropy(std::span<const double> p) {
        double sum = 0;
        for (const double x : p) sum -= x > 0 ? x * simd::logarithm(x) : 0;
        return sum;
    }

    // Position in a line.
    enum class kind : std::uint8_t { start, letter, copy, bracket };
    struct writer {
        kind of = kind::start;
        std::size_t at = 0;  // bytes of the line after its first one
        std::uint8_t before = 0, last = 0;
        std::array<std::uint8_t, word> copied{};
        std::array<std::uint8_t, brackets> open{};
        std::size_t depth = 0;
    };

    static double weight(std::size_t rank) {
        return 1.0 / (static_cast<double>(rank + 1) * static_cast<double>(rank + 1));
    }

    std::uint8_t end_line(writer& w) const {
        w = writer();
        return '\n';
    }

    // Maps 32 random bits to the next byte.
    std::uint8_t next(writer& w, std::uint32_t u) const {
        switch (w.of) {
            case kind::start:
                w.of = u < half ? kind::letter : u < three_quarters ? kind::copy : kind::bracket;
                return w.of == kind::letter ? '.' : w.of == kind::copy ? '=' : '#';
            case kind::letter:
                return next_letter(w, u);
            case kind::copy: {
                const std::size_t i = w.at++;
                if (i == 2 * word + 1) return end_line(w);
                if (i == word) return '=';
                if (i > word) return w.copied[i - word - 1];
                w.copied[i] = static_cast<std::uint8_t>('a' + (u >> 28));
                return w.copied[i];
            }
            case kind::bracket:
                break;
        }
        if (w.at == brackets) return end_line(w);
        const bool opens = w.depth == 0 || (w.depth < brackets - w.at && u < half);
        ++w.at;
        if (!opens) return static_cast<std::uint8_t>(closing[w.open[--w.depth]]);
        const auto which = static_cast<std::uint8_t>(u & 3u);
        w.open[w.depth++] = which;
        return static_cast<std::uint8_t>(opening[which]);
    }

    // A line ends after any letter but not before the first. The remaining range of the random bits
    // selects the rank.
    std::uint8_t next_letter(writer& w, std::uint32_t u) const {
        std::uint64_t within = u;
        if (w.at != 0) {
            if (u < line_end) return end_line(w);
            within = (std::uint64_t{u - line_end} << 32) / ((std::uint64_t{1} << 32) - line_end);
        }
        ++w.at;
        const auto rank =
            static_cast<std::size_t>(std::ranges::upper_bound(upto_, within) - upto_.begin());
        const std::uint8_t letter = order_[w.before * letters + w.last][rank];
        w.before = w.last;
        w.last = letter;
        return static_cast<std::uint8_t>('a' + letter);
    }

    // States with the same entropy of the next byte and the same successors.
    struct state {
        double entropy = 0;
        std::vector<std::pair<std::size_t, double>> next;
    };

    void describe() {
        std::array<double, letters> p{};
        for (std::size_t r = 0; r < letters; ++r) {
            p[r] = static_cast<double>(upto_[r] - (r == 0 ? 0 : upto_[r - 1])) / one;
        }
        const double of_letter = entropy(p);
        const double ends = static_cast<double>(line_end) / one;
        const std::array stop{ends, 1 - ends};
        const std::array lines{0.5, 0.25, 0.25};
        // 0: start; 1: first letter; 2: letters; then the copy, then brackets by position and
        // depth.
        const std::size_t copy = 3, bracket = copy + 2 * word + 2;
        const auto place = [&](std::size_t at, std::size_t depth) {
            return bracket + at * (brackets + 1) + depth;
        };
        states_.resize(place(brackets, brackets) + 1);
        states_[0] = {entropy(lines), {{1, lines[0]}, {copy, lines[1]}, {place(0, 0), lines[2]}}};
        states_[1] = {of_letter, {{2, 1}}};
        states_[2] = {entropy(stop) + (1 - ends) * of_letter, {{0, ends}, {2, 1 - ends}}};
        const double of_uniform = simd::logarithm(static_cast<double>(letters));
        for (std::size_t i = 0; i < 2 * word + 2; ++i) {
            const bool end = i == 2 * word + 1;
            states_[copy + i] = {i < word ? of_uniform : 0, {{end ? 0 : copy + i + 1, 1}}};
        }
        const double of_kind = simd::logarithm(static_cast<double>(opening.size()));
        const std::array either{0.5, 0.5};
        for (std::size_t at = 0; at < brackets; ++at) {
            for (std::size_t depth = 0; depth <= std::min(at, brackets - at); ++depth) {
                state& s = states_[place(at, depth)];
                const std::size_t left = brackets - at;
                if (depth == 0) {
                    s = {of_kind, {{place(at + 1, 1), 1}}};
                } else if (depth == left) {
                    s = {0, {{place(at + 1, depth - 1), 1}}};
                } else {
                    s = {entropy(either) + 0.5 * of_kind,
                         {{place(at + 1, depth + 1), 0.5}, {place(at + 1, depth - 1), 0.5}}};
                }
            }
        }
        states_[place(brackets, 0)] = {0, {{0, 1}}};
    }

    // The expected entropies of the bytes after the first line feed.
    template <typename Visit>
    void walk(std::size_t count, const Visit& visit) const {
        std::vector<double> share(states_.size());
        share[0] = 1;
        for (std::size_t t = 0; t < count; ++t) {
            std::vector<double> after(states_.size());
            double h = 0;
            for (std::size_t s = 0; s < states_.size(); ++s) {
                h += share[s] * states_[s].entropy;
                for (const auto& [to, p] : states_[s].next) after[to] += share[s] * p;
            }
            visit(h);
            share = after;
        }
    }

    std::array<std::uint64_t, letters>
        upto_{};  // cumulative probabilities of ranks, in units of 2^-32
    std::array<std::array<std::uint8_t, letters>, letters * letters> order_{};
    std::vector<state> states_;
};

// Windows of a text of bytes or of ids.
template <typename T>
class stored_text final : public text_source {
  public:
    stored_text(std::vector<T> text, const std::string& path, const char* unit, std::size_t context)
        : text_(std::move(text)) {
        if (text_.size() >= 10 * (context + 1)) return;
        throw base::error(base::error_kind::input,
                          fmt::format("has {} {}, and sequences of {} need {}: give more text or a "
                                      "smaller --context",
                                      text_.size(), unit, context + 1, 10 * (context + 1)),
                          {path, {}, {}});
    }

    void sequence(std::uint64_t seed, std::uint64_t number,
                  std::span<std::uint32_t> to) const override {
        const base::random_key key{seed, base::tensor_id("data.text")};
        const std::uint64_t u = std::uint64_t{base::random_u32(key, 2 * number)} << 32 |
                                base::random_u32(key, 2 * number + 1);
        copy(u % (learned() - to.size() + 1), to);
    }

    bool held_out(std::uint64_t number, std::uint64_t count,
                  std::span<std::uint32_t> to) const override {
        const std::uint64_t places = text_.size() - learned() - to.size();
        copy(learned() + (count < 2 ? 0 : places * number / (count - 1)), to);
        return true;
    }

    std::optional<double> floor(std::size_t) const override { return std::nullopt; }

  private:
    std::size_t learned() const { return text_.size() - text_.size() / 10; }
    void copy(std::uint64_t first, std::span<std::uint32_t> to) const {
        std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
    }

    std::vector<T> text_;
};

std::vector<std::uint8_t> bytes_of_file(const std::string& path) {
    std::vector<std::uint8_t> bytes;
    std::ifstream in(path, std::ios::binary);
    const auto fail = [&](const std::string& message) {
        throw base::error(base::error_kind::input, message, {path, {}, {}});
    };
    if (!in) fail("cannot be opened");
    std::array<char, 65536> part;
    while (in.read(part.data(), part.size()), in.gcount() > 0) {
        bytes.insert(bytes.end(), part.begin(), part.begin() + in.gcount());
    }
    if (in.bad()) fail("cannot be read");
    return bytes;
}

}  // namespace

std::unique_ptr<text_source> made_text() { return std::make_unique<made_lines>(); }

double made_text_entropy() { return made_lines().rate(); }

std::unique_ptr<text_source> text_of_file(const std::string& path, std::size_t context) {
    return std::make_unique<stored_text<std::uint8_t>>(bytes_of_file(path), path, "bytes", context);
}

std::unique_ptr<text_source> text_of_ids(const std::string& path, std::size_t context,
                                         std::size_t vocabulary) {
    std::vector<std::uint32_t> ids = llm::read_tokens(path);
    llm::require_ids_below(vocabulary, ids, path);
    return std::make_unique<stored_text<std::uint32_t>>(std::move(ids), path, "ids", context);
}

}  // namespace mx::lab

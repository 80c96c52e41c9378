// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "libmx/base/status.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/colored_table.hpp"
#include "libmx/report/text.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report {
namespace {

// THE LIST of coloured texts: verdicts in a column of that name.
struct tint {
    std::string_view word;
    std::string_view code;
};
constexpr std::string_view red = "31", green = "32", yellow = "33", bold = "1";
constexpr std::array verdict_tints{
    tint{"safe", green},       tint{"holds", green}, tint{"needs evaluation", yellow},
    tint{"undecided", yellow}, tint{"no", red},      tint{"broken", red},
    tint{"fails", red}};

std::string_view code_of(std::string_view word) {
    const auto row = std::ranges::find(verdict_tints, word, &tint::word);
    return row == verdict_tints.end() ? std::string_view() : row->code;
}

// Trailing blanks stay outside the colour, so that they can be removed.
std::string tinted(const std::string& text, std::string_view code) {
    const std::size_t end = text.find_last_not_of(' ');
    if (code.empty() || end == std::string::npos) return text;
    return fmt::format("\x1b[{}m{}\x1b[0m{}", code, text.substr(0, end + 1), text.substr(end + 1));
}

std::vector<std::string> title_lines(const std::string& title) {
    std::vector<std::string> lines(1);
    for (const char c : title) {
        if (c == '\n') {
            lines.emplace_back();
        } else {
            lines.back() += c;
        }
    }
    return lines;
}

std::size_t widest_of(const std::vector<std::string>& lines) {
    std::size_t widest = 0;
    for (const std::string& line : lines) widest = std::max(widest, columns_of(line));
    return widest;
}

std::size_t longest_word(const std::string& text) { return widest_of(wrapped(text, 0)); }

// As breakable cuts them.
std::size_t longest_piece(const std::string& text) { return longest_word(breakable(text, 0)); }

// The cells of one section and the widths of its columns.
class grid {
  public:
    grid(const section& s, std::size_t width, bool color) : section_(s), color_(color) {
        for (const column& c : s.columns) {
            titles_.push_back(title_lines(c.title));
            column_widths w;
            for (const std::string& line : titles_.back()) {
                w.title_word = std::max(w.title_word, longest_word(line));
            }
            for (const record& r : s.rows) {
                const std::string text = cell_text(r, c);
                w.cells = std::max(w.cells, columns_of(text));
                if (c.kind != cell::text) continue;
                w.word = std::max(w.word, longest_word(text));
                w.piece = std::max(w.piece, longest_piece(text));
            }
            w.now = std::max(w.cells, widest_of(titles_.back()));
            widths_.push_back(w);
        }
        shrink(cell::name, 16, width);
        shrink(cell::text, 16, width);
        // Prefers narrow columns to lines that the terminal would wrap.
        if (total() > width) gap_ = 1;
        wrap_titles(width);
        shrink(cell::text, 8, width);
        shrink(cell::name, 6, width);
        for (column_widths& w : widths_) w.word = w.piece;
        shrink(cell::text, 8, width);
        shrink(cell::text, 4, width);
        for (std::size_t i = 0; i < titles_.size(); ++i) fit_title(titles_[i], widths_[i].now);
        for (std::size_t i = 0; i < widths_.size(); ++i) shorten_names(s.columns[i], widths_[i]);
    }

    void print_head(const sink& out) const {
        std::size_t height = 0;
        for (const auto& lines : titles_) height = std::max(height, lines.size());
        for (std::size_t k = 0; k < height; ++k) {
            std::vector<std::string> cells;
            for (const auto& lines : titles_) {
                const std::size_t above = height - lines.size();
                cells.push_back(k < above ? std::string() : lines[k - above]);
            }
            print_line(cells, out);
        }
        std::vector<std::string> rules;
        for (const column_widths& w : widths_) rules.emplace_back(w.now, '-');
        print_line(rules, out);
    }

    // A row has as many lines as its longest wrapped text.
    void print_row(std::size_t row, const sink& out) const {
        const record& r = section_.rows[row];
        std::vector<std::vector<std::string>> cells;
        std::vector<std::string_view> codes;
        std::size_t height = 1;
        for (std::size_t i = 0; i < widths_.size(); ++i) {
            const column& c = section_.columns[i];
            const std::string text = cell_text(r, c);
            const column_widths& w = widths_[i];
            cells.push_back(c.kind == cell::text ? wrapped(breakable(text, w.now), w.now)
                            : w.shown.empty()    ? std::vector{shortened(text, w.now)}
                                                 : std::vector{w.shown[row]});
            height = std::max(height, cells.back().size());
            codes.push_back(color_ && c.field == "verdict" ? code_of(text) : "");
        }
        for (std::size_t k = 0; k < height; ++k) {
            std::vector<std::string> line;
            for (const auto& c : cells) line.push_back(k < c.size() ? c[k] : std::string());
            print_line(line, out, codes);
        }
    }

  private:
    struct column_widths {
        std::size_t now = 0;             // what is printed
        std::size_t cells = 0;           // the widest cell
        std::size_t word = 0;            // the longest word that is not broken, of a text
        std::size_t piece = 0;           // the longest part of a broken word
        std::size_t title_word = 0;      // the longest word of the title
        std::vector<std::string> shown;  // the cells of narrowed names, by row
    };

    // Rows of one table must not show the same text for different tensors.
    void shorten_names(const column& c, column_widths& w) const {
        if (c.kind != cell::name || w.cells <= w.now) return;
        std::vector<std::string> names;
        for (const record& r : section_.rows) names.push_back(cell_text(r, c));
        w.shown = told_apart(names, w.now);
    }

    std::size_t total() const {
        std::size_t sum = gap_ * (widths_.empty() ? 0 : widths_.size() - 1);
        for (const column_widths& w : widths_) sum += w.now;
        return sum;
    }

    // Reduces the widest columns of one kind by the excess over `width`, down to `least` each and
    // to the longest word, which is not broken.
    void shrink(cell kind, std::size_t least, std::size_t width) {
        reduce(width, [&](std::size_t i) {
            const column_widths& w = widths_[i];
            if (section_.columns[i].kind != kind) return w.now;
            return std::max({least, w.word, w.title_word});
        });
    }

    // The same with columns whose title is wider than their cells.
    void wrap_titles(std::size_t width) {
        reduce(width,
               [&](std::size_t i) { return std::max(widths_[i].cells, widths_[i].title_word); });
    }

    // `least_of(i)`: the least width of column i.
    template <typename Least>
    void reduce(std::size_t width, const Least& least_of) {
        while (total() > width) {
            std::size_t widest = widths_.size();
            for (std::size_t i = 0; i < widths_.size(); ++i) {
                if (widths_[i].now <= least_of(i)) continue;
                if (widest == widths_.size() || widths_[i].now > widths_[widest].now) widest = i;
            }
            if (widest == widths_.size()) return;
            --widths_[widest].now;
        }
    }

    // A column that was narrowed may be narrower than its title.
    static void fit_title(std::vector<std::string>& lines, std::size_t width) {
        std::vector<std::string> fitting;
        for (const std::string& line : lines) {
            for (std::string& piece : wrapped(line, width)) fitting.push_back(std::move(piece));
        }
        lines = std::move(fitting);
    }

    // `codes`: the colour of each cell; may be empty.
    void print_line(const std::vector<std::string>& cells, const sink& out,
                    const std::vector<std::string_view>& codes = {}) const {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i > 0) line.append(gap_, ' ');
            const std::string cell =
                padded(cells[i], widths_[i].now, is_numeric(section_.columns[i].kind));
            line += codes.empty() ? cell : tinted(cell, codes[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out(line + "\n");
    }

    const section& section_;
    bool color_;
    std::size_t gap_ = 2;  // blanks between columns
    std::vector<std::vector<std::string>> titles_;
    std::vector<column_widths> widths_;
};

void print_rows(const section& s, std::size_t width, bool color, const sink& out) {
    const grid g(s, width, color);
    g.print_head(out);
    const column group{s.group_field, "", cell::name};
    std::string current;
    for (std::size_t i = 0; i < s.rows.size(); ++i) {
        if (!s.group_field.empty()) {
            const std::string label = cell_text(s.rows[i], group);
            if (i == 0 || label != current) {
                if (i > 0) out("\n");
                out(shortened(label, width) + "\n");
                current = label;
            }
        }
        g.print_row(i, out);
    }
}

void print_note(const note& n, std::size_t width, std::string_view code, const sink& out) {
    if (n.is == note::kind::command) return out("$ " + base::printable(n.text) + "\n");
    const bool item = n.is == note::kind::item;
    const std::size_t indent = item ? 2 : 0;
    bool first = true;
    for (const std::string& line : wrapped(base::printable(n.text), width - indent)) {
        out(std::string(item && first ? "- " : std::string(indent, ' ')) +
            (item ? tinted(line, code) : line) + "\n");
        first = false;
    }
}

void write_sections(const document& d, const layout& l, bool color, const sink& out) {
    const auto width = static_cast<std::size_t>(std::max(l.width, 40));
    bool first = true;
    for (const section& s : d.sections) {
        if (s.heading.empty() && s.columns.empty() && s.notes.empty()) continue;  // only figures
        if (!first) out("\n");
        first = false;
        const std::string_view code = color && s.warns ? yellow : std::string_view();
        if (!s.heading.empty()) {
            for (const std::string& line : wrapped(base::printable(s.heading), width)) {
                out(tinted(line, color ? bold : "") + "\n");
            }
            if (!s.columns.empty()) out("\n");
        }
        if (!s.columns.empty()) print_rows(s, width, color, out);
        if (!s.columns.empty() && !s.notes.empty()) out("\n");
        for (const note& n : s.notes) print_note(n, width, code, out);
    }
}

}  // namespace

void write_table(const document& d, const layout& l, const sink& out) {
    write_sections(d, l, false, out);
}

void write_colored_table(const document& d, const layout& l, const sink& out) {
    write_sections(d, l, true, out);
}

}  // namespace mx::report

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/fit/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "libmx/base/status.hpp"

namespace mx::fit {
namespace {

using report::csv_table;

std::pair<std::string, std::string> split_at_equals(const std::string& text, const char* option) {
    const std::size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
        base::refuse("{}: '{}' is not COLUMN=TEXT", option, text);
    }
    return {text.substr(0, at), text.substr(at + 1)};
}

// The indices of a table's columns.
struct places {
    std::size_t n = 0, d = 0, loss = 0;
    std::vector<std::size_t> bits;
    std::optional<std::size_t> post, state, least, last, by;
    std::vector<std::pair<std::size_t, std::string>> where;
};

places places_in(const csv_table& table, const run_request& request, runs& to) {
    std::map<std::string, std::string> names{{"N", "N"}, {"D", "D"}, {"loss", "loss"}};
    for (const std::string& text : request.columns) {
        const auto [name, column] = split_at_equals(text, "--column");
        if (!names.contains(name)) base::refuse("--column: '{}' is not N, D or loss", name);
        names[name] = column;
    }
    places p;
    p.n = table.column(names["N"]);
    p.d = table.column(names["D"]);
    p.loss = table.column(names["loss"]);
    for (std::size_t i = 0; request.with_bits && i < table.names.size(); ++i) {
        const std::string& name = table.names[i];
        if (name == "P_post") {
            p.post = i;
        } else if (name.starts_with("P_")) {
            p.bits.push_back(i);
            to.bits.push_back(name);
        }
    }
    to.post = p.post.has_value();
    p.state = table.find("state");
    p.least = table.find("min_loss");
    p.last = table.find("final_loss");
    if (request.most_rise && !p.least && !p.last) {
        base::refuse("--max-rise needs a column min_loss or final_loss");
    }
    if (!request.by.empty()) p.by = table.column(request.by);
    for (const std::string& text : request.where) {
        const auto [name, value] = split_at_equals(text, "--where");
        p.where.emplace_back(table.column(name), value);
    }
    return p;
}

// Bits of a field; an empty one is not quantized.
std::optional<double> bits_of(const std::string& field) {
    if (field.empty()) return std::numeric_limits<double>::infinity();
    const auto bits = report::finite_number(field);
    return bits && *bits > 0 ? bits : std::nullopt;
}

std::string lower(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
}

// Why a row is left out, and whether the run diverged; otherwise fills `r`.
std::pair<std::string, bool> read_row(const std::vector<std::string>& fields, const places& p,
                                      const run_request& request, const runs& all, run& r) {
    const auto positive = [&](std::size_t column) {
        const auto x = report::finite_number(fields[column]);
        return x && *x > 0 ? *x : 0.0;
    };
    r.n = positive(p.n);
    r.d = positive(p.d);
    if (r.n == 0) return {"N is not a positive number", false};
    if (r.d == 0) return {"D is not a positive number", false};
    if (fields[p.loss].empty()) return {"no loss", false};
    r.loss = positive(p.loss);
    if (r.loss == 0) {
        const auto x = report::finite_number(fields[p.loss]);
        if (x) return {"the loss is not positive", false};
        const std::string text = lower(fields[p.loss]);
        const bool known = text == "nan" || text == "-nan" || text == "inf" || text == "-inf" ||
                           text == "+inf" || text == "infinity" || text == "diverged";
        if (known) return {"diverged: its loss is not finite", true};
        return {"the loss is not a number", false};
    }
    if (p.state && lower(fields[*p.state]) == "diverged") {
        return {"diverged: its column state says so", true};
    }
    for (std::size_t i = 0; i < p.bits.size(); ++i) {
        const auto bits = bits_of(fields[p.bits[i]]);
        if (!bits) return {fmt::format("{} is not a positive number", all.bits[i]), false};
        r.bits.push_back(*bits);
    }
    r.post_bits = std::numeric_limits<double>::infinity();
    if (p.post) {
        const auto bits = bits_of(fields[*p.post]);
        if (!bits) return {"P_post is not a positive number", false};
        r.post_bits = *bits;
    }
    // The rise of the final loss over the minimum; `loss` is one of the two.
    const auto least = p.least ? report::finite_number(fields[*p.least]) : std::nullopt;
    const auto last = p.last ? report::finite_number(fields[*p.last]) : std::nullopt;
    if (least || last) r.rise = std::max(0.0, last.value_or(r.loss) - least.value_or(r.loss));
    if (p.last && !last && !fields[*p.last].empty()) {
        return {"diverged: its final loss is not finite", true};
    }
    if (request.most_rise && r.rise && *r.rise > *request.most_rise) {
        return {fmt::format("diverged: its loss rose by {:.4g} from its minimum", *r.rise), true};
    }
    if (request.most_loss && r.loss > *request.most_loss) {
        return {fmt::format("its loss is above {}", *request.most_loss), false};
    }
    return {};
}

}  // namespace

runs runs_of(const csv_table& table, const run_request& request) {
    runs all;
    const places p = places_in(table, request, all);
    for (const csv_table::row& row : table.rows) {
        const bool asked = std::ranges::all_of(
            p.where, [&](const auto& w) { return row.fields[w.first] == w.second; });
        if (!asked) continue;
        run r;
        r.line = row.line;
        if (p.by) r.group = row.fields[*p.by];
        const auto [reason, diverged] = read_row(row.fields, p, request, all, r);
        if (reason.empty()) {
            all.kept.push_back(std::move(r));
        } else {
            all.left.push_back(
                {row.line, row.fields[p.n], row.fields[p.d], row.fields[p.loss], reason, diverged});
        }
    }
    return all;
}

}  // namespace mx::fit

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "libmx/base/secrets.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/task.hpp"
#include "libmx/report/json_line.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report {
namespace {

using json = nlohmann::ordered_json;

json to_json(const value& v);

struct converter {
    json operator()(std::monostate) const { return nullptr; }
    json operator()(bool b) const { return b; }
    json operator()(std::int64_t i) const { return i; }
    json operator()(double d) const { return d; }
    json operator()(const std::string& s) const { return s; }
    json operator()(const list& items) const {
        json out = json::array();
        for (const value& item : items) out.push_back(to_json(item));
        return out;
    }
    json operator()(const record& members) const {
        json out = json::object();
        // Names differ; [] would compare each with all before it.
        auto& to = out.get_ref<json::object_t&>();
        for (const auto& [name, v] : members) to.push_back({name, to_json(v)});
        return out;
    }
};

using alternatives = std::variant<std::monostate, bool, std::int64_t, double, std::string, list,
                                  std::vector<std::pair<std::string, value>>>;

json to_json(const value& v) {
    return std::visit(converter{}, static_cast<const alternatives&>(v));
}

// The character as JSON writes it in ASCII; beyond U+FFFF as two surrogates.
std::string escaped_code(char32_t c) {
    if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    const unsigned beyond = static_cast<unsigned>(c) - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (beyond >> 10), 0xdc00 + (beyond & 0x3ff));
}

// Names from files may contain any bytes. The document must still be valid UTF-8 and safe to show
// on a terminal; of the control characters, the library escapes only C0.
std::string dump(const json& j) {
    const std::string text =
        base::without_secrets(j.dump(-1, ' ', false, json::error_handler_t::replace));
    const auto plain = [](char c) { return static_cast<unsigned char>(c) < 0x7f; };
    if (std::ranges::all_of(text, plain)) return text;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = base::control_length(text, at);
        if (length == 0) {
            out += text[at++];
        } else {
            out += escaped_code(base::code_point(text, at, length));
            at += length;
        }
    }
    return out;
}

// Writes each top-level member, and each element of their lists, on its own line, for grep and
// diff.
class object_printer {
  public:
    explicit object_printer(const sink& out) : out_(out) { out_("{"); }

    void member(const std::string& name, const value& v) {
        start(name);
        if (const list* items = std::get_if<list>(&v)) {
            array(*items);
        } else {
            out_(dump(to_json(v)));
        }
    }
    template <typename Items>
    void member(const std::string& name, const Items& items) {
        start(name);
        array(items);
    }
    void finish() { out_("\n}\n"); }

  private:
    void start(const std::string& name) {
        out_(first_ ? "\n" : ",\n");
        first_ = false;
        out_(dump(json(name)) + ":");
    }
    template <typename Items>
    void array(const Items& items) {
        out_("[");
        base::task writing("writing", items.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
            out_(i == 0 ? "\n" : ",\n");
            out_(dump(to_json(value(items[i]))));
            writing.step();
        }
        out_(items.empty() ? "]" : "\n]");
    }

    const sink& out_;
    bool first_ = true;
};

}  // namespace

std::string json_line(const record& r) { return dump(to_json(value(r))); }
std::string json_indented(const record& r) { return to_json(value(r)).dump(2) + "\n"; }

void write_json(const document& d, const layout&, const sink& out) {
    object_printer object(out);
    for (const auto& [name, v] : d.head) object.member(name, v);
    object.member("results", d.results);
    for (const auto& [name, v] : d.tail) {
        const auto at = std::ranges::find(
            d.long_members, name, [](const auto& of) -> const auto& { return of.first; });
        if (at == d.long_members.end()) {
            object.member(name, v);
        } else {
            object.member(name, at->second);
        }
    }
    object.finish();
}

}  // namespace mx::report

// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/report/members.hpp"

namespace mx::report {
namespace {

constexpr std::string_view unquoted =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";

// In the form of printf(1), which every sh has: bytes that a terminal does not show become octal.
// Command substitution removes line ends at the end; those come from IFS.
std::string through_printf(std::string text) {
    std::string ends;
    while (text.ends_with('\n')) {
        text.pop_back();
        ends += "${IFS#??}";
    }
    std::string format;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = base::utf8_length(text, at);
        const std::size_t shown = base::control_length(text, at) > 0 ? 0 : length;
        const std::size_t count = std::max<std::size_t>(length, 1);
        for (const char c : text.substr(at, count)) {
            if (shown == 0 || c == '\'') {
                format += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
            } else {
                format += (c == '\\' || c == '%' ? std::string(1, c) : std::string()) + c;
            }
        }
        at += count;
    }
    return fmt::format("\"$(printf '{}'){}\"", format, ends);
}

// The usual short names.
std::string name_of(const std::string& option) {
    if (option == "tensor") return "-t";
    if (option == "recipe") return "-r";
    return shell_word("--" + option);
}

std::string option_text(const given_option& o) {
    const std::string name = name_of(o.name);
    if (!o.value) return name;
    // A value that begins like an option belongs to its name.
    if (!o.value->starts_with('-')) return name + " " + shell_word(*o.value);
    return shell_word(fmt::format("--{}={}", o.name, *o.value));
}

// A name may begin like an option; '-' alone is standard input.
std::string file_word(const std::string& file) {
    return (file.size() > 1 && file.front() == '-' ? "./" : "") + file;
}

// Whether a name that is not UTF-8 lost bytes when it was written as JSON.
bool is_damaged(const std::string& text) { return text.find("\xef\xbf\xbd") != std::string::npos; }

}  // namespace

std::string shell_word(const std::string& text) {
    if (!text.empty() && text.find_first_not_of(unquoted) == std::string::npos) return text;
    if (base::printable(text) != text) return through_printf(text);
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

void command_line::set(std::string_view name, const std::vector<std::string>& values) {
    std::erase_if(options, [&](const given_option& o) { return o.name == name; });
    for (const std::string& v : values) options.push_back({std::string(name), v});
}

std::string command_line::text() const {
    std::string text = "mx " + shell_word(command);
    for (const std::string& file : files) {
        text += " " + shell_word(file_word(file));
    }
    const bool last = tensor.starts_with('-');
    if (!tensor.empty() && !last) text += " " + shell_word(tensor);
    for (const given_option& o : options) text += " " + option_text(o);
    if (last) text += " -- " + shell_word(tensor);
    return text;
}

std::vector<std::string> arguments_of(const command_line& line) {
    std::vector<std::string> words;
    for (const given_option& o : line.options) {
        words.push_back(fmt::format("--{}={}", o.name, o.value.value_or("true")));
    }
    for (const std::string& file : line.files) words.push_back(file_word(file));
    return words;
}

std::shared_ptr<const given_command> given_in(const record& head) {
    const auto* given = member<record>(head, "given");
    const auto* inputs = member<list>(head, "inputs");
    if (given == nullptr || inputs == nullptr || inputs->empty()) return nullptr;
    const auto out = std::make_shared<given_command>();
    command_line& line = out->line;
    line.command = text_of(*given, "command");
    for (const value& v : *inputs) {
        const auto* input = std::get_if<record>(&v);
        if (input == nullptr) continue;
        const std::string path = text_of(*input, "path");
        const std::string named = text_of(*input, "given");
        const std::string& argument = named.empty() ? path : named;
        if (is_damaged(argument)) return nullptr;
        out->named.emplace(path, argument);
        if (std::ranges::find(line.files, argument) == line.files.end()) {
            line.files.push_back(argument);
        }
    }
    line.options = options_in(head);
    return out;
}

std::vector<given_option> options_in(const record& head) {
    std::vector<given_option> all;
    const auto* given = member<record>(head, "given");
    const auto* options = given == nullptr ? nullptr : member<list>(*given, "options");
    if (options == nullptr) return all;
    for (const value& v : *options) {
        const auto* option = std::get_if<record>(&v);
        if (option == nullptr) continue;
        given_option& o = all.emplace_back();
        o.name = text_of(*option, "option");
        if (const auto* text = member<std::string>(*option, "value")) o.value = *text;
    }
    return all;
}

const std::string& given_command::argument_of(const std::string& file) const {
    const auto at = named.find(file);
    return at == named.end() ? file : at->second;
}

record given_record(const command_line& line) {
    return {{"command", line.command}, {"options", listed(option_members, line.options)}};
}

std::string last_part(const std::string& path) {
    const std::size_t end = path.find_last_not_of('/');
    if (end == std::string::npos) return path;
    const std::size_t slash = path.rfind('/', end);
    const std::size_t first = slash == std::string::npos ? 0 : slash + 1;
    return path.substr(first, end + 1 - first);
}

}  // namespace mx::report

// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/cli.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>

#include "apps/mx/settings.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::app {
namespace {

std::string spelling_of(const CLI::Option& option) {
    if (option.get_positional()) {
        const std::string dots = option.get_items_expected_max() > 1 ? "..." : "";
        return option.get_name(true) + dots;
    }
    std::string text = option.get_name(false, true);
    const auto comma = text.find(',');
    if (comma != std::string::npos) text.insert(comma + 1, " ");
    if (option.get_type_size() != 0) {
        // Checks append themselves to the type's name ("N:INT in [1 - 32]").
        const std::string type = option.get_type_name();
        text += " " + type.substr(0, type.find(':'));
    }
    return text;
}

// Throws base::error (usage) with the text of `why`, unless it is empty.
CLI::Validator check(std::string (*why)(const std::string& text)) {
    return {[why](const std::string& text) { return why(text); }, ""};
}

std::string why_negative(const std::string& text) {
    if (text.rfind('-', 0) == 0) return "must not be negative";
    errno = 0;
    std::strtoull(text.c_str(), nullptr, 0);
    return errno == ERANGE ? "is too large" : "";
}

std::string why_not_finite(const std::string& text) {
    float value = 0;
    const bool number = CLI::detail::lexical_cast(text, value);
    return number && !std::isfinite(value) ? "must be finite" : "";
}

std::string why_no_name(const std::string& text) {
    return text.empty() ? "the name is empty; give one" : "";
}

CLI::Option* one_of_names(CLI::Option* option, std::vector<std::string> names) {
    return option->check({[names = std::move(names)](const std::string& text) {
                              if (std::ranges::find(names, text) != names.end()) {
                                  return std::string();
                              }
                              return fmt::format("'{}': give one of {}", text,
                                                 base::joined(names, ", "));
                          },
                          ""});
}

// The options and arguments that were given, in the order of declaration.
void add_given(const CLI::App& app, const std::vector<std::string>& but,
               report::command_line& line) {
    for (const CLI::Option* option : app.get_options()) {
        if (option->count() == 0) continue;
        if (option->get_positional()) {
            for (const std::string& file : option->results()) line.files.push_back(file);
            continue;
        }
        const std::string& name = option->get_lnames().front();
        if (std::ranges::find(but, name) != but.end()) continue;
        if (option->get_type_size() == 0) {
            line.options.push_back({name});
        } else {
            for (const std::string& value : option->results()) {
                line.options.push_back({name, value});
            }
        }
    }
}

// All names of the options of `app`, with their dashes.
std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty()) continue;  // hidden
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
    return names;
}

struct renamed_option {
    std::string_view name, now;
};
constexpr std::array renamed_options{renamed_option{"--roads", "--suite"},
                                     renamed_option{"--road", "--case"}};

// The unexpected argument: the first that looks like an option, else the first surplus one.
std::string unexpected(const CLI::App& app) {
    const std::vector<std::string> rest = app.remaining();
    const auto found =
        std::ranges::find_if(rest, [](const std::string& word) { return word.starts_with("-"); });
    if (found == rest.end()) {
        return fmt::format("'{}' is one argument too many", rest.empty() ? "" : rest.front());
    }
    const std::string word = found->substr(0, found->find('='));
    if (!word.starts_with("--")) return fmt::format("unknown option '{}'", word);
    const auto old = std::ranges::find(renamed_options, word, &renamed_option::name);
    if (old != renamed_options.end()) return fmt::format("'{}' is now '{}'", word, old->now);
    const std::vector<std::string> names = option_names(app);
    std::vector<std::string_view> bare;
    for (const std::string_view name : names) {
        if (name.starts_with("--")) bare.push_back(name.substr(2));
    }
    // A part of an option, an option and more, or one with a few other letters.
    const std::string_view given = std::string_view(word).substr(2);
    const auto part = std::ranges::find_if(bare, [&](std::string_view name) {
        return (given.size() > 2 && name.find(given) != std::string_view::npos) ||
               (name.size() > 2 && given.starts_with(name));
    });
    const std::string near = part != bare.end() ? std::string(*part) : base::similar(given, bare);
    if (near.empty()) return fmt::format("unknown option '{}'", word);
    return fmt::format("unknown option '{}'; did you mean '--{}'?", word, near);
}

// "--threads: 1 required N missing" and "--recipe: At Most 1 required but received 2".
std::string wrong_count(const CLI::App& app, const std::string& text) {
    const std::string name = text.substr(0, text.find(':'));
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr) return text;
    std::string value = option->get_type_name();  // checks append themselves: "N:INT in [1 - 32]"
    value.erase(std::min(value.find(':'), value.size()));
    if (text.find("missing") != std::string::npos || option->count() == 0) {
        return fmt::format("{} needs a value: {} {}", name, name, value);
    }
    return fmt::format("{} is given {} times; it takes one value", name, option->count());
}

// A CLI11 error as one line: its own text where that is clear.
std::string error_text(const CLI::App& app, const CLI::ParseError& e) {
    std::string text = e.what();
    std::ranges::replace(text, '\n', ' ');
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) return unexpected(app);
    // What was misspelt goes before what is missing: it may be the same.
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
        std::ranges::any_of(app.remaining(),
                            [](const std::string& word) { return word.starts_with("-"); })) {
        return unexpected(app);
    }
    if (e.get_name() == "ArgumentMismatch") return wrong_count(app, text);
    if (e.get_name() == "ConversionError") {  // "Could not convert: --beta = x"
        const std::size_t name = text.find("--"), equals = text.find(" = ");
        if (name < equals && equals != std::string::npos) {
            return fmt::format("{}: '{}' is not what it takes", text.substr(name, equals - name),
                               text.substr(equals + 3));
        }
    }
    const std::size_t number = text.find(": Value "), no = text.find(" could not be converted");
    if (number < no &&
        no != std::string::npos) {  // "--size: Value 1e99 could not be converted ..."
        return fmt::format("{}: '{}' is not what it takes", text.substr(0, number),
                           text.substr(number + 8, no - number - 8));
    }
    return text;
}

// Applies settings of the environment and of the file to options that were not given.
void apply_settings(CLI::App& app) {
    for (const setting& s : settings) {
        if (s.name == "backend")
            continue;  // chosen_backend() handles it and reports where it was named
        CLI::Option* option = app.get_option_no_throw(fmt::format("--{}", s.name));
        if (option == nullptr || option->count() != 0) continue;
        const std::optional<setting_value> said = setting_of(s.name);
        if (!said) continue;
        try {
            option->add_result(said->value);
            option->run_callback();
        } catch (const CLI::ParseError& e) {
            base::refuse("{}: {}", said->origin, error_text(app, e));
        }
    }
}

}  // namespace

option* option::required() { return after(of_->required()); }

option* option::expected(int n) { return after(of_->allow_extra_args(true)->expected(n)); }

option* option::expected(int least, int most) { return after(of_->expected(least, most)); }

option* option::delimiter(char c) { return after(of_->delimiter(c)); }

option* option::needs(option* other) { return after(of_->needs(other->of_)); }

option* option::excludes(option* other) { return after(of_->excludes(other->of_)); }

template <class T>
option* option::in_range(T least, T most) {
    return after(of_->check(
        {[=](const std::string& text) {
             T value{};
             if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) {
                 return std::string();
             }
             return fmt::format("'{}': give a number from {} to {}", text, least, most);
         },
         ""}));
}
template option* option::in_range(int, int);
template option* option::in_range(std::uint64_t, std::uint64_t);
template option* option::in_range(double, double);

option* option::one_of(std::initializer_list<int> values) {
    std::vector<std::string> names;
    for (const int value : values) names.push_back(std::to_string(value));
    return after(one_of_names(of_, std::move(names)));
}

option* option::one_of(std::initializer_list<std::string> values) {
    return after(one_of_names(of_, values));
}

option* option::finite() { return after(of_->check(check(why_not_finite))); }

option* option::not_negative() { return after(of_->check(check(why_negative))); }

option* option::file_name() { return after(of_->check(check(why_no_name))); }

// The last transformation runs first.
option* option::size_in_bytes() {
    return after(of_->transform(CLI::AsSizeValue(true))->transform(check(why_negative)));
}

struct parser::state {
    CLI::App app;
    std::string group;
    help_page page = help_page::command;
    std::map<const CLI::Option*, help_page> pages;
    std::deque<option> options;
    report::command_line* arguments = nullptr;  // receives the given arguments
    std::vector<std::string> not_kept;
};

parser::parser() : state_(std::make_unique<state>()) {
    state_->app.set_help_flag();  // CLI11's own; set_up() declares ours
}
parser::~parser() = default;

option* parser::keep(CLI::Option* of) { return &state_->options.emplace_back(of); }

option* parser::keep_declared(CLI::Option* of) {
    state_->pages[of] = state_->page;
    return keep(of->group(state_->group));
}

void parser::group(const std::string& name, help_page page) {
    state_->group = name;
    state_->page = page;
}

template <class T>
option* parser::add_option(const std::string& spelling, T& value, const std::string& text) {
    const std::size_t word = spelling.find(' ');
    CLI::Option* added = state_->app.add_option(spelling.substr(0, word), value, text);
    if (word != std::string::npos) added->type_name(spelling.substr(word + 1));
    // Otherwise an option with a list would also take the FILE after it.
    if (!added->get_positional()) added->allow_extra_args(false);
    return keep_declared(added);
}
// THE LIST of value types of options.
#define MX_OPTION_TYPE(...) \
    template option* parser::add_option(const std::string&, __VA_ARGS__&, const std::string&)
MX_OPTION_TYPE(std::string);
MX_OPTION_TYPE(int);
MX_OPTION_TYPE(std::uint32_t);
MX_OPTION_TYPE(std::uint64_t);
MX_OPTION_TYPE(float);
MX_OPTION_TYPE(double);
MX_OPTION_TYPE(std::optional<std::uint64_t>);
MX_OPTION_TYPE(std::optional<float>);
MX_OPTION_TYPE(std::optional<double>);
MX_OPTION_TYPE(std::vector<std::string>);
MX_OPTION_TYPE(std::vector<int>);
MX_OPTION_TYPE(std::vector<std::uint64_t>);
#undef MX_OPTION_TYPE

option* parser::add_flag(const std::string& names, bool& value, const std::string& text) {
    return keep_declared(state_->app.add_flag(names, value, text));
}

option* parser::get_option(const std::string& name) { return keep(state_->app.get_option(name)); }

void parser::name(const std::string& name) { state_->app.name(name); }

void parser::set_help_flag(const std::string& names, const std::string& text) {
    keep_declared(state_->app.set_help_flag(names, text));
}

void parser::description(const std::string& text) { state_->app.description(text); }
std::string parser::description() const { return state_->app.get_description(); }

void parser::examples(const std::string& lines) { state_->app.footer(lines); }
std::string parser::examples() const { return state_->app.get_footer(); }

std::vector<option_line> parser::options() const {
    std::vector<option_line> lines;
    const CLI::App& app = state_->app;
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty()) continue;  // hidden
        lines.push_back({option->get_group(), spelling_of(*option), option->get_description(),
                         option->get_required(), option->get_positional(),
                         state_->pages.at(option)});
    }
    return lines;
}

std::vector<std::string> parser::given(const std::vector<std::string>& but) const {
    report::command_line line;
    add_given(state_->app, but, line);
    return report::arguments_of(line);
}

bool parser::has_option(const std::string& name) const {
    return state_->app.get_option_no_throw(name) != nullptr;
}

void parser::keep_arguments(report::command_line& line, std::vector<std::string> but) {
    state_->arguments = &line;
    state_->not_kept = std::move(but);
}

bool parser::parse(int argc, char** argv) {
    try {
        state_->app.parse(argc, argv);
        if (state_->arguments != nullptr) {
            add_given(state_->app, state_->not_kept, *state_->arguments);
        }
    } catch (const CLI::CallForHelp&) {
        return false;
    } catch (const CLI::ParseError& e) {
        base::refuse(error_text(state_->app, e));
    }
    return true;
}

void parser::take_settings() { apply_settings(state_->app); }

std::vector<std::pair<std::string, std::string>> parse_settings_file(std::istream& file,
                                                                     const std::string& path) {
    std::vector<std::pair<std::string, std::string>> values;
    try {
        for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(file)) {
            if (item.name == "++" || item.name == "--")
                continue;  // where a section begins and ends
            const std::string value = item.inputs.empty() ? "" : item.inputs.front();
            if (item.inputs.size() != 1 || item.name.empty()) {
                throw base::error(base::error_kind::input,
                                  item.inputs.size() > 1
                                      ? fmt::format("'{}' has {} values; give one", item.fullname(),
                                                    item.inputs.size())
                                      : fmt::format("'{}' is not NAME = VALUE", item.fullname()),
                                  {path, {}, {}});
            }
            values.emplace_back(item.fullname(), value);
        }
    } catch (const CLI::Error& e) {
        throw base::error(base::error_kind::input, e.what(), {path, {}, {}});
    }
    return values;
}

}  // namespace mx::app

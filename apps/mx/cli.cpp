// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/cli.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <optional>

#include "libmx/base/status.hpp"

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

// Refuses what `why` finds fault with.
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

// Options as --name=value, arguments last.
std::vector<std::string> arguments_given(const CLI::App& app, const std::vector<std::string>& but) {
    std::vector<std::string> given, files;
    for (const CLI::Option* option : app.get_options()) {
        if (option->count() == 0) continue;
        if (option->get_positional()) {
            files.insert(files.end(), option->results().begin(), option->results().end());
            continue;
        }
        const std::string& name = option->get_lnames().front();
        if (std::ranges::find(but, name) != but.end()) continue;
        if (option->get_type_size() == 0) {
            given.push_back("--" + name);
        } else {
            for (const std::string& value : option->results()) {
                given.push_back("--" + name + "=" + value);
            }
        }
    }
    given.insert(given.end(), files.begin(), files.end());
    return given;
}

// CLI11 words some failures over several lines.
std::string one_line(std::string text) {
    std::ranges::replace(text, '\n', ' ');
    return text;
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
    return after(of_->check(CLI::Range(least, most)));
}
template option* option::in_range(int, int);
template option* option::in_range(std::uint64_t, std::uint64_t);
template option* option::in_range(double, double);

option* option::one_of(std::initializer_list<int> values) {
    return after(of_->check(CLI::IsMember(values)));
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
    std::deque<option> options;
    std::vector<std::string>* arguments = nullptr;  // where those that were given are kept
    std::vector<std::string> not_kept;
};

parser::parser() : state_(std::make_unique<state>()) {}
parser::~parser() = default;

option* parser::keep(CLI::Option* of) { return &state_->options.emplace_back(of); }

void parser::group(const std::string& name) { state_->group = name; }

template <class T>
option* parser::add_option(const std::string& spelling, T& value, const std::string& text) {
    const std::size_t word = spelling.find(' ');
    CLI::Option* added = state_->app.add_option(spelling.substr(0, word), value, text);
    if (word != std::string::npos) added->type_name(spelling.substr(word + 1));
    // Otherwise an option with a list would swallow the FILE after it.
    if (!added->get_positional()) added->allow_extra_args(false);
    return keep(added->group(state_->group));
}
// THE LIST of types that an option's value can have.
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
    return keep(state_->app.add_flag(names, value, text)->group(state_->group));
}

option* parser::get_option(const std::string& name) { return keep(state_->app.get_option(name)); }

void parser::name(const std::string& name) { state_->app.name(name); }

void parser::set_help_flag(const std::string& names, const std::string& text) {
    state_->app.set_help_flag(names, text);
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
                         option->get_required(), option->get_positional()});
    }
    return lines;
}

std::vector<std::string> parser::given(const std::vector<std::string>& but) const {
    return arguments_given(state_->app, but);
}

bool parser::has_option(const std::string& name) const {
    return state_->app.get_option_no_throw(name) != nullptr;
}

void parser::keep_arguments(std::vector<std::string>& arguments, std::vector<std::string> but) {
    state_->arguments = &arguments;
    state_->not_kept = std::move(but);
}

bool parser::parse(int argc, char** argv) {
    try {
        state_->app.parse(argc, argv);
        if (state_->arguments != nullptr) {
            for (std::string& word : given(state_->not_kept)) {
                state_->arguments->push_back(std::move(word));
            }
        }
    } catch (const CLI::CallForHelp&) {
        return false;
    } catch (const CLI::ParseError& e) {
        base::refuse(one_line(e.what()));
    }
    return true;
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "apps/mx/commands.hpp"
#include "apps/mx/help.hpp"
#include "libmx/base/backends.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/named.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/experiments/study.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/lab/schemes.hpp"
#include "libmx/policy/targets.hpp"
#include "libmx/report/command_line.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::app {
namespace {

using candidates = std::vector<candidate>;
using words_before = std::span<const std::string>;

// A longer list is not useful in a shell.
constexpr std::size_t most_tensors = 2000;

template <typename Rows>
candidates listed(const Rows& rows) {
    candidates names;
    for (const auto& row : rows) {
        std::string meaning;
        if constexpr (requires { std::string(row.summary); }) meaning = row.summary;
        names.push_back({std::string(row.name), std::move(meaning)});
    }
    return names;
}

candidates values_of(const codec::recipe_key& key) {
    if (key.name == "element") return listed(format::element_formats);
    if (key.name == "scale") return listed(scale::scale_rules);
    if (key.name == "scale_format") return listed(format::scale_formats);
    if (key.name == "round") return listed(format::roundings);
    if (key.name == "dialect") return listed(codec::dialects());
    if (key.name == "block") {
        return {{"1x16", {}},  {"1x32", {}},  {"1x64", {}},
                {"1x128", {}}, {"16x16", {}}, {"32x1", {}}};
    }
    candidates values;  // "none, fp16": the rest of the word is a description
    for (std::string_view rest = key.values; !rest.empty();) {
        const std::string_view value = rest.substr(0, rest.find(", "));
        if (value.find(' ') != std::string_view::npos) return {};
        values.push_back({std::string(value), {}});
        rest.remove_prefix(std::min(rest.size(), value.size() + 2));
    }
    return values;
}

// PRESET[:KEY=VALUE,...], as typed so far.
candidates recipes(std::string_view typed) {
    const std::size_t colon = typed.find(':');
    if (colon == std::string_view::npos) {
        candidates presets = listed(format::block_formats);
        if (std::ranges::any_of(presets, [&](const candidate& c) { return c.word == typed; })) {
            presets.push_back({std::string(typed) + ":", "with keys"});
        }
        return presets;
    }
    const std::size_t key_at = std::max(colon, typed.find_last_of(",:")) + 1;
    const std::string_view pair = typed.substr(key_at);
    const std::size_t equals = pair.find('=');
    candidates found;
    for (const codec::recipe_key& key : codec::recipe_keys()) {
        const std::string name = fmt::format("{}{}=", typed.substr(0, key_at), key.name);
        if (equals == std::string_view::npos) {
            found.push_back({name, std::string(key.summary)});
        } else if (key.name == pair.substr(0, equals)) {
            for (const candidate& value : values_of(key)) {
                found.push_back({name + value.word, value.meaning});
            }
        }
    }
    return found;
}

// The tensors of the files on the line.
candidates tensors(words_before words) {
    candidates names;
    for (const std::string& word : words) {
        std::error_code none;
        // Opening a pipe would block.
        if (word.empty() || word.front() == '-' ||
            !(std::filesystem::is_regular_file(word, none) ||
              std::filesystem::is_directory(word, none))) {
            continue;
        }
        try {
            const engine::model model({word}, {}, {});
            for (const auto& t : model.tensors()) {
                if (names.size() == most_tensors) return names;
                // A shell would interpret others: they come from a file.
                const std::string& name = t.info().name;
                if (report::shell_word(name) == name) names.push_back({name, {}});
            }
        } catch (const base::error&) {  // not a checkpoint
        }
    }
    return names;
}

// The candidates for a value's word in help.
candidates values(std::string_view command, std::string_view option, std::string_view value,
                  words_before before, std::string_view typed) {
    if (value == "RECIPE") return recipes(typed);
    if (value == "GLOB" || value == "TENSOR") return tensors(before);
    if (value == "MODEL" && command != "train") return listed(gemm::accumulators());
    if (value == "TARGET") return listed(policy::targets);
    if (value == "SCHEME" || option == "--scheme") return listed(lab::schemes);
    if (option == "--backend") return listed(base::backends);
    if (option == "--role" || value == "ROLE") return listed(engine::roles());
    if (option == "--element") return listed(format::element_formats);
    if (option == "--round") return listed(format::roundings);
    if (option == "--scale") return listed(scale::scale_rules);
    if (command == "help") {
        candidates all = listed(commands());
        for (candidate& topic : listed(help_topics())) all.push_back(std::move(topic));
        return all;
    }
    if (command == "study" && value == "STUDY") {
        candidates all = listed(experiments::studies());
        for (const mx::app::command& c : commands()) {
            if (!c.name.starts_with("study ")) continue;
            all.push_back({std::string(c.name.substr(6)), std::string(c.summary)});
        }
        return all;
    }
    if (command == "explain" && value == "WHAT") {
        candidates all = recipes(typed);
        if (typed.find(':') != std::string_view::npos) return all;
        for (const std::string_view name : documents::explained_names()) {
            all.push_back({std::string(name), {}});
        }
        return all;
    }
    return {};
}

// "-t, --tensor GLOB" consists of the names "-t" and "--tensor" and the value's word "GLOB";
// "FILE..." is only a value's word.
struct spelt {
    std::vector<std::string> names;
    std::string value;
};
spelt parts_of(const option_line& line) {
    spelt all;
    for (std::string_view rest = line.spelling; !rest.empty();) {
        const std::string_view piece = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(rest.size(), piece.size() + 1));
        const std::string word(piece.substr(0, piece.find_first_of(",.")));
        if (line.positional || word.front() != '-') {
            all.value = word;
        } else {
            all.names.push_back(word);
        }
    }
    return all;
}

candidates options_and_values(const command& chosen, words_before before,
                              const std::string& typed) {
    parser cmd;
    chosen.declare(cmd);
    set_up(cmd, chosen);
    const std::vector<option_line> lines = option_lines(cmd);
    candidates found;
    if (!typed.empty() && typed.front() == '-') {
        for (const option_line& line : lines) {
            if (line.positional) continue;
            for (const std::string& name : parts_of(line).names) found.push_back({name, line.text});
        }
        return found;
    }
    for (const option_line& line : lines) {  // the value of the preceding option
        const spelt option = parts_of(line);
        if (line.positional || option.value.empty()) continue;
        if (std::ranges::find(option.names, before.back()) == option.names.end()) continue;
        return values(chosen.name, option.names.back(), option.value, before, typed);
    }
    for (const option_line& line : lines) {
        if (!line.positional) continue;
        for (candidate& c : values(chosen.name, {}, parts_of(line).value, before, typed)) {
            found.push_back(std::move(c));
        }
    }
    return found;
}

}  // namespace

std::vector<candidate> completions(std::span<const std::string> words) {
    if (words.empty()) return {};
    const std::string& typed = words.back();
    candidates found;
    if (words.size() == 1) {
        for (const command& c : commands()) {
            if (!c.group.empty()) found.push_back({std::string(c.name), std::string(c.summary)});
        }
    } else {
        const words_before before = words.first(words.size() - 1);
        const command* chosen = base::find_named(
            commands(), base::joined(before.first(std::min<std::size_t>(before.size(), 2)), " "));
        if (chosen == nullptr) chosen = base::find_named(commands(), words.front());
        if (chosen == nullptr) return {};
        found = options_and_values(*chosen, before, typed);
    }
    std::erase_if(found, [&](const candidate& c) { return !c.word.starts_with(typed); });
    return found;
}

std::string completion_lines(std::span<const std::string> words) {
    std::string text;
    for (const candidate& c : completions(words)) {
        // Shells parse lines and tabs, but names in files may contain any bytes.
        if (c.word.find_first_of("\n\t\r\x1b") != std::string::npos) continue;
        text += c.meaning.empty() ? fmt::format("{}\n", c.word)
                                  : fmt::format("{}\t{}\n", c.word, c.meaning);
    }
    return text;
}

}  // namespace mx::app

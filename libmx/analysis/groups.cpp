// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/groups.hpp"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/engine/parts.hpp"

namespace mx::analysis {
namespace {

constexpr std::string_view word_ends = "./";

std::vector<std::string_view> words_of(std::string_view name) {
    std::vector<std::string_view> words;
    for (;;) {
        const std::size_t end = name.find_first_of(word_ends);
        words.push_back(name.substr(0, end));
        if (end == std::string_view::npos) return words;
        name.remove_prefix(end + 1);
    }
}

bool matches(std::span<const std::string_view> pattern, std::span<const std::string_view> words) {
    if (words.size() < pattern.size()) return false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (!base::glob_match(pattern[i], words[i])) return false;
    }
    return true;
}

// The name with the pattern in place of what it matches; none if it does not match.
std::optional<std::string> collapsed(const std::string& name, const std::string& pattern) {
    const std::vector<std::string_view> words = words_of(name), pattern_words = words_of(pattern);
    std::string text;
    bool any = false;
    for (std::size_t i = 0; i < words.size();) {
        const bool here = matches(pattern_words, std::span(words).subspan(i));
        const std::size_t count = here ? pattern_words.size() : 1;
        if (i > 0) text += words[i].data()[-1];
        if (here) {
            text += pattern;
        } else {
            text += words[i];
        }
        any = any || here;
        i += count;
    }
    return any ? std::optional(text) : std::nullopt;
}

// The kinds of --group.
struct group_request {
    std::vector<std::string> patterns;
    bool by_role = false, by_layer = false;
};

group_request parse(const std::vector<std::string>& by) {
    group_request request;
    for (const std::string& text : by) {
        if (text == "role" || text == "layer,role" || text == "role,layer") {
            request.by_role = true;
            request.by_layer = request.by_layer || text != "role";
        } else if (text.find_first_of("*?[") != std::string::npos) {
            request.patterns.push_back(text);
        } else {
            base::refuse(
                "--group '{}': give a pattern of words in names, as 'experts.*', or layer,role or "
                "role",
                base::printable(text));
        }
    }
    return request;
}

std::string layer_text(const tensor_identity& of) {
    return of.layer ? fmt::format("layer.{}/", *of.layer) : std::string("layer.none/");
}

// What the record of a tensor is called.
std::string group_name(const tensor_identity& of, const group_request& request,
                       std::set<std::string>& unmatched) {
    std::string name = of.tensor;
    bool any = false;
    for (const std::string& pattern : request.patterns) {
        if (auto shorter = collapsed(name, pattern)) {
            name = std::move(*shorter);
            unmatched.erase(pattern);
            any = true;
        }
    }
    if (any || !request.by_role) return name;
    return (request.by_layer ? layer_text(of) : std::string()) + of.role;
}

// Tensors can share a record if these are equal.
using kind = std::tuple<std::string, std::string, std::size_t>;
kind kind_of(const tensor_identity& of) { return {of.role, of.dtype, of.shape.size()}; }

// Adds a tensor to the common properties of a group.
void take(tensor_identity& group, const tensor_identity& tensor) {
    if (group.stored_bytes && tensor.stored_bytes) {
        // Tied tensors count where the tensor does that they are tied to.
        if (!group.tied_to.empty()) group.stored_bytes = 0;
        if (tensor.tied_to.empty()) *group.stored_bytes += *tensor.stored_bytes;
    }
    group.tied_to.clear();
    if (group.layer != tensor.layer) group.layer.reset();
    for (std::size_t i = 0; i < group.shape.size(); ++i) {
        group.shape[i] = std::gcd(group.shape[i], tensor.shape[i]);
    }
}

}  // namespace

tensor_identity identity_of(const io::tensor_info& info, std::string_view role) {
    tensor_identity of{info.file,
                       info.name,
                       std::string(tensor::row_of(info.type).name),
                       std::string(role),
                       info.shape,
                       {},
                       static_cast<std::int64_t>(engine::bytes_of(info)),
                       info.tied_to,
                       engine::summed_axes_of(info, role)};
    if (const auto place = engine::layer_of(info.name)) {
        of.layer = static_cast<std::int64_t>(place->layer);
    }
    return of;
}

grouping group_tensors(std::span<const engine::tensor_ref> tensors,
                       const std::vector<std::string>& by, const engine::role_finder& roles) {
    const auto identity = [&](std::size_t t) {
        return identity_of(tensors[t].info(), roles.role_of(tensors[t].info()));
    };
    return group_tensors(tensors.size(), identity, by);
}

grouping group_tensors(std::size_t count,
                       const std::function<tensor_identity(std::size_t)>& identity,
                       const std::vector<std::string>& by) {
    const group_request request = parse(by);
    std::set<std::string> unmatched(request.patterns.begin(), request.patterns.end());
    grouping g;
    std::vector<tensor_identity> found;
    std::vector<std::string> names;
    std::map<std::pair<std::string, kind>, std::size_t> places;
    base::text_map<std::set<kind>> kinds;  // by name
    for (std::size_t t = 0; t < count; ++t) {
        tensor_identity of = identity(t);
        std::string name = group_name(of, request, unmatched);
        kinds[name].insert(kind_of(of));
        const auto [at, added] = places.emplace(std::pair(name, kind_of(of)), found.size());
        g.group_of.push_back(at->second);
        if (added) {
            of.tensor = std::move(name);
            found.push_back(std::move(of));
            g.groups.emplace_back();
        } else {
            take(found[at->second], of);
        }
        ++g.groups[at->second].tensors;
    }
    if (!unmatched.empty()) {
        base::refuse("--group '{}' matches no tensor: its words stand between the dots of a name",
                     base::printable(*unmatched.begin()));
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        tensor_identity& of = found[i];
        if (kinds[of.tensor].size() > 1) {
            of.tensor += fmt::format(" ({}, {}, {}-D)", of.role, of.dtype, of.shape.size());
        }
        g.groups[i].of = std::make_shared<tensor_identity>(std::move(of));
    }
    return g;
}

}  // namespace mx::analysis

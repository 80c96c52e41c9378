// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/pytorch/tensor_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "libmx/base/text_tables.hpp"
#include "libmx/files/pytorch/torch_values.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/read_budget.hpp"

namespace mx::io {
namespace {

constexpr std::size_t depth_limit = 1000;
constexpr std::size_t name_bytes_limit = std::size_t{256} << 20;
constexpr std::size_t name_length_limit = 1 << 16;
constexpr std::size_t name_in_errors = 60;
// What a tensor takes beside its name, and how often a name is stored, here and by the readers.
constexpr std::size_t named_value_bytes = 1024;
constexpr std::size_t name_copies = 4;
constexpr std::size_t passed_over_limit = 20;

// Every value that `ref` refers to, by index: callee, arguments, state, then the items.
pickle_ref edge(const pickle_graph& graph, pickle_ref ref, std::size_t index, bool& end) {
    const pickle_value& value = graph[ref];
    const bool object = value.kind == pickle_kind::object;
    const auto items = graph.items(ref);
    end = index >= 3 + items.size();
    if (index == 0) return object ? value.callee : no_value;
    if (index == 1) return object ? value.arguments : no_value;
    if (index == 2) return value.state;
    return end ? no_value : items[index - 3];
}

// Which values contain tensors, directly or inside.
class tensor_bearing {
  public:
    explicit tensor_bearing(const pickle_graph& graph) : state_(graph.size(), unseen) {
        struct frame {
            pickle_ref ref;
            std::size_t next;
        };
        std::vector<frame> path;
        const auto enter = [&](pickle_ref ref) {
            state_[ref] = is_tensor(graph, ref) ? yes : no;
            path.push_back({ref, 0});
        };
        enter(graph.root());
        while (!path.empty()) {
            frame& here = path.back();
            bool end = false;
            const pickle_ref child = edge(graph, here.ref, here.next++, end);
            if (end) {
                const bool bears = state_[here.ref] == yes;
                path.pop_back();
                if (bears && !path.empty()) state_[path.back().ref] = yes;
            } else if (child != no_value && state_[child] == unseen) {
                enter(child);
            } else if (child != no_value && state_[child] == yes) {
                state_[here.ref] = yes;
            }
        }
    }
    bool operator[](pickle_ref ref) const { return ref != no_value && state_[ref] == yes; }

  private:
    enum : std::uint8_t { unseen, no, yes };
    std::vector<std::uint8_t> state_;
};

struct step {
    pickle_ref key = no_value;  ///< of a dict or of an object's attributes
    std::size_t index = 0;
    pickle_ref value = no_value;
    bool silent = false;  ///< adds nothing to the name
};

class walker {
  public:
    walker(const pickle_graph& graph, const std::string& file, const std::string& stem)
        : graph_(graph),
          file_(file),
          stem_(stem),
          bearing_(graph),
          seen_(graph.size(), false),
          checked_(graph.size(), false),
          on_path_(graph.size(), false) {}

    checkpoint_values walk() {
        visit(graph_.root());
        while (!path_.empty()) {
            frame& here = path_.back();
            name_.resize(here.name_length);
            if (here.next == here.steps.size()) {
                on_path_[here.ref] = false;
                path_.pop_back();
                continue;
            }
            const step next = here.steps[here.next++];
            if (!next.silent) {
                if (!name_.empty()) name_ += '.';
                graph_.budget().take(graph_.text(next.key).size());
                append_label(next);
                if (name_.size() > name_length_limit) {
                    name_.resize(name_in_errors);
                    fail(fmt::format("a name is longer than {} bytes", name_length_limit));
                }
            }
            visit(next.value);
        }
        leave_out_wrapper();
        return std::move(out_);
    }

  private:
    struct frame {
        pickle_ref ref;
        std::size_t name_length;
        std::vector<step> steps;
        std::size_t next = 0;
    };

    [[noreturn]] void fail(const std::string& message) const {
        input_error(message, {file_, name_, {}});
    }

    void append_label(const step& s) {
        if (s.key == no_value) {
            name_ += std::to_string(s.index);
            return;
        }
        const pickle_kind kind = graph_.kind(s.key);
        if (kind == pickle_kind::text || kind == pickle_kind::bytes) {
            name_ += graph_.text(s.key);
        } else if (kind == pickle_kind::integer) {
            name_ += std::to_string(*graph_.integer(s.key));
        } else if (kind == pickle_kind::truth) {
            name_ += graph_.truth(s.key) ? "True" : "False";
        } else {  // a key without a short spelling: its index in the dict
            name_ += fmt::format("[{}]", s.index);
        }
    }

    // Of the step of the root that the value at hand stands below.
    void note_wrapper() {
        const bool below = path_.size() > 1;
        const std::size_t step = below ? path_.front().next - 1 : 0;
        if (!below || (root_step_ && *root_step_ != step)) {
            scattered_ = true;
        } else if (!root_step_) {
            root_step_ = step;
            wrapper_ = name_.substr(0, path_[1].name_length);
        }
    }

    void leave_out_wrapper() {
        const bool known = std::ranges::find(wrapper_keys, wrapper_) != wrapper_keys.end();
        if (scattered_ || !known) return;
        for (named_value& t : out_.tensors) t.name.erase(0, wrapper_.size() + 1);
    }

    void count(std::size_t steps) { graph_.budget().take(steps * sizeof(step)); }

    void visit(pickle_ref ref) {
        count(1);
        if (on_path_[ref]) return;
        if (is_tensor(graph_, ref)) return add(ref, {});
        const pickle_value& value = graph_[ref];
        if (!bearing_[ref]) {
            if (seen_[ref]) return;
            seen_[ref] = true;
        }
        if (value.kind == pickle_kind::object) {
            if (!enter_object(ref)) return;
        }
        if (path_.size() >= depth_limit) {
            if (!bearing_[ref]) return;
            name_.resize(std::min(name_.size(), name_in_errors));
            fail(fmt::format("values are nested more than {} deep", depth_limit));
        }
        std::vector<step> steps = steps_of(ref);
        if (steps.empty()) return;
        on_path_[ref] = true;
        path_.push_back({ref, name_.size(), std::move(steps), 0});
    }

    // The remark on the object itself; false if there is nothing inside to visit.
    bool enter_object(pickle_ref ref) {
        const pickle_value& value = graph_[ref];
        const torch_function* known = known_function(graph_, value.callee);
        const bool container = known != nullptr && known->meaning == torch_meaning::container;
        if (container) return true;
        if (!bearing_[ref]) {
            if (known == nullptr && ++out_.passed_over_count <= passed_over_limit) {
                out_.passed_over.emplace_back(name_, graph_.class_name(ref));
            }
            return false;
        }
        // Other references to an object lead to the same tensors, which are listed once.
        if (seen_[ref]) return false;
        seen_[ref] = true;
        if (bearing_[value.arguments] || bearing_[value.callee]) {
            add(ref, fmt::format("an object of {}; mx executes nothing, so it is not built",
                                 graph_.class_name(ref)));
        }
        return true;
    }

    std::vector<step> steps_of(pickle_ref ref) {
        std::vector<step> steps;
        const pickle_value& value = graph_[ref];
        add_items(ref, steps);
        if (value.kind != pickle_kind::object) return steps;
        if (value.items == no_value) add_initial_items(value, steps);
        // The input of __setstate__: attributes, or (attributes, slots).
        add_attributes(value.state, steps);
        if (graph_.kind(value.state) == pickle_kind::tuple &&
            graph_.items(value.state).size() == 2) {
            add_attributes(graph_.at(value.state, 0), steps);
            add_attributes(graph_.at(value.state, 1), steps);
        }
        return steps;
    }
    void add_items(pickle_ref ref, std::vector<step>& steps) {
        if (graph_[ref].pairs) return add_pairs(ref, steps, false);
        const auto items = graph_.items(ref);
        count(items.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (worth(items[i])) steps.push_back({no_value, i, items[i]});
        }
    }
    // OrderedDict([[key, value], ...]) of Python 2, deque([...]).
    void add_initial_items(const pickle_value& value, std::vector<step>& steps) {
        const torch_function* known = known_function(graph_, value.callee);
        const pickle_ref initial = graph_.at(value.arguments, 0);
        if (known == nullptr || known->meaning != torch_meaning::container || initial == no_value) {
            return;
        }
        const bool mapping = known->name == "OrderedDict";
        const auto items = graph_.items(initial);
        if (!mapping || graph_[initial].pairs) return add_items(initial, steps);
        count(items.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
            const pickle_ref key = graph_.at(items[i], 0);
            const pickle_ref item = graph_.at(items[i], 1);
            if (key != no_value && item != no_value) steps.push_back({key, i, item});
        }
    }
    void add_attributes(pickle_ref state, std::vector<step>& steps) {
        if (state != no_value && graph_[state].pairs) add_pairs(state, steps, true);
    }
    void add_pairs(pickle_ref ref, std::vector<step>& steps, bool attributes) {
        static constexpr std::array<std::string_view, 3> parts{"_parameters", "_buffers",
                                                               "_modules"};
        const auto items = graph_.items(ref);
        count(items.size());
        if (bearing_[ref] && !checked_[ref]) check_keys(items);
        checked_[ref] = true;
        const auto is_part = [&](std::size_t i) {
            return attributes && std::ranges::find(parts, graph_.text(items[i])) != parts.end();
        };
        std::size_t found = 0;
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) found += is_part(i) ? 1u : 0u;
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            if (!worth(items[i + 1])) continue;
            const bool silent = is_part(i);
            // Other attributes of a module, such as the _flat_weights of an LSTM, are no part of
            // its state_dict.
            if (found == parts.size() && !silent) continue;
            steps.push_back({items[i], i / 2, items[i + 1], silent});
        }
    }
    // Numbers and texts need no visit.
    bool worth(pickle_ref ref) const {
        const pickle_value& value = graph_[ref];
        return value.kind == pickle_kind::object || value.kind == pickle_kind::persistent ||
               value.items != no_value;
    }

    void check_keys(std::span<const pickle_ref> pairs) {
        base::view_set texts;
        for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
            if (graph_.kind(pairs[i]) != pickle_kind::text) continue;
            graph_.budget().take(graph_.text(pairs[i]).size());
            if (!texts.insert(graph_.text(pairs[i])).second) {
                fail(fmt::format("the key '{}' is duplicated", graph_.text(pairs[i])));
            }
        }
    }

    void add(pickle_ref ref, std::string note) {
        const std::string plain = path_.empty() && name_.empty() ? stem_ : name_;
        std::string name = plain;
        for (std::size_t& number = names_[plain]; !taken_.insert(name).second;) {
            name = fmt::format("{}#{}", plain, std::max<std::size_t>(++number, 2));
            number = std::max<std::size_t>(number, 2);
        }
        note_wrapper();
        name_bytes_ += name.size();
        graph_.budget().take(named_value_bytes + name_copies * name.size());
        if (out_.tensors.size() >= named_value_limit || name_bytes_ > name_bytes_limit) {
            fail(fmt::format("the file lists more than {} tensors or {} MiB of names",
                             named_value_limit, name_bytes_limit >> 20));
        }
        out_.tensors.push_back({std::move(name), ref, std::move(note)});
    }

    const pickle_graph& graph_;
    const std::string& file_;
    const std::string& stem_;
    tensor_bearing bearing_;
    std::vector<bool> seen_;
    std::vector<bool> checked_;  // dicts whose keys differ
    std::vector<bool> on_path_;
    std::vector<frame> path_;
    std::string name_;
    std::optional<std::size_t> root_step_;  // below which all tensors so far stand
    std::string wrapper_;                   // its name
    bool scattered_ = false;                // whether there are others
    base::text_map<std::size_t> names_;
    base::text_set taken_;
    std::size_t name_bytes_ = 0;
    checkpoint_values out_;
};

}  // namespace

checkpoint_values find_tensors(const pickle_graph& graph, const std::string& file,
                               const std::string& stem) {
    return walker(graph, file, stem).walk();
}

}  // namespace mx::io

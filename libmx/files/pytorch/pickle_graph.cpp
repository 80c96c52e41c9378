// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/pytorch/pickle_graph.hpp"

namespace mx::io {

std::string_view pickle_graph::text(pickle_ref ref) const {
    if (kind(ref) != pickle_kind::text && kind(ref) != pickle_kind::bytes) return {};
    const std::uint64_t word = values_[ref].word;
    return std::string_view(bytes_).substr(static_cast<std::size_t>(word >> 32),
                                           static_cast<std::size_t>(word & 0xffffffffu));
}

std::optional<std::int64_t> pickle_graph::integer(pickle_ref ref) const {
    if (kind(ref) != pickle_kind::integer) return std::nullopt;
    return static_cast<std::int64_t>(values_[ref].word);
}

std::optional<std::uint64_t> pickle_graph::count(pickle_ref ref) const {
    const std::optional<std::int64_t> value = integer(ref);
    if (!value || *value < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
}

bool pickle_graph::truth(pickle_ref ref) const {
    return kind(ref) == pickle_kind::truth && values_[ref].word != 0;
}

std::span<const pickle_ref> pickle_graph::items(pickle_ref ref) const {
    if (ref == no_value || values_[ref].items == no_value) return {};
    return items_[values_[ref].items];
}

pickle_ref pickle_graph::at(pickle_ref ref, std::size_t index) const {
    if (ref == no_value || values_[ref].pairs) return no_value;
    const std::span<const pickle_ref> all = items(ref);
    return index < all.size() ? all[index] : no_value;
}

pickle_ref pickle_graph::find(pickle_ref ref, std::string_view key) const {
    if (ref == no_value || !values_[ref].pairs) return no_value;
    const std::span<const pickle_ref> all = items(ref);
    budget_->take(all.size());
    for (std::size_t i = all.size(); i >= 2; i -= 2) {
        if (kind(all[i - 2]) == pickle_kind::text && text(all[i - 2]) == key) return all[i - 1];
    }
    return no_value;
}

pickle_ref pickle_graph::attribute(pickle_ref ref, std::string_view name) const {
    return ref == no_value ? no_value : find(values_[ref].state, name);
}

bool pickle_graph::is_global(pickle_ref ref, std::string_view module, std::string_view name) const {
    if (kind(ref) != pickle_kind::global) return false;
    return text(values_[ref].callee) == module && text(values_[ref].arguments) == name;
}

std::string pickle_graph::global_name(pickle_ref ref) const {
    // A name may be as long as the pickle, and be used repeatedly.
    constexpr std::size_t longest = 100;
    std::string ending;
    // getattr(getattr(x, "a"), "b"): as deep as names go in practice.
    for (int depth = 0; depth < 8 && ref != no_value; ++depth) {
        const pickle_value& value = values_[ref];
        if (value.kind == pickle_kind::global) {
            return std::string(text(value.callee).substr(0, longest)) + "." +
                   std::string(text(value.arguments).substr(0, longest)) + ending;
        }
        const bool looked_up = value.kind == pickle_kind::object &&
                               (is_global(value.callee, "builtins", "getattr") ||
                                is_global(value.callee, "__builtin__", "getattr"));
        const pickle_ref name = looked_up ? at(value.arguments, 1) : no_value;
        if (kind(name) != pickle_kind::text) return {};
        ending.insert(0, text(name).substr(0, longest));
        ending.insert(0, ".");
        ref = at(value.arguments, 0);
    }
    return {};
}

std::string pickle_graph::class_name(pickle_ref ref) const {
    const pickle_value& value = values_[ref];
    if (value.kind != pickle_kind::object) return global_name(ref);
    // Objects without a __reduce__ of their own are copyreg._reconstructor(class, base, state).
    if (is_global(value.callee, "copyreg", "_reconstructor") ||
        is_global(value.callee, "copy_reg", "_reconstructor")) {
        std::string made = global_name(at(value.arguments, 0));
        if (!made.empty()) return made;
    }
    std::string name = global_name(value.callee);
    return name.empty() ? "something that is itself the result of a call" : name;
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/pytorch/torch_values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/io/input_file.hpp"
#include "libmx/io/read_budget.hpp"

namespace mx::io {
namespace {

// A call in the pickle: what would be called with what.
struct torch_call {
    const torch_function* function = nullptr;
    pickle_ref arguments = no_value;
};

// Wrappers (parameters, subclasses) around the call that makes a tensor; more are a mistake.
constexpr int wrapper_limit = 16;

// Follows wrappers to the value they wrap: a call, a bare storage, or something else.
pickle_ref unwrapped(const pickle_graph& graph, pickle_ref ref, torch_call& found) {
    found = {};
    for (int depth = 0; depth < wrapper_limit && ref != no_value; ++depth) {
        const pickle_value& value = graph[ref];
        if (value.kind != pickle_kind::object) return ref;
        found = {known_function(graph, value.callee), value.arguments};
        for (int inner = 0; inner < wrapper_limit && found.function != nullptr &&
                            found.function->meaning == torch_meaning::from_type;
             ++inner) {
            const pickle_ref callee = graph.at(found.arguments, 0);
            const pickle_ref arguments = graph.at(found.arguments, 2);
            found = {known_function(graph, callee), arguments};
        }
        if (found.function == nullptr || found.function->meaning != torch_meaning::first)
            return ref;
        ref = graph.at(found.arguments, 0);
    }
    found = {};
    return ref;
}

class tensor_reader {
  public:
    tensor_reader(const pickle_graph& graph, const std::string& file, const std::string& name)
        : graph_(graph), file_(file), name_(name) {}

    torch_tensor read(pickle_ref ref) const {
        torch_call call;
        const pickle_ref value = unwrapped(graph_, ref, call);
        if (graph_.kind(value) == pickle_kind::persistent) return bare(value);
        if (call.function == nullptr) fail("is not a tensor");
        switch (call.function->meaning) {
            case torch_meaning::view:
            case torch_meaning::typed_view:
                return view(call);
            case torch_meaning::unreadable: {
                torch_tensor out;
                out.note = call.function->note;
                out.shape = {0};
                return out;
            }
            default:
                fail("is not a tensor");
        }
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        input_error(message, {file_, name_, {}});
    }

    // ('storage', class, record, device, elements)
    void read_storage(pickle_ref ref, torch_tensor& out) const {
        const bool outside = graph_.kind(ref) == pickle_kind::persistent;
        const pickle_ref name = outside ? graph_[ref].arguments : no_value;
        const auto elements = graph_.count(graph_.at(name, 4));
        const pickle_ref record = graph_.at(name, 2);
        if (!elements || graph_.kind(record) != pickle_kind::text ||
            graph_.text(graph_.at(name, 0)) != "storage") {
            fail("its storage is not described as in PyTorch");
        }
        const pickle_ref type = graph_.at(name, 1);
        const bool global = graph_.kind(type) == pickle_kind::global;
        const std::string_view module = global ? graph_.text(graph_[type].callee) : "";
        const std::string_view made = global ? graph_.text(graph_[type].arguments) : "";
        const auto* row = std::ranges::find_if(torch_dtypes, [&](const torch_dtype& t) {
            return !t.storage.empty() && t.storage == made;
        });
        if (row == torch_dtypes.end() ||
            (module != "torch" && module != "torch.storage" && module != "torch.cuda")) {
            fail(fmt::format("its storage is of class '{}', which mx does not support",
                             graph_.global_name(type)));
        }
        out.type = &*row;
        out.storage = graph_.text(record);
        if (__builtin_mul_overflow(*elements, row->width, &out.storage_bytes)) {
            fail(fmt::format("its storage of {} elements is too large", *elements));
        }
    }

    torch_tensor bare(pickle_ref storage) const {
        torch_tensor out;
        read_storage(storage, out);
        out.shape = {out.storage_bytes / out.type->width};
        out.strides = {1};
        out.note = out.type->note;
        return out;
    }

    torch_tensor view(const torch_call& call) const {
        const pickle_ref args = call.arguments;
        torch_tensor out;
        read_storage(graph_.at(args, 0), out);
        const auto offset = graph_.count(graph_.at(args, 1));
        const auto shape = extents_of(graph_, graph_.at(args, 2));
        const auto strides = extents_of(graph_, graph_.at(args, 3));
        if (!offset || !shape || !strides || shape->size() != strides->size()) {
            fail(
                fmt::format("its offset, extents and strides are not described as in PyTorch, or "
                            "have more than {} axes",
                            axes_limit));
        }
        out.offset = *offset;
        out.shape = *shape;
        out.strides = *strides;
        std::size_t next = 6;
        if (call.function->meaning == torch_meaning::typed_view) {
            const pickle_ref type = graph_.at(args, next++);
            out.type = dtype_of(graph_, type);
            if (out.type == nullptr) {
                fail(
                    fmt::format("its dtype '{}' is not supported by mx", graph_.global_name(type)));
            }
        }
        out.note = out.type->note;
        const pickle_ref lazy = graph_.at(args, next);
        for (const std::string_view bit : {"neg", "conj"}) {
            if (out.note.empty() && graph_.truth(graph_.find(lazy, bit))) {
                out.note = fmt::format(
                    "its values are stored without the {} that its view asks "
                    "for; save resolve_{}() of it",
                    bit == "neg" ? "minus sign" : "conjugation", bit);
            }
        }
        return out;
    }

    const pickle_graph& graph_;
    const std::string& file_;
    const std::string& name_;
};

}  // namespace

const torch_function* known_function(const pickle_graph& graph, pickle_ref callee) {
    if (graph.kind(callee) != pickle_kind::global) return nullptr;
    for (const torch_function& row : torch_functions) {
        if (graph.is_global(callee, row.module, row.name)) return &row;
    }
    return nullptr;
}

const torch_dtype* dtype_of(const pickle_graph& graph, pickle_ref ref) {
    for (const torch_dtype& row : torch_dtypes) {
        if (!row.name.empty() && graph.is_global(ref, "torch", row.name)) return &row;
    }
    return nullptr;
}

bool is_tensor(const pickle_graph& graph, pickle_ref ref) {
    torch_call call;
    const pickle_ref value = unwrapped(graph, ref, call);
    if (graph.kind(value) == pickle_kind::persistent) return true;
    return call.function != nullptr && (call.function->meaning == torch_meaning::view ||
                                        call.function->meaning == torch_meaning::typed_view ||
                                        call.function->meaning == torch_meaning::unreadable);
}

torch_tensor read_tensor(const pickle_graph& graph, pickle_ref ref, const std::string& file,
                         const std::string& name) {
    return tensor_reader(graph, file, name).read(ref);
}

std::optional<std::vector<std::uint64_t>> extents_of(const pickle_graph& graph, pickle_ref ref) {
    if (graph.kind(ref) == pickle_kind::object &&
        graph.is_global(graph[ref].callee, "torch", "Size")) {
        ref = graph.at(graph[ref].arguments, 0);
    }
    if (graph.kind(ref) != pickle_kind::tuple && graph.kind(ref) != pickle_kind::list) {
        return std::nullopt;
    }
    if (graph.items(ref).size() > axes_limit) return std::nullopt;
    std::vector<std::uint64_t> out;
    for (const pickle_ref item : graph.items(ref)) {
        const std::optional<std::uint64_t> extent = graph.count(item);
        if (!extent) return std::nullopt;
        out.push_back(*extent);
    }
    return out;
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/onnx/onnx_contractions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "libmx/base/text_tables.hpp"
#include "libmx/io/no_product.hpp"

namespace mx::io {
namespace {

// Steps through the graph before it is left alone: damaged files can name a value many times.
constexpr std::size_t most_steps = std::size_t{1} << 22;

// Axes [first, last) of a stored tensor that one axis of a value consists of; none if it is a part
// of an axis, or axes that are no neighbours.
using stored_axes = std::optional<std::pair<int, int>>;

// A value of the graph that is a stored tensor in another form.
struct followed_value {
    std::string name;
    tensor::shape shape;
    std::vector<stored_axes> axes;
};

// How a product uses an input: the axes that it sums over.
enum class operand : std::uint8_t {
    left,                // the last axis, or the first of two with transA
    right,               // the last axis but one, or the last with transB
    right_of_attention,  // the first axis
    kernel,              // all axes after the first
    transposed_kernel,   // the first axis
    gates,               // the last axis: [directions, gates, in]
    einsum,              // by the equation
};

struct product_input {
    std::string_view operation;
    std::size_t input;
    operand how;
};

// THE PRODUCTS: operators and their inputs that are multiplied and summed.
constexpr std::array product_inputs{
    product_input{"MatMul", 0, operand::left},
    product_input{"MatMul", 1, operand::right},
    product_input{"FusedMatMul", 0, operand::left},
    product_input{"FusedMatMul", 1, operand::right},
    product_input{"MatMulInteger", 0, operand::left},
    product_input{"MatMulInteger", 1, operand::right},
    product_input{"DynamicQuantizeMatMul", 1, operand::right},
    product_input{"MatMulIntegerToFloat", 0, operand::left},
    product_input{"MatMulIntegerToFloat", 1, operand::right},
    product_input{"QLinearMatMul", 0, operand::left},
    product_input{"QLinearMatMul", 3, operand::right},
    product_input{"Gemm", 0, operand::left},
    product_input{"Gemm", 1, operand::right},
    product_input{"FusedGemm", 0, operand::left},
    product_input{"FusedGemm", 1, operand::right},
    product_input{"QGemm", 0, operand::left},
    product_input{"QGemm", 3, operand::right},
    product_input{"Conv", 1, operand::kernel},
    product_input{"FusedConv", 1, operand::kernel},
    product_input{"ConvInteger", 1, operand::kernel},
    product_input{"QLinearConv", 3, operand::kernel},
    product_input{"DeformConv", 1, operand::kernel},
    product_input{"ConvTranspose", 1, operand::transposed_kernel},
    product_input{"LSTM", 1, operand::gates},
    product_input{"LSTM", 2, operand::gates},
    product_input{"GRU", 1, operand::gates},
    product_input{"GRU", 2, operand::gates},
    product_input{"RNN", 1, operand::gates},
    product_input{"RNN", 2, operand::gates},
    product_input{"Attention", 1, operand::right_of_attention},
    product_input{"QAttention", 1, operand::right_of_attention},
    product_input{"Einsum", 0, operand::einsum},
    product_input{"Einsum", 1, operand::einsum},
};

const product_input* find_product(const onnx_node& n, std::size_t input) {
    const auto at = std::ranges::find_if(product_inputs, [&](const product_input& p) {
        return p.operation == n.operation && p.input == input;
    });
    return at == product_inputs.end() ? nullptr : &*at;
}

std::int64_t number_in(const onnx_node& n, const char* name, std::int64_t otherwise) {
    const auto at = n.numbers.find(name);
    return at == n.numbers.end() ? otherwise : at->second.front();
}

// The axes of input `input` that the product does not keep. Empty if the equation is not
// understood.
std::vector<int> axes_of_equation(const onnx_node& n, std::size_t input, std::size_t rank) {
    std::string text;
    std::ranges::copy_if(n.equation, std::back_inserter(text), [](char c) { return c != ' '; });
    const std::size_t arrow = text.find("->");
    if (arrow == std::string::npos || text.find('.') != std::string::npos) return {};
    std::string_view terms = std::string_view(text).substr(0, arrow);
    for (; input > 0 && terms.find(',') != std::string_view::npos; --input) {
        terms.remove_prefix(terms.find(',') + 1);
    }
    const std::string_view term = terms.substr(0, terms.find(','));
    if (input > 0 || term.size() != rank) return {};
    std::vector<int> summed;
    for (std::size_t i = 0; i < rank; ++i) {
        if (text.find(term[i], arrow) == std::string::npos) summed.push_back(static_cast<int>(i));
    }
    return summed;
}

// The axes of a value of `rank` axes that the product sums over; empty if they are not known.
std::vector<int> summed_axes(const onnx_node& n, const product_input& p, int rank) {
    const bool is_transposed = number_in(n, p.how == operand::left ? "transA" : "transB", 0) != 0;
    const auto one = [rank](int axis) {
        return axis >= 0 && axis < rank ? std::vector{axis} : std::vector<int>{};
    };
    switch (p.how) {
        case operand::left:
            return one(is_transposed && rank > 1 ? rank - 2 : rank - 1);
        case operand::right:
            return one(is_transposed || rank == 1 ? rank - 1 : rank - 2);
        case operand::right_of_attention:
            return one(0);
        case operand::gates:
            return one(rank - 1);
        case operand::transposed_kernel:
            return number_in(n, "group", 1) == 1 ? one(0) : std::vector<int>{};
        case operand::kernel: {
            std::vector<int> axes;
            for (int i = 1; i < rank; ++i) axes.push_back(i);
            return axes;
        }
        case operand::einsum:
            return axes_of_equation(n, p.input, static_cast<std::size_t>(rank));
    }
    return {};
}

stored_axes joined(const stored_axes& a, const stored_axes& b) {
    if (!a || !b) return {};
    if (a->first == a->second) return b;
    if (b->first == b->second) return a;
    if (a->second != b->first && b->second != a->first) return {};
    return std::pair(std::min(a->first, b->first), std::max(a->second, b->second));
}

// The stored axes behind some axes of a value, in whatever order.
stored_axes stored_of(const followed_value& v, const std::vector<int>& axes) {
    std::vector<stored_axes> parts;
    for (const int axis : axes) parts.push_back(v.axes[static_cast<std::size_t>(axis)]);
    std::ranges::sort(parts);
    stored_axes all = std::pair(0, 0);
    for (const stored_axes& part : parts) all = joined(all, part);
    if (axes.empty() || !all || all->first == all->second) return {};
    return all;
}

void transpose(followed_value& v, std::vector<std::int64_t> order) {
    if (v.axes.size() != v.shape.size()) return v.axes.clear();  // of an unknown form
    const auto rank = static_cast<std::int64_t>(v.shape.size());
    if (order.empty()) {
        for (std::int64_t i = rank; i-- > 0;) order.push_back(i);
    }
    followed_value to{v.name, {}, {}};
    for (const std::int64_t from : order) {
        if (from < 0 || from >= rank) return v.axes.clear();
        to.shape.push_back(v.shape[static_cast<std::size_t>(from)]);
        to.axes.push_back(v.axes[static_cast<std::size_t>(from)]);
    }
    v = std::move(to);
}

// The extents that a Reshape asks for: 0 keeps an axis, -1 is what is left.
std::optional<tensor::shape> reshaped(const tensor::shape& from,
                                      const std::vector<std::int64_t>& requested) {
    std::uint64_t elements = 1, known = 1;
    for (const std::uint64_t n : from) elements *= n;  // of a tensor, checked
    tensor::shape to;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < requested.size(); ++i) {
        std::int64_t n = requested[i];
        if (n == 0 && i < from.size()) n = static_cast<std::int64_t>(from[i]);
        if (n == -1 && !open) {
            open = i;
            n = 1;
        }
        if (n <= 0 || static_cast<std::uint64_t>(n) > elements / known) return {};
        known *= static_cast<std::uint64_t>(n);
        to.push_back(static_cast<std::uint64_t>(n));
    }
    if (elements % known != 0 || (!open && known != elements)) return {};
    if (open) to[*open] = elements / known;
    return to;
}

// Matches runs of axes with the same number of elements. An axis that is a part of one has none.
void reshape(followed_value& v, const tensor::shape& to) {
    std::vector<stored_axes> axes;
    std::size_t i = 0;
    for (std::size_t j = 0; j < to.size();) {
        std::uint64_t old_run = 1, new_run = 1;
        stored_axes all = std::pair(0, 0);
        std::size_t parts = 0;
        do {
            if (old_run <= new_run && i < v.shape.size() && (old_run < new_run || parts == 0)) {
                old_run *= v.shape[i];
                all = joined(all, v.axes[i++]);
            }
            if (new_run < old_run || parts == 0) {
                if (j == to.size()) break;
                new_run *= to[j++];
                ++parts;
            }
        } while (old_run != new_run && (i < v.shape.size() || new_run < old_run));
        // Of several new axes, the one that is not 1 is the whole.
        for (std::size_t k = j - parts; k < j; ++k) {
            axes.push_back(to[k] == new_run ? all
                           : to[k] == 1     ? stored_axes(std::pair(0, 0))
                                            : stored_axes());
        }
    }
    v.shape = to;
    v.axes = std::move(axes);
}

class graph_walk {
  public:
    graph_walk(const onnx_model& model,
               const std::function<std::vector<std::int64_t>(std::size_t)>& numbers)
        : model_(model), numbers_(numbers) {
        for (std::size_t n = 0; n < model.nodes.size(); ++n) {
            for (std::size_t i = 0; i < model.nodes[n].inputs.size(); ++i) {
                readers_[model.nodes[n].inputs[i]].emplace_back(n, i);
            }
            const onnx_node& node = model.nodes[n];
            const auto values = node.numbers.find("value_ints");
            if (node.operation == "Constant" && values != node.numbers.end() &&
                !node.outputs.empty()) {
                constants_.emplace(node.outputs.front(), values->second);
            }
        }
        for (std::size_t t = 0; t < model.tensors.size(); ++t) {
            tensors_.emplace(model.tensors[t].name, t);
        }
    }

    contraction of(const onnx_tensor& t) {
        uses_ = {};
        followed_value v{t.name, t.shape, {}};
        for (int i = 0; i < static_cast<int>(t.shape.size()); ++i) {
            v.axes.emplace_back(std::pair(i, i + 1));
        }
        std::vector<followed_value> open{std::move(v)};
        while (!open.empty()) {
            const followed_value at = std::move(open.back());
            open.pop_back();
            const auto found = readers_.find(at.name);
            if (found == readers_.end()) continue;
            for (const auto& [node, input] : found->second) {
                if (++steps_ > most_steps) return {};
                visit(model_.nodes[node], input, at, open);
            }
        }
        return conclusion();
    }

  private:
    struct use {
        std::pair<int, int> axes;
        std::string by;
        std::size_t nodes = 1;
    };
    struct all_uses {
        std::vector<use> products;
        std::string unfollowed, other;
        bool only_lookups = true;
    };

    static std::string node_text(const onnx_node& n) {
        const std::string& name = n.name.empty() && !n.outputs.empty() ? n.outputs.front() : n.name;
        return fmt::format("{} node '{}'", n.operation, name);
    }

    void visit(const onnx_node& n, std::size_t input, const followed_value& at,
               std::vector<followed_value>& open) {
        if (const product_input* p = find_product(n, input)) return multiply(n, *p, at);
        if (input == 0 && !n.outputs.empty() && n.outputs.front() != at.name) {
            followed_value next = at;
            if (follows(n, next)) {
                next.name = n.outputs.front();
                open.push_back(std::move(next));
                return;
            }
        }
        uses_.only_lookups = uses_.only_lookups && n.operation == "Gather" && input == 0;
        if (uses_.other.empty()) uses_.other = node_text(n);
    }

    void multiply(const onnx_node& n, const product_input& p, const followed_value& at) {
        const stored_axes axes =
            stored_of(at, at.axes.empty() ? std::vector<int>{}
                                          : summed_axes(n, p, static_cast<int>(at.axes.size())));
        if (!axes) {
            if (uses_.unfollowed.empty()) uses_.unfollowed = node_text(n);
            return;
        }
        for (use& known : uses_.products) {
            if (known.axes == *axes) return void(++known.nodes);
        }
        const bool left = p.how == operand::left || (p.how == operand::einsum && p.input == 0);
        const bool right = p.how == operand::right || (p.how == operand::einsum && p.input == 1);
        uses_.products.push_back({*axes, node_text(n) + (left    ? ", first operand"
                                                         : right ? ", second operand"
                                                                 : "")});
    }

    // Whether the node passes its first input on in another form; if so, makes it that form. An
    // unknown form has no axes.
    bool follows(const onnx_node& n, followed_value& v) {
        if (n.operation == "Identity" || n.operation == "Cast" || n.operation == "QuantizeLinear" ||
            n.operation == "DequantizeLinear") {
            return true;
        }
        if (n.operation == "Transpose") {
            const auto perm = n.numbers.find("perm");
            transpose(v, perm == n.numbers.end() ? std::vector<std::int64_t>{} : perm->second);
            return true;
        }
        if (n.operation == "Reshape") {
            const auto to =
                v.axes.empty() ? std::nullopt : reshaped(v.shape, arguments(n, "shape"));
            to ? reshape(v, *to) : v.axes.clear();
            return true;
        }
        if (n.operation == "Squeeze" || n.operation == "Unsqueeze") {
            const std::vector<std::int64_t> axes = arguments(n, "axes");
            n.operation == "Squeeze" ? squeeze(v, axes) : unsqueeze(v, axes);
            return true;
        }
        return false;
    }

    // An attribute, or the second input in newer versions.
    std::vector<std::int64_t> arguments(const onnx_node& n, const char* name) const {
        const auto own = n.numbers.find(name);
        if (own != n.numbers.end()) return own->second;
        if (n.inputs.size() < 2) return {};
        const auto constant = constants_.find(n.inputs[1]);
        if (constant != constants_.end()) return constant->second;
        const auto at = tensors_.find(n.inputs[1]);
        return at == tensors_.end() ? std::vector<std::int64_t>{} : numbers_(at->second);
    }

    static void squeeze(followed_value& v, const std::vector<std::int64_t>& axes) {
        const auto rank = static_cast<std::int64_t>(v.axes.size());
        followed_value to{v.name, {}, {}};
        for (std::int64_t i = 0; i < rank; ++i) {
            const bool named =
                std::ranges::any_of(axes, [&](std::int64_t a) { return a == i || a + rank == i; });
            const auto at = static_cast<std::size_t>(i);
            if (axes.empty() ? v.shape[at] == 1 : named) continue;
            to.shape.push_back(v.shape[at]);
            to.axes.push_back(v.axes[at]);
        }
        v = std::move(to);
    }

    static void unsqueeze(followed_value& v, const std::vector<std::int64_t>& axes) {
        const auto rank = static_cast<std::int64_t>(v.axes.size() + axes.size());
        followed_value to{v.name, {}, {}};
        std::size_t next = 0;
        for (std::int64_t i = 0; i < rank && !v.axes.empty() && !axes.empty(); ++i) {
            const bool named =
                std::ranges::any_of(axes, [&](std::int64_t a) { return a == i || a + rank == i; });
            if (!named && next == v.axes.size()) return v.axes.clear();
            to.shape.push_back(named ? 1 : v.shape[next]);
            to.axes.push_back(named ? stored_axes(std::pair(0, 0)) : v.axes[next++]);
        }
        v = std::move(to);
    }

    contraction conclusion() const {
        contraction c;
        if (uses_.products.size() == 1 && uses_.unfollowed.empty()) {
            const use& only = uses_.products.front();
            c.first = only.axes.first;
            c.last = only.axes.second;
            c.why = only.by;
            if (only.nodes > 1) c.why += fmt::format(", and {} more", only.nodes - 1);
        } else if (!uses_.products.empty() && uses_.unfollowed.empty()) {
            c.why = fmt::format("products disagree: {} sums over axis {}, {} over axis {}",
                                uses_.products[0].by, uses_.products[0].axes.first,
                                uses_.products[1].by, uses_.products[1].axes.first);
        } else if (!uses_.unfollowed.empty()) {
            c.why = fmt::format("the axis of {} cannot be followed", uses_.unfollowed);
        } else if (!uses_.other.empty()) {
            c.first = c.last = uses_.only_lookups ? only_looked_up : in_no_product;
            c.why = fmt::format("no product: {}{}", uses_.other,
                                uses_.only_lookups ? " looks its rows up" : "");
        }
        return c;
    }

    const onnx_model& model_;
    const std::function<std::vector<std::int64_t>(std::size_t)>& numbers_;
    base::view_map<std::vector<std::pair<std::size_t, std::size_t>>> readers_;
    base::view_map<std::size_t> tensors_;
    base::view_map<std::vector<std::int64_t>> constants_;  // of nodes
    all_uses uses_;
    std::size_t steps_ = 0;
};

}  // namespace

std::vector<contraction> onnx_contractions(
    const onnx_model& model, const std::function<std::vector<std::int64_t>(std::size_t)>& numbers) {
    graph_walk walk(model, numbers);
    std::vector<contraction> all(model.tensors.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const onnx_tensor& t = model.tensors[i];
        if (t.shape.size() > 1 && t.note.empty()) all[i] = walk.of(t);
    }
    return all;
}

}  // namespace mx::io

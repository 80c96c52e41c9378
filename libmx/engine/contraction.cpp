// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/contraction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>

#include "libmx/base/glob.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/io/model_config.hpp"
#include "libmx/io/no_product.hpp"
#include "libmx/report/members.hpp"

namespace mx::engine {
namespace {

// Shorter last axes of three or more are windows of convolutions.
constexpr std::uint64_t window_limit = 32;
constexpr double most_axes = 65;  // of a tensor, and 1
const std::string axes_prefix = "mx.axes.";

bool matches_one(std::string_view patterns, std::string_view name) {
    while (!patterns.empty()) {
        const std::size_t end = std::min(patterns.find(' '), patterns.size());
        const std::string_view one = patterns.substr(0, end);
        // Most are an ending, and models have many names.
        const bool ending =
            one.rfind('*') == 0 && one.find_first_of("?[") == std::string_view::npos;
        if (ending ? name.ends_with(one.substr(1)) : base::glob_match(one, name)) return true;
        patterns.remove_prefix(std::min(patterns.size(), end + 1));
    }
    return false;
}

enum class finding : std::uint8_t { yes, no, unknown };

// Ordered, because the first name that decides counts.
using shapes_by_name = std::map<std::string_view, const tensor::shape*>;

// GPT-2's c_attn is [in, 3 * in]; nanoGPT has the name with a Linear, [3 * in, in].
finding has_conv1d(const shapes_by_name& all) {
    finding found = finding::unknown;
    for (const auto& [name, shape] : all) {
        if (shape->size() != 2 || !name.ends_with("attn.c_attn.weight")) continue;
        if ((*shape)[1] != 3 * (*shape)[0]) return finding::no;
        found = finding::yes;
    }
    return found;
}

// The intermediate extent of down_proj is half of gate_up_proj's: which axis has it?
finding has_experts_in_out(const shapes_by_name& all) {
    constexpr std::string_view up = "gate_up_proj", down = "down_proj";
    for (const auto& [name, gates] : all) {
        if (gates->size() != 3 || !name.ends_with(up)) continue;
        const std::string sibling =
            std::string(name.substr(0, name.size() - up.size())) + std::string(down);
        const auto at = all.find(sibling);
        if (at == all.end() || at->second->size() != 3) continue;
        const tensor::shape &u = *gates, &d = *at->second;
        const bool in_out = u[1] == d[2] && u[2] == 2 * d[1];
        const bool out_in = u[2] == d[1] && u[1] == 2 * d[2];
        if (in_out != out_in) return in_out ? finding::yes : finding::no;
    }
    return finding::unknown;
}

// How a model names and stores tensors: those with one of `names` and `axes` axes (0: any) sum over
// the axes from `first` (negative: from the end) to `behind` axes before the end. `models`:
// model_types of config.json that store them so. Without one of these the shapes decide; if they
// cannot, `by_name` does.
struct naming {
    std::string_view why, names;
    int axes, first, behind;
    std::string_view models = {};
    finding (*shapes)(const shapes_by_name&) = nullptr;
    bool by_name = true;
};

// THE NAMES, tried in order.
constexpr std::array namings{
    naming{"Conv1D of GPT-2, [in, out]",
           "*attn.c_attn.weight *attention.c_attn.weight *attn.q_attn.weight "
           "*attention.q_attn.weight *attn.c_proj.weight *attention.c_proj.weight *mlp.c_fc.weight "
           "*mlp.c_proj.weight",
           2, 0, 1, "gpt2 openai-gpt imagegpt decision_transformer clvp", has_conv1d, false},
    naming{"fused experts of gpt-oss and Llama 4, [experts, in, out]",
           "*experts.gate_up_proj *experts.down_proj", 3, 1, 1,
           "gpt_oss llama4 llama4_text qwen3_vl_moe qwen3_vl_moe_text", has_experts_in_out},
    naming{"TransformerLens, [heads, in, out of a head]", "*W_Q *W_K *W_V", 0, -2, 1},
    naming{"TransformerLens, [heads, in of a head, out]", "*W_O", 0, -3, 1},
    naming{"TransformerLens, [in, out]", "*W_in *W_out *W_gate *W_U", 2, 0, 1},
    naming{"CLIP's projections, [in, out]", "*visual.proj *text_projection", 2, 0, 1},
    naming{"Llama's names, [out, in]",
           "*layers.*.attention.w?.weight *layers.*.feed_forward.w?.weight", 2, 1, 0},
    naming{"Keras names, [window, in, multiplier]", "*depthwise_kernel *depthwise_kernel:0", 0, 0,
           2},
    naming{"Keras names, [in, heads, out of a head]",
           "*query/kernel *query/kernel:0 *key/kernel *key/kernel:0 *value/kernel *value/kernel:0 "
           "*query.kernel *key.kernel *value.kernel",
           3, 0, 2},
    naming{"Keras names, [window, out, in]", "*_transpose*/kernel *_transpose*/kernel:0", 0, -1, 0},
    naming{"Keras names, [..., in, out]",
           "*/kernel *.kernel *kernel:0 *recurrent_kernel *pointwise_kernel", 0, 0, 1},
    naming{"TensorFlow names, [in, out]",
           "*/MatMul/ReadVariableOp */MatMul/ReadVariableOp:0 */Tensordot/ReadVariableOp "
           "*/Tensordot/ReadVariableOp:0",
           2, 0, 1},
    naming{"a transposed convolution, [in, out, window]",
           "*conv_transpose*.weight *convtranspose*.weight *deconv*.weight *upconv*.weight", 3, 0,
           2},
    naming{"a transposed convolution, [in, out, window]",
           "*conv_transpose*.weight *convtranspose*.weight *deconv*.weight *upconv*.weight", 4, 0,
           3},
    naming{"a transposed convolution, [in, out, window]",
           "*conv_transpose*.weight *convtranspose*.weight *deconv*.weight *upconv*.weight", 5, 0,
           4},
};

// Which axes a naming means for `rank` axes; none if it does not fit.
io::contraction axes_by(const naming& row, int rank) {
    if (row.axes != 0 && row.axes != rank) return {};
    const int first = row.first < 0 ? rank + row.first : row.first;
    if (rank < 2 || first < 0 || first >= rank - row.behind) return {};
    return {first, rank - row.behind, std::string(row.why)};
}

// Reads config.json once for each folder.
class model_types {
  public:
    const std::string& of(const std::string& file) {
        const std::string folder = std::filesystem::path(file).parent_path().string();
        auto at = known_.find(folder);
        if (at == known_.end()) at = known_.emplace(folder, io::model_type(file)).first;
        return at->second;
    }

  private:
    std::map<std::string, std::string> known_;
};

}  // namespace

report::value to_value(const summed_axes& k) {
    if (!k.any()) return {};
    return report::record{{"axis", report::tally(k.first)},
                          {"axes", report::tally(k.last - k.first)},
                          {"extent", report::tally(k.extent)},
                          {"assumed", k.assumed},
                          {"why", k.why}};
}

summed_axes summed_axes_in(const report::value& v) {
    const auto* parts = std::get_if<report::record>(&v);
    if (parts == nullptr) return {};
    const auto count = [&](const char* part) {
        const double n = report::number_of(*parts, part).value_or(0);
        return n > 0 && n < most_axes ? static_cast<int>(n) : 0;
    };
    summed_axes k;
    k.first = count("axis");
    k.last = k.first + count("axes");
    const auto* const assumed = report::member<bool>(*parts, "assumed");
    k.assumed = assumed != nullptr && *assumed;
    k.why = report::text_of(*parts, "why");
    return k;
}

bool set_extent(summed_axes& k, const tensor::shape& shape) {
    if (k.last > static_cast<int>(shape.size())) return false;
    k.extent = k.any() ? 1 : 0;
    for (int i = k.first; i < k.last; ++i) k.extent *= shape[static_cast<std::size_t>(i)];
    return true;
}

std::string axes_text(const summed_axes& k) {
    return k.last - k.first == 1 ? fmt::format("axis {}", k.first)
                                 : fmt::format("axes {}-{}", k.first, k.last - 1);
}

axis_range assumed_axes(const tensor::shape& shape) {
    const bool window = shape.size() > 2 && shape.front() > 1 && shape.back() < window_limit;
    return window ? axis_range{1, shape.size()} : last_axis(shape);
}

axis_range axes_along_sums(const io::tensor_info& info) {
    const io::contraction& c = info.sums_over;
    if (c.known() && c.first >= 0 && c.last <= static_cast<int>(info.shape.size())) {
        return {static_cast<std::size_t>(c.first), static_cast<std::size_t>(c.last)};
    }
    return io::is_in_no_product(c) ? last_axis(info.shape) : assumed_axes(info.shape);
}

summed_axes summed_axes_of(const io::tensor_info& info, std::string_view role) {
    const axis_range axes = axes_along_sums(info);
    summed_axes k{static_cast<int>(axes.first), static_cast<int>(axes.last), 0, false,
                  info.sums_over.why};
    set_extent(k, info.shape);
    if (info.sums_over.known()) return k;
    const auto long_axes =
        std::ranges::count_if(info.shape, [](std::uint64_t extent) { return extent != 1; });
    constexpr std::array no_operands{"norm", "bias", "embedding", "other"};
    if (io::is_in_no_product(info.sums_over) || long_axes < 2 ||
        std::ranges::find(no_operands, role) != no_operands.end()) {
        return {0, 0, 0, false, info.sums_over.why};
    }
    k.assumed = true;
    if (!k.why.empty()) k.why += "; ";
    k.why += k.last - k.first > 1 ? "[out, in, ...] assumed" : "[out, in] assumed";
    return k;
}

std::optional<axis_range> parse_axes(std::string_view text, std::size_t rank) {
    const std::size_t line = text.find('-');
    if (line == std::string_view::npos) return std::nullopt;
    const auto first = base::parsed<std::size_t>(text.substr(0, line));
    const auto last = base::parsed<std::size_t>(text.substr(line + 1));
    if (!first || !last || *first > *last || *last >= rank) return std::nullopt;
    return axis_range{*first, *last + 1};
}

void put_axes(io::metadata_map& to, const io::tensor_info& info) {
    const axis_range axes = axes_along_sums(info);
    if (!info.sums_over.known() || axes == last_axis(info.shape)) return;
    to[axes_prefix + info.name] = fmt::format("{}-{}", axes.first, axes.last - 1);
}

bool state_axes_by_metadata(const io::metadata_map& metadata,
                            const std::vector<io::tensor_info*>& tensors) {
    const auto first = metadata.lower_bound(axes_prefix);
    if (first == metadata.end() || !first->first.starts_with(axes_prefix)) return false;
    bool any = false;
    for (io::tensor_info* t : tensors) {
        const auto entry = metadata.find(axes_prefix + t->name);
        if (entry == metadata.end() || t->sums_over.known()) continue;
        const auto axes = parse_axes(entry->second, t->shape.size());
        if (!axes) continue;
        t->sums_over = {static_cast<int>(axes->first), static_cast<int>(axes->last),
                        "as in the file that it was made from"};
        any = true;
    }
    return any;
}

bool state_axes_by_names(const std::vector<io::tensor_info*>& tensors) {
    model_types types;
    std::array<std::optional<finding>, namings.size()> found;
    shapes_by_name shapes;
    bool any = false;
    for (io::tensor_info* t : tensors) {
        if (t->shape.size() < 2 || t->sums_over.known() || !t->sums_over.why.empty()) continue;
        for (std::size_t i = 0; i < namings.size(); ++i) {
            const naming& row = namings[i];
            io::contraction axes = axes_by(row, static_cast<int>(t->shape.size()));
            if (!axes.known() || !matches_one(row.names, t->name)) continue;
            if (row.shapes != nullptr) {
                const std::string& type = types.of(t->file);
                const bool named = !type.empty() && matches_one(row.models, type);
                if (shapes.empty()) {
                    for (const io::tensor_info* each : tensors) shapes[each->name] = &each->shape;
                }
                if (!found[i]) found[i] = row.shapes(shapes);
                const bool holds = named || *found[i] == finding::yes ||
                                   (*found[i] == finding::unknown && row.by_name && type.empty());
                if (!holds) continue;
                if (named) axes.why += fmt::format(" (model_type {})", type);
            }
            t->sums_over = std::move(axes);
            any = true;
            break;
        }
    }
    return any;
}

void transpose_axes(io::contraction& stated, int axes) {
    if (!stated.known()) {
        stated = {axes - 1, axes, "transposed as requested: the last axis"};
        return;
    }
    const int last = axes - 1, before = axes - 2;
    const bool has_last = stated.last == axes,
               has_before = stated.first <= before && stated.last > before;
    if (has_last == has_before) return;
    if (stated.last - stated.first == 1) {
        const int axis = has_last ? before : last;
        stated = {axis, axis + 1, std::move(stated.why)};
    } else {  // its axes are no neighbours any more
        stated = {0, 0, stated.why + ", whose axes are apart once transposed"};
    }
}

void drop_first_axis(io::contraction& stated) {
    if (!stated.known()) return;
    stated.first = std::max(0, stated.first - 1);
    --stated.last;
}

void split_last_axis(io::contraction& stated, int axes) {
    if (stated.known() && stated.last == axes) ++stated.last;
}

}  // namespace mx::engine

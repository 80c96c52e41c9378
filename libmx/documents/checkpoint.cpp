// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/checkpoint.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/documents/judging.hpp"
#include "libmx/engine/views.hpp"
#include "libmx/io/memory_tensor.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/policy/judge.hpp"
#include "libmx/policy/operands.hpp"
#include "libmx/studies/convert/assignment.hpp"
#include "libmx/studies/convert/engine_layouts.hpp"

namespace mx::documents {

std::vector<convert::assigned_tensor> operands_in(const std::vector<engine::tensor_ref>& all,
                                                  const std::optional<codec::recipe>& recipe,
                                                  bool anew) {
    const auto tensors = described(all, engine::role_finder());
    const policy::policy by = policy::policy_for({}, tensors);
    std::vector<convert::assigned_tensor> assigned;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const policy::measured_tensor& t = tensors[i];
        assigned.push_back({all[i], {}, policy::why_kept(t, by.role_of(t.role, t.name), by)});
        convert::assigned_tensor& a = assigned.back();
        if (a.kept.empty() && !anew) a.kept = policy::why_quantized(t, by);
        if (a.kept.empty() && recipe && !policy::holds_whole_blocks(t, *recipe)) {
            a.kept = policy::padding_text(t, *recipe);
        }
        if (a.kept.empty()) a.recipe = recipe;
    }
    if (std::ranges::none_of(assigned, [](const auto& a) { return a.kept.empty(); })) {
        base::refuse(
            "quantize: no tensor is an operand of a product{}; --all-tensors or --tensor takes "
            "what is no operand",
            recipe ? " with whole blocks" : "");
    }
    return assigned;
}

convert::conversion save_checkpoint(
    const checkpoint_options& o,
    std::vector<std::pair<std::shared_ptr<const io::reader>, std::size_t>> tensors,
    const engine::run_control& control) {
    const std::vector<std::string_view>& layouts = convert::engine_layouts();
    if (std::ranges::find(layouts, o.layout) == layouts.end()) {
        base::refuse(base::unknown("layout", o.layout, layouts));
    }
    const codec::recipe recipe = convert::parse_layout_recipe(o.layout, o.recipe);
    std::vector<std::unique_ptr<io::reader>> file;
    file.push_back(io::as_file_in(o.config, std::move(tensors)));
    const std::unique_ptr<io::reader> view = engine::make_view(file, {});
    const io::reader* const shown = view ? view.get() : file.front().get();
    const auto all = engine::select(std::span(&shown, 1), {});
    // A single tensor needs no role to be meant.
    auto assigned =
        all.size() > 1 ? operands_in(all, recipe, true) : convert::assign(recipe, all, all, true);
    return convert::write_engine_layout(o.layout, std::move(assigned), o.folder, o.input_scales,
                                        io::usual_shard_bytes, control);
}

}  // namespace mx::documents

// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/product_options.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "libmx/engine/skip.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::app {
namespace {

constexpr std::size_t names_shown = 12;

bool exists(const std::string& path) {
    std::error_code failure;
    return std::filesystem::exists(path, failure);
}

std::string list_of(const std::vector<engine::tensor_ref>& tensors) {
    std::string names;
    for (std::size_t i = 0; i < tensors.size() && i < names_shown; ++i) {
        names +=
            fmt::format("{}{} ({})", i == 0 ? "" : ", ", base::printable(tensors[i].info().name),
                        tensor::to_string(tensors[i].info().shape));
    }
    if (tensors.size() > names_shown) {
        names += fmt::format(" and {} more", tensors.size() - names_shown);
    }
    return names;
}

engine::tensor_ref find_tensor(const engine::model& model, const matrix_place& at,
                               const std::string& option) {
    const std::vector<engine::tensor_ref> all = model.tensors();
    if (!at.tensor.empty()) {
        for (const engine::tensor_ref& t : all) {
            if (t.info().name == at.tensor) return t;
        }
        const std::vector<engine::tensor_ref> some = model.select({at.tensor});
        if (some.size() == 1) return some.front();
        refuse(fmt::format("{}: '{}' fits {} tensors: {}", option, base::printable(at.tensor),
                           some.size(), list_of(some)),
               {at.path, {}, {}});
    }
    std::vector<engine::skipped_tensor> skipped;
    std::vector<engine::tensor_ref> numeric = engine::numeric_only(all, skipped);
    // Index tensors are operands only if named, or if the file has no other tensor.
    if (numeric.size() > 1) {
        std::erase_if(numeric, [](const engine::tensor_ref& t) {
            return engine::is_wide_integer(t.info().type);
        });
    }
    if (numeric.size() == 1) return numeric.front();
    if (numeric.empty())
        refuse(fmt::format("{}: it has no numeric tensor", option), {at.path, {}, {}});
    refuse(fmt::format("{}: it has {} tensors; name one, as in {}:{}: {}", option, numeric.size(),
                       base::printable(at.path), base::printable(numeric.front().info().name),
                       list_of(numeric)),
           {at.path, {}, {}});
}

constexpr const char* ascending = "ascending";
constexpr const char* descending = "descending";

}  // namespace

void declare_matrix_shape(parser& cmd, matrix_argument& m, const std::string& name) {
    cmd.group("Input");
    cmd.add_option("--shape-" + name + " NxM", m.shape,
                   fmt::format("{} is raw binary of these extents, e.g. 64x128", name));
}

matrix_place place_of(const std::string& text) {
    if (exists(text)) return {text, ""};
    for (std::size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
        const std::string path = text.substr(0, at);
        if (exists(path)) return {path, text.substr(at + 1)};
    }
    return {text, ""};
}

products::matrix matrix_reader::read(const matrix_argument& m, const std::string& option,
                                     io::tensor_info* info) {
    const matrix_place at = place_of(m.text);
    io::open_options open = how.open;
    open.shape = m.shape;
    if (m.shape.empty()) open.dtype.clear();  // of another matrix
    engine::view_request views = how.views;
    views.integers = true;
    const engine::model model({at.path}, open, views);
    const engine::tensor_ref tensor = find_tensor(model, at, option);
    require_distinct(paths_of(model), to.paths());
    for (report::value& file : input_list(model.files())) inputs.push_back(std::move(file));
    if (info != nullptr) *info = tensor.info();
    return products::read_matrix(tensor, control);
}

void declare_products(parser& cmd, product_options& o, const std::string& without_models) {
    cmd.group("Product");
    cmd.add_option("-m,--accumulate MODEL", o.models,
                   "how products are summed (mx explain accumulators); repeatable; default: " +
                       without_models);
    cmd.add_option("--k-order ORDER", o.k_order, "order of k: ascending (the default), descending");
    cmd.add_option("--slices N", o.slices,
                   "split K into N parts that are summed separately and added in float32 "
                   "(split-K)")
        ->in_range(1, 1 << 20);
}

std::vector<codec::recipe> block_recipes(const std::vector<products::operand_recipe>& recipes) {
    std::vector<codec::recipe> list;
    for (const products::operand_recipe& r : recipes) {
        if (!r.blocks || std::ranges::find(list, *r.blocks) != list.end()) continue;
        list.push_back(*r.blocks);
    }
    return list;
}

std::vector<gemm::accumulator> models_of(const product_options& o) {
    std::vector<gemm::accumulator> models;
    std::vector<std::string> spellings;
    for (const std::string& text : o.models) {
        const gemm::accumulator m = gemm::parse_accumulator(text);
        const std::string spelling = gemm::to_string(m);
        if (std::ranges::find(spellings, spelling) != spellings.end()) continue;
        spellings.push_back(spelling);
        models.push_back(m);
    }
    return models;
}

gemm::arrangement arrangement_of(const product_options& o) {
    gemm::arrangement how;
    require_one_of("--k-order", "order", o.k_order, {ascending, descending});
    how.order = o.k_order == descending ? gemm::k_order::descending : gemm::k_order::ascending;
    how.slices = o.slices;
    return how;
}

report::record arrangement_record(const gemm::arrangement& how) {
    return {{"k_order", text(how.order == gemm::k_order::descending ? descending : ascending)},
            {"slices", integer(how.slices)},
            {"alpha", real(static_cast<double>(how.alpha))},
            {"beta", real(static_cast<double>(how.beta))},
            {"accumulate_into_c", how.accumulate_c}};
}

}  // namespace mx::app

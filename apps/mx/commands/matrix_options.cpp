// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/matrix_options.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::app {
namespace {

constexpr std::size_t names_shown = 12;

bool exists(const std::string& path) {
    std::error_code failure;
    return std::filesystem::exists(path, failure);
}

[[noreturn]] void refuse(const std::string& message, const std::string& file) {
    throw base::error(base::error_kind::usage, message, {file, "", {}});
}

std::string names_of(const std::vector<engine::tensor_ref>& tensors) {
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
    const std::vector<engine::tensor_ref> all = model.select({});
    if (!at.tensor.empty()) {
        for (const engine::tensor_ref& t : all) {
            if (t.info().name == at.tensor) return t;
        }
        const std::vector<engine::tensor_ref> some = model.select({at.tensor});
        if (some.size() == 1) return some.front();
        refuse(fmt::format("{}: '{}' fits {} tensors: {}", option, base::printable(at.tensor),
                           some.size(), names_of(some)),
               at.path);
    }
    std::vector<engine::skipped_tensor> skipped;
    std::vector<engine::tensor_ref> numeric = engine::numeric_only(all, skipped);
    // Indices are an operand only where they are named, or alone.
    if (numeric.size() > 1) {
        std::erase_if(numeric, [](const engine::tensor_ref& t) {
            return engine::is_wide_integer(t.info().type);
        });
    }
    if (numeric.size() == 1) return numeric.front();
    if (numeric.empty()) refuse(fmt::format("{}: it holds no tensor of numbers", option), at.path);
    refuse(fmt::format("{}: it holds {} tensors; say which, as in {}:{}: {}", option,
                       numeric.size(), base::printable(at.path),
                       base::printable(numeric.front().info().name), names_of(numeric)),
           at.path);
}

}  // namespace

void declare_matrix_shape(parser& cmd, matrix_argument& m, const std::string& name) {
    cmd.add_option("--shape-" + name, m.shape,
                   fmt::format("{} is raw binary of these extents, e.g. 64x128", name))
        ->type_name("NxM")
        ->group("Input");
}

void declare_matrix_options(parser& cmd, matrix_options& o) {
    cmd.add_option("--dtype", o.dtype, "raw binary: F32, BF16, F16, F8_E4M3, I8, ...")
        ->type_name("DTYPE")
        ->group("Input");
    cmd.add_option("--as", o.as, "dtype that opaque or unsigned data really has: bf16, f16")
        ->type_name("DTYPE")
        ->group("Input");
    cmd.add_flag("--raw", o.raw, "arrays as they are stored: nothing is decoded")->group("Input");
    cmd.add_flag("--swizzled", o.swizzled,
                 "scales of quantized tensors are in the 128x4 order of cuBLAS")
        ->group("Input");
}

matrix_place place_of(const std::string& text) {
    if (exists(text)) return {text, ""};
    for (std::size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
        const std::string path = text.substr(0, at);
        if (exists(path)) return {path, text.substr(at + 1)};
    }
    return {text, ""};
}

matrix_input open_matrix(const matrix_argument& m, const matrix_options& o,
                         const std::string& option) {
    const matrix_place at = place_of(m.text);
    io::open_options open;
    open.as = o.as;
    open.shape = m.shape;
    if (!m.shape.empty()) open.dtype = o.dtype;
    engine::view_request views;
    views.raw = o.raw;
    views.swizzled = o.swizzled;
    views.integers = true;
    engine::model model({at.path}, open, views);
    const engine::tensor_ref tensor = find_tensor(model, at, option);
    return {std::move(model), tensor};
}

}  // namespace mx::app

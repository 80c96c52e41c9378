// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/given_scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::engine {
namespace {

constexpr std::array<std::string_view, 6> endings{"_global_scale", ".global_scale", "_scale_2", "",
                                                  "_scale",        ".scale"};

}  // namespace

given_scales::given_scales(const std::string& path) : path_(path), file_(io::open_model(path)) {
    const std::vector<io::tensor_info>& arrays = file_->tensors();
    if (arrays.size() != 1 || arrays.front().elements != 1) return;
    const std::string& array = arrays.front().name;
    for (const std::string_view ending : endings) {
        if (array.ends_with(ending)) {
            owners_.push_back(array.substr(0, array.size() - ending.size()));
        }
    }
}

std::optional<float> given_scales::of(const io::tensor_ref& tensor) const {
    const std::string& name = tensor.info().name;
    const std::vector<io::tensor_info>& arrays = file_->tensors();
    std::optional<std::size_t> several;
    for (const std::string_view ending : endings) {
        const std::string array_name = name + std::string(ending);
        const auto found = std::ranges::find(arrays, array_name, &io::tensor_info::name);
        if (found == arrays.end()) continue;
        const auto at = static_cast<std::size_t>(found - arrays.begin());
        if (found->elements == 1) return read(at);
        several = several.value_or(at);
    }
    if (several) return read(*several);
    if (!owners_.empty() && !is_of_another(tensor)) return read(0);
    return std::nullopt;
}

bool given_scales::is_of_another(const io::tensor_ref& tensor) const {
    if (asked_ != tensor.file) {
        asked_ = tensor.file;
        known_.clear();
        for (const io::tensor_info& t : tensor.file->tensors()) {
            if (std::ranges::find(owners_, t.name) != owners_.end()) known_.push_back(t.name);
        }
    }
    const std::string& name = tensor.info().name;
    if (std::ranges::find(owners_, name) != owners_.end()) return false;
    if (!known_.empty()) return true;
    // The path of a tensor that is not in the input: the other tensor of a layer that was left out.
    return std::ranges::any_of(owners_, [&](const std::string& owner) {
        const bool path = owner.find_first_of("./") != std::string::npos &&
                          owner != file_->tensors().front().name;
        return path && !owner.starts_with(name + ".") && !name.starts_with(owner + ".");
    });
}

std::string given_scales::why_left_out() const {
    const std::string only =
        owners_.empty() ? std::string()
                        : fmt::format(": its only number is '{}'", file_->tensors().front().name);
    return fmt::format("'{}' has no outer scale for it{}", path_, only);
}

float given_scales::read(std::size_t array) const {
    const io::tensor_info& info = file_->tensors()[array];
    const auto fail = [&](const std::string& message) {
        throw base::error(base::error_kind::input, message, {path_, info.name, {}});
    };
    if (info.elements != 1)
        fail(fmt::format("has {} numbers; the outer scale is one number", info.elements));
    if (tensor::row_of(info.type).to_f32 == tensor::widening::none) fail("holds no number");
    std::vector<std::byte> scratch;
    float scale = 0;
    io::read_f32(*file_->open(array), info.type, 0, std::span(&scale, 1), scratch);
    if (!std::isfinite(scale) || scale <= 0) {
        fail(fmt::format("an outer scale of {}: it must be positive and finite", scale));
    }
    return scale;
}

}  // namespace mx::engine

// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/array.hpp"

namespace mx::lab {

void mirrored::assign(std::vector<float> here) {
    here_ = std::move(here);
    newer_ = same_ = nullptr;
    there_.leave_device();
}

const std::vector<float>& mirrored::here() const {
    if (newer_ != nullptr) {
        newer_->fetch(there_.data(), here_.size() * sizeof(float), here_.data());
        same_ = std::exchange(newer_, nullptr);
    }
    return here_;
}

std::vector<float>& mirrored::change_here() {
    here();
    same_ = nullptr;
    return here_;
}

std::span<const float> mirrored::there(execution_context& on) const {
    if (on.device() == nullptr) return here();
    if (newer_ != on.device()) {
        const std::vector<float>& x = here();
        if (same_ != on.device()) there_.put(on, x);
        same_ = on.device();
    }
    return {there_.data(), here_.size()};
}

std::span<float> mirrored::change_there(execution_context& on) {
    if (on.device() == nullptr) return change_here();
    there(on);
    newer_ = on.device();
    same_ = nullptr;
    return {there_.data(), here_.size()};
}

}  // namespace mx::lab

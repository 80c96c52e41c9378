// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/repeated_pass.hpp"

namespace mx::lab {

void repeated_pass::run(const layer_context& c, const std::vector<const void*>& arrays,
                        std::size_t tokens, const std::function<void()>& work) {
    const bool observed = c.observer != nullptr && *c.observer;
    if (c.on.device() == nullptr || observed || is_random(c.how)) return work();
    if (settings_ != c.how.settings || arrays_ != arrays || tokens_ != tokens) captured_.forget();
    settings_ = c.how.settings;
    arrays_ = arrays;
    tokens_ = tokens;
    captured_.run(*c.on.device(), work);
}

}  // namespace mx::lab

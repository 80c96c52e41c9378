// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/element_batch.hpp"

#include "libmx/quantize/driver.hpp"
#include "libmx/quantize/stored_value.hpp"

namespace mx::quantize {
namespace {

class host_elements final : public element_batch {
  public:
    std::size_t cast(const element_cast& to, const element_run& from,
                     const element_results& results) override {
        const bool random = to.number.mode.how == format::rounding::stochastic;
        std::size_t without_code = from.count;
        for (std::size_t i = 0; i < from.count; ++i) {
            const float x = stored_value(from.values.type, from.values.data, i);
            const std::uint32_t draw = random ? base::random_u32(from.key, from.first + i) : 0u;
            const converted q = cast_element(to, base::bits_of(x), draw);
            if (results.codes != nullptr) results.codes[i] = static_cast<std::uint8_t>(q.code);
            if (results.values != nullptr) results.values[i] = q.value;
            if (q.code < 0 && i < without_code) without_code = i;
        }
        return without_code;
    }
};

}  // namespace

std::unique_ptr<element_batch> make_host_elements() { return std::make_unique<host_elements>(); }

std::unique_ptr<element_batch> make_element_batch(const driver& d, base::notices* notices) {
    if (d.make_element_batch != nullptr) return d.make_element_batch(notices);
    return make_host_elements();
}

}  // namespace mx::quantize

// SPDX-License-Identifier: Apache-2.0
// THE LIST of quantizers and casters of the backends (base/backends.hpp).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "libmx/base/backends.hpp"
#include "libmx/base/notices.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/device_meter.hpp"
#include "libmx/codec/joint_counts.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec {

struct backend : base::backend {
    std::unique_ptr<quantizer> (*make_quantizer)();
    /// `notices` (non-owning) is called if the CPU replaces a device that lacks memory; null: that
    /// is an error.
    std::unique_ptr<caster> (*make_caster)(base::notices* notices);
    /// The meter of a device. Null for CPU backends.
    std::unique_ptr<device_meter> (*make_meter)() = nullptr;
    /// Whether it has kernels for such blocks; otherwise the scalar backend quantizes them. Null:
    /// for all.
    bool (*takes)(const block_params& p) = nullptr;
    bool (*takes_cast)(const element_cast& to) = nullptr;  ///< the same for casts
    /// The passes that count words. Null: this backend always quantizes.
    word_passes (*counts)() = nullptr;
};

/// In the order of base::backends.
std::span<const backend> backends();

/// The fastest available backend that is not a device.
const backend& best_backend();

/// The backend named `name`. Throws as base::backend_named does.
const backend& backend_named(std::string_view name);

}  // namespace mx::codec

// SPDX-License-Identifier: Apache-2.0
// THE LIST of backends, from the reference to the fastest.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "libmx/base/notices.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/device_meter.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec {

/// Where quantizing is done. Every backend leaves the same bytes.
struct backend {
    std::string_view name;
    std::string_view summary;
    /// Why it cannot run here, as a whole sentence without its point; empty when it can.
    std::string (*missing)();
    std::unique_ptr<quantizer> (*make_quantizer)();
    /// `notices` (not owned) hears when the processor takes over because a device has no room; with
    /// nobody to hear of it, that is an error.
    std::unique_ptr<caster> (*make_caster)(base::notices* notices);
    /// Of a device with memory of its own, which likes large panels and is used only when it is
    /// asked for: what measures it. Null for processors.
    std::unique_ptr<device_meter> (*make_meter)() = nullptr;
    /// Whether it has kernels for such blocks; backend scalar quantizes others in its place. Null:
    /// for all. No backend of the processor but scalar has kernels for casts.
    bool (*takes)(const block_params& p) = nullptr;

    bool available() const { return missing().empty(); }
    bool is_device() const { return make_meter != nullptr; }
};

/// Every backend mx knows of, also those that this build or this machine lacks.
std::span<const backend> backends();

/// The fastest one available here of those that are no devices.
const backend& best_backend();

/// The backend named `name`. Throws base::error: usage, naming the nearest, when there is none;
/// unavailable when it cannot run here.
const backend& backend_named(std::string_view name);

}  // namespace mx::codec

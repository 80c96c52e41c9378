// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/measured_model.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "libmx/report/members.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::policy {
namespace {

constexpr double most_bytes = 0x1p53;  // so that sums are whole numbers too

// Bytes of so many elements as stored; of an unknown dtype, as float32.
std::uint64_t stored_bytes(const std::string& dtype, std::uint64_t elements) {
    const auto known = tensor::find_dtype(dtype);
    const int bits = known ? tensor::row_of(*known).bits : 32;
    return (elements * static_cast<std::uint64_t>(bits) + 7) / 8;
}

measured_tensor tensor_of(const analysis::result& r) {
    measured_tensor t;
    t.file = r.of->file;
    t.name = r.of->tensor;
    t.role = r.of->role;
    t.dtype = r.of->dtype;
    t.shape.assign(r.of->shape.begin(), r.of->shape.end());
    t.sums_over = r.of->sums_over;
    t.elements = r.elements;
    t.tied_to = r.of->tied_to;
    // Results of earlier versions and of other programs do not say it.
    t.bytes = r.of->stored_bytes ? static_cast<std::uint64_t>(*r.of->stored_bytes)
                                 : stored_bytes(t.dtype, t.elements);
    return t;
}

}  // namespace

void measured_model::add(const analysis::result_list& results, const report::record& head) {
    table.add(results);
    const auto by = report::given_in(head);
    while (tensors.size() < table.tensors.size()) {
        tensors.push_back(tensor_of(table.first_of(tensors.size())));
        tensors.back().by = by;
    }
}

void measured_model::count_ties_once() {
    using place = std::pair<std::string_view, std::string_view>;  // file, name of the storage's own
    std::map<place, std::size_t> owners;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const measured_tensor& t = tensors[i];
        if (t.tied_to.empty()) owners.emplace(place(t.file, t.name), i);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        measured_tensor& t = tensors[i];
        if (t.tied_to.empty()) continue;
        // If the tensor itself was not measured, the first of those tied to it counts.
        const auto [owner, first] = owners.emplace(place(t.file, t.tied_to), i);
        if (!first) t.counted_with = owner->second;
    }
}

void measured_model::add_left_out(const report::record& tail, const report::record& head) {
    const auto by = report::given_in(head);
    const auto* skipped = report::member<report::list>(tail, "skipped");
    if (skipped == nullptr) return;
    std::set<std::pair<std::string, std::string>> known;
    for (const measured_tensor& t : tensors) known.emplace(t.file, t.name);
    for (const report::value& v : *skipped) {
        const auto* r = std::get_if<report::record>(&v);
        const auto bytes = r == nullptr ? std::nullopt : report::number_of(*r, "bytes");
        if (!bytes || !(*bytes >= 0) || *bytes > most_bytes) continue;
        measured_tensor t;
        t.file = report::text_of(*r, "file");
        t.name = report::text_of(*r, "tensor");
        t.role = "other";
        t.dtype = report::text_of(*r, "dtype");
        t.left_out = report::text_of(*r, "reason");
        t.by = by;
        t.tied_to = report::text_of(*r, "tied_to");
        t.bytes = static_cast<std::uint64_t>(*bytes);
        const double elements = report::number_of(*r, "elements").value_or(0);
        if (elements >= 0 && elements <= most_bytes) {
            t.elements = static_cast<std::uint64_t>(elements);
        }
        if (known.emplace(t.file, t.name).second) tensors.push_back(std::move(t));
    }
}

}  // namespace mx::policy

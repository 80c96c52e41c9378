// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/results.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/report/members.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::policy {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

std::uint64_t count(const report::record& r, std::string_view name) {
    const double n = report::number_of(r, name).value_or(0);
    return n > 0 ? static_cast<std::uint64_t>(report::whole(n)) : 0;
}

// Bytes of so many elements as they are stored; of a dtype that is none, as float32.
std::uint64_t stored_bytes(const std::string& dtype, std::uint64_t elements) {
    const auto known = tensor::find_dtype(dtype);
    const int bits = known ? tensor::row_of(*known).bits : 32;
    return (elements * static_cast<std::uint64_t>(bits) + 7) / 8;
}

measured_tensor tensor_of(const report::record& r) {
    measured_tensor t;
    t.file = report::text_of(r, "file");
    t.name = report::text_of(r, "tensor");
    t.role = report::text_of(r, "role");
    t.dtype = report::text_of(r, "dtype");
    t.elements = count(r, "elements");
    t.bytes = stored_bytes(t.dtype, t.elements);
    t.spread = report::number_of(r, "spread");
    if (const report::value* shape = report::find(r, "shape")) {
        if (const auto* extents = std::get_if<report::list>(shape)) {
            for (const report::value& e : *extents) {
                const double n = report::number_of(e).value_or(0);
                t.shape.push_back(n > 0 ? static_cast<std::uint64_t>(report::whole(n)) : 0);
            }
        }
    }
    return t;
}

measurement measurement_of(const report::record& r, codec::recipe recipe, std::string text) {
    measurement m{std::move(recipe), std::move(text), {}, count(r, "poisoned")};
    for (const metrics::metric& x : metrics::all()) {
        if (x.member == nullptr) continue;
        const report::value* v = report::find(r, x.name);
        const auto* flag = v == nullptr ? nullptr : std::get_if<bool>(v);
        m.figures.*x.member = flag != nullptr ? static_cast<double>(*flag)
                                              : report::number_of(r, x.name).value_or(undefined);
    }
    return m;
}

}  // namespace

void add_results(const report::record_list& results, std::vector<measured_tensor>& to) {
    std::map<std::pair<std::string, std::string>, std::size_t> known;
    for (std::size_t i = 0; i < to.size(); ++i) known[{to[i].file, to[i].name}] = i;
    std::map<std::string, codec::recipe> recipes;
    for (const report::record& r : results) {
        if (report::number_of(r, "phase").value_or(0) != 0) continue;
        const std::string spelling = report::text_of(r, "recipe");
        const std::string name = report::text_of(r, "tensor");
        if (spelling.empty() || name.empty()) {
            throw base::error(base::error_kind::input, "a result names no tensor or no recipe");
        }
        auto recipe = recipes.find(spelling);
        if (recipe == recipes.end()) {
            try {
                recipe = recipes.emplace(spelling, codec::parse_recipe(spelling)).first;
            } catch (const base::error& e) {
                throw base::error(base::error_kind::input, e.message(), {{}, name, {}});
            }
        }
        const auto [at, added] =
            known.emplace(std::pair(report::text_of(r, "file"), name), to.size());
        if (added) to.push_back(tensor_of(r));
        measured_tensor& t = to[at->second];
        const bool there =
            std::any_of(t.measured.begin(), t.measured.end(),
                        [&](const measurement& m) { return m.recipe == recipe->second; });
        if (there) continue;
        t.measured.push_back(measurement_of(r, recipe->second, codec::to_string(recipe->second)));
    }
}

}  // namespace mx::policy

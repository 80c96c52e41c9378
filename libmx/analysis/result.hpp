// SPDX-License-Identifier: Apache-2.0
// One result of an analysis: a tensor under a recipe. A run in memory and a results file (schema
// mx.analysis/1) give the same list of them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/report/record.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::analysis {

/// How results identify a tensor; all results of one tensor share it.
struct tensor_identity {
    std::string file, tensor, dtype, role;
    mx::tensor::shape shape;
    std::optional<std::int64_t> layer;
    /// Bytes that it occupies in its file: codes, scales and zero points; none: not recorded.
    std::optional<std::int64_t> stored_bytes = {};
    std::string tied_to =
        {};  ///< the tensor of the same file that has this storage too; else empty
    engine::summed_axes sums_over{};  ///< none in files of earlier versions

    bool operator==(const tensor_identity&) const = default;
};

/// A recipe with its canonical spelling.
struct named_recipe {
    std::string name;
    codec::recipe recipe;
};

/// The tensors that share a result (`--group`): how many, and the one with the largest nrmse, the
/// first of equal ones.
struct group_facts {
    std::uint64_t members = 0;
    std::string worst_member, worst_file;  ///< the file of the worst member
    /// Of the worst member; NaN: undefined.
    double worst_nrmse = std::numeric_limits<double>::quiet_NaN(), worst_sqnr_db = worst_nrmse;
};

/// The figures of metrics::row for a tensor and recipe. NaN: undefined, as there; figures that a
/// file lacks are undefined, and counts 0.
struct result : metrics::row {
    result();  ///< every figure undefined

    std::shared_ptr<const tensor_identity> of;
    std::shared_ptr<const named_recipe> under;
    std::shared_ptr<const group_facts> group;  ///< with --group; else null
    std::optional<std::int64_t> phase;         ///< index of the factor, if there are several
    std::uint64_t elements = 0, blocks = 0, nan = 0, inf = 0, poisoned = 0;
    std::uint64_t inexact_inputs = 0;  ///< elements that float32 cannot represent
    std::uint64_t passes = 0;          ///< over the tensor's data
    double tensor_scale;
    /// With metrics::when::decompose: the squared error (total, clamp, underflow, grid), and the
    /// shares of its parts.
    bool decomposed = false;
    std::array<double, 4> squared_error;
    double clamp_error_share, underflow_error_share, grid_error_share;
    /// With metrics::when::regret.
    bool with_regret = false;
    double best_rmse, regret, regret_share;
    report::record more;  ///< members that only JSON has: histograms

    /// Elements that rates and sums are over.
    double counted() const {
        return static_cast<double>(elements) - static_cast<double>(nan) - static_cast<double>(inf) -
               static_cast<double>(poisoned);
    }
};

/// A figure if it is defined.
inline std::optional<double> defined(double x) {
    return std::isnan(x) ? std::nullopt : std::optional(x);
}
inline double value_or(double x, double otherwise) { return std::isnan(x) ? otherwise : x; }

/// The record of a result: the members of the schema in their order.
report::record record_of(const result& r);

/// Sets the member `name`; one that is not described becomes part of `more`.
void put(result& r, std::string_view name, const report::value& v);

/// Results from records, one after the other.
class result_reader {
  public:
    /// `path`: of the file, for messages.
    explicit result_reader(std::string path) : path_(std::move(path)) {}

    /// Throws base::error (input) for counts that are not valid, and for recipes that cannot be
    /// parsed or are not spelt canonically. Members that are not described are ignored.
    result read(const report::record& from);

  private:
    std::shared_ptr<const named_recipe> recipe_named(const std::string& name);

    std::string path_;
    std::shared_ptr<const tensor_identity> last_;
    std::vector<std::shared_ptr<const named_recipe>> recipes_;
};

}  // namespace mx::analysis

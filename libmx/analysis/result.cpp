// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/result.hpp"
#include "libmx/analysis/result_members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "libmx/base/status.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/report/members.hpp"

namespace mx::analysis {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
constexpr double most = 0x1p53;     // what a count can be, so that sums are whole numbers too
constexpr double most_bits = 1024;  // of an element
constexpr std::array<const char*, 4> error_parts{"total", "clamp", "underflow", "grid"};

// A member of the schema, its field, and one line about it; metrics have their own line.
struct result_member {
    const char* name;
    std::variant<std::string tensor_identity::*, mx::tensor::shape tensor_identity::*,
                 std::optional<std::int64_t> tensor_identity::*, std::string named_recipe::*,
                 std::optional<std::int64_t> result::*, std::uint64_t result::*, double result::*,
                 std::array<double, 4> result::*, std::uint64_t group_facts::*,
                 std::string group_facts::*, double group_facts::*,
                 engine::summed_axes tensor_identity::*>
        where;
    const char* definition = "";
};

// THE MEMBERS of a result: these, then the metrics that are members of metrics::row, then
// error_members if the error is decomposed, regret_members on request, and group_members of results
// that tensors share.
constexpr std::array described_members{
    result_member{"file", &tensor_identity::file, "path of the file, as given"},
    result_member{"tensor", &tensor_identity::tensor,
                  "name of the tensor in the file, and of its part if it was split"},
    result_member{"dtype", &tensor_identity::dtype, "stored dtype, in the spelling of safetensors"},
    result_member{"shape", &tensor_identity::shape, "extents, slowest first; [] is a scalar"},
    result_member{"role", &tensor_identity::role, "function of the tensor in its model"},
    result_member{"layer", &tensor_identity::layer,
                  "number of the layer in the tensor's name; null if there is none"},
    result_member{"stored_bytes", &tensor_identity::stored_bytes,
                  "bytes that the tensor occupies in its file: codes, scales, tensor scales and "
                  "zero points; of a group, the sum; null if it is not known"},
    result_member{"tied_to", &tensor_identity::tied_to,
                  "the tensor of the same file that has this storage too, whose stored_bytes "
                  "are these; only if there is one"},
    result_member{"contraction", &tensor_identity::sums_over,
                  "what products with the tensor sum over, along which blocks run: axis, the first "
                  "of so many axes; extent, the product of theirs (K); assumed, whether only the "
                  "shape says so; why; null if it is in no product, or of several arrays"},
    result_member{"recipe", &named_recipe::name, "the recipe, in canonical spelling"},
    result_member{"phase", &result::phase, "index into phases; only with --phase-sweep"},
    result_member{"elements", &result::elements, "elements, whatever their values"},
    result_member{"blocks", &result::blocks, "blocks; the last of a row may be shorter"},
    result_member{"nan", &result::nan, "NaN elements"},
    result_member{"inf", &result::inf, "infinite elements"},
    result_member{"poisoned", &result::poisoned, "finite elements of a block whose scale is NaN"},
    result_member{"inexact_inputs", &result::inexact_inputs,
                  "stored values that are not exact in float32, rounded to it once"},
    result_member{"passes", &result::passes, "passes over the tensor's data"},
    result_member{"tensor_scale", &result::tensor_scale,
                  "scale of the whole tensor; null if the recipe has none"},
};
// Members that few results have.
constexpr decltype(result_member::where) at_phase = &result::phase,
                                         at_tied = &tensor_identity::tied_to;
constexpr std::array error_members{
    result_member{"squared_error", &result::squared_error},
    result_member{"clamp_error_share", &result::clamp_error_share},
    result_member{"underflow_error_share", &result::underflow_error_share},
    result_member{"grid_error_share", &result::grid_error_share},
};

constexpr std::array group_members{
    result_member{"members", &group_facts::members,
                  "tensors that share the result; with --group only"},
    result_member{"worst_member", &group_facts::worst_member,
                  "the one of them with the largest nrmse, the first of equals; with --group only"},
    result_member{"worst_member_file", &group_facts::worst_file,
                  "path of the file that holds it; with --group only"},
    result_member{"worst_member_nrmse", &group_facts::worst_nrmse,
                  "nrmse of that tensor; with --group only"},
    result_member{"worst_member_sqnr_db", &group_facts::worst_sqnr_db,
                  "SQNR of that tensor in dB; with --group only"},
};

constexpr std::array regret_members{
    result_member{"best_rmse", &result::best_rmse},
    result_member{"regret", &result::regret},
    result_member{"regret_share", &result::regret_share},
};

template <typename Members>
const result_member* find(const Members& all, std::string_view name) {
    const auto at =
        std::ranges::find_if(all, [&](const result_member& m) { return m.name == name; });
    return at == all.end() ? nullptr : &*at;
}

// What a member of any of the three says of a result.
template <typename T>
const T& part_of(const result& r, T tensor_identity::*m) {
    return (*r.of).*m;
}
template <typename T>
const T& part_of(const result& r, T named_recipe::*m) {
    return (*r.under).*m;
}
template <typename T>
const T& part_of(const result& r, T group_facts::*m) {
    return (*r.group).*m;
}
template <typename T>
const T& part_of(const result& r, T result::*m) {
    return r.*m;
}

report::value written(const mx::tensor::shape& extents) {
    report::list list;
    for (const std::uint64_t extent : extents) list.push_back(report::tally(extent));
    return list;
}
report::value written(const std::array<double, 4>& errors) {
    if (std::isnan(errors.front())) return {};
    report::record parts;
    for (std::size_t i = 0; i < errors.size(); ++i) parts.emplace_back(error_parts[i], errors[i]);
    return parts;
}
report::value written(const engine::summed_axes& k) { return engine::to_value(k); }
template <typename T>
report::value written(const T& x) {
    return report::to_value(x);
}

std::uint64_t count_in(const report::value& v, const char* name) {
    const double n = report::number_of(v).value_or(0);
    if (n >= 0 && n <= most && n == std::floor(n)) return static_cast<std::uint64_t>(n);
    throw base::error(base::error_kind::input, fmt::format("{} is not a count", name));
}
double figure_in(const report::value& v) {
    if (const bool* b = std::get_if<bool>(&v)) return *b ? 1 : 0;
    return report::number_of(v).value_or(undefined);
}

// A value of another type counts as missing.
void read(const report::value& v, const char*, std::string& to) {
    if (const auto* s = std::get_if<std::string>(&v)) to = *s;
}
void read(const report::value& v, const char* name, mx::tensor::shape& to) {
    const auto* extents = std::get_if<report::list>(&v);
    if (extents == nullptr) return;
    for (const report::value& e : *extents) to.push_back(count_in(e, name));
}
void read(const report::value& v, const char* name, std::optional<std::int64_t>& to) {
    if (report::number_of(v)) to = static_cast<std::int64_t>(count_in(v, name));
}
void read(const report::value& v, const char* name, std::uint64_t& to) { to = count_in(v, name); }
void read(const report::value& v, const char*, double& to) { to = figure_in(v); }
void read(const report::value& v, const char*, engine::summed_axes& to) {
    to = engine::summed_axes_in(v);
}
void read(const report::value& v, const char*, std::array<double, 4>& to) {
    const auto* parts = std::get_if<report::record>(&v);
    for (std::size_t i = 0; i < error_parts.size() && parts != nullptr; ++i) {
        to[i] = report::number_of(*parts, error_parts[i]).value_or(undefined);
    }
}

// Reads one member; false if no member is described under that name.
bool read_member(result& r, tensor_identity& of, std::string_view name, const report::value& v) {
    const metrics::metric* metric = metrics::find(name);
    if (metric != nullptr && metric->member != nullptr) {
        r.*(metric->member) = figure_in(v);
        return true;
    }
    const result_member* m = find(described_members, name);
    if (m == nullptr) {
        m = find(error_members, name);
        if (m != nullptr) {
            r.decomposed = true;
        } else {
            m = find(regret_members, name);
            if (m != nullptr) {
                r.with_regret = true;
            } else {
                m = find(group_members, name);
                if (m == nullptr) return false;
            }
        }
    }
    const auto read_into = [&](auto where) {
        using place = decltype(where);
        if constexpr (std::is_invocable_v<place, tensor_identity&>) {
            read(v, m->name, of.*where);
        } else if constexpr (std::is_invocable_v<place, group_facts&>) {
            auto group =
                r.group ? std::make_shared<group_facts>(*r.group) : std::make_shared<group_facts>();
            read(v, m->name, (*group).*where);
            r.group = std::move(group);
        } else if constexpr (std::is_invocable_v<place, result&>) {
            read(v, m->name, r.*where);
        }  // result_reader finds recipes
    };
    std::visit(read_into, m->where);
    return true;
}

}  // namespace

result::result()
    : metrics::row(),
      tensor_scale(undefined),
      clamp_error_share(undefined),
      underflow_error_share(undefined),
      grid_error_share(undefined),
      best_rmse(undefined),
      regret(undefined),
      regret_share(undefined) {
    squared_error.fill(undefined);
    for (const metrics::metric& m : metrics::all()) {
        if (m.member != nullptr) this->*(m.member) = undefined;
    }
}

report::record record_of(const result& r) {
    report::record to;
    const auto write = [&](const result_member& m) {
        const auto value_at = [&](auto where) { return written(part_of(r, where)); };
        to.emplace_back(m.name, std::visit(value_at, m.where));
    };
    for (const result_member& m : described_members) {
        const bool applies = m.where == at_phase  ? r.phase.has_value()
                             : m.where == at_tied ? !r.of->tied_to.empty()
                                                  : true;
        if (applies) write(m);
    }
    for (const metrics::metric& m : metrics::all()) {
        if (m.member != nullptr) to.emplace_back(std::string(m.name), m.value_of(r));
    }
    for (const result_member& m : error_members) {
        if (r.decomposed) write(m);
    }
    for (const result_member& m : regret_members) {
        if (r.with_regret) write(m);
    }
    for (const result_member& m : group_members) {
        if (r.group) write(m);
    }
    to.insert(to.end(), r.more.begin(), r.more.end());
    return to;
}

void put(result& r, std::string_view name, const report::value& v) {
    tensor_identity unchanged;
    if (read_member(r, unchanged, name, v)) return;
    const auto at =
        std::ranges::find_if(r.more, [&](const auto& known) { return known.first == name; });
    if (at == r.more.end()) {
        r.more.emplace_back(std::string(name), v);
    } else {
        at->second = v;
    }
}

std::shared_ptr<const named_recipe> result_reader::recipe_named(const std::string& name) {
    const auto at =
        std::ranges::find_if(recipes_, [&](const auto& known) { return known->name == name; });
    if (at != recipes_.end()) return *at;
    std::string canonical;
    codec::recipe r;
    try {
        r = codec::parse_recipe(name);
        canonical = codec::to_string(r);
    } catch (const base::error& e) {
        throw base::error(base::error_kind::input, e.message(), {path_, {}, {}});
    }
    if (canonical != name) {
        throw base::error(
            base::error_kind::input,
            fmt::format("recipe '{}' is not in canonical spelling: '{}'", name, canonical),
            {path_, {}, {}});
    }
    return recipes_.emplace_back(std::make_shared<named_recipe>(named_recipe{name, r}));
}

result result_reader::read(const report::record& from) {
    result r;
    tensor_identity of;
    try {
        for (const auto& [name, v] : from) read_member(r, of, name, v);
    } catch (const base::error& e) {
        throw base::error(e.kind(), e.message(), {path_, report::text_of(from, "tensor"), {}});
    }
    if (!engine::set_extent(of.sums_over, of.shape)) {
        throw base::error(base::error_kind::input, "contraction names axes that the shape lacks",
                          {path_, of.tensor, {}});
    }
    // Elements and their product fit in 64 bits; it is undefined for empty tensors.
    if (r.bits_per_element < 0 || r.bits_per_element > most_bits) {
        throw base::error(base::error_kind::input, "bits_per_element is not a number of bits",
                          {path_, of.tensor, {}});
    }
    r.under = recipe_named(report::text_of(from, "recipe"));
    // The results of a tensor follow one another.
    if (!last_ || !(*last_ == of)) last_ = std::make_shared<tensor_identity>(std::move(of));
    r.of = last_;
    return r;
}

std::vector<member_facts> result_members() {
    const auto type_of = [](const result_member& m) {
        using enum member_type;
        constexpr std::array types{text,           extents, optional_count, text,
                                   optional_count, count,   figure,         figure,
                                   count,          text,    figure,         contraction};
        return types.at(m.where.index());
    };
    std::vector<member_facts> facts;
    for (const result_member& m : described_members) {
        const bool always = m.where != at_phase && m.where != at_tied;
        facts.push_back({m.name, type_of(m), m.definition, always});
    }
    for (const result_member& m : group_members) {
        facts.push_back({m.name, type_of(m), m.definition, false});
    }
    return facts;
}

}  // namespace mx::analysis

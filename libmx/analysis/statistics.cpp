// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "libmx/analysis/groups.hpp"
#include "libmx/analysis/spread.hpp"
#include "libmx/analysis/totals.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/memory_tensor.hpp"

namespace mx::analysis {
namespace {

constexpr double undefined_figure = std::numeric_limits<double>::quiet_NaN();

// An exact sum as whole numbers, of which number i weighs 2^(32 i - 1074). Adding the numbers of
// several sums gives those of their sum: not the same ones, but of the same value.
constexpr std::size_t digit_count = 66;  // up to 2^1038, beyond every finite double
constexpr int digit_bits = 32;
constexpr int lowest_bit = -1074;

using digits = std::array<double, digit_count>;

digits digits_of(base::exact_sum s) {
    digits d{};
    // What is left once the nearest double is taken away has the next ones.
    // NOLINTNEXTLINE(clang-analyzer-security.FloatLoopCounter): until nothing is left
    for (double v = s.value(); v != 0; v = s.value()) {
        base::exact_sum nearest;
        nearest.add(v);
        s.subtract(nearest);
        for (auto i = static_cast<std::size_t>((std::ilogb(v) - lowest_bit) / digit_bits); v != 0;
             --i) {
            const int weight = static_cast<int>(i) * digit_bits + lowest_bit;
            const double digit = std::trunc(std::ldexp(v, -weight));
            d[i] += digit;
            v -= std::ldexp(digit, weight);
        }
    }
    return d;
}

base::exact_sum sum_of(std::span<const double> d) {
    base::exact_sum s;
    for (std::size_t i = 0; i < d.size(); ++i) {
        s.add(std::ldexp(d[i], static_cast<int>(i) * digit_bits + lowest_bit));
    }
    return s;
}

constexpr std::string_view other_role = "other";

std::string_view role_named(int place) {
    const auto list = engine::roles();
    const auto at = static_cast<std::size_t>(place);
    return at < list.size() ? list[at].name : other_role;
}

int place_of_role(const io::tensor_info& info) {
    const std::string_view role = engine::role_finder().role_of(info);
    const auto list = engine::roles();
    return static_cast<int>(std::ranges::find(list, role, &engine::role_row::name) - list.begin());
}

// Calls f(count) for every count of the totals, in the order of the lists of numbers.
template <typename Totals, typename F>
void each_whole(Totals& t, F f) {
    block::each_count(f, t.count);
    f(t.count.dequant_overflow);
    f(t.block.blocks);
    block::each_flag(f, t.block);
}

// Hands out what the run knows of its one tensor, by recipe.
class one_array final : public totals_visitor {
  public:
    explicit one_array(const engine::run_request& request)
        : totals_visitor(request, false, false), seen(request.recipes.size()) {}
    std::vector<statistics::array_figures> seen;

    void end(const engine::run_batch& b) override {
        for (std::size_t i = 0; i < b.jobs.size(); ++i) {  // none of a recipe that does not fit
            const engine::run_job& j = b.jobs[i];
            seen[j.recipe] = {sums()[i]->totals, j.passes, b.inexact.front(),
                              double{j.params[0]->tensor.decode}};
        }
    }
};

}  // namespace

statistics::statistics(const codec::recipe& r, std::string name)
    : recipe_(r),
      name_(std::move(name)),
      totals_(empty_totals(r)),
      spread_(undefined_figure),
      tensor_scale_(undefined_figure) {}

void statistics::range::take(const range& other) {
    least = std::min(least, other.least);
    largest = std::max(largest, other.largest);
}

void statistics::update(const engine::tensor_ref& t, const engine::run_control& control) {
    statistics* const one[] = {this};
    update(one, t, control);
}

void statistics::update(std::span<statistics* const> all, const engine::tensor_ref& t,
                        const engine::run_control& control) {
    const auto refuse = [&](const std::vector<engine::skipped_tensor>& skipped) {
        if (skipped.empty()) return;
        const auto kind =
            skipped.front().recipe.empty() ? base::error_kind::input : base::error_kind::usage;
        throw base::error(kind, skipped.front().reason, {t.info().file, t.info().name, {}});
    };
    std::vector<engine::skipped_tensor> skipped;
    engine::numeric_only({t}, skipped);
    refuse(skipped);
    engine::run_request request;
    for (const statistics* s : all) request.recipes.push_back(s->recipe_);
    one_array array(request);
    const double spread = spreads_of(std::span(&t, 1), request, control).front();
    refuse(engine::run({t}, request, array, control));
    add(all, t.info(), spread, array.seen);
}

void statistics::add(std::span<statistics* const> all, const io::tensor_info& info, double spread,
                     std::span<const array_figures> figures) {
    const int type = static_cast<int>(info.type), role = place_of_role(info);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const array_figures& seen = figures[i];
        statistics added(all[i]->recipe_, all[i]->name_);
        added.totals_ = seen.totals;
        added.arrays_ = 1;
        added.inexact_ = seen.inexact;
        added.passes_ = seen.passes;
        added.shape_ = info.shape;
        added.dtype_ = {type, type};
        added.role_ = {role, role};
        added.spread_ = spread;
        if (codec::has_tensor_scale(added.recipe_)) added.tensor_scale_ = seen.tensor_scale;
        all[i]->merge(added);
    }
}

void statistics::merge(const statistics& other) {
    if (recipe_ != other.recipe_) {
        base::refuse("statistics of {} and of {} do not merge", codec::to_string(recipe_),
                     codec::to_string(other.recipe_));
    }
    totals_.merge(other.totals_);
    if (other.arrays_ == 0) return;
    const bool one = arrays_ == 0 && other.arrays_ == 1;
    shape_ = one ? other.shape_ : std::nullopt;
    spread_ = one ? other.spread_ : undefined_figure;
    tensor_scale_ = one ? other.tensor_scale_ : undefined_figure;
    arrays_ += other.arrays_;
    inexact_ += other.inexact_;
    passes_ = std::max(passes_, other.passes_);
    dtype_.take(other.dtype_);
    role_.take(other.role_);
}

result statistics::figures() const {
    result r;
    metrics::totals t = totals_;
    t.deviation = spread_;
    static_cast<metrics::row&>(r) = metrics::row_of(t);
    const auto type = dtype_.least == dtype_.largest ? static_cast<tensor::dtype>(dtype_.least)
                                                     : tensor::dtype::other;
    const bool one_role = role_.least == role_.largest;
    io::tensor_info info;
    info.file = "memory";
    info.name = name_;
    info.type = type;
    info.shape = shape_.value_or(tensor::shape{t.count.elements});
    info.elements = t.count.elements;
    info.bytes = tensor::stored_bytes(type, t.count.elements);
    info.sums_over = io::last_axis_of(info.shape);
    tensor_identity of = identity_of(info, one_role ? role_named(role_.least) : other_role);
    if (!shape_) of.sums_over = {};
    if (type == tensor::dtype::other) of.stored_bytes = {};
    r.of = std::make_shared<tensor_identity>(std::move(of));
    r.under = std::make_shared<named_recipe>(named_recipe{codec::to_string(recipe_), recipe_});
    r.elements = t.count.elements;
    r.blocks = t.block.blocks;
    r.nan = t.count.nan;
    r.inf = t.count.inf;
    r.poisoned = t.count.poisoned;
    r.inexact_inputs = inexact_;
    r.passes = passes_;
    r.tensor_scale = tensor_scale_;
    return r;
}

std::vector<double> statistics::sums() const {
    std::vector<double> n{static_cast<double>(arrays_), static_cast<double>(inexact_)};
    each_whole(totals_, [&](std::uint64_t count) { n.push_back(static_cast<double>(count)); });
    block::each_exact_sum(
        [&](const base::exact_sum& s) {
            const digits d = digits_of(s);
            n.insert(n.end(), d.begin(), d.end());
        },
        totals_.sum);
    return n;
}

std::vector<double> statistics::maxima() const {
    const auto or_less = [](double x) { return std::isnan(x) ? -1.0 : x; };
    return {totals_.max_error,
            double{std::bit_cast<float>(totals_.max_x)},
            static_cast<double>(passes_),
            static_cast<double>(-dtype_.least),
            static_cast<double>(dtype_.largest),
            static_cast<double>(-role_.least),
            static_cast<double>(role_.largest),
            or_less(spread_),
            or_less(tensor_scale_)};
}

statistics statistics::with_numbers(const codec::recipe& r, std::string name,
                                    std::span<const double> sums, std::span<const double> maxima) {
    statistics s(r, std::move(name));
    const std::size_t length = s.sums().size();
    if (sums.size() != length || maxima.size() != s.maxima().size()) {
        base::refuse("statistics have {} sums and {} maxima", length, s.maxima().size());
    }
    const double limit = std::ldexp(1.0, 53);
    for (const double x : sums) {
        if (!(std::abs(x) <= limit) || x != std::trunc(x)) {
            base::refuse("statistics: {} is not a sum; sums are integers in float64", x);
        }
    }
    for (const double x : maxima) {
        if (std::isnan(x)) base::refuse("statistics: a maximum is NaN");
    }
    std::size_t at = 0;
    const auto whole = [&]() -> std::uint64_t {
        const double x = sums[at++];
        if (x < 0) base::refuse("statistics: {} is not a count", x);
        return static_cast<std::uint64_t>(x);
    };
    s.arrays_ = whole();
    s.inexact_ = whole();
    each_whole(s.totals_, [&](std::uint64_t& count) { count = whole(); });
    block::each_exact_sum(
        [&](base::exact_sum& sum) {
            sum = sum_of(sums.subspan(at, digit_count));
            at += digit_count;
        },
        s.totals_.sum);
    s.totals_.max_error = maxima[0];
    s.totals_.max_x = std::bit_cast<std::uint32_t>(static_cast<float>(maxima[1]));
    s.passes_ = maxima[2] > 0 ? static_cast<std::uint64_t>(maxima[2]) : 0;
    const auto place = [&](double x, std::size_t count) {
        return static_cast<int>(std::clamp(x, 0.0, static_cast<double>(count - 1)));
    };
    if (s.arrays_ > 0) {
        s.dtype_ = {place(-maxima[3], tensor::dtypes.size()),
                    place(maxima[4], tensor::dtypes.size())};
        s.role_ = {place(-maxima[5], engine::roles().size()),
                   place(maxima[6], engine::roles().size())};
    }
    if (s.arrays_ == 1) {
        if (maxima[7] >= 0) s.spread_ = maxima[7];
        if (maxima[8] >= 0) s.tensor_scale_ = maxima[8];
    }
    return s;
}

}  // namespace mx::analysis

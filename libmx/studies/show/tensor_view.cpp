// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/show/tensor_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "libmx/base/half.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/float_scale.hpp"
#include "libmx/codec/ocp_block.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/studies/show/scale_family.hpp"

namespace mx::show {
namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// The position of a block.
struct block_position {
    std::uint64_t first;  // index of its first element
    std::uint64_t rows, cols;
};

block_position position_of(const block::grid& g, std::uint64_t index) {
    const std::uint64_t line = index / g.cols();
    const std::uint64_t matrix = line / g.rows();
    const std::uint64_t row = line % g.rows() * g.block_rows;
    const std::uint64_t col = index % g.cols() * g.block_cols;
    return {(matrix * g.over.rows + row) * g.over.cols + col,
            std::min(g.block_rows, g.over.rows - row), std::min(g.block_cols, g.over.cols - col)};
}

std::vector<std::uint64_t> coordinates(const tensor::shape& shape, std::uint64_t index) {
    std::vector<std::uint64_t> at(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        at[axis] = index % shape[axis];
        index /= shape[axis];
    }
    return at;
}

// The scale times the tensor scale; NaN if elements have none.
double whole_scale(const codec::block_params& p, float scale) {
    if (!std::isfinite(scale)) return no_number;
    if (p.scale_format->power_of_two()) return static_cast<double>(scale);
    const codec::scale_product s = codec::product_of(p, scale);
    return static_cast<double>(s.block) * static_cast<double>(s.tensor);
}

// Elements by the kernels' definition: x over the scale, rounded exactly, decides clamping.
class element_judge {
  public:
    element_judge(const codec::block_params& p, const kept_block& b,
                  const codec::block_place& place)
        : p_(p),
          b_(b),
          place_(place),
          f_(p.ocp || !p.scale_format->power_of_two() ? p.element : p.conversion.element),
          offset_(p.has_offset ? base::float_from_half(b.stats.offset) : 0.0F),
          scale_(whole_scale(p, b.stats.scale)) {
        if (p.scale_format->power_of_two()) return;
        const codec::scale_product s = codec::product_of(p, b.stats.scale);
        if (scale_ > 0) exact_ = format::exact_product(s.block, s.tensor);
    }

    element judge(std::size_t i) const {
        element e;
        e.x = b_.x[i];
        e.code = b_.codes[i];
        e.q = p_.ocp || !p_.scale_format->power_of_two() ? p_.value[e.code]
                                                         : p_.conversion.value[e.code];
        e.value = b_.values[i];
        e.y = no_number;
        if (std::isnan(scale_) || !std::isfinite(e.x)) return e;
        const int raised = raised_at(i);
        const float z = e.x - offset_;
        e.y = static_cast<double>(z) / (scale_ * (raised != 0 ? 2.0 : 1.0));
        if (!std::isfinite(e.q) || z == 0) return e;
        const format::encoded exact = encoded(z, raised, i);
        const std::uint32_t limit = f_.limit(exact.negative);
        e.clamped = exact.unbounded > limit;
        e.underflow = offset_ == 0 ? e.q == 0 : e.x != 0 && e.value == 0;
        e.largest = e.code == format::with_sign(f_, limit, exact.negative);
        return e;
    }

    double scale() const { return scale_; }
    float offset() const { return offset_; }

  private:
    int raised_at(std::size_t i) const {
        if (b_.bump.empty()) return 0;
        return b_.bump[i % static_cast<std::size_t>(place_.cols)] != 0 ? 1 : 0;
    }

    format::encoded encoded(float z, int raised, std::size_t i) const {
        std::uint32_t draw = 0;
        if (p_.mode.how == format::rounding::stochastic) {
            draw = base::random_u32({p_.seed, place_.tensor_id}, place_.index(static_cast<int>(i)));
        }
        const std::uint32_t bits = base::bits_of(z);
        if (!p_.scale_format->power_of_two()) {
            if (!(scale_ > 0)) return {0, 0, false, std::signbit(z)};
            return format::encode_quotient(f_, p_.mode, bits, exact_, draw);
        }
        const int exponent = std::ilogb(b_.stats.scale) + raised;
        const format::rounding_mode& mode = p_.ocp ? p_.mode : p_.conversion.mode;
        return format::encode_magnitude(f_, mode, bits, exponent, draw);
    }

    const codec::block_params& p_;
    const kept_block& b_;
    const codec::block_place& place_;
    const format::element_params& f_;
    float offset_;
    double scale_;
    format::exact_scale exact_{1, 0};
};

void read_stored(const engine::tensor_ref& t, const block_position& at, std::uint64_t stride,
                 std::vector<element>& to) {
    const auto source = t.file->open(t.index);
    std::vector<float> row(static_cast<std::size_t>(at.cols));
    std::vector<std::byte> scratch;
    for (std::size_t r = 0; r < at.rows; ++r) {
        const std::uint64_t first = at.first + r * stride;
        io::read_f32(*source, t.info().type, first, row, scratch);
        for (std::size_t c = 0; c < row.size(); ++c) {
            element& e = to[r * row.size() + c];
            e.stored = row[c];
            e.index = first + c;
        }
    }
}

// A NaN counts as the largest error.
bool errs_more(const element& a, const element& b) {
    const auto size = [](const element& e) {
        const double error = std::abs(e.error());
        return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    };
    return size(a) > size(b);
}

void keep_largest_errors(std::vector<element>& elements) {
    if (elements.size() <= most_elements) return;
    std::ranges::stable_sort(elements, errs_more);
    elements.resize(most_elements);
    std::ranges::sort(elements, {}, &element::index);
}

// With the outer scale of the block's area, if areas have outer scales.
codec::block_params params_for(const codec::block_params& p, const kept_block& k) {
    codec::block_params own = p;
    if (p.outer_areas) own.tensor = codec::outer_scale(p.outer, k.outer_amax);
    return own;
}

block_view look_into(const kept_block& k, const tensor_view& v, const block_mapper& map) {
    const io::tensor_info& info = v.tensor.info();
    const block::grid& g = v.geometry.grid;
    const block_position at = position_of(g, k.index);
    codec::block_place place{base::tensor_id(info.name), at.first, g.over.cols,
                             static_cast<int>(at.cols), k.bump.empty() ? nullptr : k.bump.data()};
    block_view b;
    b.index = k.index;
    b.first_index = at.first;
    b.first = coordinates(info.shape, at.first);
    b.last = coordinates(info.shape, at.first + (at.rows - 1) * g.over.cols + at.cols - 1);
    b.rows = at.rows;
    b.cols = at.cols;
    b.size = k.x.size();
    b.stats = k.stats;
    b.of = region_of(k.stats);
    const codec::block_params own = params_for(*map.params[0], k);
    const element_judge judge(own, k, place);
    b.scale = judge.scale();
    b.offset = judge.offset();
    for (std::size_t i = 0; i < k.x.size(); ++i) b.elements.push_back(judge.judge(i));
    read_stored(v.tensor, at, g.over.cols, b.elements);
    keep_largest_errors(b.elements);
    std::vector<std::uint8_t> codes(k.x.size());
    for (std::size_t r = 0; r < v.family.size(); ++r) {
        const codec::block_params p = params_for(*map.params[r], k);
        place.bump = p.bumps ? k.bump.data() : nullptr;
        rule_outcome o{r, codec::measure_block(p, k.x, place, codes), 0};
        o.scale = whole_scale(p, o.stats.scale);
        b.rules.push_back(o);
    }
    return b;
}

}  // namespace

tensor_view view_tensor(const engine::tensor_ref& t, const show_request& request,
                        const engine::run_control& control) {
    const io::tensor_info& info = t.info();
    const base::error_place place{info.file, info.name, {}};
    const codec::recipe& recipe = request.recipes.front();
    const std::string left_out = engine::why_left_out(info);
    if (!left_out.empty()) {
        throw base::error(base::error_kind::input, "it is not shown: " + left_out, place);
    }
    if (info.elements == 0) {
        throw base::error(base::error_kind::input,
                          fmt::format("its shape is {}: there is no element to show",
                                      tensor::to_string(info.shape)),
                          place);
    }
    tensor_view v;
    v.tensor = t;
    std::string reason;
    const auto layout = engine::lay_out(info, recipe, reason);
    if (!layout) {
        throw base::error(base::error_kind::usage, codec::to_string(recipe) + ": " + reason, place);
    }
    v.geometry = *layout;
    const std::uint64_t blocks = layout->grid.blocks();
    if (request.block && *request.block >= blocks) {
        throw base::error(
            base::error_kind::usage,
            fmt::format("there is no block {}: under {} it has {}, 0 to {}", *request.block,
                        codec::to_string(recipe), report::plural(blocks, "block"), blocks - 1),
            place);
    }
    v.family = scale_family(recipe);
    analysis::analysis_request all;
    static_cast<engine::run_request&>(all) = request;
    all.recipes = v.family;
    all.decompose = true;
    v.normal = policy::figures_on_normal_data(recipe);
    block_mapper map(request.worst, request.block, v.normal.nrmse * v.normal.nrmse,
                     request.map_rows, request.map_columns);
    const analysis::result_list found = analysis::analyze({t}, all, control, &map).results;
    v.results.assign(found.begin(), found.end());
    v.layout = map.layout;
    v.cells = std::move(map.cells);
    v.bands = std::move(map.bands);
    v.band_lines = map.band_lines;
    for (const kept_block& k : map.kept) v.blocks.push_back(look_into(k, v, map));
    return v;
}

}  // namespace mx::show

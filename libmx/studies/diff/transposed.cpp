// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/transposed.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "libmx/base/glob.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/widen.hpp"

namespace mx::diff {
namespace {

constexpr std::uint64_t sampled = 32;

// A tensor as matrices: the product of its leading axes, and the last two.
struct matrices {
    std::uint64_t count = 1, rows = 0, columns = 0;
};

std::optional<matrices> matrices_of(const tensor::shape& shape) {
    if (shape.size() < 2) return {};
    matrices m;
    for (std::size_t i = 0; i + 2 < shape.size(); ++i) m.count *= shape[i];
    m.rows = shape[shape.size() - 2];
    m.columns = shape.back();
    if (m.count == 0 || m.rows < 2 || m.columns < 2) return {};
    return m;
}

// Single elements of a tensor.
class element_reader {
  public:
    explicit element_reader(const engine::tensor_ref& of)
        : source_(of.file->open(of.index)), type_(of.info().type) {}
    double at(std::uint64_t index) {
        float x = 0;
        io::read_f32(*source_, type_, index, std::span(&x, 1), scratch_);
        return double{x};
    }

  private:
    std::unique_ptr<io::byte_source> source_;
    tensor::dtype type_;
    std::vector<std::byte> scratch_;
};

// The root of the squared differences over the squares of a, of elements off the diagonals.
double sample_error(element_reader& a, element_reader& b, const matrices& m, bool swapped) {
    double off = 0, size = 0;
    for (std::uint64_t k = 0; k < sampled; ++k) {
        const std::uint64_t block = k * 7 % m.count * m.rows * m.columns;
        const std::uint64_t i = k * 2654435761u % m.rows;
        const std::uint64_t j = (i + 1 + k * 40503u % (m.columns - 1)) % m.columns;
        const double x = a.at(block + i * m.columns + j);
        const double y = b.at(block + (swapped ? j * m.columns + i : i * m.columns + j));
        off += (x - y) * (x - y);
        size += x * x;
    }
    return std::sqrt(off / size);  // NaN for zeros, which compares false
}

bool swap_alike(const tensor::shape& a, const tensor::shape& b) {
    if (a.size() != b.size() || a == b || a.size() < 2) return false;
    tensor::shape swapped = b;
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    return a == swapped;
}

std::optional<transposed_tensor> transposed_pair(const engine::tensor_ref& a,
                                                 const engine::tensor_ref& b) {
    std::vector<engine::skipped_tensor> left_out;
    if (engine::numeric_only({a, b}, left_out).size() < 2) return {};
    const tensor::shape& shape = a.info().shape;
    if (swap_alike(shape, b.info().shape)) return transposed_tensor{a.info().name, {}, {}};
    const auto m = matrices_of(shape);
    if (!m || shape != b.info().shape || m->rows != m->columns) return {};
    // Less than this is the error of a format, not of another order.
    constexpr double unrelated = 0.5;
    element_reader x(a), y(b);
    const double as_stored = sample_error(x, y, *m, false);
    if (!(as_stored > unrelated)) return {};
    const double exchanged = sample_error(x, y, *m, true);
    if (!(exchanged < as_stored / 4)) return {};
    return transposed_tensor{a.info().name, as_stored, exchanged};
}

}  // namespace

std::vector<transposed_tensor> find_transposed(std::span<const io::reader* const> dumps,
                                               const std::vector<engine::tensor_ref>& chosen) {
    std::map<std::string_view, engine::tensor_ref> second;
    for (const engine::tensor_ref& t : chosen) {
        if (t.file == dumps[1]) second.emplace(t.info().name, t);
    }
    std::vector<transposed_tensor> found;
    for (const engine::tensor_ref& t : chosen) {
        const auto other = second.find(t.info().name);
        if (t.file != dumps[0] || other == second.end()) continue;
        if (auto pair = transposed_pair(t, other->second)) found.push_back(std::move(*pair));
    }
    return found;
}

std::vector<std::string> globs_of(const std::vector<transposed_tensor>& tensors,
                                  const io::reader& dump) {
    std::set<std::string> names;
    for (const transposed_tensor& t : tensors) names.insert(t.name);
    // Whether no other tensor with two axes matches.
    const auto only_these = [&](const std::string& glob) {
        return std::ranges::none_of(dump.tensors(), [&](const io::tensor_info& t) {
            return t.shape.size() > 1 && !names.contains(t.name) && base::glob_match(glob, t.name);
        });
    };
    std::vector<std::string> globs;
    for (const transposed_tensor& t : tensors) {
        if (std::ranges::any_of(globs,
                                [&](const auto& g) { return base::glob_match(g, t.name); })) {
            continue;
        }
        const auto layer = engine::layer_of(t.name);
        const bool several = layer && std::ranges::count_if(names, [&](const std::string& n) {
                                          return base::glob_match(layer->series, n);
                                      }) > 1;
        globs.push_back(several && only_these(layer->series) ? layer->series
                                                             : base::exact_glob(t.name));
    }
    return globs;
}

}  // namespace mx::diff

// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/packed_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/quantized/coded_blocks.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::engine {
namespace {

constexpr std::string_view tensor_prefix = "mx.tensor.";
constexpr std::string_view recipe_key = "mx.recipe";      // for all tensors
constexpr std::string_view recipe_prefix = "mx.recipe.";  // for one tensor

[[noreturn]] void fail(const io::reader& file, const std::string& tensor, std::string message) {
    throw base::error(base::error_kind::input, std::move(message), {path_of(file), tensor, {}});
}

std::optional<tensor::shape> parse_shape(std::string_view text) {
    tensor::shape s;
    if (text == "-") return s;
    while (!text.empty()) {
        std::uint64_t extent = 0;
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), extent);
        if (status != std::errc{}) return std::nullopt;
        if (s.size() == io::axes_limit) return std::nullopt;
        s.push_back(extent);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) break;
        if (text.front() != 'x' || text.size() == 1) return std::nullopt;
        text.remove_prefix(1);
    }
    if (s.empty()) return std::nullopt;
    return s;
}

// The arrays of a file by name; of equal names the first.
using array_places = base::view_map<std::size_t>;

array_places places_in(const io::reader& file) {
    array_places places;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        places.emplace(file.tensors()[i].name, i);
    }
    return places;
}

std::size_t need(const io::reader& file, const array_places& places, const std::string& tensor,
                 const char* part, std::uint64_t bytes) {
    const std::string name = tensor + part;
    const auto at = places.find(name);
    if (at == places.end()) {
        fail(file, tensor, fmt::format("the packed file has no array '{}'", name));
    }
    const std::uint64_t have = file.tensors()[at->second].bytes;
    if (have != bytes) {
        fail(file, tensor,
             fmt::format("'{}' has {} bytes; shape and recipe require {}", name, have, bytes));
    }
    return at->second;
}

codec::recipe parse_named(const io::reader& file, const std::string& tensor,
                          const std::string& text) {
    try {
        codec::recipe r = codec::parse_block_recipe(text);
        codec::recipe opened = r;
        opened.outer.file.clear();  // the file holds the scale
        codec::require_files_inside(opened);
        return r;
    } catch (const base::error& e) {
        fail(file, tensor, e.message());
    }
}

packed_tensor read_entry(const io::reader& file, const array_places& places,
                         const std::string& name, std::string_view entry,
                         const codec::recipe& recipe) {
    const std::size_t space = entry.find(' ');
    const auto type = tensor::find_dtype(entry.substr(0, space));
    std::string_view rest = space == std::string_view::npos ? "" : entry.substr(space + 1);
    const std::size_t behind = rest.find(' ');
    const auto shape = parse_shape(rest.substr(0, behind));
    std::optional<axis_range> sums;
    if (shape) sums = last_axis(*shape);
    if (shape && behind != std::string_view::npos) {
        sums = parse_axes(rest.substr(behind + 1), shape->size());
    }
    if (!type || rest.empty() || !shape || !sums) {
        fail(file, name,
             fmt::format("metadata entry '{}' is not DTYPE SHAPE, or DTYPE SHAPE FIRST-LAST with "
                         "two of its axes",
                         entry));
    }
    const auto elements = tensor::element_count(*shape);
    if (!elements) fail(file, name, "the shape in the metadata is too large");
    std::string reason;
    const std::optional<geometry> layout = lay_out(*shape, *sums, recipe, reason);
    if (!layout) fail(file, name, "the recipe does not fit the tensor: " + reason);
    const std::uint64_t blocks = layout->grid.blocks();
    packed_tensor t{name, recipe, *type, *shape, {}, 0, 0, std::nullopt, std::nullopt};
    t.sums_over = {static_cast<int>(sums->first), static_cast<int>(sums->last),
                   "the axis of its blocks in the packed file"};
    t.codes =
        need(file, places, name, ".codes", block::packed_bytes(recipe.element->bits(), *elements));
    // The codes are present, so the number of blocks cannot overflow.
    const auto scale_bytes =
        static_cast<std::uint64_t>(tensor::row_of(scales_type(recipe)).bits / 8);
    t.scales = need(file, places, name, ".scales", scale_bytes * blocks);
    const bool areas = codec::has_outer_areas(recipe);
    if (areas || codec::has_tensor_scale(recipe)) {
        // No more areas than blocks.
        t.tensor_scale = need(file, places, name, tensor_scale_suffix,
                              sizeof(float) * (areas ? layout->grid.areas() : 1));
    }
    if (recipe.offset == codec::offset_kind::fp16) {
        t.offsets = need(file, places, name, ".offsets", 2 * blocks);
    }
    return t;
}

void set_outer_scale(const io::reader& file, const packed_tensor& t, float stored,
                     codec::block_params& to) {
    try {
        codec::set_tensor_scale(to, stored);
    } catch (const base::error& e) {
        throw base::error(e.kind(), e.message(), {path_of(file), t.name, {}});
    }
}

// The parameters of one tensor with the tensor scale in the file.
codec::block_params params_of(const io::reader& file, const packed_tensor& t) {
    codec::block_params params = codec::params_of(t.recipe);
    if (t.tensor_scale && !params.outer_areas) {
        set_outer_scale(file, t, io::read_run<float>(*file.open(*t.tensor_scale), 0, 1).front(),
                        params);
    }
    return params;
}

// The outer scales of areas; empty if the tensor has a single one.
std::vector<float> outer_scales_of(const io::reader& file, const packed_tensor& t,
                                   const block::grid& g, codec::block_params params) {
    if (!g.has_areas()) return {};
    std::vector<float> all = io::read_run<float>(*file.open(*t.tensor_scale), 0, g.areas());
    for (const float stored : all) set_outer_scale(file, t, stored, params);
    return all;
}

// Dequantized values of blocks.
class block_values final : public io::coded_blocks<float> {
  public:
    block_values(const codec::block_params& params, int bits, const block::grid& g,
                 block_sources from)
        : coded_blocks(std::move(from.codes), bits, g),
          params_(params),
          grid_(g),
          scales_(std::move(from.scales)),
          offsets_(std::move(from.offsets)),
          outer_(std::move(from.outer)) {}

  private:
    void decode(const run& r, std::span<float> out) const override {
        const std::uint64_t count = blocks_of(r);
        const std::vector<float> scales = read_scales(r.block, count);
        std::vector<std::uint16_t> offsets(static_cast<std::size_t>(count));
        if (offsets_) offsets = io::read_run<std::uint16_t>(*offsets_, r.block, count);
        codec::block_params params = params_;
        for_each_block(
            r, out,
            [&](std::size_t block, std::span<const std::uint8_t> codes, std::span<float> values) {
                if (!outer_.empty()) {
                    const float stored = outer_[grid_.area_of(r.block + block)];
                    params.tensor = codec::stored_tensor_scale(params.by->two_level.value, stored);
                }
                codec::dequantize_block(params, scales[block], offsets[block], codes, values);
            });
    }

    // The scales as numbers, in any stored form.
    std::vector<float> read_scales(std::uint64_t first, std::uint64_t count) const {
        if (!codec::scales_have_codes(params_)) return io::read_run<float>(*scales_, first, count);
        std::vector<float> scales;
        scales.reserve(static_cast<std::size_t>(count));
        for (const std::uint8_t code : io::read_run<std::uint8_t>(*scales_, first, count)) {
            scales.push_back(format::decode_scale(*params_.scale_format, code));
        }
        return scales;
    }

    codec::block_params params_;
    block::grid grid_;
    io::shared_source scales_, offsets_;
    std::vector<float> outer_;  // as stored, by area
};

// Undoes the rotation of values. Always decodes whole groups, even if only a part is requested.
class unrotated_source final : public io::byte_source {
  public:
    unrotated_source(io::shared_source rotated, const transform::rotation& how,
                     const block::grid& g)
        : rotated_(std::move(rotated)), how_(how), over_(g.over), columns_(g.joint_rows > 1) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        io::read_whole_elements(
            offset, out, sizeof(float), [this](std::uint64_t first, std::span<std::byte> bytes) {
                while (!bytes.empty()) {
                    const std::uint64_t count =
                        columns_ ? fill_rows(first, bytes) : fill_row(first, bytes);
                    bytes = bytes.subspan(count * sizeof(float));
                    first += count;
                }
            });
    }

  private:
    static constexpr std::uint64_t widest = 4096;  // columns decoded at a time

    // Reads a part of one row. Returns the number of elements.
    std::uint64_t fill_row(std::uint64_t first, std::span<std::byte> bytes) const {
        const std::uint64_t col = first % over_.cols;
        const std::uint64_t count =
            std::min({bytes.size() / sizeof(float), over_.cols - col, widest});
        const auto group = static_cast<std::uint64_t>(how_.size);
        const std::uint64_t begin = col / group * group;
        const std::uint64_t end = std::min(over_.cols, (col + count + group - 1) / group * group);
        std::vector<float> x(static_cast<std::size_t>(end - begin));
        rotated_->read((first - col + begin) * sizeof(float), std::as_writable_bytes(std::span(x)));
        transform::rotate_back(how_, {x.data(), 1, x.size(), x.size()}, transform::run::row);
        std::memcpy(bytes.data(), x.data() + (col - begin), count * sizeof(float));
        return count;
    }

    // Reads a part of one group of rows, in strips of columns.
    std::uint64_t fill_rows(std::uint64_t first, std::span<std::byte> bytes) const {
        const auto group = static_cast<std::uint64_t>(how_.size);
        const std::uint64_t row = first / over_.cols;
        const std::uint64_t in_matrix = row % over_.rows;
        const std::uint64_t top = row - in_matrix % group;
        const std::uint64_t height = std::min(group, over_.rows - in_matrix / group * group);
        const std::uint64_t end =
            std::min(first + bytes.size() / sizeof(float), (top + height) * over_.cols);
        const bool one_row = (end - 1) / over_.cols == row;
        const std::uint64_t left = one_row ? first % over_.cols : 0;
        const std::uint64_t right = one_row ? (end - 1) % over_.cols + 1 : over_.cols;
        std::vector<float> x;
        for (std::uint64_t at = left; at < right; at += widest) {
            const std::uint64_t width = std::min(widest, right - at);
            x.resize(static_cast<std::size_t>(height * width));
            for (std::uint64_t r = 0; r < height; ++r) {
                rotated_->read(((top + r) * over_.cols + at) * sizeof(float),
                               std::as_writable_bytes(std::span(x).subspan(r * width, width)));
            }
            transform::rotate_back(how_, {x.data(), height, width, width}, transform::run::column);
            for (std::uint64_t r = row - top; r < height; ++r) {
                const std::uint64_t begin = (top + r) * over_.cols + at;
                const std::uint64_t from = std::max(begin, first);
                const std::uint64_t to = std::min(begin + width, end);
                if (from >= to) continue;
                std::memcpy(bytes.data() + (from - first) * sizeof(float),
                            x.data() + r * width + (from - begin), (to - from) * sizeof(float));
            }
        }
        return end - first;
    }

    io::shared_source rotated_;
    transform::rotation how_;
    block::view over_;
    bool columns_;
};

// Elements that a thread decodes at a time: whole groups of rows if a rotation along columns
// requires it and they are not too large.
std::uint64_t piece_of(const block::grid& g) {
    constexpr std::uint64_t target = std::uint64_t{1} << 17;
    constexpr std::uint64_t most = std::uint64_t{1} << 22;
    const std::uint64_t group = g.over.cols <= most ? g.joint_rows * g.over.cols : most + 1;
    if (group > most || group == 0) return target;
    return (target + group - 1) / group * group;
}

}  // namespace

std::vector<std::size_t> packed_tensor::parts() const {
    std::vector<std::size_t> all{codes, scales};
    for (const auto& more : {offsets, tensor_scale}) {
        if (more) all.push_back(*more);
    }
    return all;
}

block::grid packed_tensor::grid() const {
    std::string reason;
    const axis_range sums{static_cast<std::size_t>(sums_over.first),
                          static_cast<std::size_t>(sums_over.last)};
    return lay_out(shape, sums, recipe, reason)->grid;
}

std::string path_of(const io::reader& file) {
    return file.files().empty() ? std::string() : file.files().front().first;
}

io::planned_array codes_array(const std::string& tensor, std::string_view type_name, int bits,
                              const tensor::shape& shape) {
    const tensor::dtype type = *tensor::find_dtype(type_name);
    const std::uint64_t elements = *tensor::element_count(shape);
    const std::uint64_t bytes = block::packed_bytes(bits, elements);
    // A sub-byte dtype gives its size in bits, which must be a multiple of 8.
    const auto type_bits = static_cast<std::uint64_t>(tensor::row_of(type).bits);
    if (type_bits == 8 && bytes == elements) return {tensor + ".codes", type, shape};
    if (type_bits < 8 && elements * type_bits % 8 == 0) return {tensor + ".codes", type, shape};
    return {tensor + ".codes", tensor::dtype::u8, {bytes}};
}

tensor::dtype scales_type(const codec::recipe& r) {
    if (!codec::scales_have_codes(r)) return tensor::dtype::f32;
    return *tensor::find_dtype(r.scale_format->safetensors);
}

std::string tensor_key(const std::string& tensor) { return std::string(tensor_prefix) + tensor; }

std::string tensor_entry(const io::tensor_info& info, std::optional<axis_range> blocks) {
    std::string entry =
        fmt::format("{} {}", tensor::row_of(info.type).name, tensor::to_string(info.shape));
    if (blocks && *blocks != last_axis(info.shape)) {
        entry += fmt::format(" {}-{}", blocks->first, blocks->last - 1);
    }
    return entry;
}

void put_recipes(io::metadata_map& to, const std::vector<tensor_recipe>& tensors, bool packed) {
    const bool one = std::all_of(tensors.begin(), tensors.end(), [&](const tensor_recipe& t) {
        return t.recipe == tensors.front().recipe;
    });
    if (packed) to[schema_key_name] = one ? "mx.packed/1" : "mx.packed/2";
    if (one && !tensors.empty()) {
        to[std::string(recipe_key)] = codec::to_string(tensors.front().recipe);
        return;
    }
    for (const tensor_recipe& t : tensors) {
        to[std::string(recipe_prefix) + t.tensor] = codec::to_string(t.recipe);
    }
}

bool names_recipes(const io::reader& file) {
    return std::any_of(file.metadata().begin(), file.metadata().end(), [](const auto& m) {
        return m.first == recipe_key || m.first.rfind(recipe_prefix, 0) == 0;
    });
}

std::vector<packed_tensor> read_packed(const io::reader& file) {
    if (!names_recipes(file)) {
        fail(file, "",
             "not a packed file: its metadata names no recipe; "
             "`mx quantize --packed` writes such files");
    }
    const io::metadata_map& metadata = file.metadata();
    std::optional<codec::recipe> of_all;
    if (const auto at = metadata.find(std::string(recipe_key)); at != metadata.end()) {
        of_all = parse_named(file, "", at->second);
    }
    std::vector<packed_tensor> tensors;
    const array_places places = places_in(file);
    for (const auto& [key, entry] : metadata) {
        if (key.rfind(tensor_prefix, 0) != 0) continue;
        const std::string name = key.substr(tensor_prefix.size());
        const auto own = metadata.find(std::string(recipe_prefix) + name);
        if (own == metadata.end() && !of_all) fail(file, name, "the metadata has no recipe of it");
        tensors.push_back(
            read_entry(file, places, name, entry,
                       own == metadata.end() ? *of_all : parse_named(file, name, own->second)));
    }
    // The metadata are sorted by name; the result is in the order of the original file.
    std::sort(tensors.begin(), tensors.end(),
              [](const packed_tensor& a, const packed_tensor& b) { return a.codes < b.codes; });
    return tensors;
}

std::unique_ptr<io::byte_source> open_blocks(const codec::recipe& r,
                                             const codec::block_params& params,
                                             const block::grid& g, int code_bits,
                                             const block_sources& from) {
    auto values = std::make_unique<block_values>(params, code_bits, g, from);
    if (r.rotate.what == transform::kind::none) return values;
    return std::make_unique<unrotated_source>(std::move(values), r.rotate, g);
}

std::unique_ptr<io::byte_source> open_packed(const io::reader& file, const packed_tensor& t) {
    const codec::recipe& r = t.recipe;
    const block::grid grid = t.grid();
    const codec::block_params params = params_of(file, t);
    return open_blocks(
        r, params, grid, r.element->bits(),
        {file.open(t.codes), file.open(t.scales), t.offsets ? file.open(*t.offsets) : nullptr,
         outer_scales_of(file, t, grid, params)});
}

void for_each_piece(const block::grid& g, int threads, const std::atomic<bool>* cancel,
                    const std::function<void(std::uint64_t, std::uint64_t)>& body) {
    const std::uint64_t elements = g.over.elements();
    if (elements == 0) return;
    const std::uint64_t piece = piece_of(g);
    base::parallel_for((elements + piece - 1) / piece, threads, cancel, [&](std::uint64_t at, int) {
        body(at * piece, std::min(piece, elements - at * piece));
    });
}

}  // namespace mx::engine

// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "libmx/base/glob.hpp"
#include "libmx/base/scaled.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/remarks.hpp"
#include "libmx/io/strided.hpp"
#include "libmx/quantized/pairings.hpp"

namespace mx::engine {
namespace {

// A tensor with a function that opens it.
struct logical_tensor {
    io::tensor_info info;
    std::function<io::shared_source()> open;
    std::function<std::vector<io::tensor_scale>()> scales = {};  // none: it has no tensor scale
};
using logical_list = std::vector<logical_tensor>;

class view_reader final : public io::reader, public io::remarking {
  public:
    view_reader(logical_list tensors, const std::vector<std::unique_ptr<io::reader>>& files) {
        for (logical_tensor& t : tensors) {
            tensors_.push_back(std::move(t.info));
            open_.push_back(std::move(t.open));
            scales_.push_back(std::move(t.scales));
        }
        for (const auto& file : files) {
            for (const auto& f : file->files()) files_.push_back(f);
            for (std::string& text : io::remarks_of(*file)) remarks_.push_back(std::move(text));
        }
    }

    const std::vector<io::tensor_info>& tensors() const override { return tensors_; }
    std::unique_ptr<io::byte_source> open(std::size_t index) const override {
        return io::source_window(open_.at(index)(), 0);
    }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override { return files_; }
    std::vector<std::string> remarks() const override { return remarks_; }
    std::vector<io::tensor_scale> tensor_scales(std::size_t index) const override {
        return scales_.at(index) ? scales_[index]() : std::vector<io::tensor_scale>();
    }

  private:
    std::vector<io::tensor_info> tensors_;
    std::vector<std::function<io::shared_source()>> open_;
    std::vector<std::function<std::vector<io::tensor_scale>()>> scales_;
    std::vector<std::string> remarks_;
    std::map<std::string, std::string> metadata_;
    std::vector<std::pair<std::string, std::uint64_t>> files_;
};

// --- decoding ------------------------------------------------------------------------------------

// What an array becomes: nothing, a logical tensor, or itself.
class decoding {
  public:
    decoding(const std::vector<std::unique_ptr<io::reader>>& files, bool swizzled) {
        for (const auto& file : files) {
            const std::size_t base = arrays_.size();
            for (std::size_t i = 0; i < file->tensors().size(); ++i) {
                arrays_.push_back({file.get(), i});
            }
            taken_.resize(arrays_.size());
            in_place_of_.resize(arrays_.size());
            notes_.resize(arrays_.size());
            remarks_.resize(arrays_.size());
            missing_.resize(arrays_.size());
            if (names_recipes(*file)) take_packed(*file, base);
        }
        take_pairings(swizzled);
    }

    bool changes_anything() const { return changed_; }

    logical_list tensors() {
        logical_list all;
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            if (in_place_of_[i]) {
                all.push_back(std::move(*in_place_of_[i]));
            } else if (!taken_[i]) {
                const io::tensor_ref t = arrays_[i];
                all.push_back(
                    {t.info(), [t] { return io::shared_source(t.file->open(t.index)); }, {}});
                all.back().info.missing = std::move(missing_[i]);
                if (!remarks_[i].empty()) all.back().info.remark = remarks_[i];
                if (!notes_[i].empty()) all.back().info.note = notes_[i];
            }
        }
        return all;
    }

  private:
    // A file of `quantize --packed` describes its own arrays.
    void take_packed(const io::reader& file, std::size_t base) {
        std::vector<packed_tensor> tensors;
        try {
            tensors = read_packed(file);
        } catch (const base::error& e) {
            if (base < arrays_.size()) {
                remarks_[base] = fmt::format("this packed file is not decoded: {}", e.message());
                changed_ = true;
            }
            return;
        }
        for (const packed_tensor& t : tensors) {
            logical_tensor l;
            l.info.name = t.name;
            l.info.type = tensor::dtype::f32;
            l.info.shape = t.shape;
            l.info.elements = *tensor::element_count(t.shape);
            l.info.bytes = l.info.elements * sizeof(float);
            l.info.file = file.tensors()[t.codes].file;
            l.info.layout = codec::to_string(t.recipe);
            if (t.recipe.axis.what == codec::axis_choice::kind::last) {
                l.info.sums_over = t.sums_over;
            }
            l.info.remark =
                fmt::format("{} from {} and {}: as the file's metadata says", l.info.layout,
                            file.tensors()[t.codes].name, file.tensors()[t.scales].name);
            for (const std::size_t part : t.parts()) {
                taken_[base + part] = true;
                l.info.stored_bytes += file.tensors()[part].bytes;
            }
            l.open = [&file, t] { return io::shared_source(open_packed(file, t)); };
            in_place_of_[base + t.codes] = std::move(l);
            changed_ = true;
        }
    }

    void take_pairings(bool swizzled) {
        io::pairings all = io::find_pairings(arrays_, swizzled, taken_);
        for (const io::missing_partner& m : all.missing) {
            missing_[m.codes] = fmt::format("{}, {}", m.array, m.why);
            changed_ = true;
        }
        std::map<std::pair<const io::reader*, std::string_view>, std::string_view> by_codes;
        for (const io::pairing& p : all.found) {
            // A pair of the string itself would copy it, and the view of the copy would dangle.
            by_codes.try_emplace({arrays_[p.codes].file, arrays_[p.codes].info().name}, p.name);
        }
        for (io::pairing& p : all.found) {
            logical_tensor l;
            l.info = io::logical_info(p, arrays_);
            const std::size_t place = p.codes;
            const io::tensor_ref& codes = arrays_[place];
            const auto owner = by_codes.find({codes.file, codes.info().tied_to});
            if (owner != by_codes.end()) {
                l.info.tied_to = owner->second;
                l.info.remark +=
                    "; shares its storage with " + io::short_name(std::string(owner->second));
            }
            l.info.missing = std::move(missing_[place]);
            // Copies the arrays of one tensor, so that the list need not stay in memory.
            std::vector<io::tensor_ref> parts;
            for (const std::size_t part : p.parts()) {
                taken_[part] = true;
                parts.push_back(arrays_[part]);
            }
            const io::pairing own = p.alone();
            l.open = [own, parts] { return io::shared_source(io::open_pairing(own, parts)); };
            l.scales = [own, parts] { return io::tensor_scales(own, parts); };
            in_place_of_[place] = std::move(l);
            changed_ = true;
        }
        for (io::refused_pairing& r : all.refused) {
            remarks_[r.codes] = std::move(r.why);
            const io::tensor_info& codes = arrays_[r.codes].info();
            notes_[r.codes] = std::move(r.what);
            if (r.scales) {
                notes_[*r.scales] = fmt::format("scales of {}, which is not decoded", codes.name);
            }
            for (const std::size_t other : r.others) {
                notes_[other] = fmt::format("a part of {}, which is not decoded", codes.name);
            }
            changed_ = true;
        }
    }

    std::vector<io::tensor_ref> arrays_;
    std::vector<bool> taken_;
    std::vector<std::optional<logical_tensor>> in_place_of_;
    std::vector<std::string> remarks_, notes_, missing_;
    bool changed_ = false;
};

logical_list stored_tensors(const std::vector<std::unique_ptr<io::reader>>& files) {
    logical_list all;
    for (const auto& file : files) {
        for (std::size_t i = 0; i < file->tensors().size(); ++i) {
            const io::reader* const from = file.get();
            all.push_back(
                {file->tensors()[i], [from, i] { return io::shared_source(from->open(i)); }, {}});
        }
    }
    return all;
}

// --- splitting and transposing -------------------------------------------------------------------

[[noreturn]] void refuse(std::string_view option, std::string_view value, std::string_view why) {
    base::refuse("{} '{}': {}", option, value, why);
}

[[noreturn]] void nothing_fits(std::string_view option, std::string_view value,
                               const std::string& glob, const logical_list& all) {
    std::vector<std::string_view> names;
    for (const logical_tensor& t : all) names.emplace_back(t.info.name);
    refuse(option, value,
           fmt::format("no tensor has this name: {}", base::no_match(glob, "the pattern", names)));
}

struct split {
    std::string text, glob;
    int axis = 0;
    std::vector<std::pair<std::string, std::uint64_t>> parts;
};

template <class T>
bool parse_whole(std::string_view text, T& out) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
    return status == std::errc{} && end == text.data() + text.size() && !text.empty();
}

split parse_split(const std::string& text) {
    split s;
    s.text = text;
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
        refuse("--split", text, "write NAME=PART:EXTENT,PART:EXTENT");
    }
    s.glob = text.substr(0, equals);
    const std::size_t at = s.glob.rfind('@');
    if (at != std::string::npos && parse_whole(std::string_view(s.glob).substr(at + 1), s.axis)) {
        s.glob.resize(at);
    }
    std::string_view rest = std::string_view(text).substr(equals + 1);
    while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
        const std::size_t colon = part.rfind(':');
        std::uint64_t extent = 0;
        if (colon == std::string_view::npos || colon == 0 ||
            !parse_whole(part.substr(colon + 1), extent) || extent == 0) {
            refuse("--split", text, fmt::format("'{}' is not PART:EXTENT", part));
        }
        s.parts.emplace_back(part.substr(0, colon), extent);
    }
    if (s.parts.empty()) refuse("--split", text, "it names no part");
    return s;
}

// Requires elements of whole bytes, which can be moved.
void make_bytes(logical_tensor& t) {
    if (tensor::row_of(t.info.type).bits >= 8) return;
    const tensor::dtype type = t.info.type;
    t.open = [open = std::move(t.open), type] {
        return io::shared_source(io::unpacked(open(), type));
    };
    if (t.info.stored_bytes == 0) t.info.stored_bytes = t.info.bytes;
    if (t.info.layout.empty()) t.info.layout = tensor::row_of(type).name;
    t.info.type = tensor::dtype::f32;
    t.info.bytes = t.info.elements * sizeof(float);
}

std::size_t width_of(const logical_tensor& t) {
    return static_cast<std::size_t>(tensor::row_of(t.info.type).bits / 8);
}

void remark(io::tensor_info& info, const std::string& text) {
    info.remark += (info.remark.empty() ? "" : "; ") + text;
}

// Strings and records cannot be moved by element.
bool is_array(const io::tensor_info& info) { return info.type != tensor::dtype::other; }

// The stored bytes of a part; not 0, which would mean those of its values.
std::uint64_t share_of(std::uint64_t stored_bytes, std::uint64_t part, std::uint64_t whole) {
    if (stored_bytes == 0) return 0;
    return std::max<std::uint64_t>(1, base::scaled_down(stored_bytes, part, whole));
}

void append_parts(const split& s, logical_tensor t, logical_list& to) {
    const int axes = static_cast<int>(t.info.shape.size());
    const int axis = s.axis < 0 ? s.axis + axes : s.axis;
    if (axis < 0 || axis >= axes || !is_array(t.info)) {
        refuse("--split", s.text, fmt::format("{} has no axis {}", t.info.name, s.axis));
    }
    const auto along = static_cast<std::size_t>(axis);
    std::uint64_t sum = 0;
    bool fits = true;
    for (const auto& [name, extent] : s.parts) {
        fits = fits && extent <= t.info.shape[along] - sum;
        if (fits) sum += extent;
    }
    if (!fits || sum != t.info.shape[along]) {
        refuse("--split", s.text,
               fmt::format("the parts of {} must add up to the extent of axis {}, which is {}",
                           t.info.name, s.axis, t.info.shape[along]));
    }
    make_bytes(t);
    const std::size_t width = width_of(t);
    std::uint64_t begin = 0;
    for (const auto& [name, extent] : s.parts) {
        logical_tensor part;
        part.info = t.info;
        part.info.name = t.info.name + "." + name;
        part.info.shape[along] = extent;
        part.info.elements = t.info.elements / t.info.shape[along] * extent;
        part.info.bytes = part.info.elements * width;
        part.info.stored_bytes = share_of(t.info.stored_bytes, extent, t.info.shape[along]);
        if (!part.info.tied_to.empty()) part.info.tied_to += "." + name;
        remark(part.info, fmt::format("part {}..{} of axis {} of {}", begin, begin + extent - 1,
                                      axis, t.info.name));
        part.open = [open = t.open, shape = t.info.shape, along, begin, count = extent, width] {
            return io::shared_source(io::part_of_axis(open(), shape, along, begin, count, width));
        };
        part.scales = t.scales;
        to.push_back(std::move(part));
        begin += extent;
    }
}

logical_list split_by(const split& s, logical_list all) {
    const auto fits = [&s](const logical_tensor& t) {
        return base::glob_match(s.glob, t.info.name);
    };
    if (std::none_of(all.begin(), all.end(), fits)) nothing_fits("--split", s.text, s.glob, all);
    logical_list out;
    for (logical_tensor& t : all) {
        if (fits(t)) {
            append_parts(s, std::move(t), out);
        } else {
            out.push_back(std::move(t));
        }
    }
    return out;
}

void transpose(logical_tensor& t) {
    make_bytes(t);
    const tensor::shape stored = t.info.shape;
    std::swap(t.info.shape[stored.size() - 1], t.info.shape[stored.size() - 2]);
    transpose_axes(t.info.sums_over, static_cast<int>(stored.size()));
    remark(t.info, fmt::format("transposed from {}", tensor::to_string(stored)));
    t.open = [open = std::move(t.open), stored, width = width_of(t)] {
        return io::shared_source(io::transposed(open(), stored, width));
    };
}

void transpose_by(const std::vector<std::string>& globs, logical_list& all) {
    std::vector<bool> chosen(all.size());
    for (const std::string& glob : globs) {
        bool any = false;
        bool matched = false;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!base::glob_match(glob, all[i].info.name)) continue;
            matched = true;
            // Biases and gains have no second axis to swap; '*' means only the weights.
            if (all[i].info.shape.size() < 2 || !is_array(all[i].info)) continue;
            chosen[i] = true;
            any = true;
        }
        if (!matched) nothing_fits("--transpose", glob, glob, all);
        if (!any) refuse("--transpose", glob, "no tensor of this name has two axes");
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (chosen[i]) transpose(all[i]);
    }
}

// --- experts and heads ---------------------------------------------------------------------------

// Limit, because a name for each matrix of a stack is kept in memory.
constexpr std::uint64_t most_experts = 4096;

void append_experts(const std::string& glob, logical_tensor t, logical_list& to) {
    const std::uint64_t count = t.info.shape.front();
    if (count > most_experts) {
        refuse(
            "--experts", glob,
            fmt::format("{} stacks {} matrices, more than {}", t.info.name, count, most_experts));
    }
    make_bytes(t);
    const std::size_t width = width_of(t);
    for (std::uint64_t e = 0; e < count; ++e) {
        logical_tensor one;
        one.info = t.info;
        one.info.name = fmt::format("{}.{}", t.info.name, e);
        one.info.shape.erase(one.info.shape.begin());
        drop_first_axis(one.info.sums_over);
        one.info.elements = t.info.elements / count;
        one.info.bytes = one.info.elements * width;
        one.info.stored_bytes = share_of(t.info.stored_bytes, 1, count);
        if (!one.info.tied_to.empty()) one.info.tied_to += fmt::format(".{}", e);
        remark(one.info, fmt::format("matrix {} of the stack {}", e, t.info.name));
        one.open = [open = t.open, begin = e * one.info.bytes] {
            return io::shared_source(io::source_window(open(), begin));
        };
        if (t.scales) {
            one.scales = [scales = t.scales, e, count] {
                auto all = scales();
                for (io::tensor_scale& s : all) {
                    if (s.values.size() == count) s.values = {s.values[e]};
                }
                return all;
            };
        }
        to.push_back(std::move(one));
    }
}

logical_list unstack_by(const std::string& glob, logical_list all) {
    bool matched = false, any = false;
    logical_list out;
    for (logical_tensor& t : all) {
        const bool named = base::glob_match(glob, t.info.name);
        const bool stack = named && t.info.shape.size() > 2 && is_array(t.info);
        matched = matched || named;
        any = any || stack;
        if (stack) {
            append_experts(glob, std::move(t), out);
        } else {
            out.push_back(std::move(t));
        }
    }
    if (!matched) nothing_fits("--experts", glob, glob, out);
    if (!any) refuse("--experts", glob, "no tensor of this name has three axes");
    return out;
}

void part_heads(const std::string& text, logical_list& all) {
    const std::size_t equals = text.rfind('=');
    std::uint64_t count = 0;
    if (equals == 0 || equals == std::string::npos ||
        !parse_whole(std::string_view(text).substr(equals + 1), count) || count == 0) {
        refuse("--heads", text, "write NAME=COUNT");
    }
    const std::string glob = text.substr(0, equals);
    bool matched = false;
    for (logical_tensor& t : all) {
        if (!base::glob_match(glob, t.info.name) || !is_array(t.info)) continue;
        matched = true;
        tensor::shape& shape = t.info.shape;
        if (shape.empty() || shape.back() % count != 0) {
            refuse("--heads", text,
                   fmt::format("the last axis of {} ({}) does not divide into {}", t.info.name,
                               tensor::to_string(shape), count));
        }
        remark(t.info, fmt::format("{} heads of {}", count, tensor::to_string(shape)));
        split_last_axis(t.info.sums_over, static_cast<int>(shape.size()));
        shape.back() /= count;
        shape.insert(shape.end() - 1, count);
    }
    if (!matched) nothing_fits("--heads", text, glob, all);
}

// --- vectors -------------------------------------------------------------------------------------

bool is_vector_in_disguise(const io::tensor_info& info) {
    const auto long_axes = std::count_if(info.shape.begin(), info.shape.end(),
                                         [](std::uint64_t extent) { return extent != 1; });
    return long_axes == 1 && info.shape.back() == 1;
}

bool show_vectors(logical_list& all) {
    bool any = false;
    for (logical_tensor& t : all) {
        if (!is_vector_in_disguise(t.info)) continue;
        remark(t.info, fmt::format("a vector, stored as {}", tensor::to_string(t.info.shape)));
        t.info.shape = {t.info.elements};
        t.info.sums_over = {};
        any = true;
    }
    return any;
}

// --- what is no weight ---------------------------------------------------------------------------

bool leave_out_integers(logical_list& all) {
    bool any = false;
    for (logical_tensor& t : all) {
        if (!is_wide_integer(t.info.type) || !t.info.note.empty()) continue;
        t.info.note = fmt::format("{} (indices or counts; --integers includes them)",
                                  tensor::row_of(t.info.type).name);
        any = true;
    }
    return any;
}

}  // namespace

bool is_wide_integer(tensor::dtype type) {
    return type == tensor::dtype::i32 || type == tensor::dtype::u32 || type == tensor::dtype::i64 ||
           type == tensor::dtype::u64;
}

std::unique_ptr<io::reader> make_view(const std::vector<std::unique_ptr<io::reader>>& files,
                                      const view_request& request) {
    logical_list tensors;
    bool changed = files.size() != 1 || !request.splits.empty() || !request.transposed.empty() ||
                   !request.experts.empty() || !request.heads.empty();
    if (request.raw) {
        tensors = stored_tensors(files);
    } else {
        decoding decoded(files, request.swizzled);
        changed = changed || decoded.changes_anything();
        tensors = decoded.tensors();
    }
    std::vector<io::tensor_info*> infos;
    for (logical_tensor& t : tensors) infos.push_back(&t.info);
    for (const auto& file : files) {
        changed = state_axes_by_metadata(file->metadata(), infos) || changed;
    }
    changed = state_axes_by_names(infos) || changed;
    for (const std::string& text : request.splits) {
        tensors = split_by(parse_split(text), std::move(tensors));
    }
    transpose_by(request.transposed, tensors);
    for (const std::string& glob : request.experts) tensors = unstack_by(glob, std::move(tensors));
    for (const std::string& text : request.heads) part_heads(text, tensors);
    if (request.vectors) changed = show_vectors(tensors) || changed;
    if (!request.integers) changed = leave_out_integers(tensors) || changed;
    if (!changed) return nullptr;
    return std::make_unique<view_reader>(std::move(tensors), files);
}

}  // namespace mx::engine

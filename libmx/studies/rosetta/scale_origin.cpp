// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/rosetta/scale_origin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/amax_pass.hpp"
#include "libmx/engine/run.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/io/packed_read.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/rosetta/producible.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"

namespace mx::rosetta {
namespace {

// A recipe that may have produced the file.
struct candidate {
    codec::recipe recipe;
    std::unique_ptr<producible> possible;
};
using candidates = std::vector<candidate>;

candidates candidates_of(const coded_tensor& t) {
    std::vector<codec::recipe> recipes = recipes_of_element(std::string(t.element->name), t.block,
                                                            std::string(t.scale_format->name));
    const bool areas = t.has_recipe && codec::has_outer_areas(t.recipe);
    if (areas || t.outer) {
        // The file has outer scales, and their areas are known like its blocks.
        std::erase_if(recipes, [](const codec::recipe& r) {
            return r.rule->id != scale::rule_id::two_level;
        });
    }
    if (areas) {
        for (codec::recipe& r : recipes) r.outer = t.recipe.outer;
    }
    if (t.has_recipe) {
        codec::recipe own = t.recipe;
        own.axis = {};
        const bool listed = std::ranges::find(recipes, own) != recipes.end();
        const bool random =
            own.round == format::rounding::stochastic || scale::is_random(*own.rule);
        if (!listed && !random) recipes.push_back(own);
    }
    // Recipes whose scales do not follow from the maximum.
    std::erase_if(recipes, [](const codec::recipe& r) { return scale::is_search(r.rule->id); });
    candidates all;
    for (const codec::recipe& r : recipes) all.push_back({r, std::make_unique<producible>(r)});
    return all;
}

// The tensor scale of a file, converted to another convention.
codec::tensor_scale in_convention(codec::two_level_kind convention, const codec::tensor_scale& t) {
    const codec::tensor_scale same = codec::stored_tensor_scale(convention, t.stored);
    if (same.decode == t.decode) return same;
    return codec::stored_tensor_scale(convention, 1.0f / t.stored);
}

// The parameters of a recipe for an original with these facts: its own tensor scale, or the file's
// if they differ (`differs`).
codec::block_params params_beside(const coded_tensor& t, const codec::recipe& r,
                                  const codec::tensor_facts& facts, bool& differs) {
    constexpr float near = 0x1p-21f;  // the error of conversions between conventions
    codec::block_params p = codec::params_of(r, facts);
    if (!t.outer || !codec::has_tensor_scale(r)) return p;
    const float own = p.tensor.decode, stored = t.outer->decode;
    if (std::abs(own - stored) <= near * stored) return p;
    differs = codec::needs_tensor_facts(r);
    p.tensor = in_convention(r.by->two_level.value, *t.outer);
    // te's four-over-six computes errors from this.
    p.tensor.amax = p.outer.range * p.tensor.decode;
    return p;
}

// The codes of a panel and the scales of its blocks.
class coded_panel {
  public:
    coded_panel(const coded_tensor& t, const io::byte_source& codes, const io::byte_source& scales,
                const engine::panel& p)
        : grid_(t.grid), where_(p), codes_(p.elements()) {
        const block::view& v = grid_.over;
        for (std::uint64_t r = 0; r < p.batches * p.rows; ++r) {
            const std::uint64_t first = (p.batch * v.rows + p.row + r) * v.cols + p.col;
            io::read_codes(codes, t.element->bits(), first,
                           std::span(codes_).subspan(r * p.cols, p.cols));
        }
        for (std::uint8_t& c : codes_) c &= static_cast<std::uint8_t>(t.element->code_mask());
        across_ = (p.cols + grid_.block_cols - 1) / grid_.block_cols;
        for (std::uint64_t b = p.batch; b < p.batch + p.batches; ++b) {
            for (std::uint64_t r = p.row; r < p.row + p.rows; r += grid_.block_rows) {
                firsts_.push_back((b * grid_.rows() + r / grid_.block_rows) * grid_.cols() +
                                  p.col / grid_.block_cols);
                const auto run = io::read_run<std::uint8_t>(scales, firsts_.back(), across_);
                scales_.insert(scales_.end(), run.begin(), run.end());
            }
        }
    }

    std::uint8_t scale(std::uint64_t block) const {
        const auto row = std::ranges::upper_bound(firsts_, block) - firsts_.begin();
        const auto at = static_cast<std::size_t>(row - 1);
        return scales_[at * across_ + (block - firsts_[at])];
    }

    /// The codes of block `b` of a segment, row by row.
    void block(const engine::quantized_segment& s, std::size_t b,
               std::vector<std::uint8_t>& to) const {
        const codec::block_extent e = codec::extent_of(s.place, b);
        to.clear();
        for (std::uint64_t r = 0; r < e.rows; ++r) {
            const std::uint64_t row = s.at.batch * where_.rows + s.at.row + e.row + r;
            const auto run =
                std::span(codes_).subspan(row * where_.cols + s.at.col + e.col, e.cols);
            to.insert(to.end(), run.begin(), run.end());
        }
    }

    template <typename OnBlock>
    void for_each(OnBlock&& on_block) const {
        std::vector<std::uint8_t> codes;
        engine::for_each_segment(grid_, where_, [&](const engine::segment_in_panel& at) {
            const codec::segment_place place = engine::place_of(at, grid_, 0);
            const engine::quantized_segment s{at, place, grid_, {}};
            for (std::size_t b = 0; b < place.blocks(); ++b) {
                block(s, b, codes);
                on_block(s.index_of(b), scale(s.index_of(b)), std::span<const std::uint8_t>(codes));
            }
        });
    }

  private:
    const block::grid& grid_;
    const engine::panel& where_;
    std::vector<std::uint8_t> codes_;
    std::uint64_t across_ = 0;
    std::vector<std::uint64_t> firsts_;  // first block of each grid row, increasing
    std::vector<std::uint8_t> scales_;
};

// Adds `count` blocks that a recipe excludes, `zero` of them zero; `first` is the first of them.
void exclude(origin_row& row, std::uint64_t count, std::uint64_t zero, std::uint64_t first) {
    if (count == 0) return;
    row.first_excluded = row.excluded == 0 ? first : std::min(row.first_excluded, first);
    row.excluded += count;
    row.excluded_zero += zero;
}

// Examines blocks of one tensor; called by every thread.
class origin_search {
  public:
    origin_search(const coded_tensor& t, const candidates& by, const codec::tensor_facts& facts)
        : candidates_(by),
          codes_(t.codes.file->open(t.codes.index)),
          scales_(t.open_scales ? t.open_scales() : t.scales.file->open(t.scales.index)),
          tensor_id_(base::tensor_id(t.name)),
          tops_(*t.element) {
        total_.tensor = t;
        const bool even = t.grid.over.cols % 2 == 0 && t.grid.block_cols % 2 == 0;
        total_.nibbles = even && block::packed_bits(t.element->bits()) == 4;
        for (const candidate& c : by) {
            total_.rows.push_back({});
            total_.rows.back().recipe = c.recipe;
            params_.push_back(
                params_beside(t, c.recipe, facts, total_.rows.back().tensor_scale_differs));
        }
        for (const codec::block_params& p : params_) {
            requests_.push_back({&p, codec::detail::codes, false, false, false, false});
        }
        nothing_ = total_.rows;
    }

    /// For a file alone, or compared with the panel `x` of an original.
    void judge(const engine::panel& p, const codec::stored_values* x = nullptr,
               engine::panel_quantizer* by = nullptr) {
        origin_result here;
        here.rows = nothing_;
        top_counts tops(*total_.tensor.element);
        const coded_panel coded(total_.tensor, *codes_, *scales_, p);
        judge_bytes(coded, here, tops);
        std::vector<std::uint8_t> codes;
        const auto compare_segment = [&](const engine::quantized_segment& s) {
            for (std::size_t b = 0; b < s.place.blocks(); ++b) {
                coded.block(s, b, codes);
                compare(s, b, coded.scale(s.index_of(b)), codes, here);
            }
        };
        if (x != nullptr) {
            by->run(total_.tensor.grid, p, *x, tensor_id_, requests_, compare_segment);
        }
        merge(here, tops);
    }

    origin_result finish(bool compared) {
        total_.compared = compared;
        total_.nibbles = total_.nibbles && compared;
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            total_.rows[i].tops = frequencies_of(*candidates_[i].possible, tops_);
            total_.rows[i].tensor_scale_differs &= compared;
        }
        return std::move(total_);
    }

  private:
    void judge_bytes(const coded_panel& panel, origin_result& to, top_counts& tops) const {
        const int nan_code = nan_code_of(*total_.tensor.scale_format);
        panel.for_each(
            [&](std::uint64_t index, std::uint8_t scale, std::span<const std::uint8_t> codes) {
                const block_top top = top_of(*total_.tensor.element, codes);
                const bool nan_scale = scale == nan_code;
                if (!nan_scale) to.largest_scale = std::max<int>(to.largest_scale, scale);
                const bool zero = top.positive == 0 && top.negative == 0 && !nan_scale;
                ++to.blocks;
                to.elements += codes.size();
                to.zero_blocks += zero ? 1u : 0u;
                to.nan_scales += nan_scale ? 1u : 0u;
                to.unjudged += top.has_nan && !nan_scale ? 1u : 0u;
                tops.add(scale, top);
                for (std::size_t i = 0; i < candidates_.size(); ++i) {
                    if (candidates_[i].possible->can_be(scale, top)) continue;
                    exclude(to.rows[i], 1, zero ? 1 : 0, index);
                }
            });
    }

    void compare(const engine::quantized_segment& s, std::size_t block, std::uint8_t scale,
                 std::span<const std::uint8_t> codes, origin_result& to) const {
        const bool power = total_.tensor.scale_format->power_of_two();
        const float stored = format::decode_scale(*total_.tensor.scale_format, scale);
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            const codec::block_results& d = s.by_recipe[i].of_blocks;
            // Some dialects do not store a power of two as a code.
            const float own = power ? codec::scale_of_block(params_[i], d, block) : 0.0f;
            const bool both_nan = own != own && stored != stored;
            const bool same = power ? own == stored || both_nan : d.scale_code[block] == scale;
            to.rows[i].scales_differ += same ? 0u : 1u;
            const std::uint8_t* own_codes = d.codes + block * d.stride;
            for (std::size_t k = 0; k < codes.size(); ++k) {
                to.rows[i].codes_differ += own_codes[k] != codes[k] ? 1u : 0u;
            }
            if (!total_.nibbles) continue;
            for (std::size_t k = 0; k < codes.size(); ++k) {
                to.rows[i].codes_differ_swapped += own_codes[k] != codes[k ^ 1u] ? 1u : 0u;
            }
        }
    }

    void merge(const origin_result& here, const top_counts& tops) {
        const std::lock_guard lock(guard_);
        tops_.merge(tops);
        total_.blocks += here.blocks;
        total_.elements += here.elements;
        total_.zero_blocks += here.zero_blocks;
        total_.nan_scales += here.nan_scales;
        total_.unjudged += here.unjudged;
        total_.largest_scale = std::max(total_.largest_scale, here.largest_scale);
        for (std::size_t i = 0; i < here.rows.size(); ++i) {
            const origin_row& row = here.rows[i];
            exclude(total_.rows[i], row.excluded, row.excluded_zero, row.first_excluded);
            total_.rows[i].scales_differ += row.scales_differ;
            total_.rows[i].codes_differ += row.codes_differ;
            total_.rows[i].codes_differ_swapped += row.codes_differ_swapped;
        }
    }

    const candidates& candidates_;
    io::shared_source codes_, scales_;
    std::uint64_t tensor_id_;
    std::vector<codec::block_params> params_;      // by candidate
    std::vector<codec::recipe_request> requests_;  // by candidate
    std::vector<origin_row> nothing_;              // by candidate
    std::mutex guard_;
    origin_result total_;
    top_counts tops_;
};

// The tensor from which the codes were made.
engine::tensor_ref original_of(const coded_tensor& t, const engine::model& original) {
    const std::vector<engine::tensor_ref> all = original.select({});
    const engine::tensor_ref* found = all.size() == 1 ? all.data() : nullptr;
    for (const engine::tensor_ref& candidate : all) {
        if (candidate.info().name == t.name) found = &candidate;
    }
    if (found == nullptr) {
        throw base::error(base::error_kind::input,
                          fmt::format("the original has no tensor '{}'", t.name));
    }
    std::vector<engine::skipped_tensor> skipped;
    const bool numeric = !engine::numeric_only({*found}, skipped).empty();
    const std::uint64_t elements = t.grid.over.elements();
    if (!numeric || found->info().elements != elements) {
        throw base::error(
            base::error_kind::input,
            fmt::format("{} numbers are expected, as many as there are codes", elements),
            {found->info().file, found->info().name, {}});
    }
    return *found;
}

// The largest magnitude of each original, if a tensor scale may follow from it.
std::vector<codec::tensor_facts> facts_of(const std::vector<coded_tensor>& tensors,
                                          const std::vector<engine::tensor_ref>& originals,
                                          const engine::run_control& control) {
    std::vector<std::vector<engine::fact_request>> requests(originals.size());
    for (std::size_t i = 0; i < originals.size(); ++i) {
        if (tensors[i].scale_format->is_number()) requests[i].push_back({{}, tensors[i].grid});
    }
    engine::run_control once = control;
    once.kept_elements = 0;
    const engine::amax_pass found = engine::run_amax_pass(originals, requests, once);
    std::vector<codec::tensor_facts> facts(tensors.size());
    for (std::size_t i = 0; i < originals.size(); ++i) {
        if (!found.facts[i].empty()) facts[i] = found.facts[i].front();
    }
    return facts;
}

}  // namespace

std::vector<origin_result> find_origins(const std::vector<coded_tensor>& tensors,
                                        const engine::model* original,
                                        const engine::run_control& control) {
    std::vector<engine::tensor_ref> originals;
    if (original != nullptr) {
        for (const coded_tensor& t : tensors) originals.push_back(original_of(t, *original));
    }
    const std::vector<codec::tensor_facts> facts = facts_of(tensors, originals, control);
    std::uint64_t all = 0;
    for (const coded_tensor& t : tensors) all += t.grid.over.elements();
    std::uint64_t finished = 0;
    std::map<std::string, candidates> by_kind;       // tensors of the same kind share the search
    std::deque<engine::panel_quantizer> quantizers;  // by thread
    for (int i = 0; i < base::thread_count(control.threads); ++i) quantizers.emplace_back(control);
    std::vector<origin_result> results;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const coded_tensor& t = tensors[i];
        const std::string kind = fmt::format(
            "{} {} {} {} {}", t.element->name, t.block, t.scale_format->name, t.outer.has_value(),
            t.has_recipe ? codec::to_string(t.recipe) : std::string());
        const auto known = by_kind.find(kind);
        origin_search search(t,
                             known != by_kind.end()
                                 ? known->second
                                 : by_kind.emplace(kind, candidates_of(t)).first->second,
                             facts[i]);
        const std::uint64_t elements = t.grid.over.elements();
        if (elements != 0 && original != nullptr) {
            const engine::pass once{
                0, {{0, t.grid}}, engine::panel_plan(t.grid.over, std::span(&t.grid, 1))};
            engine::sweep({originals[i]}, {once}, engine::part_of(control, finished, elements, all),
                          engine::panel_form::stored, [&](const engine::loaded_panel& p) {
                              search.judge(p.where, &p.values,
                                           &quantizers[static_cast<std::size_t>(p.thread)]);
                          });
        } else if (elements != 0) {
            const engine::panel_plan panels(t.grid.over, std::span(&t.grid, 1));
            base::parallel_for(panels.count(), control.threads, control.cancel,
                               [&](std::uint64_t at, int) { search.judge(panels.at(at)); });
        }
        finished += elements;
        if (control.on_progress) control.on_progress({finished, all});
        results.push_back(search.finish(original != nullptr));
    }
    return results;
}

namespace {

struct judged_recipe {
    const origin_result& of;
    const origin_row& row;
    const top_frequency* rare = evidence_against(row.tops);

    report::value compared(std::uint64_t n) const {
        return of.compared ? report::tally(n) : report::value();
    }
};
constexpr std::array origin_members = std::to_array<report::declared<judged_recipe>>({
    {"file", "@members#file", "", [](auto& r) { return r.of.tensor.codes.info().file; }},
    {"tensor", "@members#tensor", "", [](auto& r) { return r.of.tensor.name; }},
    {"recipe", "string", "", [](auto& r) { return codec::to_string(r.row.recipe); }},
    {"blocks", "count", "", [](auto& r) { return r.of.blocks; }},
    {"elements", "count", "", [](auto& r) { return r.of.elements; }},
    {"zero_blocks", "count", "blocks whose codes are all zero",
     [](auto& r) { return r.of.zero_blocks; }},
    {"nan_scales", "count", "", [](auto& r) { return r.of.nan_scales; }},
    {"unjudged_blocks", "count", "blocks that tell nothing", [](auto& r) { return r.of.unjudged; }},
    {"blocks_excluding", "count", "blocks that the recipe cannot have made",
     [](auto& r) { return r.row.excluded; }},
    {"zero_blocks_excluding", "count", "of them, blocks of zeros",
     [](auto& r) { return r.row.excluded_zero; }},
    {"first_excluding_block", "count?", "index of the first",
     [](auto& r) {
         return r.row.excluded != 0 ? report::tally(r.row.first_excluded) : report::value();
     }},
    {"possible", "boolean", "no block excludes it", [](auto& r) { return r.row.excluded == 0; }},
    {"unlikely", "boolean", "a largest code that it often leaves is too rare; see rare_code",
     [](auto& r) { return r.rare != nullptr; }},
    {"rare_code", "number?", "the value of that code",
     [](auto& r) {
         return r.rare ? report::value(value_of_top(*r.of.tensor.element, *r.rare))
                       : report::value();
     }},
    {"rare_code_blocks", "count?", "blocks whose largest code it is",
     [](auto& r) { return r.rare ? report::tally(r.rare->found) : report::value(); }},
    {"rare_code_expected", "amount?",
     "how many there are at the least if the logarithms of the block maxima have a density with a "
     "single peak; of four-over-six, one block in 16",
     [](auto& r) { return r.rare ? report::to_value(r.rare->least) : report::value(); }},
    {"largest_scale", "number?", "largest block scale that is no NaN",
     [](auto& r) {
         if (r.of.largest_scale < 0) return report::value();
         return report::to_value(format::decode_scale(
             *r.of.tensor.scale_format, static_cast<std::uint32_t>(r.of.largest_scale)));
     }},
    {"tensor_scale_differs", "boolean?",
     "with --original: the file's tensor scale is not the one of the recipe; blocks are compared "
     "under that of the file",
     [](auto& r) {
         return r.of.compared && r.of.tensor.outer ? report::value(r.row.tensor_scale_differs)
                                                   : report::value();
     }},
    {"scales_differ", "count?", "with --original: blocks with another scale",
     [](auto& r) { return r.compared(r.row.scales_differ); }},
    {"codes_differ", "count?", "with --original: elements with another code",
     [](auto& r) { return r.compared(r.row.codes_differ); }},
    {"codes_differ_swapped", "count?",
     "with --original, of two codes a byte: elements with another code when the codes of each "
     "byte change places",
     [](auto& r) {
         return r.of.nibbles ? report::tally(r.row.codes_differ_swapped) : report::value();
     }},
});

}  // namespace

report::record origin_record(const origin_result& result, const origin_row& row) {
    return report::written(origin_members, {result, row});
}

report::document_schema origins_schema() {
    return report::document_schema("mx.origins/1", "mx rosetta: origin of quantized tensors",
                                   "Which recipes can have made a file's scales and codes.")
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"results", "[#origin]", "a tensor and a recipe each"})
        .member({"skipped", "[#skipped]", "quantized tensors whose bytes no recipe explains"})
        .define("origin", origin_members)
        .define("skipped", skipped_members);
}

}  // namespace mx::rosetta

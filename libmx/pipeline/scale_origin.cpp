// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/scale_origin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/io/packed_read.hpp"
#include "libmx/pipeline/producible.hpp"
#include "libmx/pipeline/rosetta.hpp"
#include "libmx/pipeline/skip.hpp"
#include "libmx/pipeline/sweep.hpp"
#include "libmx/quantize/block_kernel.hpp"

namespace mx::pipeline {
namespace {

// One recipe that may have been at work.
struct suspect {
    quantize::recipe recipe;
    std::unique_ptr<producible> possible;
    quantize::block_params params;
};
using suspects = std::vector<suspect>;

suspects suspects_of(const coded_tensor& t) {
    std::vector<quantize::recipe> recipes =
        recipes_of_element(std::string(t.element->name), t.block);
    if (t.has_recipe) {
        quantize::recipe own = t.recipe;
        own.axis = {};
        const bool listed = std::find(recipes.begin(), recipes.end(), own) != recipes.end();
        const bool random =
            own.round == format::rounding::stochastic || own.rule->id == scale::rule_id::stochastic;
        if (!listed && !random) recipes.push_back(own);
    }
    suspects all;
    for (const quantize::recipe& r : recipes) {
        all.push_back({r, std::make_unique<producible>(r), quantize::params_of(r)});
    }
    return all;
}

// A panel of codes and the scales of its blocks, handed out block by block.
class coded_reader {
  public:
    explicit coded_reader(const coded_tensor& t)
        : tensor_(t),
          codes_(t.codes.file->open(t.codes.index)),
          scales_(t.scales.file->open(t.scales.index)) {}

    template <typename OnBlock>
    void read(const panel& p, OnBlock&& on_block) const {
        const block::grid& g = tensor_.grid;
        const block::view& v = g.over;
        std::vector<std::uint8_t> codes(p.elements());
        for (std::uint64_t r = 0; r < p.batches * p.rows; ++r) {
            const std::uint64_t first = (p.batch * v.rows + p.row + r) * v.cols + p.col;
            io::read_codes(*codes_, tensor_.element->bits(), first,
                           std::span(codes).subspan(r * p.cols, p.cols));
        }
        for (std::uint8_t& c : codes) c &= static_cast<std::uint8_t>(tensor_.element->code_mask());
        const std::uint64_t run = (p.cols + g.block_cols - 1) / g.block_cols;
        std::uint64_t first = ~std::uint64_t{0};
        std::vector<std::uint8_t> scales;
        std::vector<std::uint8_t> block_codes;
        for_each_block(
            g, {1, run}, p,
            [&](const block_in_panel& b) {
                if (first == ~std::uint64_t{0} || b.index - first >= run) {
                    first = b.index;
                    scales = io::read_run<std::uint8_t>(*scales_, first, run);
                }
                block_codes.clear();
                for (int r = 0; r < b.rows; ++r) {
                    const auto row =
                        std::span(codes).subspan(b.at + static_cast<std::size_t>(r) * p.cols,
                                                 static_cast<std::size_t>(b.cols));
                    block_codes.insert(block_codes.end(), row.begin(), row.end());
                }
                on_block(b, scales[b.index - first], std::span<const std::uint8_t>(block_codes));
            },
            [] {});
    }

  private:
    const coded_tensor& tensor_;
    std::unique_ptr<io::byte_source> codes_, scales_;
};

struct tally {
    std::uint64_t excluded = 0, excluded_zero = 0, first = ~std::uint64_t{0};
    std::uint64_t scales_differ = 0, codes_differ = 0;
};

struct panel_tally {
    std::uint64_t blocks = 0, elements = 0, zero = 0, nan_scales = 0, unjudged = 0;
    std::vector<tally> of;
};

// Blocks of one tensor, from every thread.
class inquest {
  public:
    inquest(const coded_tensor& t, const suspects& who)
        : tensor_(t), suspects_(who), reader_(t), tensor_id_(base::tensor_id(t.name)) {
        total_.of.resize(suspects_.size());
    }

    /// `x`: the panel of the original, or empty.
    void judge(const panel& p, std::span<const float> x) {
        panel_tally here;
        here.of.resize(suspects_.size());
        std::vector<float> values;
        reader_.read(p, [&](const block_in_panel& b, std::uint8_t scale,
                            std::span<const std::uint8_t> codes) {
            judge_bytes(b.index, scale, codes, here);
            if (x.empty()) return;
            values.clear();
            for (int r = 0; r < b.rows; ++r) {
                const auto row = x.subspan(b.at + static_cast<std::size_t>(r) * p.cols,
                                           static_cast<std::size_t>(b.cols));
                values.insert(values.end(), row.begin(), row.end());
            }
            compare(b, values, scale, codes, here);
        });
        const std::lock_guard lock(guard_);
        merge(here);
    }

    origin_result finish(bool compared) const {
        origin_result r{tensor_,           total_.blocks,   total_.elements, total_.zero,
                        total_.nan_scales, total_.unjudged, compared,        {}};
        for (std::size_t i = 0; i < suspects_.size(); ++i) {
            const tally& t = total_.of[i];
            r.rows.push_back({suspects_[i].recipe, t.excluded, t.excluded_zero,
                              t.excluded == 0 ? 0 : t.first, t.scales_differ, t.codes_differ});
        }
        return r;
    }

  private:
    void judge_bytes(std::uint64_t index, std::uint8_t scale, std::span<const std::uint8_t> codes,
                     panel_tally& to) const {
        const block_top top = top_of(*tensor_.element, codes);
        const bool zero = top.positive == 0 && top.negative == 0;
        const bool nan_scale = scale == format::e8m0_nan;
        ++to.blocks;
        to.elements += codes.size();
        to.zero += zero && !nan_scale ? 1u : 0u;
        to.nan_scales += nan_scale ? 1u : 0u;
        to.unjudged += top.has_nan && !nan_scale ? 1u : 0u;
        for (std::size_t i = 0; i < suspects_.size(); ++i) {
            if (suspects_[i].possible->can_be(scale, top)) continue;
            tally& t = to.of[i];
            ++t.excluded;
            t.excluded_zero += zero && !nan_scale ? 1u : 0u;
            t.first = std::min(t.first, index);
        }
    }

    void compare(const block_in_panel& b, std::span<const float> x, std::uint8_t scale,
                 std::span<const std::uint8_t> codes, panel_tally& to) const {
        std::vector<std::uint8_t> own(x.size());
        const float stored = static_cast<float>(format::decode_e8m0(scale));
        const quantize::block_place place{tensor_id_, b.first, tensor_.grid.over.cols, b.cols};
        for (std::size_t i = 0; i < suspects_.size(); ++i) {
            const float s = quantize::quantize_block(suspects_[i].params, x, place, own).scale;
            const bool both_nan = s != s && stored != stored;
            to.of[i].scales_differ += s == stored || both_nan ? 0u : 1u;
            for (std::size_t k = 0; k < own.size(); ++k) {
                to.of[i].codes_differ += own[k] != codes[k] ? 1u : 0u;
            }
        }
    }

    void merge(const panel_tally& here) {
        total_.blocks += here.blocks;
        total_.elements += here.elements;
        total_.zero += here.zero;
        total_.nan_scales += here.nan_scales;
        total_.unjudged += here.unjudged;
        for (std::size_t i = 0; i < here.of.size(); ++i) {
            tally& t = total_.of[i];
            t.excluded += here.of[i].excluded;
            t.excluded_zero += here.of[i].excluded_zero;
            t.first = std::min(t.first, here.of[i].first);
            t.scales_differ += here.of[i].scales_differ;
            t.codes_differ += here.of[i].codes_differ;
        }
    }

    const coded_tensor& tensor_;
    const suspects& suspects_;
    coded_reader reader_;
    std::uint64_t tensor_id_;
    std::mutex guard_;
    panel_tally total_;
};

// The tensor that the codes were made from.
tensor_ref original_of(const coded_tensor& t, const model& original) {
    const std::vector<tensor_ref> all = original.select({});
    const tensor_ref* found = all.size() == 1 ? all.data() : nullptr;
    for (const tensor_ref& candidate : all) {
        if (candidate.info().name == t.name) found = &candidate;
    }
    if (found == nullptr) {
        throw base::error(base::error_kind::input,
                          fmt::format("the original has no tensor '{}'", t.name));
    }
    std::vector<skipped_tensor> skipped;
    const bool numeric = !numeric_only({*found}, skipped).empty();
    const std::uint64_t elements = t.grid.over.elements();
    if (!numeric || found->info().elements != elements) {
        throw base::error(
            base::error_kind::input,
            fmt::format("{} numbers are called for, as many as there are codes", elements),
            {found->info().file, found->info().name, {}});
    }
    return *found;
}

}  // namespace

std::vector<origin_result> find_origins(const std::vector<coded_tensor>& tensors,
                                        const model* original, const run_control& control) {
    std::vector<tensor_ref> originals;
    if (original != nullptr) {
        for (const coded_tensor& t : tensors) originals.push_back(original_of(t, *original));
    }
    std::uint64_t all = 0;
    for (const coded_tensor& t : tensors) all += t.grid.over.elements();
    std::uint64_t finished = 0;
    std::map<std::string, suspects> who;  // tensors of a kind share the search
    std::vector<origin_result> results;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const coded_tensor& t = tensors[i];
        const std::string kind =
            fmt::format("{} {} {}", t.element->name, t.block,
                        t.has_recipe ? quantize::to_string(t.recipe) : std::string());
        const auto known = who.find(kind);
        inquest inquiry(t, known != who.end() ? known->second
                                              : who.emplace(kind, suspects_of(t)).first->second);
        const std::uint64_t elements = t.grid.over.elements();
        if (elements != 0 && original != nullptr) {
            run_control steered = control;
            if (control.on_progress) {
                steered.on_progress = [&](const progress& p) {
                    control.on_progress({finished + p.done, all});
                };
            }
            const pass once{0, {{0, t.grid}}, panel_plan(t.grid.over, std::span(&t.grid, 1))};
            sweep({originals[i]}, {once}, steered, panel_form::widened,
                  [&](const loaded_panel& p) { inquiry.judge(p.where, p.x); });
        } else if (elements != 0) {
            const panel_plan panels(t.grid.over, std::span(&t.grid, 1));
            base::parallel_for(panels.count(), control.threads, control.cancel,
                               [&](std::uint64_t at, int) { inquiry.judge(panels.at(at), {}); });
        }
        finished += elements;
        if (control.on_progress) control.on_progress({finished, all});
        results.push_back(inquiry.finish(original != nullptr));
    }
    return results;
}

report::record origin_record(const origin_result& result, const origin_row& row) {
    const auto tally = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
    report::record r{{"file", result.tensor.codes.info().file},
                     {"tensor", result.tensor.name},
                     {"recipe", quantize::to_string(row.recipe)},
                     {"blocks", tally(result.blocks)},
                     {"elements", tally(result.elements)},
                     {"zero_blocks", tally(result.zero_blocks)},
                     {"nan_scales", tally(result.nan_scales)},
                     {"unjudged_blocks", tally(result.unjudged)},
                     {"blocks_excluding", tally(row.excluded)},
                     {"zero_blocks_excluding", tally(row.excluded_zero)},
                     {"first_excluding_block", report::value()},
                     {"possible", row.excluded == 0},
                     {"scales_differ", report::value()},
                     {"codes_differ", report::value()}};
    if (row.excluded != 0) r[10].second = tally(row.first_excluded);
    if (result.compared) {
        r[12].second = tally(row.scales_differ);
        r[13].second = tally(row.codes_differ);
    }
    return r;
}

}  // namespace mx::pipeline

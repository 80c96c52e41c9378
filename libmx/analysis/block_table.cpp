// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/block_table.hpp"

#include <array>
#include <cstddef>
#include <set>
#include <string_view>

namespace mx::analysis {
namespace {

using block::block_stats;
using tensor::dtype;

// An array of the table, and where its values are in the statistics of a block.
struct column {
    std::string_view name;
    dtype type;
    std::size_t offset;
};

constexpr std::size_t counts_at = offsetof(block_stats, count),
                      sums_at = offsetof(block_stats, sum);

constexpr std::array columns{
    column{"scale_code", dtype::u8, offsetof(block_stats, scale_code)},
    column{"offset", dtype::f16, offsetof(block_stats, offset)},
    column{"amax", dtype::f32, offsetof(block_stats, amax)},
    column{"nonzero", dtype::u32, counts_at + offsetof(block::block_counts, nonzero)},
    column{"overflow", dtype::u32, counts_at + offsetof(block::block_counts, overflow)},
    column{"clamp", dtype::u32, counts_at + offsetof(block::block_counts, clamp)},
    column{"top_code", dtype::u32, counts_at + offsetof(block::block_counts, top_code)},
    column{"underflow", dtype::u32, counts_at + offsetof(block::block_counts, underflow)},
    column{"squared_error", dtype::f64, sums_at + offsetof(block::block_sums, error2)},
};

// A group name of its own for every tensor, also when two files hold the same name.
std::string unique_group(std::set<std::string>& used, const std::string& name) {
    std::string candidate = name;
    for (int n = 2; !used.insert(candidate).second; ++n) {
        candidate = name + "#" + std::to_string(n);
    }
    return candidate;
}

// Blocks of one job in one panel, written in runs of consecutive ones.
class run_of_blocks {
  public:
    run_of_blocks(io::array_writer& writer, std::size_t first_array)
        : writer_(writer), first_array_(first_array) {}

    void put(std::uint64_t block, const block_stats& s) {
        if (count_ != 0 && block != first_ + count_) flush();
        if (count_ == 0) first_ = block;
        ++count_;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const auto* from = reinterpret_cast<const std::byte*>(&s) + columns[c].offset;
            bytes_[c].insert(bytes_[c].end(), from, from + bytes_of(c));
        }
    }

    void flush() {
        for (std::size_t c = 0; c < columns.size() && count_ != 0; ++c) {
            writer_.write(first_array_ + c, first_ * bytes_of(c), bytes_[c]);
            bytes_[c].clear();
        }
        count_ = 0;
    }

  private:
    static std::size_t bytes_of(std::size_t column) {
        return static_cast<std::size_t>(tensor::row_of(columns[column].type).bits / 8);
    }

    io::array_writer& writer_;
    std::size_t first_array_;
    std::uint64_t first_ = 0, count_ = 0;
    std::array<std::vector<std::byte>, columns.size()> bytes_;
};

class panel_blocks final : public engine::panel_visitor {
  public:
    void add(io::array_writer& writer, std::size_t first_array) {
        runs_.emplace_back(writer, first_array);
    }
    void segment(const engine::quantized_segment& s,
                 std::span<const std::size_t> members) override {
        for (std::size_t i = 0; i < members.size(); ++i) {
            const codec::block_results& d = s.by_recipe[i].of_blocks;
            for (std::size_t b = 0; b < d.blocks; ++b) {
                runs_[members[i]].put(s.index_of(b), d.stats[b]);
            }
        }
    }
    void end() override {
        for (run_of_blocks& r : runs_) r.flush();
    }

  private:
    std::vector<run_of_blocks> runs_;  // by job of the panel
};

}  // namespace

block_table::block_table(const std::string& path, const std::vector<engine::tensor_ref>& tensors,
                         const engine::run_request& request) {
    std::vector<io::planned_array> arrays;
    std::set<std::string> groups;
    for (const engine::tensor_ref& t : tensors) {
        const std::string group = unique_group(groups, t.info().name);
        for (const codec::recipe& r : request.recipes) {
            std::string reason;
            const auto layout = engine::lay_out(t.info(), r, reason);
            if (!layout) continue;
            for (std::size_t phase = 0; phase < request.factors.size(); ++phase) {
                std::string name = group + "/" + codec::to_string(r);
                if (request.factors.size() > 1) name += "/phase" + std::to_string(phase);
                for (const column& c : columns) {
                    arrays.push_back(
                        {name + "/" + std::string(c.name), c.type, layout->grid_shape});
                }
            }
        }
    }
    writer_ = io::create_hdf5(path, arrays, {{"schema", "mx.blocks/1"}});
}

void block_table::begin(const engine::run_batch& b) {
    first_array_.clear();
    for (std::size_t j = 0; j < b.jobs.size(); ++j, next_array_ += columns.size()) {
        first_array_.push_back(next_array_);
    }
}

std::unique_ptr<engine::panel_visitor> block_table::visit(const engine::run_panel& p) {
    auto blocks = std::make_unique<panel_blocks>();
    for (const std::size_t j : p.jobs) blocks->add(*writer_, first_array_[j]);
    return blocks;
}

}  // namespace mx::analysis

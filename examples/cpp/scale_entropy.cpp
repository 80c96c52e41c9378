// SPDX-License-Identifier: Apache-2.0
// A study of your own: how many scale codes the blocks of each tensor use, and the entropy of these
// codes in bits, of the 8 that files store. scale_entropy FILE RECIPE
#include <mx/mx.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "libmx/engine/run.hpp"

namespace {

using code_counts = std::array<std::uint64_t, 256>;

// The counts of a tensor; panels of it are processed by several threads.
struct shared_counts {
    std::mutex guard;
    code_counts counts{};
};

// One panel, on one thread: counts on its own, and adds to the tensor's counts at the end.
class panel_counts final : public mx::engine::panel_visitor {
  public:
    explicit panel_counts(shared_counts& to) : to_(to) {}

    void segment(const mx::engine::quantized_segment& s, std::span<const std::size_t>) override {
        // One result per recipe of the run, here one.
        const mx::codec::block_results& blocks = s.by_recipe.front().of_blocks;
        for (std::size_t b = 0; b < blocks.blocks; ++b) ++counts_[blocks.scale_code[b]];
    }

    void end() override {
        const std::lock_guard lock(to_.guard);
        for (std::size_t code = 0; code < counts_.size(); ++code) {
            to_.counts[code] += counts_[code];
        }
    }

  private:
    shared_counts& to_;
    code_counts counts_{};
};

class scale_entropy final : public mx::engine::visitor {
  public:
    // Scale codes of blocks, and no sums over elements.
    mx::codec::recipe_request requested(const mx::engine::run_job&) const override {
        return {.wanted = mx::codec::detail::scales, .sums = false};
    }

    void begin(const mx::engine::run_batch& batch) override {
        of_jobs_.clear();
        for (std::size_t i = 0; i < batch.jobs.size(); ++i) {
            of_jobs_.push_back(std::make_unique<shared_counts>());
        }
    }

    std::unique_ptr<mx::engine::panel_visitor> visit(const mx::engine::run_panel& p) override {
        return std::make_unique<panel_counts>(*of_jobs_[p.jobs.front()]);
    }

    void end(const mx::engine::run_batch& batch) override {
        for (std::size_t i = 0; i < batch.jobs.size(); ++i) {
            print(batch.info(batch.jobs[i]).name, of_jobs_[i]->counts);
        }
    }

  private:
    static void print(const std::string& tensor, const code_counts& counts) {
        double blocks = 0, entropy = 0;
        int used = 0;
        for (const std::uint64_t n : counts) blocks += static_cast<double>(n);
        for (const std::uint64_t n : counts) {
            if (n == 0) continue;
            const double share = static_cast<double>(n) / blocks;
            entropy -= share * std::log2(share);
            ++used;
        }
        std::printf("%s: %d codes, %.3f bits\n", tensor.c_str(), used, entropy);
    }

    std::vector<std::unique_ptr<shared_counts>> of_jobs_;  // by job of the batch
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "scale_entropy FILE RECIPE\n");
        return 2;
    }
    try {
        mx::engine::run_request request;
        request.recipes = {mx::codec::parse_block_recipe(arguments[2])};
        const mx::model model = mx::open(arguments[1]);
        std::vector<mx::engine::tensor_ref> tensors;
        for (const mx::view& t : model) tensors.push_back(t.ref());
        scale_entropy study;
        for (const auto& s : mx::engine::run(tensors, request, study, {})) {
            std::fprintf(stderr, "left out: %s: %s\n", s.tensor.c_str(), s.reason.c_str());
        }
    } catch (const mx::error& e) {
        std::fprintf(stderr, "scale_entropy: %s\n", e.what());
        return 1;
    }
    return 0;
}

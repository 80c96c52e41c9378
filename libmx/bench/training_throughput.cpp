// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/training_throughput.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "libmx/base/parallel.hpp"
#include "libmx/bench/rounds.hpp"
#include "libmx/lab/array.hpp"
#include "libmx/lab/product.hpp"
#include "libmx/lab/training.hpp"

namespace mx::bench {
namespace {

// A product by itself, or concurrent runs of the proxy. `settings` is "" for a product.
struct workload {
    std::string_view what;
    std::string_view group;  // times are compared within a group
    std::size_t rows, columns, depth;
    std::string_view settings;
    std::uint64_t runs = 0;
};

constexpr std::array workloads{
    workload{"product 2048 x 512 x 2048", "large", 2048, 512, 2048, ""},
    workload{"product 256 x 64 x 256", "small", 256, 64, 256, ""},
    workload{"step, float32", "step", 512, 512, 4, "all=none", 1},
    workload{"step, mxfp8", "step", 512, 512, 4, "all=mxfp8", 1},
    workload{"step, mxfp4", "step", 512, 512, 4, "all=mxfp4", 1},
    workload{"step, nvfp4", "step", 512, 512, 4, "all=nvfp4", 1},
    workload{"32 seeds, float32", "seeds", 64, 64, 4, "all=none", 32},
    workload{"32 seeds, mxfp8", "seeds", 64, 64, 4, "all=mxfp8", 32},
};

// Numbers between -1 and 1. Processors are faster, because cooler, if all factors are the same.
std::vector<float> varied(std::size_t count) {
    std::vector<float> out(count);
    std::uint32_t bits = 1;
    for (float& x : out) {
        bits = bits * 1664525u + 1013904223u;
        x = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
    }
    return out;
}

// A workload ready to run.
class contestant {
  public:
    contestant(const workload& w, int threads, std::string_view backend)
        : of_(w), threads_(threads), on_(threads, backend) {
        if (w.runs == 0) {
            a_.put(on_, std::span<const float>(varied(w.rows * w.depth)));
            b_.put(on_, std::span<const float>(varied(w.columns * w.depth)));
            c_.reserve(on_, w.rows * w.columns);
            multiply_adds_ = static_cast<double>(w.rows) * static_cast<double>(w.columns) *
                             static_cast<double>(w.depth);
            return;
        }
        lab::run_request r;
        r.batch = w.rows;
        r.shape.width = w.columns;
        r.shape.depth = w.depth;
        r.steps = 1u << 30;
        r.settings = lab::parse_settings(std::string(w.settings));
        const int within = w.runs == 1 ? threads : 1;
        for (std::uint64_t seed = 1; seed <= w.runs; ++seed) {
            r.seed = seed;
            runs_.push_back(
                std::make_unique<lab::training>(r, lab::execution_context(within, backend)));
        }
        // Three products per layer of the student, one per layer of the teacher.
        const double width = static_cast<double>(w.columns);
        const double weights = 2 * static_cast<double>(r.shape.hidden()) * width;
        multiply_adds_ = static_cast<double>(w.runs) * static_cast<double>(w.rows) *
                         static_cast<double>(w.depth) * (3 * weights + 2 * width * width);
    }

    void time_once() {
        const double took = seconds_of([&] {
            if (runs_.empty()) {
                lab::multiply(on_, {a_.data(), of_.rows, of_.depth},
                              {b_.data(), of_.columns, of_.depth}, c_.data());
                on_.wait();
            } else if (runs_.size() == 1) {
                runs_.front()->step();
            } else {
                base::parallel_for(runs_.size(), threads_, nullptr,
                                   [&](std::uint64_t i, int) { runs_[i]->step(); });
            }
        });
        if (!least_ || took < *least_) least_ = took;
    }

    double least() const { return *least_; }
    training_rate rate() const {
        return {of_.what, threads_, multiply_adds_ / least(),
                static_cast<double>(runs_.size()) / least(), 1};
    }

  private:
    const workload& of_;
    int threads_;
    lab::execution_context on_;
    lab::array a_, b_, c_;
    std::vector<std::unique_ptr<lab::training>> runs_;
    double multiply_adds_ = 0;
    std::optional<double> least_;
};

}  // namespace

std::vector<training_rate> measure_training_throughput(
    const training_throughput_request& request, const std::atomic<bool>* cancel,
    const std::function<void(const engine::progress&)>& on_progress) {
    part_progress progress(on_progress);
    progress.add_parts(request.threads.size());
    std::vector<training_rate> rates;
    for (const int threads : request.threads) {
        std::deque<contestant> all;
        for (const workload& w : workloads) all.emplace_back(w, threads, request.backend);
        take_turns(
            request.seconds, cancel, [&](double done) { progress.report(done); },
            [&] {
                for (contestant& c : all) c.time_once();
            });
        std::size_t first = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (workloads[i].group != workloads[first].group) first = i;
            rates.push_back(all[i].rate());
            rates.back().time_ratio = all[i].least() / all[first].least();
        }
        progress.end_part();
    }
    return rates;
}

}  // namespace mx::bench

// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/throughput.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "libmx/bench/file_throughput.hpp"
#include "libmx/bench/memory.hpp"
#include "libmx/bench/normal_values.hpp"

namespace mx::bench {
namespace {

// At least what a bandwidth is measured over, and twice every cache.
constexpr std::uint64_t least_memory = std::uint64_t{512} << 20;
constexpr int least_rounds = 5;

std::uint64_t memory_to_measure() { return std::max(least_memory, 2 * largest_cache()); }

std::uint64_t bytes_of(tensor::dtype type) {
    return static_cast<std::uint64_t>(tensor::row_of(type).bits / 8);
}

void stop_if(const std::atomic<bool>* cancel) {
    if (cancel != nullptr && cancel->load()) {
        throw base::error(base::error_kind::cancelled, "stopped before the end");
    }
}

// A matrix in memory of which every measurement takes the next rows, so that none finds its values
// in a cache.
class wheel {
  public:
    wheel(tensor::dtype type, std::span<const std::byte> values, std::uint64_t elements)
        : type_(type),
          values_(values),
          cols_(std::min(widest, elements)),
          rows_(elements / cols_) {}

    std::uint64_t elements() const { return rows_ * cols_; }

    /// At least one row and at most all of them, about `elements`.
    analysis::matrix next(double elements) {
        std::uint64_t rows = rows_;
        if (elements < static_cast<double>(this->elements())) {
            const auto want = static_cast<std::uint64_t>(elements) / cols_ / row_step * row_step;
            rows = std::min(rows_, std::max(row_step, want));
        }
        if (at_ + rows > rows_) at_ = 0;
        const std::uint64_t first = at_ * cols_ * bytes_of(type_);
        at_ += rows;
        return {type_, values_.data() + first, rows, cols_, "bench"};
    }

  private:
    static constexpr std::uint64_t widest = 4096;
    static constexpr std::uint64_t row_step = 256;  // whole panels
    tensor::dtype type_;
    std::span<const std::byte> values_;
    std::uint64_t cols_, rows_;
    std::uint64_t at_ = 0;
};

// What is measured against the others of its driver and thread count.
struct contestant {
    std::vector<std::size_t> indices;
    std::vector<codec::recipe> recipes;
    bool histograms;
    double best = 0;  // elements per second
};

std::vector<contestant> contestants_of(const throughput_request& request) {
    std::vector<contestant> all;
    for (const bool histograms : {false, true}) {
        if (histograms && !request.histograms) continue;
        contestant joint{{}, {}, histograms};
        for (std::size_t r = 0; r < request.recipes.size(); ++r) {
            all.push_back({{r}, {request.recipes[r]}, histograms});
            joint.indices.push_back(r);
            joint.recipes.push_back(request.recipes[r]);
        }
        if (request.together && joint.recipes.size() > 1) all.push_back(std::move(joint));
    }
    return all;
}

void time_once(contestant& c, const analysis::matrix& m, const engine::run_control& control) {
    const auto start = std::chrono::steady_clock::now();
    analysis::analyze_matrix(m, c.recipes, c.histograms, control);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    c.best = std::max(c.best, static_cast<double>(m.rows * m.cols) / took.count());
}

class measurement {
  public:
    measurement(const throughput_request& request, const std::atomic<bool>* cancel,
                const std::function<void(const engine::progress&)>& on_progress)
        : request_(request), cancel_(cancel), on_progress_(on_progress) {
        for (const codec::backend* d : request.backends) {
            cells_ += request.threads.size() * (request.files.empty() ? 1 : 2);
            if (d->is_device()) ++cells_;
        }
    }

    throughput run() {
        for (const codec::backend* d : request_.backends) {
            if (d->is_device()) on_device(*d);
        }
        for (const int threads : request_.threads) at_threads(threads);
        add_placed();
        return std::move(result_);
    }

  private:
    void on_device(const codec::backend& d) {
        const std::unique_ptr<codec::device_meter> meter = d.make_meter();
        const device_request what{request_.recipes, d, request_.type, request_.seconds};
        result_.devices.push_back(
            measure_device(*meter, what, cancel_, [this](double share) { report(share); }));
        device_of_[&d] = result_.devices.size() - 1;
        ++cells_done_;
    }

    // Before the matrix takes memory: all that the system has left keeps the files.
    void from_files(int threads, const codec::backend& d) {
        engine::run_control control;
        control.threads = threads;
        control.backend = &d;
        control.cancel = cancel_;
        const auto recipes = static_cast<double>(request_.recipes.size());
        for (std::size_t r = 0; r < request_.recipes.size(); ++r) {
            report(static_cast<double>(r) / recipes);
            const file_rate got = measure_files(request_.files, request_.recipes[r],
                                                request_.seconds / recipes, control);
            files_.push_back({r, &d, threads, got});
        }
        ++cells_done_;
    }

    // What is left to be said when all roofs are known.
    void add_placed() {
        std::vector<placed_rate>& placed = result_.placed;
        for (const device_throughput& d : result_.devices) {
            placed.insert(placed.end(), d.rates.begin(), d.rates.end());
        }
        const auto stored = static_cast<double>(bytes_of(request_.type));
        for (const throughput_row& r : result_.rows) {
            if (device_of_.count(r.backend) == 0 || r.recipes.size() > 1) continue;
            add_rate({r.recipes.front(), r.backend, r.threads, r.histograms, values_place::memory,
                      pass_output::sums, r.elements_per_second, 0, roof::pinned_copy, 0},
                     stored);
        }
        for (const rate_of_files& f : files_) {
            add_rate({f.recipe, f.backend, f.threads, false, values_place::files, pass_output::sums,
                      f.rate.elements_per_second, 0, roof::memory_read, 0},
                     f.rate.bytes_per_element);
        }
    }

    void add_rate(placed_rate r, double bytes) {
        const auto device = device_of_.find(r.backend);
        if (device != device_of_.end()) {
            r.bound = roof::pinned_copy;
            const double pinned = result_.devices[device->second].bandwidth.pinned;
            return result_.placed.push_back(rate_below(pinned, bytes, r));
        }
        for (const bandwidth& b : result_.bandwidths) {
            if (b.threads == r.threads) result_.placed.push_back(rate_below(b.read, bytes, r));
        }
    }

    void at_threads(int threads) {
        for (const codec::backend* d : request_.backends) {
            if (!request_.files.empty()) from_files(threads, *d);
        }
        const std::uint64_t elements =
            request_.elements != 0 ? request_.elements : default_elements(request_.type);
        const std::uint64_t wanted = elements * bytes_of(request_.type);
        measured_memory memory(std::max(memory_to_measure(), wanted), threads);
        result_.memory = memory.bytes().size();
        const auto moved = static_cast<double>(result_.memory);
        bandwidth b{threads, 0, 0};
        for (int i = 0; i < least_rounds; ++i) {
            stop_if(cancel_);
            b.copy = std::max(b.copy, moved / memory.copy_once());
        }
        const std::span<std::byte> values = memory.bytes().first(wanted);
        fill_normal(request_.type, values);
        wheel w(request_.type, values, elements);
        result_.elements = w.elements();
        const std::size_t first = result_.rows.size();
        for (const codec::backend* d : request_.backends) {
            engine::run_control control;
            control.threads = threads;
            control.backend = d;
            control.cancel = cancel_;
            std::vector<contestant> all = contestants_of(request_);
            take_turns(all, w, control,
                       [&] { b.read = std::max(b.read, moved / memory.read_once()); });
            for (const contestant& c : all) add_row(c, all, control);
        }
        for (std::size_t i = first; i < result_.rows.size(); ++i) {
            throughput_row& r = result_.rows[i];
            r.fraction =
                r.elements_per_second * static_cast<double>(bytes_of(request_.type)) / b.read;
        }
        result_.bandwidths.push_back(b);
    }

    // Rounds of all contestants until the time is used up; `between` runs once a round.
    void take_turns(std::vector<contestant>& all, wheel& w, const engine::run_control& control,
                    const std::function<void()>& between) {
        // Warms up, and tells how much a contestant can do in its share of the time.
        for (contestant& c : all) time_once(c, w.next(0), control);
        const double share = request_.seconds / least_rounds / static_cast<double>(all.size());
        const auto start = std::chrono::steady_clock::now();
        for (int round = 0;; ++round) {
            const std::chrono::duration<double> past = std::chrono::steady_clock::now() - start;
            if (round >= least_rounds && past.count() >= request_.seconds) break;
            report(std::min(1.0, past.count() / request_.seconds));
            stop_if(cancel_);
            between();
            for (contestant& c : all) time_once(c, w.next(c.best * share), control);
        }
        ++cells_done_;
    }

    void add_row(const contestant& c, const std::vector<contestant>& all,
                 const engine::run_control& control) {
        throughput_row row{c.indices, control.backend, control.threads, c.histograms, c.best, 0, 1};
        if (c.indices.size() > 1) {
            double separate = 0;
            for (const contestant& other : all) {
                const bool one = other.indices.size() == 1 && other.histograms == c.histograms;
                if (one) separate += 1 / other.best;
            }
            row.of_separate_passes = 1 / c.best / separate;
        }
        result_.rows.push_back(std::move(row));
    }

    void report(double share) const {
        if (!on_progress_) return;
        const double done = (static_cast<double>(cells_done_) + share) * 1000;
        on_progress_({static_cast<std::uint64_t>(std::lround(done)), cells_ * 1000});
    }

    const throughput_request& request_;
    const std::atomic<bool>* cancel_;
    const std::function<void(const engine::progress&)>& on_progress_;
    struct rate_of_files {
        std::size_t recipe;
        const codec::backend* backend;
        int threads;
        file_rate rate;
    };

    std::size_t cells_ = 0, cells_done_ = 0;
    std::vector<rate_of_files> files_;
    std::map<const codec::backend*, std::size_t> device_of_;  // index into result_.devices
    throughput result_{};
};

}  // namespace

std::uint64_t default_elements(tensor::dtype type) { return memory_to_measure() / bytes_of(type); }

throughput measure_throughput(const throughput_request& request, const std::atomic<bool>* cancel,
                              const std::function<void(const engine::progress&)>& on_progress) {
    return measurement(request, cancel, on_progress).run();
}

}  // namespace mx::bench

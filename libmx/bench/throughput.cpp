// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/throughput.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "libmx/bench/memory.hpp"
#include "libmx/bench/normal_values.hpp"
#include "libmx/bench/rounds.hpp"
#include "libmx/bench/row_source.hpp"

namespace mx::bench {
namespace {

// A measurement that is compared with the others of its backend and thread count.
struct pass_contestant {
    std::vector<std::size_t> indices;
    std::vector<codec::recipe> recipes;
    bool histograms;
    double best = 0;  // elements per second
};

std::vector<pass_contestant> contestants_of(const throughput_request& request) {
    std::vector<pass_contestant> all;
    for (const bool histograms : {false, true}) {
        if (histograms && !request.histograms) continue;
        pass_contestant joint{{}, {}, histograms};
        for (std::size_t r = 0; r < request.recipes.size(); ++r) {
            all.push_back({{r}, {request.recipes[r]}, histograms});
            joint.indices.push_back(r);
            joint.recipes.push_back(request.recipes[r]);
        }
        if (request.together && joint.recipes.size() > 1) all.push_back(std::move(joint));
    }
    return all;
}

void time_once(pass_contestant& c, const analysis::matrix& m, const engine::run_control& control) {
    const double took =
        seconds_of([&] { analysis::analyze_matrix(m, c.recipes, c.histograms, control); });
    c.best = std::max(c.best, static_cast<double>(m.rows * m.cols) / took);
}

struct amount {
    double elements = 0, bytes = 0;
};

// The elements analysed and their stored bytes.
amount analysed(const std::vector<engine::tensor_ref>& tensors, const analysis::analysis& a) {
    std::set<std::pair<std::string, std::string>> left_out;
    for (const engine::skipped_tensor& s : a.skipped) left_out.emplace(s.file, s.tensor);
    amount all;
    for (const engine::tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        if (left_out.contains({info.file, info.name})) continue;
        all.elements += static_cast<double>(info.elements);
        all.bytes += static_cast<double>(info.file_bytes());
    }
    return all;
}

class pass_measurement {
  public:
    pass_measurement(const throughput_request& request, const std::atomic<bool>* cancel,
                     const std::function<void(const engine::progress&)>& on_progress)
        : request_(request), cancel_(cancel), progress_(on_progress) {
        for (const codec::backend* b : request.backends) {
            progress_.add_parts(request.threads.size() * (request.files.empty() ? 1 : 2));
            if (b->is_device()) progress_.add_parts(1);
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
        result_.devices.push_back(measure_device(
            *meter, what, cancel_, [this](double share) { progress_.report(share); }));
        device_of_[&d] = result_.devices.size() - 1;
        progress_.end_part();
    }

    engine::run_control control_of(int threads, const codec::backend& b) const {
        engine::run_control control;
        control.threads = threads;
        control.backend = &b;
        control.cancel = cancel_;
        return control;
    }

    // analyze() with one recipe after the other, after a pass that brings the files into the page
    // cache. Runs before the matrix is allocated, so that the remaining memory can cache the files.
    void from_files(int threads, const codec::backend& b) {
        const engine::run_control control = control_of(threads, b);
        const auto recipes = static_cast<double>(request_.recipes.size());
        for (std::size_t r = 0; r < request_.recipes.size(); ++r) {
            progress_.report(static_cast<double>(r) / recipes);
            analysis::analysis_request request;
            request.recipes = {request_.recipes[r]};
            const auto analyze = [&] {
                return analysis::analyze(request_.files, request, control);
            };
            const amount all = analysed(request_.files, analyze());
            if (all.elements == 0) {
                base::refuse("recipe '" + codec::to_string(request_.recipes[r]) +
                             "' suits no tensor of these files; 'mx analyze' says why");
            }
            double best = 0;
            take_turns(request_.seconds / recipes, cancel_, {},
                       [&] { best = std::max(best, all.elements / seconds_of(analyze)); });
            files_.push_back({{r, &b, threads, false, values_place::files, pass_output::sums, best,
                               0, roof::memory_read, 0},
                              all.bytes / all.elements});
        }
        progress_.end_part();
    }

    // Adds the rates that depend on all bandwidths.
    void add_placed() {
        std::vector<placed_rate>& placed = result_.placed;
        for (const device_throughput& d : result_.devices) {
            placed.insert(placed.end(), d.rates.begin(), d.rates.end());
        }
        const auto stored = static_cast<double>(bytes_of(request_.type));
        for (const throughput_row& r : result_.rows) {
            if (!device_of_.contains(r.backend) || r.recipes.size() > 1) continue;
            add_rate({r.recipes.front(), r.backend, r.threads, r.histograms, values_place::memory,
                      pass_output::sums, r.elements_per_second, 0, roof::pinned_copy, 0},
                     stored);
        }
        for (const auto& [rate, bytes] : files_) add_rate(rate, bytes);
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
        const std::uint64_t needed = elements * bytes_of(request_.type);
        measured_memory memory(std::max(memory_to_measure(), needed), threads);
        result_.memory = memory.bytes().size();
        const auto moved = static_cast<double>(result_.memory);
        bandwidth b{threads, 0, 0};
        take_turns(0, cancel_, {}, [&] { b.copy = std::max(b.copy, moved / memory.copy_once()); });
        const std::span<std::byte> values = memory.bytes().first(needed);
        const codec::tensor_facts facts = fill_normal(request_.type, values);
        row_source rows(request_.type, values, elements, facts);
        result_.elements = rows.elements();
        const std::size_t first = result_.rows.size();
        for (const codec::backend* d : request_.backends) {
            const engine::run_control control = control_of(threads, *d);
            std::vector<pass_contestant> all = contestants_of(request_);
            measure(all, rows, control,
                    [&] { b.read = std::max(b.read, moved / memory.read_once()); });
            for (const pass_contestant& c : all) add_row(c, all, control);
        }
        for (std::size_t i = first; i < result_.rows.size(); ++i) {
            throughput_row& r = result_.rows[i];
            r.fraction =
                r.elements_per_second * static_cast<double>(bytes_of(request_.type)) / b.read;
        }
        result_.bandwidths.push_back(b);
    }

    // Runs rounds of all contestants until the time is used up; `between` runs once per round.
    void measure(std::vector<pass_contestant>& all, row_source& rows,
                 const engine::run_control& control, const std::function<void()>& between) {
        // Warm-up; also estimates how much each contestant can do in its share of the time.
        for (pass_contestant& c : all) time_once(c, rows.next(0), control);
        const double share = request_.seconds / least_rounds / static_cast<double>(all.size());
        take_turns(
            request_.seconds, cancel_, [this](double done) { progress_.report(done); },
            [&] {
                between();
                for (pass_contestant& c : all) time_once(c, rows.next(c.best * share), control);
            });
        progress_.end_part();
    }

    void add_row(const pass_contestant& c, const std::vector<pass_contestant>& all,
                 const engine::run_control& control) {
        throughput_row row{c.indices, control.backend, control.threads, c.histograms, c.best, 0, 1};
        if (c.indices.size() > 1) {
            double separate = 0;
            for (const pass_contestant& other : all) {
                const bool one = other.indices.size() == 1 && other.histograms == c.histograms;
                if (one) separate += 1 / other.best;
            }
            row.of_separate_passes = 1 / c.best / separate;
        }
        result_.rows.push_back(std::move(row));
    }

    const throughput_request& request_;
    const std::atomic<bool>* cancel_;
    part_progress progress_;
    std::vector<std::pair<placed_rate, double>> files_;       // with the bytes per element
    std::map<const codec::backend*, std::size_t> device_of_;  // index into result_.devices
    throughput result_{};
};

}  // namespace

throughput measure_throughput(const throughput_request& request, const std::atomic<bool>* cancel,
                              const std::function<void(const engine::progress&)>& on_progress) {
    return pass_measurement(request, cancel, on_progress).run();
}

}  // namespace mx::bench

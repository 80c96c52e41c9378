// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/device_throughput.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/bench/normal_values.hpp"
#include "libmx/bench/rounds.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panel_quantizer.hpp"

namespace mx::bench {
namespace {

constexpr std::uint64_t columns = 4096;

constexpr std::array outputs{pass_output::sums, pass_output::codes};

double element_bytes(tensor::dtype type) { return tensor::row_of(type).bits / 8.0; }

// The segments of a whole matrix, and its columns after the recipe's reshaping.
struct layout {
    std::vector<codec::placed_segment> segments;
    std::uint64_t cols;
};
layout layout_of(std::uint64_t rows, const codec::recipe& r) {
    std::string reason;
    const auto found = engine::lay_out({rows, columns}, r, reason);
    if (!found) base::refuse("a matrix: " + reason);
    const block::grid& g = found->grid;
    const block::view& v = g.over;
    layout l{{}, v.cols};
    const std::uint64_t id = base::tensor_id("bench");
    const engine::panel all{0, v.batch, 0, v.rows, 0, v.cols};
    engine::for_each_segment(g, all, [&](const engine::segment_in_panel& s) {
        l.segments.push_back({engine::place_of(s, g, id), s.batch * v.rows + s.row, s.col});
    });
    return l;
}

class device_measurement {
  public:
    device_measurement(codec::device_meter& meter, const device_request& request,
                       const std::atomic<bool>* cancel, const std::function<void(double)>& on_share)
        : meter_(meter), request_(request), cancel_(cancel), on_share_(on_share) {}

    device_throughput run() {
        result_.device = meter_.facts();
        const std::span<std::byte> staged = meter_.open();
        facts_ = fill_normal(request_.type, staged);
        meter_.spread();
        result_.memory = meter_.resident();
        const auto stored = static_cast<std::uint64_t>(element_bytes(request_.type));
        rows_ = result_.memory / stored / columns;
        result_.elements = rows_ * columns;
        std::vector<std::size_t> chosen;
        for (std::size_t r = 0; r < request_.recipes.size(); ++r) {
            // The CPU performs rotations.
            if (request_.recipes[r].rotate.what == transform::kind::none) chosen.push_back(r);
        }
        const double share =
            request_.seconds / static_cast<double>(std::max<std::size_t>(1, chosen.size()));
        measure_roofs(staged.size(), chosen.empty() ? share : 0, [] {});
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            measure(chosen[i], staged.size(), share);
            if (!on_share_) continue;
            on_share_(static_cast<double>(i + 1) / static_cast<double>(chosen.size()));
        }
        // Only now: the bandwidth limits are the best of all rounds.
        for (placed_rate& r : result_.rates) {
            const bool copies = r.bound == roof::device_copy;
            r = rate_below(copies ? result_.bandwidth.copy : result_.bandwidth.read,
                           element_bytes(request_.type), r);
        }
        return std::move(result_);
    }

  private:
    void measure(std::size_t recipe, std::uint64_t staged, double seconds) {
        const codec::recipe& r = request_.recipes[recipe];
        const codec::block_params params = codec::params_of(r, facts_);
        const layout l = layout_of(rows_, r);
        for (const pass_output writes : outputs) {
            const bool codes = writes == pass_output::codes;
            const auto wanted = codes ? codec::detail::codes : codec::detail::none;
            meter_.prepare(request_.type, l.cols, l.segments, {&params, wanted, false});
            meter_.run_once();  // warm-up
            double best = 0;
            measure_roofs(staged, seconds / static_cast<double>(outputs.size()), [&] {
                const double elements = static_cast<double>(result_.elements);
                best = std::max(best, elements / meter_.run_once());
            });
            placed_rate rate{};
            rate.recipe = recipe;
            rate.backend = &request_.backend;
            rate.from = values_place::device;
            rate.writes = writes;
            rate.elements_per_second = best;
            rate.bound = codes ? roof::device_copy : roof::device_read;
            result_.rates.push_back(rate);
        }
    }

    // Runs rounds of the bandwidth limits and of `once` until the time is used up.
    void measure_roofs(std::uint64_t staged, double seconds, const std::function<void()>& once) {
        const auto all = static_cast<double>(result_.memory);
        device_bandwidth& b = result_.bandwidth;
        take_turns(seconds, cancel_, {}, [&] {
            b.read = std::max(b.read, all / meter_.read_once());
            b.copy = std::max(b.copy, all / meter_.copy_once());
            b.pinned = std::max(b.pinned, static_cast<double>(staged) / meter_.receive_once());
            once();
        });
    }

    codec::device_meter& meter_;
    const device_request& request_;
    const std::atomic<bool>* cancel_;
    const std::function<void(double)>& on_share_;
    std::uint64_t rows_ = 0;
    codec::tensor_facts facts_;
    device_throughput result_{};
};

}  // namespace

device_throughput measure_device(codec::device_meter& meter, const device_request& request,
                                 const std::atomic<bool>* cancel,
                                 const std::function<void(double)>& on_share) {
    return device_measurement(meter, request, cancel, on_share).run();
}

}  // namespace mx::bench

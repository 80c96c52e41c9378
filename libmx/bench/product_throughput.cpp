// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/product_throughput.hpp"

#include <algorithm>
#include <string>

#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/bench/rounds.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/factor.hpp"
#include "libmx/gemm/multiply.hpp"

namespace mx::bench {
namespace {

constexpr std::size_t row_step = 32;  // rows of a tile

gemm::operand first_rows(const gemm::operand& o, std::size_t rows) {
    gemm::operand part = o;
    part.rows = rows;
    part.codes.resize(rows * o.depth);
    if (o.scale_block != 0) part.scales.resize(o.scales.size() / o.rows * rows);
    return part;
}

// A model and its operands, compared with the others of its backend and thread count.
struct product_contestant {
    const gemm::accumulator* model;
    gemm::operand a, b;
    double best = 0;  // multiply-adds per second
};

class product_measurement {
  public:
    product_measurement(const product_throughput_request& request, const std::atomic<bool>* cancel,
                        const std::function<void(const engine::progress&)>& on_progress)
        : request_(request), cancel_(cancel), progress_(on_progress) {
        for (const gemm::accumulator& m : request.models) {
            const product_operands of = operands_for(m);
            all_.push_back({&m, make_operand(of, request.rows, request.depth, 1),
                            make_operand(of, request.columns, request.depth, 2), 0});
        }
        const gemm::backend& best = gemm::best_backend();
        bool device = false, processor = false;
        for (const int threads : request.threads) {
            for (const gemm::backend* b : request.backends) {
                device = device || b->is_device();
                processor = processor || (b == &best && threads == processor_threads);
            }
        }
        if (device && !processor) cells_.push_back({&best, processor_threads});
        for (const int threads : request.threads) {
            for (const gemm::backend* b : request.backends) cells_.push_back({b, threads});
        }
        progress_.add_parts(cells_.size());
    }

    std::vector<product_rate> run() {
        std::vector<product_rate> rates;
        for (const cell& at : cells_) {
            measure(*at.backend, at.threads);
            for (std::size_t m = 0; m < all_.size(); ++m) {
                const product_contestant& c = all_[m];
                const bool kernels =
                    at.backend->name != "scalar" && at.backend->computes(*c.model, c.a, c.b);
                rates.push_back({m, at.backend, at.threads, kernels, c.best});
            }
            progress_.end_part();
        }
        compare_with_processor(rates);
        return rates;
    }

  private:
    // Runs rounds of all models until the time is used up.
    void measure(const gemm::backend& b, int threads) {
        // Warm-up; also estimates how much a model can do in its share of the time.
        for (product_contestant& c : all_) {
            c.best = 0;
            time_once(c, b, threads, row_step);
        }
        const double share = request_.seconds / least_rounds / static_cast<double>(all_.size());
        take_turns(
            request_.seconds, cancel_, [this](double done) { progress_.report(done); },
            [&] {
                for (product_contestant& c : all_) time_once(c, b, threads, rows_in(c, share));
            });
    }

    std::size_t rows_in(const product_contestant& c, double seconds) const {
        const double per_row =
            static_cast<double>(request_.columns) * static_cast<double>(request_.depth);
        const double rows = std::min(c.best * seconds / per_row, 1e9);
        const std::size_t whole = static_cast<std::size_t>(rows) / row_step * row_step;
        return std::min(request_.rows, std::max(row_step, whole));
    }

    void time_once(product_contestant& c, const gemm::backend& b, int threads,
                   std::size_t rows) const {
        const gemm::operand a = first_rows(c.a, std::min(rows, c.a.rows));
        gemm::multiply_control control;
        control.threads = threads;
        control.backend = b.name;
        control.cancel = cancel_;
        const double took = seconds_of([&] { gemm::multiply(a, c.b, {}, *c.model, {}, control); });
        const double done = static_cast<double>(a.rows) * static_cast<double>(c.b.rows) *
                            static_cast<double>(a.depth);
        c.best = std::max(c.best, done / took);
    }

    const product_throughput_request& request_;
    const std::atomic<bool>* cancel_;
    part_progress progress_;
    std::vector<product_contestant> all_;
    struct cell {
        const gemm::backend* backend;
        int threads;
    };
    std::vector<cell> cells_;
};

}  // namespace

product_operands operands_for(const gemm::accumulator& m) {
    product_operands found;
    for (const gemm::operand_format& f : gemm::operand_formats) {
        const auto taken = [&](std::uint32_t scaling) { return takes(m, f, f, scaling); };
        for (const gemm::operand_scale& s : gemm::operand_scales) {
            // Scaled elements are dequantized to float32.
            if (f.member != gemm::takes_f32 && taken(s.bit)) found = {&f, &s};
        }
        if (found.format == nullptr && taken(0)) found = {&f, nullptr};
        if (found.format != nullptr) return found;
    }
    base::refuse("accumulator '" + std::string(m.name) + "' takes no two equal formats");
}

// With float32's exponents, sums of random codes soon become infinite, and the plain loop then has
// no work left. Such codes get one of sixteen exponents around that of 1.
static std::uint32_t near_one(const gemm::operand_format& f, std::uint32_t code) {
    if (f.exponent_bits < 8) return code;
    const int at = f.mantissa_bits + f.dropped_bits;
    const std::uint32_t field = static_cast<std::uint32_t>(f.bias) - 8 + (code >> at & 15u);
    return (code & ~(0xffu << at)) | field << at;
}

gemm::operand make_operand(const product_operands& of, std::size_t rows, std::size_t depth,
                           std::uint32_t seed) {
    gemm::operand o;
    o.rows = rows;
    o.depth = depth;
    o.format = of.format;
    o.codes.resize(rows * depth);
    const std::uint32_t mask = 0xffffffffu >> (32 - of.format->code_bits());
    for (std::size_t i = 0; i < o.codes.size(); ++i) {
        const auto index = static_cast<std::uint32_t>(i);
        // Takes the first finite one of a few draws, or zero.
        for (const std::uint32_t word : base::philox4x32_10({{index, 0, 0, 0}}, seed, 0).word) {
            const std::uint32_t code = near_one(*of.format, word & mask);
            const gemm::factor x =
                unpack(*of.format, gemm::subnormal_alignment::least_exponent, code);
            if (x.what != gemm::value_class::finite) continue;
            o.codes[i] = code;
            break;
        }
    }
    if (of.scale == nullptr) return o;
    o.scaling = of.scale->bit;
    o.scale_block = of.scale->block;
    o.scales.resize(rows * ((depth + o.scale_block - 1) / o.scale_block));
    const std::uint32_t one = of.scale->bit == gemm::scales_ue4m3_16 ? 0x38 : 127;
    for (std::size_t i = 0; i < o.scales.size(); ++i) {
        o.scales[i] = static_cast<std::uint8_t>(one - 4 + i % 8);
    }
    return o;
}

void compare_with_processor(std::vector<product_rate>& rates) {
    for (product_rate& r : rates) {
        if (!r.backend->is_device()) continue;
        double processor = 0;
        for (const product_rate& other : rates) {
            if (other.model != r.model || other.threads != processor_threads) continue;
            if (other.backend->is_device()) continue;
            processor = std::max(processor, other.multiply_adds_per_second);
        }
        if (processor > 0) r.times_processor = r.multiply_adds_per_second / processor;
    }
}

std::vector<product_rate> measure_product_throughput(
    const product_throughput_request& request, const std::atomic<bool>* cancel,
    const std::function<void(const engine::progress&)>& on_progress) {
    return product_measurement(request, cancel, on_progress).run();
}

}  // namespace mx::bench

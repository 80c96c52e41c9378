// SPDX-License-Identifier: Apache-2.0
#include "datasets/generators/write_checkpoint.hpp"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "datasets/generators/tensor_source.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/writer.hpp"

namespace mx::synth {
namespace {

constexpr std::uint64_t chunk_elements = std::uint64_t{1} << 18;

/// What the threads of one run share: where they are, and the first failure.
class run_state {
  public:
    run_state(const write_control& control, std::uint64_t total)
        : control_(control), total_(total) {}

    bool stopped() const {
        return failed_ || (control_.cancel != nullptr && control_.cancel->load());
    }
    void advance(std::uint64_t elements) {
        if (!control_.on_progress) return;
#pragma omp critical(mx_synth_progress)
        {
            done_ += elements;
            control_.on_progress(done_, total_);
        }
    }
    void fail(std::exception_ptr error) {
#pragma omp critical(mx_synth_failure)
        {
            if (!error_) error_ = std::move(error);
        }
        failed_ = true;
    }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
        if (control_.cancel != nullptr && control_.cancel->load()) {
            throw base::error(base::error_kind::cancelled, "interrupted");
        }
    }

  private:
    const write_control& control_;
    std::uint64_t total_;
    std::uint64_t done_ = 0;
    std::atomic<bool> failed_{false};
    std::exception_ptr error_;
};

void write_tensor(io::array_writer& out, std::size_t index, const tensor_source& source,
                  int threads, run_state& state) {
    const std::uint64_t size = source.bytes_per_element();
    const std::uint64_t chunks = (source.elements() + chunk_elements - 1) / chunk_elements;
    // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): it sees no OpenMP clauses
    const auto team = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(threads),
                                                               std::max<std::uint64_t>(chunks, 1)));
#pragma omp parallel num_threads(team)
    {
        std::vector<std::byte> buffer;
#pragma omp for schedule(dynamic)
        for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
            if (state.stopped()) continue;
            try {
                const std::uint64_t first = chunk * chunk_elements;
                const std::uint64_t count = std::min(chunk_elements, source.elements() - first);
                buffer.resize(static_cast<std::size_t>(count * size));
                source.fill(first, buffer);
                out.write(index, first * size, buffer);
                state.advance(count);
            } catch (...) {
                state.fail(std::current_exception());
            }
        }
    }
}

}  // namespace

void write_checkpoint(const std::string& path, const std::vector<tensor_spec>& plan,
                      std::uint64_t seed, const std::map<std::string, std::string>& metadata,
                      const write_control& control) {
    std::vector<io::planned_array> arrays;
    std::uint64_t total = 0;
    for (const tensor_spec& spec : plan) {
        arrays.push_back({spec.name, spec.type, spec.shape});
        total += tensor::element_count(spec.shape).value();
    }
    const int threads = control.threads > 0 ? control.threads : omp_get_max_threads();
    const auto out = io::create_safetensors(path, arrays, metadata);
    run_state state(control, total);
    for (std::size_t i = 0; i < plan.size(); ++i) {
        write_tensor(*out, i, tensor_source(plan[i], seed), threads, state);
        state.rethrow();
    }
    out->commit();
}

}  // namespace mx::synth

// SPDX-License-Identifier: Apache-2.0
#include "datasets/generators/write_checkpoint.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "datasets/generators/tensor_source.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/writer.hpp"

namespace mx::synth {
namespace {

constexpr std::uint64_t chunk_elements = std::uint64_t{1} << 18;

/// What the threads of one run share.
class run_state {
  public:
    run_state(const write_control& control, std::uint64_t total)
        : control_(control), total_(total) {}

    bool cancelled() const { return control_.cancel != nullptr && control_.cancel->load(); }
    void advance(std::uint64_t elements) {
        if (!control_.on_progress) return;
        const std::lock_guard lock(guard_);
        done_ += elements;
        control_.on_progress(done_, total_);
    }

  private:
    const write_control& control_;
    std::uint64_t total_;
    std::mutex guard_;
    std::uint64_t done_ = 0;
};

void write_tensor(io::array_writer& out, std::size_t index, const tensor_source& source,
                  int threads, run_state& state) {
    const std::uint64_t size = source.bytes_per_element();
    const std::uint64_t chunks = (source.elements() + chunk_elements - 1) / chunk_elements;
    std::vector<std::vector<std::byte>> buffers(
        static_cast<std::size_t>(base::thread_count(threads)));
    base::parallel_for(chunks, threads, nullptr, [&](std::uint64_t chunk, int thread) {
        if (state.cancelled()) return;
        std::vector<std::byte>& buffer = buffers[static_cast<std::size_t>(thread)];
        const std::uint64_t first = chunk * chunk_elements;
        const std::uint64_t count = std::min(chunk_elements, source.elements() - first);
        buffer.resize(static_cast<std::size_t>(count * size));
        source.fill(first, buffer);
        out.write(index, first * size, buffer);
        state.advance(count);
    });
    if (state.cancelled()) throw base::error(base::error_kind::cancelled, "interrupted");
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
    const auto out = io::create_safetensors(path, arrays, metadata);
    run_state state(control, total);
    for (std::size_t i = 0; i < plan.size(); ++i) {
        write_tensor(*out, i, tensor_source(plan[i], seed), control.threads, state);
    }
    out->commit();
}

}  // namespace mx::synth

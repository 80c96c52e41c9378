// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/cuda/cuda_engine.hpp"

#include <cstring>
#include <mutex>
#include <vector>

#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/gemm/cuda/kernels.hpp"

namespace mx::gemm::cuda {
namespace {

using base::cuda::check;
using base::cuda::grown_memory;
using where = grown_memory::where;

// What one walk needs for itself.
struct lane {
    base::cuda::stream stream;
    grown_memory host{where::pinned_host}, device{where::device};
};

// An operand's factors and scales, on the device for as long as the engine lives.
class resident_operand {
  public:
    explicit resident_operand(const unpacked_operand& x) : depth_(x.depth), groups_(x.groups) {
        base::cuda::stream s;
        put(s, factors_, x.factors.data(), x.factors.size() * sizeof(factor));
        put(s, scales_, x.scales.data(), x.scales.size() * sizeof(scale_factor));
    }
    device_operand view() const {
        return {reinterpret_cast<const factor*>(factors_.data()),
                reinterpret_cast<const scale_factor*>(scales_.data()), depth_, groups_};
    }

  private:
    static void put(base::cuda::stream& s, grown_memory& to, const void* from, std::size_t bytes) {
        if (bytes == 0) return;
        s.copy_there(to.room_for(bytes), static_cast<const std::byte*>(from), bytes);
        s.wait();
    }
    std::size_t depth_, groups_;
    grown_memory factors_{where::device}, scales_{where::device};
};

class cuda_engine final : public engine {
  public:
    cuda_engine(const operand& a, const operand& b, const accumulator& m)
        : kind_(kind_of(a, b, m)), a_(unpack_operand(a, m)), b_(unpack_operand(b, m)) {}

    void walk(const tile& t, const step_range& steps, std::uint32_t* acc) const override {
        std::unique_ptr<lane> l = take();
        const std::size_t bytes = t.rows * t.cols * sizeof *acc;
        std::byte* const host = l->host.room_for(bytes);
        std::byte* const device = l->device.room_for(bytes);
        std::memcpy(host, acc, bytes);
        l->stream.copy_there(device, host, bytes);
        check(enqueue(
                  {kind_, a_.view(), b_.view(), t, steps, reinterpret_cast<std::uint32_t*>(device)},
                  l->stream.handle()),
              "starting the kernel");
        l->stream.copy_back(host, device, bytes);
        l->stream.wait();
        std::memcpy(acc, host, bytes);
        const std::lock_guard lock(guard_);
        idle_.push_back(std::move(l));
    }

    // Enough outputs for a kernel to fill a device, few enough for several to be under way.
    std::size_t tile_rows() const override { return 512; }
    std::size_t tile_cols() const override { return 512; }

  private:
    std::unique_ptr<lane> take() const {
        {
            const std::lock_guard lock(guard_);
            if (!idle_.empty()) {
                std::unique_ptr<lane> l = std::move(idle_.back());
                idle_.pop_back();
                return l;
            }
        }
        return std::make_unique<lane>();
    }

    step_kind kind_;
    resident_operand a_, b_;
    mutable std::mutex guard_;
    mutable std::vector<std::unique_ptr<lane>> idle_;
};

// Asked once.
const std::string& obstacle() {
    static const std::string found = base::cuda::obstacle(has_code_for_device);
    return found;
}

}  // namespace

bool available() { return obstacle().empty(); }
std::string missing() { return obstacle(); }

bool computes(const accumulator& m, const operand&, const operand&) {
    return has_steps(m.how) && m.fused_length <= longest_step;
}

std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m, int) {
    if (!computes(m, a, b)) return make_plain_engine(a, b, m);
    return std::make_unique<cuda_engine>(a, b, m);
}

}  // namespace mx::gemm::cuda

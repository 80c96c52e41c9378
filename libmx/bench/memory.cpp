// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "libmx/base/parallel.hpp"
#include "libmx/bench/rounds.hpp"

namespace mx::bench {
namespace {

// Calls body(part) for every part, part i on thread i. base::parallel_for assigns parts to
// whichever thread is free.
template <typename Body>
void on_each_part(std::size_t parts, Body&& body) {
    base::run_team(static_cast<int>(parts),
                   [&](int thread) { body(static_cast<std::size_t>(thread)); });
}

}  // namespace

measured_memory::measured_memory(std::size_t bytes, int threads)
    : parts_(static_cast<std::size_t>(std::max(1, threads))) {
    constexpr std::size_t step = 2 * memory_step;  // so that the halves are whole steps too
    part_ = (bytes / parts_ / step + 1) * step;
    const std::size_t all = part_ * parts_;
    void* const got =
        mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(got, all,
            MADV_HUGEPAGE);  // only a hint: without huge pages the figures are slightly lower
#endif
    data_ = static_cast<std::byte*>(got);
    on_each_part(parts_, [this](std::size_t i) { std::memset(data_ + i * part_, 0, part_); });
}

measured_memory::~measured_memory() { munmap(data_, part_ * parts_); }

double measured_memory::read_once() const {
    std::atomic<std::uint64_t> seen{0};
    const double seconds = seconds_of([&] {
        on_each_part(parts_, [&](std::size_t i) { seen += read_all(data_ + i * part_, part_); });
    });
    return seconds;
}

double measured_memory::copy_once() {
    return seconds_of([this] {
        on_each_part(parts_, [this](std::size_t i) {
            std::byte* const part = data_ + i * part_;
            copy_all(part, part + part_ / 2, part_ / 2);
        });
    });
}

std::uint64_t largest_cache() {
    long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    for (const int level : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE}) {
        bytes = std::max(bytes, sysconf(level));
    }
#endif
    return static_cast<std::uint64_t>(std::max(0L, bytes));
}

}  // namespace mx::bench

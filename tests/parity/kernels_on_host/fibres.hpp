// SPDX-License-Identifier: Apache-2.0
// Blocks of threads on the host, block after block: a fibre for each thread, which runs until it
// waits for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <type_traits>

namespace card {

inline constexpr unsigned warp_size = 32;
/// The limit of every device since sm_50 for a block without an attribute.
inline constexpr std::size_t most_shared = 48 * 1024;

struct extent {
    unsigned x = 1, y = 1, z = 1;
    constexpr extent(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1)
        : x(of_x), y(of_y), z(of_z) {}
};

/// The position of a thread.
struct position {
    extent thread, block, block_size, grid;
    unsigned lane = 0;
};

/// A queue for kernels: the host_stream that a handle points to.
class stream;

/// Thrown for behaviour that CUDA leaves undefined: threads that wait forever, too much shared
/// memory.
class failure : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct grid {
    extent blocks, threads;
    std::size_t shared_bytes;
    card::stream* on;
    grid(extent of_blocks, extent of_threads, std::size_t shared, card::stream* queue)
        : blocks(of_blocks), threads(of_threads), shared_bytes(shared), on(queue) {}
};

/// Queues the kernel `thread`, called once for each thread. Reports dimensions that no device
/// supports through last_error().
void start(const grid& g, std::function<void()> thread);

/// Runs a grid. Throws failure.
void run(const grid& g, const std::function<void()>& thread);

/// The runtime's code for the last refused start, returned once; 0 if there is none.
int last_error();

// For threads.
const position& here();
void sync_block();

/// Waits for all lanes of the warp. Returns the value of each, valid until the next exchange.
/// `what` and `lanes` must be the same for all lanes, and `lanes` must name all.
const std::uint32_t* exchange(const char* what, std::uint32_t lanes, std::uint32_t own);

/// The block's variable that is declared in this line: nonsense at first.
void* shared_memory(unsigned line, std::size_t bytes);
template <typename T>
T& shared(unsigned line) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    return *static_cast<T*>(shared_memory(line, sizeof(T)));
}
/// Shared memory of the size that the launch requests.
unsigned char* dynamic_shared();

/// Copies of 4, 8 or 16 aligned bytes that a thread starts, in groups. Made at once in some blocks,
/// when the thread waits for their group in others: code that depends on either is wrong.
void start_copy(void* to, const void* from, std::size_t bytes);
void end_group();
/// Waits for all groups of the thread but the last `but`.
void wait_for_groups(std::size_t but);

/// PTX's cvt by the emulator: one value to a code, saturated to nearest even, and a code to the
/// bits of a binary16. The format is the one that the instruction names.
std::uint32_t narrowed(const char* ptx, std::uint32_t bits);
std::uint32_t widened(const char* ptx, std::uint32_t code);

}  // namespace card

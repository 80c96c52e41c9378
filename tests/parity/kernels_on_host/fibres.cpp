// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/kernels_on_host/fibres.hpp"

#include <ucontext.h>

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/host_device/host_device.hpp"

namespace card {
namespace {

// The limits of every device since sm_50.
constexpr unsigned most_threads = 1024;
constexpr unsigned most_rows = 65535;
constexpr int invalid_configuration = 9;

constexpr std::size_t stack_bytes = std::size_t{256} << 10;

// Threads that wait for one another.
struct meeting {
    unsigned members = 0, arrived = 0;
    std::uint64_t number = 0;
    const char* what = "";
    std::uint32_t value[2][warp_size];
};

struct copy {
    void* to;
    const void* from;
    std::size_t bytes;
};

// Where a thread, or the caller of a block, goes on. swapcontext() asks the operating system for
// its mask of signals, which takes more time than a kernel does between two meetings; _longjmp()
// does not. Sanitizers follow the former only.
struct place {
    ucontext_t first;  // of a new stack
    std::jmp_buf later;
    bool begun = false;

    void leave_for(place& other) {
#ifdef CARD_SANITIZED
        swapcontext(&first, &other.first);
#else
        begun = true;
        if (_setjmp(later) == 0) other.go_on();
#endif
    }
    [[noreturn]] void go_on() {
#ifndef CARD_SANITIZED
        if (begun) _longjmp(later, 1);
#endif
        setcontext(&first);
        std::abort();
    }
};

struct fibre {
    place now;
    std::deque<std::vector<copy>> copies{1};  // by group; the last one is open
    std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};
    position at;
    bool done = true;
};

struct variable {
    unsigned line;
    std::unique_ptr<std::byte[]> memory;
};

std::string text_of(const extent& e) {
    return "(" + std::to_string(e.x) + ", " + std::to_string(e.y) + ")";
}

// The blocks of an operating system's thread.
class machine {
  public:
    void run_block(const grid& g, const extent& block, const std::function<void()>& thread);
    fibre& own() { return *fibres_[current_]; }
    const position& here() const { return fibres_[current_]->at; }
    const std::uint32_t* meet(meeting& m, const char* what, std::uint32_t own);
    meeting& own_warp() { return warps_[current_ / warp_size]; }
    meeting& whole_block() { return block_; }
    std::byte* shared(unsigned line, std::size_t bytes);
    void start_copy(const copy& c);
    void end_group() { fibres_[current_]->copies.emplace_back(); }
    void wait_for_groups(std::size_t but);
    [[noreturn]] void fail(const std::string& what);

  private:
    static void entry();
    void prepare(const grid& g, const extent& block);
    // The next thread that is not done, or the caller of run_block().
    void leave();

    std::vector<std::unique_ptr<fibre>> fibres_;
    std::vector<meeting> warps_;
    meeting block_;
    std::vector<variable> shared_;
    std::size_t shared_bytes_ = 0;
    const std::function<void()>* thread_ = nullptr;
    place caller_;
    unsigned count_ = 0, alive_ = 0, current_ = 0;
    unsigned step_ = 1;  // to the next thread, modulo count_
    unsigned idle_ = 0;  // threads that ran since the last progress
    std::string wrong_;
};

machine& own_machine() {
    static thread_local machine one;
    return one;
}

void machine::entry() {
    machine& m = own_machine();
    for (;;) {
        (*m.thread_)();
        m.fibres_[m.current_]->done = true;
        m.alive_ -= 1;
        m.idle_ = 0;
        m.leave();
    }
}

void machine::prepare(const grid& g, const extent& block) {
    count_ = g.threads.x * g.threads.y * g.threads.z;
    while (fibres_.size() < count_) {
        auto made = std::make_unique<fibre>();
        ucontext_t& first = made->now.first;
        getcontext(&first);
        first.uc_stack.ss_sp = made->stack.get();
        first.uc_stack.ss_size = stack_bytes;
        first.uc_link = nullptr;
        makecontext(&first, entry, 0);
        fibres_.push_back(std::move(made));
    }
    for (unsigned i = 0; i < count_; ++i) {
        const extent thread(i % g.threads.x, i / g.threads.x % g.threads.y,
                            i / g.threads.x / g.threads.y);
        fibres_[i]->at = {thread, block, g.threads, g.blocks, i % warp_size};
        fibres_[i]->done = false;
        fibres_[i]->copies.assign(1, {});
    }
    warps_.assign((count_ + warp_size - 1) / warp_size, {});
    for (meeting& w : warps_) w.members = warp_size;
    warps_.back().members = (count_ - 1) % warp_size + 1;
    block_ = {};
    block_.members = count_;
    shared_.clear();
    shared_bytes_ = 0;
    alive_ = count_;
    idle_ = 0;
    // Upwards in some blocks, downwards in others, to find code that depends on the order of
    // threads.
    step_ = block.x % 2 == 0 ? 1 : count_ - 1;
    current_ = block.x % 2 == 0 ? 0 : count_ - 1;
}

void machine::run_block(const grid& g, const extent& block, const std::function<void()>& thread) {
    prepare(g, block);
    thread_ = &thread;
    if (g.shared_bytes != 0) shared(0, g.shared_bytes);
    caller_.leave_for(fibres_[current_]->now);
    if (wrong_.empty()) return;
    const std::string what = std::move(wrong_);
    wrong_.clear();
    fibres_.clear();  // they never return from where they wait
    throw failure(what);
}

void machine::leave() {
    place& own = fibres_[current_]->now;
    if (alive_ == 0) return own.leave_for(caller_);
    do current_ = (current_ + step_) % count_;
    while (fibres_[current_]->done);
    own.leave_for(fibres_[current_]->now);
}

void machine::fail(const std::string& what) {
    const position& p = here();
    wrong_ = "thread " + text_of(p.thread) + " of block " + text_of(p.block) + ": " + what;
    caller_.go_on();
}

const std::uint32_t* machine::meet(meeting& m, const char* what, std::uint32_t own) {
    if (m.arrived == 0) m.what = what;
    if (std::strcmp(m.what, what) != 0) {
        fail(std::string(what) + " while others of its warp wait at " + m.what);
    }
    const std::uint64_t number = m.number;
    // The next meeting stores values elsewhere, so that late threads still find these.
    std::uint32_t* const values = m.value[number % 2];
    values[current_ % warp_size] = own;
    if (++m.arrived == m.members) {
        m.arrived = 0;
        ++m.number;
        idle_ = 0;
    }
    while (m.number == number) {
        if (++idle_ > 2 * count_) fail("waits in vain at " + std::string(what));
        leave();
    }
    return values;
}

std::byte* machine::shared(unsigned line, std::size_t bytes) {
    for (const variable& v : shared_) {
        if (v.line == line) return v.memory.get();
    }
    shared_bytes_ += bytes;
    if (shared_bytes_ > most_shared) fail("more shared memory than a block has");
    shared_.push_back({line, std::unique_ptr<std::byte[]>(new std::byte[bytes])});
    std::memset(shared_.back().memory.get(), 0xa5, bytes);
    return shared_.back().memory.get();
}

void machine::start_copy(const copy& c) {
    const bool sized = c.bytes == 4 || c.bytes == 8 || c.bytes == 16;
    if (!sized || reinterpret_cast<std::uintptr_t>(c.to) % c.bytes != 0 ||
        reinterpret_cast<std::uintptr_t>(c.from) % c.bytes != 0) {
        fail("an asynchronous copy of another size, or not aligned");
    }
    if (here().block.x % 2 == 0) {
        std::memcpy(c.to, c.from, c.bytes);
    } else {
        fibres_[current_]->copies.back().push_back(c);
    }
}

void machine::wait_for_groups(std::size_t but) {
    auto& copies = fibres_[current_]->copies;
    for (; copies.size() > but + 1; copies.pop_front()) {
        for (const copy& c : copies.front()) std::memcpy(c.to, c.from, c.bytes);
    }
}

thread_local int refused = 0;

}  // namespace

void run(const grid& g, const std::function<void()>& thread) {
    machine& m = own_machine();
    for (unsigned y = 0; y < g.blocks.y; ++y) {
        for (unsigned x = 0; x < g.blocks.x; ++x) m.run_block(g, extent(x, y, 0), thread);
    }
}

void start(const grid& g, std::function<void()> thread) {
    const std::uint64_t threads = std::uint64_t{g.threads.x} * g.threads.y * g.threads.z;
    const bool taken = threads != 0 && threads <= most_threads && g.blocks.x != 0 &&
                       g.blocks.x <= 0x7fffffffu && g.blocks.y != 0 && g.blocks.y <= most_rows &&
                       g.blocks.z == 1 && g.shared_bytes <= most_shared;
    if (!taken) {
        refused = invalid_configuration;
        return;
    }
    reinterpret_cast<mx::base::cuda::host_stream*>(g.on)->queue(
        [g, thread = std::move(thread)] { run(g, thread); });
}

int last_error() { return std::exchange(refused, 0); }
const position& here() { return own_machine().here(); }
void sync_block() { own_machine().meet(own_machine().whole_block(), "__syncthreads", 0); }

const std::uint32_t* exchange(const char* what, std::uint32_t lanes, std::uint32_t own) {
    machine& m = own_machine();
    if (lanes != ~std::uint32_t{0}) m.fail(std::string(what) + " of a part of a warp");
    return m.meet(m.own_warp(), what, own);
}

void start_copy(void* to, const void* from, std::size_t bytes) {
    own_machine().start_copy({to, from, bytes});
}
void end_group() { own_machine().end_group(); }
void wait_for_groups(std::size_t but) { own_machine().wait_for_groups(but); }

void* shared_memory(unsigned line, std::size_t bytes) { return own_machine().shared(line, bytes); }
unsigned char* dynamic_shared() {
    return reinterpret_cast<unsigned char*>(own_machine().shared(0, 0));
}

}  // namespace card

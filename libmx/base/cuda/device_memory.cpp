// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "libmx/base/cuda/pooled_device.hpp"

namespace mx::base::cuda {
namespace {

class runtime_graph final : public graph {
  public:
    runtime_graph(cudaGraph_t of, cudaStream_t on) : on_(on) {
        check(cudaGraphInstantiate(&ready_, of, 0), "preparing a graph");
    }
    ~runtime_graph() override {
        cudaGraphExecDestroy(ready_);
        cudaGetLastError();
    }
    void start() override { check(cudaGraphLaunch(ready_, on_), "starting a graph"); }

  private:
    cudaGraphExec_t ready_ = nullptr;
    cudaStream_t on_;
};

class runtime_stream : public stream {
  public:
    explicit runtime_stream(cudaStream_t of) : stream_(of) {}
    ~runtime_stream() override {
        if (event_ == nullptr) return;
        cudaEventDestroy(event_);
        cudaGetLastError();
    }

    void copy_there(std::byte* device, const std::byte* host, std::size_t bytes) override {
        check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_),
              "copying to the GPU");
    }
    void copy_rows_there(std::byte* device, const std::byte* host, std::size_t bytes,
                         std::size_t rows, std::size_t pitch) override {
        check(cudaMemcpy2DAsync(device, bytes, host, pitch, bytes, rows, cudaMemcpyHostToDevice,
                                stream_),
              "copying to the GPU");
    }
    void copy_back(std::byte* host, const std::byte* device, std::size_t bytes) override {
        check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_),
              "copying from the GPU");
    }
    // The runtime copies memory that is not pinned to memory of its own before it returns.
    void send(std::byte* device, const void* host, std::size_t bytes) override {
        check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_),
              "copying to the GPU");
    }
    void copy_across(std::byte* to, const std::byte* from, std::size_t bytes) override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
              "copying on the GPU");
    }
    void wait() override { check(cudaStreamSynchronize(stream_), "running the kernel"); }
    void* handle() override { return stream_; }
    void follow(stream& other) override {
        if (event_ == nullptr) {
            check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
        }
        check(cudaEventRecord(event_, static_cast<cudaStream_t>(other.handle())),
              "recording an event");
        check(cudaStreamWaitEvent(stream_, event_, 0), "waiting for an event");
    }
    // Other threads may allocate meanwhile.
    void begin_capture() override {
        check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
              "capturing a graph");
    }
    std::unique_ptr<graph> end_capture() override {
        cudaGraph_t captured = nullptr;
        check(cudaStreamEndCapture(stream_, &captured), "capturing a graph");
        const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> own(captured,
                                                                           cudaGraphDestroy);
        return std::make_unique<runtime_graph>(captured, stream_);
    }

  protected:
    cudaStream_t stream_;

  private:
    cudaEvent_t event_ = nullptr;  // of the stream that was followed last
};

class own_stream final : public runtime_stream {
  public:
    own_stream() : runtime_stream(nullptr) {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    }
    // At the end of the program the runtime may be gone, and its streams and memory with it: errors
    // here, and in give_back, do not matter.
    ~own_stream() override {
        cudaStreamSynchronize(stream_);
        cudaStreamDestroy(stream_);
        cudaGetLastError();
    }
};

memory_info memory_now() noexcept {
    std::size_t free = 0, all = 0;
    if (cudaMemGetInfo(&free, &all) == cudaSuccess) return {free, all};
    cudaGetLastError();
    return {};
}

// `memory` if it was allocated.
std::byte* taken(cudaError_t code, void* memory, memory_kind kind, std::size_t bytes) {
    if (code == cudaErrorMemoryAllocation) {
        cudaGetLastError();  // else the next kernel would be reported as failed
        throw out_of_memory(shortage_of(kind, bytes, memory_now()));
    }
    check(code, kind == memory_kind::device ? "allocating GPU memory" : "taking pinned memory");
    return static_cast<std::byte*>(memory);
}

// Every thread of the host starts on the first device, and all share its context.
class runtime_device final : public device {
  public:
    std::byte* take(memory_kind kind, std::size_t bytes) override {
        void* memory = nullptr;
        const cudaError_t code = kind == memory_kind::device
                                     ? cudaMalloc(&memory, bytes)
                                     : cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
        return taken(code, memory, kind, bytes);
    }
    void give_back(memory_kind kind, std::byte* memory, std::size_t) noexcept override {
        if (kind == memory_kind::device) {
            cudaFree(memory);
        } else {
            cudaFreeHost(memory);
        }
        cudaGetLastError();
    }
    std::unique_ptr<stream> make_stream() override { return std::make_unique<own_stream>(); }
    memory_info memory() noexcept override { return memory_now(); }
};

// Memory that freed arrays leave for the next ones, beyond which it goes back to the device.
constexpr std::uint64_t kept_for_streams = std::uint64_t{256} << 20;

cudaMemPool_t pool_of(int ordinal) {
    static std::mutex guard;
    static std::map<int, cudaMemPool_t> pools;
    const std::lock_guard lock(guard);
    cudaMemPool_t& pool = pools[ordinal];
    if (pool != nullptr) return pool;
    cudaMemPoolProps how{};
    how.allocType = cudaMemAllocationTypePinned;
    how.location.type = cudaMemLocationTypeDevice;
    how.location.id = ordinal;
    check(cudaMemPoolCreate(&pool, &how), "making a pool of memory");
    std::uint64_t kept = kept_for_streams;
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept),
          "setting up a pool of memory");
    return pool;
}

class stream_device final : public device {
  public:
    stream_device(int ordinal, cudaStream_t on) : pool_(pool_of(ordinal)), on_(on) {}

    std::byte* take(memory_kind kind, std::size_t bytes) override {
        if (kind == memory_kind::pinned) {
            throw error(error_kind::unavailable, "pinned memory is of no stream");
        }
        void* memory = nullptr;
        const cudaError_t code = cudaMallocFromPoolAsync(&memory, bytes, pool_, on_);
        return taken(code, memory, kind, bytes);
    }
    void give_back(memory_kind, std::byte* memory, std::size_t) noexcept override {
        cudaFreeAsync(memory, on_);
        cudaGetLastError();
    }
    std::unique_ptr<stream> make_stream() override { return std::make_unique<runtime_stream>(on_); }
    memory_info memory() noexcept override { return memory_now(); }

  private:
    cudaMemPool_t pool_;
    cudaStream_t on_;
};

// Virtual devices need not report their clocks: 0 then.
int megahertz(cudaDeviceAttr which) {
    int kilohertz = 0;
    if (cudaDeviceGetAttribute(&kilohertz, which, 0) == cudaSuccess) return kilohertz / 1000;
    cudaGetLastError();
    return 0;
}

cudaEvent_t event(void* handle) { return static_cast<cudaEvent_t>(handle); }

void* make_event() {
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "making an event");
    return made;
}

}  // namespace

void check(int code, const char* what) {
    if (code == cudaSuccess) return;
    const auto status = static_cast<cudaError_t>(code);
    cudaGetLastError();  // else the next call would report this error
    if (status == cudaErrorMemoryAllocation) {
        throw out_of_memory(fmt::format("the GPU is out of memory ({})", what));
    }
    throw error(error_kind::unavailable,
                fmt::format("backend cuda: {}: {}; leave out --backend cuda to run without the "
                            "GPU",
                            what, cudaGetErrorString(status)));
}

namespace {

std::string look_for_device() {
    // The runtime reports a missing driver as too old.
    int driver = 0, runtime = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess &&
        cudaRuntimeGetVersion(&runtime) == cudaSuccess) {
        if (std::string why = driver_obstacle(driver, runtime); !why.empty()) return why;
    }
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        cudaGetLastError();
        return fmt::format("no device ({})",
                           code != cudaSuccess ? cudaGetErrorString(code) : "none is listed");
    }
    code = static_cast<cudaError_t>(has_code_for_device());
    if (code == cudaSuccess) return {};
    cudaGetLastError();
    if (code == cudaErrorMemoryAllocation) return {};
    cudaDeviceProp device{};
    cudaGetDeviceProperties(&device, 0);
    return fmt::format("{} cannot run the kernels ({})", device.name, cudaGetErrorString(code));
}

}  // namespace

// Queried once.
std::string missing() {
    static const std::string found = look_for_device();
    return found;
}

device& first_device() {
    static runtime_device runtime;
    static pooled_device pool(runtime);
    return pool;
}

std::unique_ptr<device> device_of_stream(int ordinal, void* stream) {
    const auto on = static_cast<cudaStream_t>(stream);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(on, &status), "asking about the stream");
    if (status != cudaStreamCaptureStatusNone) {
        throw error(error_kind::unavailable,
                    "the stream is being captured in a graph, in which the data of a recipe would "
                    "not be there at the next launch: call libmx outside of the capture");
    }
    return std::make_unique<stream_device>(ordinal, on);
}

current_device::current_device(int ordinal) {
    check(cudaGetDevice(&before_), "asking for the current GPU");
    if (before_ != ordinal) check(cudaSetDevice(ordinal), "choosing a GPU");
}

current_device::~current_device() {
    cudaSetDevice(before_);
    cudaGetLastError();
}

device_facts facts_of_device() {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, 0), "reading the properties of the GPU");
    device_facts f;
    f.name = p.name;
    f.major = p.major;
    f.minor = p.minor;
    f.multiprocessors = p.multiProcessorCount;
    f.clock_mhz = megahertz(cudaDevAttrClockRate);
    f.memory_clock_mhz = megahertz(cudaDevAttrMemoryClockRate);
    f.memory_bus_bits = p.memoryBusWidth;
    f.memory = p.totalGlobalMem;
    f.l2_cache = static_cast<std::uint64_t>(p.l2CacheSize);
    check(cudaDriverGetVersion(&f.driver), "reading the driver's version");
    check(cudaRuntimeGetVersion(&f.runtime), "reading the runtime's version");
    return f;
}

stopwatch::stopwatch() : start_(make_event()) {
    try {
        stop_ = make_event();
    } catch (...) {
        cudaEventDestroy(event(start_));
        throw;
    }
}

stopwatch::~stopwatch() {
    cudaEventDestroy(event(start_));
    cudaEventDestroy(event(stop_));
}

void stopwatch::start(void* stream) {
    check(cudaEventRecord(event(start_), static_cast<cudaStream_t>(stream)), "starting a clock");
}

double stopwatch::stop(void* stream) {
    check(cudaEventRecord(event(stop_), static_cast<cudaStream_t>(stream)), "stopping a clock");
    check(cudaEventSynchronize(event(stop_)), "running the kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, event(start_), event(stop_)), "reading a clock");
    return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace mx::base::cuda

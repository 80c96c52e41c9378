// SPDX-License-Identifier: Apache-2.0
// The child process for libraries that cannot be trusted with a hostile file.
#include "libmx/files/isolated_worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "libmx/files/hdf5_reader.hpp"
#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;
using service = io::isolated_worker::service;

namespace {

service always(std::function<std::string()> action) {
    return
        [action = std::move(action)](std::string_view, std::span<std::byte>) { return action(); };
}

std::string failure(const io::isolated_worker& worker) {
    return error_of(base::error_kind::input, [&] { worker.ask("x"); });
}

// The error of a worker whose service does `action`, at the first request and later.
std::string end_of(const io::worker_limits& limits, const std::function<std::string()>& action) {
    const io::isolated_worker worker("the library", "file.x", limits,
                                     [&] { return always(action); });
    const std::string first = failure(worker);
    has(first, "file.x: the library ");
    has(first, "; the file is damaged or hostile");
    CHECK(failure(worker) == first);
    return first;
}

}  // namespace

TEST_CASE("a worker answers, from any thread, and leaves bytes in its window", "[isolated]") {
    const io::isolated_worker worker("the library", "file.x", {}, [] {
        return [](std::string_view request, std::span<std::byte> window) {
            std::memcpy(window.data(), request.data(), request.size());
            return std::string(request.rbegin(), request.rend());
        };
    });
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 100; ++i) {
                const std::string request = std::to_string(1000 * t + i) + "x";
                std::string copy(request.size(), ' ');
                const std::string reply =
                    worker.ask(request, std::as_writable_bytes(std::span(copy)));
                if (copy != request || reply != std::string(request.rbegin(), request.rend())) {
                    ++wrong;
                }
            }
        });
    }
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
}

TEST_CASE("errors of the service cross over, and it lives on", "[isolated]") {
    int calls = 0;  // the child's copy counts
    const io::isolated_worker worker("the library", "file.x", {}, [&] {
        return always([&]() -> std::string {
            if (++calls == 1) {
                throw base::error(base::error_kind::output, "no room", {"a", "b", 7});
            }
            return std::to_string(calls);
        });
    });
    CHECK(error_of(base::error_kind::output, [&] { worker.ask("x"); }) ==
          "a: tensor 'b': at byte 7: no room");
    CHECK(worker.ask("x") == "2");
    CHECK(calls == 0);
}

TEST_CASE("a service that never ends is stopped", "[isolated][hostile]") {
    has(end_of({1, 60},
               [] {
                   volatile bool forever = true;
                   while (forever) {
                   }
                   return std::string();
               }),
        "was stopped after 1 s of work on one request");
    has(end_of({60, 1},
               [] {
                   while (true) ::pause();
                   return std::string();
               }),
        "did not answer within 1 s");
}

TEST_CASE("a service that crashes or exits affects no other process", "[isolated][hostile]") {
    has(end_of({},
               []() -> std::string {
                   ::raise(SIGKILL);
                   return {};
               }),
        "crashed (Killed)");
    has(end_of({},
               []() -> std::string {
                   ::raise(SIGBUS);
                   return {};
               }),
        "crashed (Bus error)");
    has(end_of({}, []() -> std::string { ::_exit(3); }), "ended unexpectedly");
}

TEST_CASE("a service cannot allocate all memory", "[isolated][hostile]") {
    const io::worker_limits limits{60, 60, 64 << 20};
    const io::isolated_worker worker("the library", "file.x", limits, [] {
        return always([] {
            std::vector<std::string> all;
            for (int i = 0; i < 64; ++i) all.emplace_back(16 << 20, 'x');
            return std::to_string(all.size());
        });
    });
    has(failure(worker), "the file is damaged or hostile");
}

TEST_CASE("the child has no file of ours and goes with its worker", "[isolated]") {
    const int open_here = ::open("/dev/null", O_RDONLY);
    pid_t child = 0;
    {
        const io::isolated_worker worker("the library", "file.x", {}, [] {
            return always([] {
                std::string all = std::to_string(::getpid());
                for (int fd = 4; fd < 64; ++fd) {
                    if (::fcntl(fd, F_GETFD) >= 0) all += " " + std::to_string(fd);
                }
                return all;
            });
        });
        const std::string answer = worker.ask("x");
        CHECK(answer.find(' ') == std::string::npos);
        child = std::atoi(answer.c_str());
        REQUIRE(child > 1);
        CHECK(::kill(child, 0) == 0);
    }
    CHECK(::kill(child, 0) != 0);
    CHECK(errno == ESRCH);
    ::close(open_here);
}

TEST_CASE("HDF5: mutated files end in an error or in numbers, soon", "[hdf5][hostile]") {
    const scratch_dir dir;
    std::uint64_t state = 20240229;
    const auto random = [&](std::uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>((state >> 33) % below);
    };
    int sound = 0;
    int refused = 0;
    const auto try_file = [&](const std::string& path) {
        try {
            const auto worker = io::start_hdf5(io::input_file::open(path), {}, {1, 10, 256 << 20});
            const auto datasets = io::list_hdf5(*worker, path);
            for (std::size_t i = 0; i < datasets.size(); ++i) {
                if (!datasets[i].note.empty() || datasets[i].bytes > 100000) continue;
                std::string bytes(static_cast<std::size_t>(datasets[i].bytes), ' ');
                io::open_hdf5_source(worker, i, datasets[i])
                    ->read(0, std::as_writable_bytes(std::span(bytes)));
            }
            ++sound;
        } catch (const base::error& e) {
            CHECK(static_cast<int>(e.kind()) == static_cast<int>(base::error_kind::input));
            ++refused;
        }
    };
    for (const char* name : {"h5py.h5", "user_block.h5"}) {
        const std::string original = slurp(fixture(name));
        for (int i = 0; i < 150; ++i) {
            std::string mutated = original;
            for (std::size_t k = 0; k <= random(4); ++k) {
                mutated[random(mutated.size())] = static_cast<char>(random(256));
            }
            try_file(dir.file("mutated.h5", mutated));
        }
    }
    CHECK(sound > 0);
    CHECK(refused > 0);
}

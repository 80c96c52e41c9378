// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/ranks.hpp"

#include "apps/mx/options.hpp"

#if defined(MX_HAS_MPI)

// Excludes MPI's obsolete C++ bindings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "apps/mx/help.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/base/start_thread.hpp"

namespace mx::app {
namespace {

// Parts per process: enough for slower processes to take fewer.
constexpr std::uint64_t parts_for_each = 4;
constexpr int part_tag = 1, request_tag = 2, reply_tag = 3;
// A message has at most 2^31 - 1 bytes.
constexpr std::uint64_t most_at_once = std::uint64_t{1} << 30;

// An in-memory file with a path: a part of a run on its way to another process.
class memory_file {
  public:
    memory_file() : descriptor_(::memfd_create("mx-part", 0)) {
        if (descriptor_ < 0) {
            throw base::error(base::error_kind::output, "out of memory for a part");
        }
    }
    ~memory_file() { ::close(descriptor_); }
    memory_file(const memory_file&) = delete;
    memory_file& operator=(const memory_file&) = delete;

    std::string path() const { return fmt::format("/dev/fd/{}", descriptor_); }
    std::string content() const {
        const off_t end = ::lseek(descriptor_, 0, SEEK_END);
        std::string text(end < 0 ? 0 : static_cast<std::size_t>(end), '\0');
        for (std::size_t at = 0; at < text.size();) {
            const ssize_t count =
                ::pread(descriptor_, text.data() + at, text.size() - at, static_cast<off_t>(at));
            if (count <= 0) throw base::error(base::error_kind::input, "a part cannot be read");
            at += static_cast<std::size_t>(count);
        }
        return text;
    }
    void fill(const std::string& text) const {
        for (std::size_t at = 0; at < text.size();) {
            const ssize_t count = ::write(descriptor_, text.data() + at, text.size() - at);
            if (count <= 0) throw base::error(base::error_kind::output, "out of memory for a part");
            at += static_cast<std::size_t>(count);
        }
    }

  private:
    int descriptor_;
};

// Hands out the numbers of parts, 0, 1, ..., to the processes on request. A thread of process 0
// replies to the others, so that they do not wait while that process makes a part. Operations on
// memory of another process would need no thread, but do wait, or do not work at all, between hosts
// connected by TCP. The main thread of process 0 leaves MPI alone until finish().
class part_counter {
  public:
    explicit part_counter(std::uint64_t parts) : parts_(parts) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        if (rank_ == 0) replies_ = base::start_thread([this] { serve(); });
    }
    ~part_counter() {
        stops_ = true;
        finish();
    }
    part_counter(const part_counter&) = delete;
    part_counter& operator=(const part_counter&) = delete;

    // From the number of parts on, none is left.
    std::uint64_t next() {
        if (rank_ == 0) return next_++;
        std::uint64_t part = 0;
        MPI_Send(nullptr, 0, MPI_BYTE, 0, request_tag, MPI_COMM_WORLD);
        MPI_Recv(&part, 1, MPI_UINT64_T, 0, reply_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return part;
    }
    // Returns when every process knows that none is left.
    void finish() {
        if (replies_.joinable()) replies_.join();
    }

  private:
    void serve() {
        int processes = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &processes);
        for (int at_work = processes - 1; at_work > 0 && !stops_;) {
            int any = 0;
            MPI_Status status;
            MPI_Iprobe(MPI_ANY_SOURCE, request_tag, MPI_COMM_WORLD, &any, &status);
            if (any == 0) {  // a waiting receive would keep a core busy
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                continue;
            }
            const int from = status.MPI_SOURCE;
            MPI_Recv(nullptr, 0, MPI_BYTE, from, request_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            const std::uint64_t part = next_++;
            MPI_Send(&part, 1, MPI_UINT64_T, from, reply_tag, MPI_COMM_WORLD);
            if (part >= parts_) --at_work;
        }
    }

    std::uint64_t parts_;
    int rank_ = 0;
    std::atomic<std::uint64_t> next_ = 0;
    std::atomic<bool> stops_ = false;
    std::thread replies_;
};

void send(const std::string& text) {
    const std::uint64_t size = text.size();
    MPI_Send(&size, 1, MPI_UINT64_T, 0, part_tag, MPI_COMM_WORLD);
    for (std::uint64_t at = 0; at < size; at += most_at_once) {
        MPI_Send(text.data() + at, static_cast<int>(std::min(most_at_once, size - at)), MPI_BYTE, 0,
                 part_tag, MPI_COMM_WORLD);
    }
}

std::string receive(int from) {
    std::uint64_t size = 0;
    MPI_Recv(&size, 1, MPI_UINT64_T, from, part_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::string text(size, '\0');
    for (std::uint64_t at = 0; at < size; at += most_at_once) {
        MPI_Recv(text.data() + at, static_cast<int>(std::min(most_at_once, size - at)), MPI_BYTE,
                 from, part_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return text;
}

int run_words(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return parse_command_line(static_cast<int>(arguments.size()), arguments.data())();
}

// The command lines of the whole run and of each part.
struct divided_command {
    std::vector<std::string> whole, part;
    std::string arrays;  // the file that mx quantize writes; else empty
    bool quiet = false;
};

// The folder for parts of arrays, which are too large for messages. It is next to the output, on a
// file system that all processes share, and is removed with the object, also if a process fails.
class part_folder {
  public:
    explicit part_folder(const std::string& beside) {
        if (beside.empty()) return;
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        const std::filesystem::path file(beside);
        path_ = (file.parent_path() / fmt::format(".{}.parts.XXXXXX", file.filename().string()))
                    .string();
        if (rank == 0 && ::mkdtemp(path_.data()) == nullptr) {
            path_.clear();
            throw base::error(base::error_kind::output, "no folder for parts can be made there",
                              {beside, {}, {}});
        }
        MPI_Bcast(path_.data(), static_cast<int>(path_.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    ~part_folder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    part_folder(const part_folder&) = delete;
    part_folder& operator=(const part_folder&) = delete;

    std::string part(std::uint64_t number) const {
        return fmt::format("{}/part-{}.safetensors", path_, number);
    }
    void leave() { path_.clear(); }  // another process removes it

  private:
    std::string path_;
};

divided_command divide(int argc, char** argv) {
    const std::string name = argc > 1 ? argv[1] : "";
    const command* const shared = base::find_named(commands(), name);
    parser cmd;
    const runner unused = shared == nullptr ? runner() : shared->declare(cmd);
    if (shared == nullptr || !cmd.has_option("--shard")) {
        refuse(
            "mpirun: mx analyze, compare, cluster, diff and quantize share a run; start one copy "
            "of others");
    }
    set_up(cmd, *shared);
    // Errors and --help are printed once.
    if (!cmd.parse(argc - 1, argv + 1)) refuse("mpirun: print help without mpirun");
    divided_command d;
    bool page = false;
    for (const std::string& word : cmd.given({})) {
        if (word.starts_with("--shard=")) refuse("--shard: mpirun divides the run; leave it out");
        d.quiet = d.quiet || word.starts_with("--quiet=");
        page = page || (word.starts_with("--html=") && cmd.has_option("--page-sums"));
        if (name == "quantize" && word.starts_with("--output=")) d.arrays = word.substr(9);
    }
    std::vector<std::string> outputs{"title", "summary", "quiet", "output", "max-shard-size"};
    for (const report::writer& w : report::writers) outputs.emplace_back(w.name);
    d.whole = cmd.given({});
    d.part = cmd.given(outputs);
    if (page) d.part.insert(d.part.begin(), "--page-sums");
    for (std::vector<std::string>* words : {&d.whole, &d.part})
        words->insert(words->begin(), {"mx", name});
    d.part.insert(d.part.begin() + 2, "--quiet");
    return d;
}

// Takes parts until none is left; make(words of a part, its number) computes one.
int make_parts(const divided_command& d, std::uint64_t count, bool shows,
               const std::function<int(std::vector<std::string>, std::uint64_t)>& make) {
    const auto show = shows ? progress_bar(d.quiet, progress_unit::none)
                            : std::function<void(const engine::progress&)>();
    part_counter counter(count);
    for (std::uint64_t part = counter.next(); part < count; part = counter.next()) {
        if (show) show({part, count});
        std::vector<std::string> words = d.part;
        words.insert(words.begin() + 2, fmt::format("--shard={}/{}", part + 1, count));
        if (const int code = make(std::move(words), part + 1); code != exit_code::fine) return code;
    }
    counter.finish();
    return exit_code::fine;
}

// Parts of arrays are files.
int share_arrays(divided_command d, int rank, std::uint64_t count) {
    part_folder folder(d.arrays);
    const int code =
        make_parts(d, count, rank == 0, [&](std::vector<std::string> words, std::uint64_t number) {
            words.insert(words.begin() + 2, "--output=" + folder.part(number));
            return run_words(std::move(words));
        });
    if (code != exit_code::fine) return code;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) {
        folder.leave();
        return exit_code::fine;
    }
    for (std::uint64_t part = 1; part <= count; ++part) {
        d.whole.insert(d.whole.begin() + 2, "--parts=" + folder.part(part));
    }
    return run_words(d.whole);
}

int share_run(int argc, char** argv, int rank, int ranks) {
    divided_command d = divide(argc, argv);
    const std::uint64_t count = parts_for_each * static_cast<std::uint64_t>(ranks);
    if (!d.arrays.empty()) return share_arrays(std::move(d), rank, count);
    std::vector<std::string> made;
    const int code =
        make_parts(d, count, rank == 0, [&](std::vector<std::string> words, std::uint64_t) {
            const memory_file to;
            words.insert(words.begin() + 2, "--json=" + to.path());
            const int failed = run_words(std::move(words));
            if (failed == exit_code::fine) made.push_back(to.content());
            return failed;
        });
    if (code != exit_code::fine) return code;
    std::uint64_t number = made.size();
    if (rank != 0) {
        MPI_Send(&number, 1, MPI_UINT64_T, 0, part_tag, MPI_COMM_WORLD);
        for (const std::string& text : made) send(text);
        return exit_code::fine;
    }
    for (int from = 1; from < ranks; ++from) {
        MPI_Recv(&number, 1, MPI_UINT64_T, from, part_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (std::uint64_t i = 0; i < number; ++i) made.push_back(receive(from));
    }
    std::vector<std::unique_ptr<memory_file>> files;
    for (std::string& text : made) {
        files.push_back(std::make_unique<memory_file>());
        files.back()->fill(text);
        text = {};
        d.whole.insert(d.whole.begin() + 2, "--parts=" + files.back()->path());
    }
    return run_words(d.whole);
}

}  // namespace

std::string mpi_version() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string all(text, static_cast<std::size_t>(length));
    std::ranges::replace(all, '\t', ' ');  // of MPICH
    return all.substr(0, all.find_first_of(",\n"));
}

bool in_ranks() {
    return std::ranges::any_of(
        std::array{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, [](const char* name) {
            const char* size = std::getenv(name);
            return size != nullptr && base::parsed<int>(size).value_or(1) > 1;
        });
}

int run_in_ranks(int argc, char** argv) {
    int rank = 0, ranks = 1, provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int code = guarded([&] {
        if (provided < MPI_THREAD_SERIALIZED) {
            refuse("mpirun: this MPI library cannot be used by a second thread; use another one");
        }
        return share_run(argc, argv, rank, ranks);
    });
    // A result such as that of --fail-above is not a failure of the job, and only rank 0 reports
    // it.
    if (code != exit_code::fine && code != exit_code::difference) MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Finalize();
    return code;
}

}  // namespace mx::app

#else

namespace mx::app {

std::string mpi_version() { return ""; }
bool in_ranks() { return false; }
int run_in_ranks(int, char**) { return exit_code::internal; }

}  // namespace mx::app

#endif

// SPDX-License-Identifier: Apache-2.0
// Values of files on their way to a device: where they arrive, how often the host copies them, and
// what is read while the device works. The host is the device.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "libmx/base/status.hpp"
#include "libmx/block/stored_codes.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/io/scratch_dir.hpp"
#include "tests/memory_model.hpp"
#include "tests/parity/segments.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;
namespace engine = mx::engine;
using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;
using mx::tensor::dtype;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

// Counts the bytes that leave for the device from where a reader wrote them. Each of these counts
// once, so that memory which later holds something else does not count.
class traffic {
  public:
    void arrived(std::span<const std::byte> where) {
        const std::lock_guard lock(guard_);
        events += 'r';
        taken(where.data(), where.data() + where.size());
        here_[where.data()] = where.data() + where.size();
    }
    void left(const std::byte* from, std::size_t bytes) {
        const std::lock_guard lock(guard_);
        events += 's';
        sent += bytes;
        direct += taken(from, from + bytes);
    }
    void visited() {
        const std::lock_guard lock(guard_);
        events += 'v';
    }

    // Reads, copies to the device and visited segments, in order; of equal ones in a row, one.
    std::string order() const {
        std::string once;
        std::ranges::unique_copy(events, std::back_inserter(once));
        return once;
    }

    std::uint64_t sent = 0, direct = 0;
    std::string events;

  private:
    // Forgets what is there of a range; returns how many bytes that is.
    std::size_t taken(const std::byte* begin, const std::byte* end) {
        std::size_t count = 0;
        auto at = here_.upper_bound(begin);
        if (at != here_.begin() && std::prev(at)->second > begin) --at;
        while (at != here_.end() && at->first < end) {
            const auto [from, to] = *at;
            at = here_.erase(at);
            if (from < begin) here_[from] = begin;
            if (to > end) here_[end] = to;
            count += static_cast<std::size_t>(std::min(to, end) - std::max(from, begin));
        }
        return count;
    }

    std::mutex guard_;
    std::map<const std::byte*, const std::byte*> here_;  // ends by begin
};

// A model whose reads are watched. A read that begins at `damaged` fails.
class watched_model : public mx::tests::memory_model {
  public:
    explicit watched_model(traffic* log = nullptr) : log_(log) {}
    std::unique_ptr<mx::io::byte_source> open(std::size_t index) const override {
        return std::make_unique<source>(memory_model::open(index), *this);
    }
    std::set<std::uint64_t> damaged;

  private:
    class source : public mx::io::byte_source {
      public:
        source(std::unique_ptr<mx::io::byte_source> of, const watched_model& model)
            : of_(std::move(of)), model_(model) {}
        void read(std::uint64_t offset, std::span<std::byte> out) const override {
            if (model_.damaged.contains(offset)) {
                throw mx::base::error(mx::base::error_kind::input, std::to_string(offset));
            }
            of_->read(offset, out);
            if (model_.log_ != nullptr) model_.log_->arrived(out);
        }

      private:
        std::unique_ptr<mx::io::byte_source> of_;
        const watched_model& model_;
    };
    traffic* log_;
};

std::string nothing_missing() { return {}; }
std::unique_ptr<codec::device_meter> no_meter() { return nullptr; }

host_device* device_in_use = nullptr;
cuda::slice_limits limits_in_use;
std::unique_ptr<codec::quantizer> make_quantizer() {
    return cuda::make_device_quantizer(*device_in_use, cuda::start_on_host, limits_in_use);
}
const codec::backend on_device{
    {"card", "the host", nothing_missing, true}, make_quantizer, codec::make_host_caster, no_meter};

struct task {
    dtype type;
    std::uint64_t rows, cols;
    const char* recipe;
    std::uint64_t target;  // elements of a panel
};

// The tensor of a task; all codes are there.
void add_tensor(watched_model& to, const task& t) {
    const mx::tensor::shape shape{t.rows, t.cols};
    if (mx::block::stores_codes(t.type)) {
        std::vector<std::uint8_t> codes(mx::tensor::stored_bytes(t.type, t.rows * t.cols + 1));
        for (std::size_t i = 0; i < codes.size(); ++i) {
            codes[i] = static_cast<std::uint8_t>(i < 4000 ? i * 2654435761u >> 13 : i * 37 % 101);
        }
        to.add("w", t.type, shape, codes);
        return;
    }
    const auto m = mx::tests::make_matrix(t.type, t.rows, t.cols, mx::tests::every_kind,
                                          *mx::format::find_element_format("e2m1"), 11);
    to.add("w", t.type, shape, m.bytes);
}

void watch(host_device& device, traffic& log) {
    device.observe([&](const std::byte* from, std::size_t bytes) { log.left(from, bytes); });
    device_in_use = &device;
}

// Counts, codes and values of every segment, by place, and the exact sums.
std::string swept(const codec::backend& by, const watched_model& model, const task& t, int threads,
                  traffic* log = nullptr, const std::shared_ptr<mx::base::notices>& notices = {}) {
    engine::run_control control;
    control.backend = &by;
    control.threads = threads;
    control.notices = notices;
    const codec::recipe recipe = codec::parse_recipe(t.recipe);
    const codec::block_params params = codec::params_of(recipe);
    std::string reason;
    const mx::block::grid grid = engine::lay_out({t.rows, t.cols}, recipe, reason).value().grid;
    const engine::grid_job job{0, grid};
    const std::vector<engine::pass> passes = engine::plan_passes(0, std::span(&job, 1), t.target);
    std::deque<engine::panel_quantizer> workers;
    std::vector<codec::quantizer*> quantizers;
    for (int i = 0; i < threads; ++i) {
        quantizers.push_back(&workers.emplace_back(control).by());
    }
    const codec::recipe_request asked{&params, codec::detail::codes, false, false, true};
    std::mutex guard;
    std::map<std::uint64_t, std::string> segments;
    mx::block::exact_totals sums;
    engine::sweep(
        model.all(), passes, control, engine::panel_form::stored,
        [&](const engine::loaded_panel& p) {
            workers[static_cast<std::size_t>(p.thread)].run(
                grid, p.where, p.values, 5, std::span(&asked, 1),
                [&](const engine::quantized_segment& s) {
                    if (log != nullptr) log->visited();
                    const codec::segment_result& r = s.by_recipe.front();
                    const std::lock_guard lock(guard);
                    std::string& out = segments[s.at.index];
                    CHECK(out.empty());
                    const auto append = [&](const auto* from, std::size_t count) {
                        out.append(reinterpret_cast<const char*>(from), count * sizeof *from);
                    };
                    append(&r.stats->count, 1);
                    append(&r.stats->max_error, 1);
                    for (std::size_t b = 0; b < r.of_blocks.blocks; ++b) {
                        const std::size_t size = codec::extent_of(s.place, b).size();
                        append(r.of_blocks.codes + b * r.of_blocks.stride, size);
                        append(r.of_blocks.inputs + b * r.of_blocks.stride, size);
                        append(r.of_blocks.scale_code + b, 1);
                    }
                    sums.merge(r.stats->sum);
                });
        },
        {}, quantizers);
    std::string all;
    for (const auto& [index, text] : segments) all += text;
    mx::block::each_exact_sum([&](const mx::base::exact_sum& s) { all += s.text() + '\n'; }, sums);
    return all;
}

// Whole tensors and parts of their columns, in panels and slices of whole rows and of parts.
const std::vector<task> tasks{
    {dtype::bf16, 37, 4096 + 64, "mxfp4", 1u << 14},
    {dtype::f32, 96, 700, "mxfp8:block=32x1", 1u << 14},
    {dtype::f16, 64, 9000, "mxfp4:block=16x16", 1u << 12},
    {dtype::bf16, 5, 333, "nvfp4:dialect=torchao", 1u << 22},
};

}  // namespace

TEST_CASE("the host copies no value between its read and the copy to the device") {
    for (const task& t : tasks) {
        watched_model unwatched;
        add_tensor(unwatched, t);
        const std::string expected = swept(codec::backend_named("scalar"), unwatched, t, 1);
        for (const std::uint64_t elements : {std::uint64_t{1} << 20, std::uint64_t{3000}}) {
            for (const int threads : {1, 3}) {
                CAPTURE(t.recipe, t.cols, elements, threads);
                traffic log;
                watched_model model(&log);
                add_tensor(model, t);
                host_device device;
                watch(device, log);
                limits_in_use = {std::size_t{32} << 20, elements};
                CHECK((swept(on_device, model, t, threads) == expected));
                CHECK(log.direct == model.bytes(0).size());
                // Recipes and segments, too.
                CHECK(log.sent > log.direct);
            }
        }
    }
}

TEST_CASE("the next panel is read while the device works on the last slices of one") {
    const task t{dtype::bf16, 64, 4096, "mxfp4", 1u << 14};  // 16 panels of 4 segments
    for (const std::uint64_t elements : {std::uint64_t{1} << 20, std::uint64_t{5000}}) {
        traffic log;
        watched_model model(&log);
        add_tensor(model, t);
        host_device device;
        watch(device, log);
        limits_in_use = {std::size_t{32} << 20, elements};
        swept(on_device, model, t, 1, &log);
        std::string order = "rs";
        for (int panel = 1; panel < 16; ++panel) order += "rvs";
        CHECK(log.order() == order + "v");
        // A CPU waits for nothing.
        traffic of_cpu;
        watched_model same(&of_cpu);
        add_tensor(same, t);
        swept(codec::best_backend(), same, t, 1, &of_cpu);
        CHECK(of_cpu.order() == std::string("rvrvrvrvrvrvrvrvrvrvrvrvrvrvrvrv"));
    }
}

TEST_CASE("a panel that cannot be read is reported in its turn, by any number of threads") {
    const task t{dtype::bf16, 64, 4096, "mxfp4", 1u << 14};
    for (const int threads : {1, 2, 5}) {
        for (const std::uint64_t first : {0u, 1u, 2u, 7u, 15u}) {
            CAPTURE(threads, first);
            traffic log;
            watched_model model(&log);
            add_tensor(model, t);
            constexpr std::uint64_t panel_bytes = std::uint64_t{2} << 14;
            for (std::uint64_t p = first; p < 16; p += 3) model.damaged.insert(p * panel_bytes);
            host_device device;
            watch(device, log);
            limits_in_use = {};
            CHECK_THROWS_WITH(swept(on_device, model, t, threads, &log),
                              std::to_string(first * panel_bytes));
            // All panels before it are done.
            if (threads == 1)
                CHECK(std::ranges::count(log.events, 'v') ==
                      static_cast<std::ptrdiff_t>(4 * first));
            CHECK(device.held(memory_kind::pinned) == 0);
        }
    }
}

TEST_CASE("panels and slices share a thread's pinned memory, and larger panels do without") {
    const task t{dtype::f32, 64, 4096, "mxfp4", 1u << 14};  // 64 KiB a panel
    watched_model unwatched;
    add_tensor(unwatched, t);
    const std::string expected = swept(codec::backend_named("scalar"), unwatched, t, 1);
    for (const std::size_t bytes :
         {std::size_t{1} << 20, std::size_t{1} << 17, std::size_t{1} << 16}) {
        for (const int threads : {1, 4}) {
            CAPTURE(bytes, threads);
            traffic log;
            watched_model model(&log);
            add_tensor(model, t);
            host_device device;
            watch(device, log);
            limits_in_use = {bytes, std::uint64_t{1} << 20};
            CHECK((swept(on_device, model, t, threads) == expected));
            CHECK(log.direct == (bytes < std::size_t{1} << 17 ? 0 : model.bytes(0).size()));
            const std::size_t most = static_cast<std::size_t>(threads) * 2 * bytes;
            CHECK(device.peak(memory_kind::pinned) <= most);
            CHECK(device.peak(memory_kind::device) <= most);
        }
    }
}

TEST_CASE("without memory for panels or slices the bytes are the same") {
    const task t{dtype::bf16, 24, 4096, "mxfp4", 1u << 14};
    watched_model model;
    add_tensor(model, t);
    const std::string expected = swept(codec::backend_named("scalar"), model, t, 1);
    limits_in_use = {std::size_t{1} << 17, 5000};  // slices in both slots
    std::size_t asked = 0;
    {
        host_device device;
        device_in_use = &device;
        swept(on_device, model, t, 1);
        asked = device.asked();
    }
    REQUIRE(asked > 5);
    for (std::size_t n = 0; n <= asked; ++n) {
        for (const bool once : {true, false}) {
            CAPTURE(n, once);
            host_device device(
                {}, [&](std::size_t number) { return once ? number == n : number >= n; });
            device_in_use = &device;
            std::vector<std::string> lines;
            const auto listener = std::make_shared<mx::base::notices>(
                [&](const std::string& line) { lines.push_back(line); });
            CHECK((swept(on_device, model, t, 1, nullptr, listener) == expected));
            CHECK(lines.size() <= (once ? 0 : 1));
            CHECK(device.held(memory_kind::pinned) == 0);
        }
    }
}

TEST_CASE("a number that is stored as a code is a bf16") {
    std::size_t types = 0;
    for (const auto& row : mx::tensor::dtypes) {
        if (!mx::block::stores_codes(row.id)) continue;
        CAPTURE(row.name);
        ++types;
        const auto& numbers = mx::block::numbers_of(row.id);
        const std::size_t count = std::size_t{1} << row.bits;
        std::vector<float> widened(count);
        std::vector<std::byte> codes(256);
        for (std::size_t i = 0; i < count; ++i) {
            codes[i] = static_cast<std::byte>(row.bits == 8 ? i : 2 * i | (2 * i + 1) << 4);
        }
        mx::io::widen(row.id, std::span(codes).first(count * row.bits / 8), 0, widened);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK((mx::base::bits_of(numbers[i]) & 0xffffu) == 0);
            CHECK(mx::base::bits_of(numbers[i]) == mx::base::bits_of(widened[i]));
        }
    }
    CHECK(types == 8);
}

TEST_CASE("codes are sent as stored, and give the bytes of their float32") {
    // Slices that begin inside a byte of 4-bit codes, and panels that do.
    std::vector<task> all = tasks;
    all.push_back({dtype::f4, 6, 9000, "mxfp4:block=1x25", 1u << 22});
    all.push_back({dtype::f4, 6, 9000, "mxfp4:block=1x27", 1u << 11});
    all.push_back({dtype::f4, 6, 9001, "mxfp4", 1u << 11});
    for (const dtype type : {dtype::f8_e4m3, dtype::f8_e5m2, dtype::f8_e4m3fnuz, dtype::f8_e5m2fnuz,
                             dtype::f8_e8m0, dtype::i8, dtype::u8, dtype::f4}) {
        for (task t : all) {
            t.type = type;
            watched_model unwatched;
            add_tensor(unwatched, t);
            const std::string expected = swept(codec::backend_named("scalar"), unwatched, t, 1);
            for (const std::uint64_t elements : {std::uint64_t{1} << 20, std::uint64_t{3000}}) {
                CAPTURE(mx::tensor::row_of(type).name, t.recipe, elements);
                traffic log;
                watched_model model(&log);
                add_tensor(model, t);
                host_device device;
                watch(device, log);
                limits_in_use = {std::size_t{32} << 20, elements};
                CHECK((swept(on_device, model, t, 2) == expected));
                if (type != dtype::f4) {
                    CHECK(log.direct == t.rows * t.cols);
                } else {
                    // Of 1x27 blocks, panels of 4077 columns are widened, the last ones are not.
                    const std::uint64_t sent = t.cols % 2 == 1 ? 0
                                               : t.recipe == std::string_view("mxfp4:block=1x27")
                                                   ? 9000 - 2 * 4077
                                                   : t.cols;
                    CHECK(log.direct == t.rows * sent / 2);
                }
            }
        }
    }
}

TEST_CASE("files of codes are quantized alike, by the device and where the CPU helps") {
    const dtype type = GENERATE(dtype::f8_e4m3, dtype::f4);
    const task t{type, 70, 352, "", 0};
    watched_model model;
    add_tensor(model, t);
    const mx::test::scratch_dir folder;
    const std::string path = folder / "w.safetensors";
    const auto file_by = [&](const codec::backend* d, const char* recipe, bool packed,
                             const std::shared_ptr<mx::base::notices>& notices) {
        engine::run_control control;
        control.backend = d;
        control.threads = 2;
        control.notices = notices;
        mx::convert::quantize_model(model.all(), codec::parse_recipe(recipe), packed, path,
                                    control);
        return mx::test::slurp(path);
    };
    limits_in_use = {};
    for (const std::size_t room : {no_limit, std::size_t{0}}) {
        host_device device({room, no_limit});
        device_in_use = &device;
        for (const char* recipe :
             {"mxfp4", "mxfp8:block=32x1,round=stochastic", "mxfp4:transform=hadamard", "nvfp4",
              "nvfp4:outer=row", "mxint4:dialect=microxcaling"}) {
            for (const bool packed : {false, true}) {
                CAPTURE(recipe, packed, room);
                const auto listener =
                    std::make_shared<mx::base::notices>([](const std::string&) {});
                CHECK((file_by(&on_device, recipe, packed, listener) ==
                       file_by(nullptr, recipe, packed, nullptr)));
            }
        }
    }
}

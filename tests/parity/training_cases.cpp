// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/training_cases.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/lab/array.hpp"
#include "libmx/lab/cuda/captured_work.hpp"
#include "libmx/lab/product.hpp"
#include "libmx/lab/run_folder.hpp"
#include "libmx/lab/schemes.hpp"

namespace mx::tests {
namespace {

namespace fs = std::filesystem;

enum class numbers { normal, small, special };

// Products of small numbers round to zeros of both signs and to subnormals. One special number in
// 37 leaves outputs that are finite.
std::vector<float> make_numbers(numbers kind, std::uint64_t tensor, std::size_t count) {
    constexpr std::uint32_t special[] = {0x7fc00001, 0xffc00000, 0x7f800001, 0x7f800000,
                                         0xff800000, 0x00000001, 0x80000001, 0x007fffff,
                                         0x80000000, 0x00000000, 0x7f7fffff, 0xff7fffff};
    std::vector<float> x(count);
    lab::simd::scalar_kernels.normal({7, tensor}, 0, count, x.data());
    for (std::size_t i = 0; i < count; ++i) {
        if (kind == numbers::small) x[i] = std::ldexp(x[i], -70 - static_cast<int>(i % 9));
        if (kind == numbers::special && i % 37 == 11) {
            x[i] = base::float_from_bits(special[i / 37 % std::size(special)]);
        }
    }
    return x;
}

float at(const lab::operand_view& x, std::size_t r, std::size_t k) {
    return x.transposed ? x.data[k * x.rows + r] : x.data[r * x.depth + k];
}

std::vector<float> chains(const lab::operand_view& a, const lab::operand_view& b) {
    std::vector<float> c;
    for (std::size_t i = 0; i < a.rows; ++i) {
        for (std::size_t j = 0; j < b.rows; ++j) {
            float sum = 0;
            for (std::size_t k = 0; k < a.depth; ++k) sum = std::fma(at(a, i, k), at(b, j, k), sum);
            c.push_back(base::is_nan(sum) ? base::quiet_nan() : sum);
        }
    }
    return c;
}

std::string difference(const std::vector<float>& got, const std::vector<float>& expected) {
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = expected.size(); i-- > 0;) {
        if (base::bits_of(got[i]) == base::bits_of(expected[i])) continue;
        ++wrong;
        first = i;
    }
    if (wrong == 0) return {};
    return fmt::format("{} of {} outputs differ, the first at {}: {:08x} for {:08x}", wrong,
                       got.size(), first, base::bits_of(got[first]),
                       base::bits_of(expected[first]));
}

// Every file of a run by its name.
std::map<std::string, std::string> files_of(const lab::run_request& r, lab::execution_context on) {
    std::string folder = (fs::temp_directory_path() / "mx-training.XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder for a run");
    lab::training t(r, std::move(on));
    lab::run_plan plan;
    plan.folder = folder;
    if (r.probe_every != 0) plan.dumps = {2};
    lab::run(t, plan);
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::ifstream in(entry.path(), std::ios::binary);
        files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(in), {}};
    }
    fs::remove_all(folder);
    return files;
}

struct training_case {
    std::string what;
    lab::run_request r;
};

lab::run_request small_run(const std::string& settings) {
    lab::run_request r;
    r.shape.width = 40;  // no multiple of a block
    r.shape.depth = 1;
    r.batch = 9;
    r.steps = 4;  // a pass is queued once or twice, becomes a graph, and is repeated
    r.rate = 0.01;
    r.settings = lab::parse_settings(settings);
    return r;
}

std::vector<training_case> training_cases() {
    std::vector<training_case> all;
    for (const lab::scheme& s : lab::schemes) {
        all.push_back({std::string(s.name), small_run(fmt::format("scheme={}", s.name))});
        all.back().r.shape.width = 64;
        all.back().r.shape.depth = 2;
    }
    all.back().r.probe_every = 1;
    for (const char* settings :
         {"all=mxfp4:round=stochastic", "all=nvfp4", "all=nvfp4:four_over_six=mse", "all=mxint8",
          "all=mxfp8:offset=fp16", "all=mxfp8:block=8x8", "all=mxfp8:block=32x32", "all=f16",
          "all=mxfp4:transform=hadamard,transform_size=8", "all=mxfp4:scale=search", "all=bf16",
          "all=e4m3:scale=tensor", "all=mxfp8:dialect=torchao source=requantized",
          "all=mxfp4:transform=hadamard source=requantized",
          "all=mxfp8:dialect=systems-scaling,scale=floor-bump source=requantized",
          "ln-input=mxfp8 ln-output=mxfp8 ln-gain=mxfp4", "all=mxfp8 accumulate=fp32.pairwise"}) {
        all.push_back({settings, small_run(settings)});
    }
    const auto with = [&](const char* what, auto&& change, const char* settings = "all=mxfp8") {
        all.push_back({what, small_run(settings)});
        change(all.back().r);
    };
    using lab::run_request;
    for (const lab::activation phi :
         {lab::activation::none, lab::activation::relu, lab::activation::swiglu}) {
        for (const char* vector : {"all=mxfp8", "vector=bf16 all=mxfp8", "vector=bf16-even"}) {
            with(
                "another activation", [&](run_request& r) { r.shape.phi = phi; }, vector);
        }
    }
    for (const char* ln : {"all=mxfp8", "ln=bf16", "ln=bf16-even ln-backward=fp32"}) {
        with(
            "RMS norm", [](run_request& r) { r.shape.norm = lab::norm_kind::rms; }, ln);
    }
    with("no norm", [](run_request& r) { r.shape.norm = lab::norm_kind::none; });
    with("divergence", [](run_request& r) {
        r.loss = lab::loss_kind::kl;
        r.temperature = 2.5;
    });
    with("SGD", [](run_request& r) { r.by = lab::optimizer::sgd; });
    with("clip and decay", [](run_request& r) {
        r.clip = 1e-3;
        r.adam.decay = 0.1;
    });
    with("labels without noise", [](run_request& r) { r.noise = 0; });
    with("a scaled teacher", [](run_request& r) { r.task = lab::task_kind::teacher; });
    with(
        "a quantized teacher", [](run_request&) {}, "scheme=su.coded.e4m3 teacher=quantized");
    with("PyTorch's numbers", [](run_request& r) { r.stream = lab::stream_kind::torch; });
    with(
        "an intervention",
        [](run_request& r) {
            r.interventions.push_back(lab::parse_intervention("1 all=none ln-bias=trained"));
            r.interventions.push_back(lab::parse_intervention("2 moments=reset skip=1"));
        },
        "scheme=su.coded.e4m3");
    with("a precision that changes and returns, with probes between", [](run_request& r) {
        r.steps = 9;
        r.probe_every = 4;
        r.interventions.push_back(lab::parse_intervention("3 all=mxfp4:round=stochastic"));
        r.interventions.push_back(lab::parse_intervention("6 all=mxfp8"));
    });
    with("a nudge", [](run_request& r) {
        r.nudge = 1;
        r.nudge_after = 1;
    });
    for (const char* settings : {"all=none", "all=mxfp8"}) {
        with(
            "divergent", [](run_request& r) { r.rate = 1e30; }, settings);
        all.back().r.steps = 6;
    }
    for (const char* model : {"olmo", "llama", "llama with shared keys", "llama with experts"}) {
        const std::string name(model);
        lab::run_request r = lab::request_for(name.substr(0, name.find(' ')), "tiny");
        r.shape.width = 32;
        r.shape.depth = 1;
        r.context = 8;
        r.batch = 16;
        r.steps = 4;
        if (name.ends_with("keys")) r.heads = 4, r.key_heads = 2;
        if (name.ends_with("experts")) r.shape.width = 36, r.experts = 5;
        r.settings = lab::parse_settings("all=mxfp8");
        lab::fit_schedule(r);
        all.push_back({model, r});
    }
    return all;
}

}  // namespace

void compare_products(const arrays_maker& make, std::uint64_t every, const case_judge& on_case) {
    struct extents {
        std::size_t rows, columns, depth;
    };
    constexpr extents shapes[] = {{1, 1, 1},     {1, 3, 8},      {7, 5, 9},   {64, 64, 16},
                                  {65, 1, 700},  {3, 200, 33},   {70, 66, 7}, {128, 128, 40},
                                  {257, 300, 8}, {300, 385, 61}, {2, 3, 1000}};
    lab::execution_context on(1, make(), nullptr);
    const auto product = [&](lab::operand_view left, lab::operand_view right) {
        lab::array a, b, c;
        left.data = a.put(on, std::span(left.data, left.rows * left.depth));
        right.data = b.put(on, std::span(right.data, right.rows * right.depth));
        const std::size_t count = left.rows * right.rows;
        lab::multiply(on, left, right, c.reserve(on, count));
        return c.get(on, count);
    };
    std::uint64_t turn = 0;
    for (const extents& s : shapes) {
        for (const numbers kind : {numbers::normal, numbers::small, numbers::special}) {
            const std::vector<float> a = make_numbers(kind, 1, s.rows * s.depth);
            const std::vector<float> b = make_numbers(kind, 2, s.columns * s.depth);
            for (const unsigned turned : {0u, 1u, 2u, 3u}) {
                if (turn++ % every != 0) continue;
                const lab::operand_view left{a.data(), s.rows, s.depth, turned % 2 != 0};
                const lab::operand_view right{b.data(), s.columns, s.depth, turned / 2 != 0};
                on_case(fmt::format("{} x {} x {}, numbers {}, transposed {}", s.rows, s.columns,
                                    s.depth, static_cast<int>(kind), turned),
                        difference(product(left, right), chains(left, right)));
            }
        }
    }
    for (const extents& s : {extents{3, 4, 0}, {0, 4, 5}, {3, 0, 5}}) {
        const std::vector<float> x(20, 1.0f);
        const std::vector<float> c =
            product({x.data(), s.rows, s.depth}, {x.data(), s.columns, s.depth});
        on_case(fmt::format("{} x {} x {}", s.rows, s.columns, s.depth),
                difference(c, std::vector<float>(c.size())));
    }
}

void compare_graphs(const arrays_maker& make, const case_judge& on_case) {
    constexpr std::size_t n = 300, depth = 500, times = 5;
    const std::vector<float> a = make_numbers(numbers::normal, 3, n * depth);
    const std::vector<float> b = make_numbers(numbers::normal, 4, n * depth);
    const auto sums = [&](lab::execution_context& on, auto&& repeat) {
        lab::array left, right, here, there, sum;
        left.put(on, std::span<const float>(a));
        right.put(on, std::span<const float>(b));
        sum.put(on, std::vector<float>(n * n));
        const lab::operand_view x{left.data(), n, depth}, y{right.data(), n, depth};
        here.reserve(on, n * n);
        there.reserve(on, n * n);
        repeat([&] {
            lab::multiply_beside(on, x, y, there.data());
            lab::multiply(on, y, x, here.data());
            on.join();
            for (const float* const one : {here.data(), there.data()}) {
                on.run(lab::jobs::add{{}, one, sum.data(), sum.data()}, n * n);
            }
        });
        return sum.get(on, n * n);
    };
    lab::execution_context host, on(1, make(), nullptr);
    std::size_t calls = 0;
    const std::vector<float> expected = sums(host, [&](const auto& work) {
        for (std::size_t i = 0; i < times; ++i) work();
    });
    lab::cuda::captured_work captured;
    const std::vector<float> got = sums(on, [&](const auto& work) {
        for (std::size_t i = 0; i < times; ++i) {
            captured.run(*on.device(), [&] {
                ++calls;
                work();
            });
        }
    });
    on_case("products beside each other, repeated", difference(got, expected));
    on_case("the same as a graph", calls == 2 ? "" : fmt::format("queued {} times", calls));
}

void compare_trainings(const arrays_maker& make, std::uint64_t every, const case_judge& on_case) {
    std::uint64_t turn = 0;
    for (const training_case& one : training_cases()) {
        if (turn++ % every != 0) continue;
        const auto expected = files_of(one.r, lab::execution_context());
        const auto got = files_of(one.r, lab::execution_context(1, make(), nullptr));
        std::string different;
        if (got.size() != expected.size()) different += "other files; ";
        for (const auto& [name, bytes] : expected) {
            const auto file = got.find(name);
            if (file == got.end() || file->second != bytes) different += name + " differs; ";
        }
        on_case(one.what, different);
    }
}

}  // namespace mx::tests

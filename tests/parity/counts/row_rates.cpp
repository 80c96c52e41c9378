// SPDX-License-Identifier: Apache-2.0
// How many blocks of rows take the steps of the reference (row_body.hpp, nvfp4_body.hpp) under a
// recipe: of blocks of 32 bf16 drawn from three distributions, under NVFP4 of their first 16, per
// million. scripts/count-instructions.py keeps it.
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/codec/cuda/nvfp4_body.hpp"
#include "libmx/codec/ocp_block.hpp"

namespace {

namespace base = mx::base;
namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;

constexpr std::uint64_t blocks = 1u << 17;
constexpr std::array recipes{
    "mxfp8:element=e4m3", "mxfp8:element=e5m2", "mxfp6:element=e2m3", "mxfp6:element=e3m2", "mxfp4",
    "mxfp4:scale=rceil",  "mxfp4:scale=even"};
enum class distribution { normal, laplace, student };

class draws {
  public:
    explicit draws(distribution which) : which_(which) {}

    double next() {
        if (which_ == distribution::laplace) {
            const double u = uniform() - 0.5;
            return std::copysign(std::log(1 - 2 * std::fabs(u)), u);
        }
        const double x = normal();
        if (which_ == distribution::normal) return x;
        constexpr int degrees = 5;
        double chi = 0;
        for (int i = 0; i < degrees; ++i) {
            const double n = normal();
            chi += n * n;
        }
        return x / std::sqrt(chi / degrees);
    }

  private:
    double uniform() {
        const base::random_key key{1, static_cast<std::uint64_t>(which_)};
        return (base::random_u32(key, at_++) + 0.5) * 0x1p-32;
    }
    double normal() {
        const double radius = std::sqrt(-2 * std::log(uniform()));
        return radius * std::cos(6.283185307179586 * uniform());
    }

    distribution which_;
    std::uint64_t at_ = 0;
};

std::uint32_t bf16_of(double x) {
    const std::uint32_t bits = base::bits_of(static_cast<float>(x));
    return (bits + 0x7fffu + (bits >> 16 & 1u)) & 0x7fff0000u;  // the magnitude
}

// The largest magnitude of a block, and the smallest but zero.
struct ends {
    std::uint32_t most = 0, least = ~0u;
    void add(std::uint32_t magnitude) {
        most = std::max(most, magnitude);
        if (magnitude != 0) least = std::min(least, magnitude);
    }
};
struct drawn_block {
    ends of_32, of_16;
};

std::vector<drawn_block> blocks_of(distribution which) {
    draws x(which);
    std::vector<drawn_block> all(blocks);
    for (drawn_block& b : all) {
        for (int i = 0; i < cuda::row_size; ++i) {
            const std::uint32_t magnitude = bf16_of(x.next());
            b.of_32.add(magnitude);
            if (i < cuda::nvfp4_size) b.of_16.add(magnitude);
        }
    }
    return all;
}

// As of a tensor of these blocks.
cuda::nvfp4_recipe nvfp4_of(const std::vector<drawn_block>& all) {
    std::uint32_t most = 0;
    for (const drawn_block& b : all) most = std::max(most, b.of_16.most);
    const codec::block_params p = codec::params_of(codec::parse_recipe("nvfp4"), {most});
    cuda::nvfp4_recipe r{};
    r.tensor_scale = p.tensor.decode;
    for (std::uint32_t i = 0; i < cuda::limits_of_table; ++i) cuda::find_limit(p, i, r.limits);
    return r;
}

}  // namespace

int main() {
    std::array<cuda::row_grid, recipes.size()> grids{};
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        grids[r] = cuda::row_grid_of(codec::params_of(codec::parse_recipe(recipes[r])));
    }
    std::array<std::string, recipes.size() + 1> lines;
    for (const auto which : {distribution::normal, distribution::laplace, distribution::student}) {
        std::array<std::uint64_t, lines.size()> by_steps{};
        const std::vector<drawn_block> all = blocks_of(which);
        const cuda::nvfp4_recipe nvfp4 = nvfp4_of(all);
        for (const drawn_block& b : all) {
            const auto [most, least] = b.of_32;
            for (std::size_t r = 0; r < recipes.size(); ++r) {
                by_steps[r] += cuda::detail::scale_of(grids[r], most, least).fits ? 0u : 1u;
            }
            const auto scale = cuda::detail::scale_of(nvfp4, b.of_16.most, b.of_16.least);
            by_steps.back() += scale.fits ? 0u : 1u;
        }
        for (std::size_t r = 0; r < lines.size(); ++r) {
            lines[r] += "," + std::to_string(by_steps[r] * 1000000 / blocks);
        }
    }
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        std::printf("%s%s\n", recipes[r], lines[r].c_str());
    }
    std::printf("nvfp4%s\n", lines.back().c_str());
}

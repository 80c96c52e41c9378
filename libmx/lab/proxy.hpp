// SPDX-License-Identifier: Apache-2.0
// The student and the teacher of Su et al. (arXiv 2506.20752), as in their published code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/lab/layers.hpp"
#include "libmx/lab/parameters.hpp"
#include "libmx/lab/repeated_pass.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "libmx/lab/torch_stream.hpp"

namespace mx::lab {

enum class norm_kind : std::uint8_t { none, layer, rms };

/// Blocks A' = A + W2 phi(W1 LN(A)) + c. W1 is hidden x width (swiglu: 2 hidden x width), W2 is
/// width x hidden; hidden is 4 width, for swiglu round(8 width / 3).
struct student_shape {
    std::size_t width = 64, depth = 4;
    activation phi = activation::gelu;
    norm_kind norm = norm_kind::layer;

    std::size_t hidden() const;
    std::size_t inner() const { return phi == activation::swiglu ? 2 * hidden() : hidden(); }
    friend bool operator==(const student_shape&, const student_shape&) = default;
};

inline constexpr float norm_eps = 1e-5f;

/// Forward and backward pass of a student. Keeps the activations of the last forward pass.
class student {
  public:
    explicit student(const student_shape& shape);

    const student_shape& shape() const { return shape_; }
    const parameter_list& parameters() const { return list_; }
    std::vector<layer_name> layers() const;

    /// The output (tokens x width) for `x`, which must stay valid until backward() returns. All
    /// arrays are where `on` computes.
    const float* forward(execution_context& on, const precision& how, std::span<const float> values,
                         const float* x, std::size_t tokens, std::uint64_t seed, std::uint64_t step,
                         const layer_observer* observer = nullptr);
    /// Computes the gradients of all parameters from `dy`, the gradient of the output, which is
    /// overwritten. Gradients of frozen norm biases are zero.
    void backward(execution_context& on, const precision& how, std::span<const float> values,
                  float* dy, std::span<float> gradients, const layer_observer* observer = nullptr);

  private:
    struct block_state {
        array normed, u, h, out;
        norm_kept kept;
    };
    layer_context context(execution_context& on, const precision& how,
                          const layer_observer* observer) {
        return {on, how, buffers_, seed_, step_, observer};
    }
    void forward(const layer_context& c, std::span<const float> values);
    void backward(const layer_context& c, std::span<const float> values, float* dy,
                  std::span<float> gradients);
    linear_layer fc1(std::size_t i, std::span<const float> values) const;
    linear_layer fc2(std::size_t i, std::span<const float> values) const;
    norm_layer norm(std::size_t i, std::span<const float> values) const;
    const parameter& at(std::size_t block, std::size_t place) const {
        return list_.all()[block * per_block_ + place];
    }

    student_shape shape_;
    parameter_list list_;
    std::size_t per_block_ = 0;
    std::vector<block_state> blocks_;
    std::vector<std::string> names_;  // layer names, which select random draws
    layer_buffers buffers_;
    array dh_, du_, dz_, da_;
    repeated_pass forward_, backward_;
    const float* x_ = nullptr;
    std::size_t tokens_ = 0;
    std::uint64_t seed_ = 0, step_ = 0;
};

/// Blocks Linear(d -> w) phi Linear(w -> d), w = d, without biases, norms or residual connections.
class teacher {
  public:
    /// Weights from the seed, or from `torch`, if there is one, as initial_values().
    teacher(const student_shape& shape, std::uint64_t seed, torch_stream* torch = nullptr);
    /// Takes weights from the file, if it has them: teacher.0.fc1.weight, ... Throws base::error
    /// (input) if it has only some of them, or of other shapes.
    void read(const tensor_file& file);
    /// Computes y (tokens x width) from x, in float32 or with a precision, as the published code
    /// does in an MX run: linear layers as a student's, and microxcaling's GELU, if vector-forward
    /// rounds. `seed` and `step` are those of stochastic rounding.
    void forward(execution_context& on, const float* x, std::size_t tokens, float* y,
                 const precision& how = {}, std::uint64_t seed = 0, std::uint64_t step = 0);

  private:
    void forward(const layer_context& c, std::span<const float> values, const float* x,
                 std::size_t tokens, float* y);

    student_shape shape_;
    std::size_t inner_, hidden_;
    parameter_list list_;
    mirrored values_;
    layer_buffers buffers_;
    array u_, h_, y_;
    repeated_pass forward_;
};

/// Distribution of a student's initial weights.
enum class start : std::uint8_t {
    pytorch,  ///< uniform within 1 / sqrt(fan in), biases too
    xavier,   ///< normal weights, gain 0.5, biases 0
};

/// Initial values of all parameters: gains uniform in [least, most] (1 if both are 1), norm biases
/// 0. `torch`, if there is one, draws weights and biases instead of the seed, as nn.Linear does in
/// this order; `how` is start::pytorch then.
std::vector<float> initial_values(const parameter_list& list, start how, float least_gain,
                                  float most_gain, std::uint64_t seed,
                                  torch_stream* torch = nullptr);

/// Writes `count` numbers uniform in (-1, 1) from the random stream `key`.
void uniform(const base::random_key& key, std::size_t count, float* x);

}  // namespace mx::lab

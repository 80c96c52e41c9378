// SPDX-License-Identifier: Apache-2.0
// THE LIST of models, each with its batches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/status.hpp"
#include "libmx/lab/model.hpp"
#include "libmx/lab/request.hpp"
#include "libmx/lab/tensor_file.hpp"

namespace mx::lab {
namespace {

// Copies of operands besides their quantized values: a rotation needs one copy of each operand.
// `source requantized` keeps the first quantized X and dY, and each rotated one needs two copies.
double copies_of_operands(const run_request& r, const std::vector<layer_name>& layers) {
    const precision p = precision_of(settings_after(r, r.steps), layers);
    const auto any = [&](const auto& has) {
        return has(p) || std::ranges::any_of(p.apart, [&](const auto& l) { return has(l.own); });
    };
    const bool rotated = any([](const precision& one) {
        return std::ranges::any_of(one.rotations, [](const transform::rotation& t) {
            return t.what != transform::kind::none;
        });
    });
    const bool requantized = any([](const precision& one) { return one.requantize; });
    return (rotated ? 2 : 0) + (requantized ? (rotated ? 4 : 2) : 0);
}

std::uint64_t init_seed_of(const run_request& r) { return r.init_seed.value_or(r.seed); }

constexpr std::size_t calibration = 1024;  // inputs from which the teacher's scale is computed

class proxy_model final : public model {
  public:
    proxy_model(const run_request& r, execution_context& on) : request_(r), net_(r.shape) {
        for (mirrored* const v : {&x_, &y_}) v->assign(size(), 0.0f);
        if (!r.data_file.empty()) open_batches();
        if (given_ && given_->has("y")) return;
        if (r.stream == stream_kind::torch) {
            stream_.emplace(data_seed());
            values_from(&*stream_);  // the student's precede the teacher's
        }
        teacher_ = std::make_unique<teacher>(r.shape, data_seed(), stream_ ? &*stream_ : nullptr);
        first_inputs_ = stream_;
        if (given_) teacher_->read(*given_);
        if (r.task != task_kind::teacher) return;
        std::vector<float> x(calibration * r.shape.width), y(x.size());
        on.kernels().normal({data_seed(), base::tensor_id("teacher.scale")}, 0, x.size(), x.data());
        teacher_->forward(on.host(), x.data(), calibration, y.data());
        const double rms = std::sqrt(on.kernels().dot(y.data(), y.data(), y.size()) /
                                     static_cast<double>(y.size()));
        teacher_scale_ = rms > 0 ? static_cast<float>(1 / rms) : 1.0f;
    }

    const parameter_list& parameters() const override { return net_.parameters(); }
    std::vector<layer_name> layers() const override { return net_.layers(); }
    std::vector<float> initial_values() const override {
        if (request_.stream == stream_kind::mx) return values_from(nullptr);
        torch_stream beginning(init_seed_of(request_));
        return values_from(&beginning);
    }

    void check_steps(std::uint64_t steps) const override {
        if (request_.data_file.empty()) return;
        const std::uint64_t given = given_->info("x").shape[0];
        if (given < steps) {
            given_->fail(fmt::format("has batches for {} steps, not {}", given, steps), "x");
        }
    }

    void make_batch(execution_context& on, const precision& how, std::uint64_t step) override {
        const std::size_t count = size();
        const std::uint64_t first = (step - 1) * count;
        const auto normal = [&](std::string_view name, float* to) {
            on.run(jobs::normal{{}, {data_seed(), base::tensor_id(name)}, first, to}, count);
        };
        if (given_) {
            given_->read_part("x", first, x_.change_here());
        } else if (stream_) {
            if (step != next_inputs_) {  // resumed
                stream_ = first_inputs_;
                stream_->skip_normal(step - 1, count);
            }
            stream_->normal(on, x_.change_here());
            next_inputs_ = step + 1;
        } else {
            normal("data.x", x_.change_there(on).data());
        }
        if (!teacher_) {
            if (how.teacher_quantized) {
                given_->fail("has labels, which no teacher makes: leave out teacher=quantized",
                             "y");
            }
            return given_->read_part("y", first, y_.change_here());
        }
        const precision plain;
        float* const y = y_.change_there(on).data();
        teacher_->forward(on, x_.there(on).data(), request_.batch, y,
                          how.teacher_quantized ? how : plain, data_seed(), step);
        if (teacher_scale_ != 1.0f) on.run(jobs::scale{{}, teacher_scale_, y}, count);
        if (request_.noise == 0 || request_.loss == loss_kind::kl) return;
        float* const noise = noise_.reserve(on, count);
        normal("data.noise", noise);
        on.run(jobs::add_scaled{{}, static_cast<float>(request_.noise), noise, y}, count);
    }

    float forward(execution_context& on, const precision& how, std::span<const float> values,
                  std::uint64_t seed, std::uint64_t step) override {
        const float* const out = net_.forward(on, how, values, x_.there(on).data(), request_.batch,
                                              seed, step, &observer);
        const std::size_t width = request_.shape.width;
        const float* const y = y_.there(on).data();
        float* const dy = dy_.reserve(on, size());
        if (request_.loss == loss_kind::mse) {
            return mean_squared_error(on, out, y, request_.batch, width, dy, losses_);
        }
        return divergence_loss(on, out, y, request_.batch, width,
                               static_cast<float>(request_.temperature), dy, losses_);
    }
    void backward(execution_context& on, const precision& how, std::span<const float> values,
                  std::span<float> gradients) override {
        net_.backward(on, how, values, dy_.data(), gradients, &observer);
    }

    std::vector<layer_value> batch() const override {
        const std::size_t width = request_.shape.width;
        return {{"", "x", request_.batch, width, x_.here().data()},
                {"", "y", request_.batch, width, y_.here().data()}};
    }

    model_cost cost() const override {
        const auto tokens = static_cast<double>(request_.batch);
        const auto d = static_cast<double>(request_.shape.width);
        const auto h = static_cast<double>(request_.shape.hidden());
        const auto inner = static_cast<double>(request_.shape.inner());
        const auto depth = static_cast<double>(request_.shape.depth);
        model_cost c;
        c.parameters = c.block_parameters = net_.parameters().size();
        c.flop = 2 * tokens * depth * (3 * d * (inner + h) + (teacher_ ? 2 * d * d : 0));
        const double kept = depth * tokens * (3 * d + inner + h);
        const double buffers =
            tokens * (6 * d + 2 * inner + 2 * h) + 4 * tokens * std::max(inner, h);
        const double copies = copies_of_operands(request_, layers()) * tokens * std::max(inner, h);
        c.bytes = 4 * (kept + buffers + copies + 4 * static_cast<double>(c.parameters));
        return c;
    }

  private:
    std::size_t size() const { return request_.batch * request_.shape.width; }
    std::uint64_t data_seed() const { return request_.data_seed.value_or(request_.seed); }
    std::vector<float> values_from(torch_stream* torch) const {
        return lab::initial_values(
            net_.parameters(), request_.begin, static_cast<float>(request_.least_gain),
            static_cast<float>(request_.most_gain), init_seed_of(request_), torch);
    }

    void open_batches() {
        given_ = std::make_unique<tensor_file>(request_.data_file);
        for (const char* name : {"x", "y"}) {
            if (*name == 'y' && !given_->has(name)) continue;
            const tensor::shape& shape = given_->info(name).shape;
            if (shape.size() != 3 || shape[0] != given_->info("x").shape[0] ||
                shape[1] != request_.batch || shape[2] != request_.shape.width) {
                given_->fail(
                    fmt::format("is not steps x {} x {}", request_.batch, request_.shape.width),
                    name);
            }
        }
        check_steps(request_.steps + update_after(request_, request_.steps).skipped);
    }

    run_request request_;
    student net_;
    std::unique_ptr<teacher> teacher_;
    float teacher_scale_ = 1;
    mirrored x_, y_;
    array dy_, noise_;
    array_of<double> losses_;
    std::unique_ptr<tensor_file> given_;  // --data
    // --stream torch: before the inputs of step next_inputs_, and of the first step.
    std::optional<torch_stream> stream_, first_inputs_;
    std::uint64_t next_inputs_ = 1;
};

class text_model final : public model {
  public:
    text_model(const run_request& r, const execution_context& on)
        : request_(r),
          threads_(on.threads()),
          net_(language_shape_of(r)),
          text_(!r.tokens_file.empty()
                    ? text_of_ids(r.tokens_file, r.context, net_.shape().vocabulary)
                : r.text_file.empty() ? made_text()
                                      : text_of_file(r.text_file, r.context)),
          ids_(r.batch),
          target_(r.batch) {}

    const parameter_list& parameters() const override { return net_.parameters(); }
    std::vector<layer_name> layers() const override { return net_.layers(); }
    std::vector<float> initial_values() const override {
        if (!request_.config.empty() && !request_.init_file.empty()) {
            const llm::model_weights given(request_.init_file);
            if (llm::config_of(given.shape()) != request_.config) {
                throw base::error(base::error_kind::input, "is another model than it was",
                                  {request_.init_file, {}, {}});
            }
            return net_.values_of(given);
        }
        return language_values(net_, static_cast<float>(request_.least_gain),
                               static_cast<float>(request_.most_gain), init_seed_of(request_));
    }
    void check_steps(std::uint64_t) const override {}

    void make_batch(execution_context&, const precision&, std::uint64_t step) override {
        fill((step - 1) * sequences(), [&](std::uint64_t number, std::span<std::uint32_t> to) {
            text_->sequence(request_.data_seed.value_or(request_.seed), number, to);
        });
    }

    float forward(execution_context& on, const precision& how, std::span<const float> values,
                  std::uint64_t seed, std::uint64_t step) override {
        return net_.forward(on, how, values, ids_.data(), target_.data(), ids_.size(), seed, step,
                            &observer);
    }
    void backward(execution_context& on, const precision& how, std::span<const float> values,
                  std::span<float> gradients) override {
        net_.backward(on, how, values, gradients, &observer);
    }

    std::vector<token_values> token_batch() const override {
        return {{"tokens", ids_}, {"targets", target_}};
    }
    std::optional<double> loss_floor() const override { return text_->floor(request_.context); }

    std::optional<double> held_out_loss(execution_context& on, const precision& how,
                                        std::span<const float> values, std::uint64_t seed,
                                        std::uint64_t step) override {
        if (request_.text_file.empty() && request_.tokens_file.empty()) return std::nullopt;
        constexpr std::size_t batches = 4;
        double sum = 0;
        for (std::size_t i = 0; i < batches; ++i) {
            fill(i * sequences(), [&](std::uint64_t number, std::span<std::uint32_t> to) {
                text_->held_out(number, batches * sequences(), to);
            });
            sum += static_cast<double>(forward(on, how, values, seed, step));
        }
        return sum / batches;
    }

    model_cost cost() const override {
        const language_shape& s = net_.shape();
        model_cost c;
        c.parameters = net_.parameters().size();
        const std::size_t table = s.vocabulary * s.width;  // embedding or head
        c.block_parameters = c.parameters - (s.tied ? 1 : 2) * table;
        // Parameters that multiply a token.
        double products = s.tied ? 0 : -static_cast<double>(table);
        for (const parameter& p : net_.parameters().all()) {
            if (p.kind != parameter_kind::weight) continue;
            products += net_.share_of_tokens(p) * static_cast<double>(p.count);
        }
        const auto tokens = static_cast<double>(request_.batch);
        // Forward: two products per head. Backward: these again, and four more of the same size.
        const double attended = 7 * static_cast<double>(s.depth * s.heads_shape().width()) *
                                static_cast<double>(s.context);
        c.flop = 2 * tokens * (3 * products + attended);
        const double heads = static_cast<double>(net_.bytes_of_thread()) * threads_;
        const auto widest = static_cast<double>(std::max(s.hidden(), s.vocabulary));
        const double copies = copies_of_operands(request_, layers()) * tokens * widest;
        c.bytes = heads + 4 * (net_.floats_kept(request_.batch) + copies +
                               4 * static_cast<double>(c.parameters));
        return c;
    }

  private:
    std::size_t sequences() const { return request_.batch / request_.context; }
    // Makes the batch of consecutive sequences starting at number `first`.
    template <typename Sequence>
    void fill(std::uint64_t first, const Sequence& sequence) {
        const std::size_t context = request_.context;
        std::vector<std::uint32_t> one(context + 1);
        for (std::size_t s = 0; s < sequences(); ++s) {
            sequence(first + s, one);
            const auto at = static_cast<std::ptrdiff_t>(s * context);
            std::copy(one.begin(), one.end() - 1, ids_.begin() + at);
            std::copy(one.begin() + 1, one.end(), target_.begin() + at);
        }
    }

    run_request request_;
    int threads_;
    language_network net_;
    std::unique_ptr<text_source> text_;
    std::vector<std::uint32_t> ids_, target_;
};

}  // namespace

std::unique_ptr<model> make_model(const run_request& r, execution_context& on) {
    if (r.model == model_kind::proxy) return std::make_unique<proxy_model>(r, on);
    return std::make_unique<text_model>(r, on);
}

std::vector<layer_name> layers_of(const run_request& r) {
    if (r.model == model_kind::proxy) return student(r.shape).layers();
    return language_network(language_shape_of(r)).layers();
}

}  // namespace mx::lab

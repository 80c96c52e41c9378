// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <span>
#include <utility>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/lab/probe.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/report/writers.hpp"

namespace mx::lab {
namespace {

constexpr std::string_view request_prefix = "request.";

// Writes the arrays of a file at once.
class tensor_writer {
  public:
    void add(std::string name, tensor::dtype type, tensor::shape shape, const void* data) {
        std::uint64_t bytes = static_cast<std::uint64_t>(tensor::row_of(type).bits / 8);
        for (const auto extent : shape) bytes *= extent;
        plan_.push_back({std::move(name), type, std::move(shape)});
        data_.push_back({static_cast<const std::byte*>(data), static_cast<std::size_t>(bytes)});
    }
    // Every NaN is written with the same bits: those of results differ between processors.
    void add(std::string name, tensor::shape shape, const float* data) {
        add(std::move(name), tensor::dtype::f32, std::move(shape), data);
        const std::span<const float> x(data, data_.back().size() / sizeof(float));
        if (std::ranges::none_of(x, base::is_nan)) return;
        std::vector<float>& copy = with_one_nan_.emplace_back(x.begin(), x.end());
        std::ranges::replace_if(copy, base::is_nan, base::quiet_nan());
        data_.back() = std::as_bytes(std::span<const float>(copy));
    }
    void write(const std::string& path, const io::metadata_map& metadata) const {
        const std::unique_ptr<io::array_writer> file =
            io::create_safetensors(path, plan_, metadata);
        for (std::size_t i = 0; i < data_.size(); ++i) file->write(i, 0, data_[i]);
        file->commit();
    }

  private:
    std::vector<io::planned_array> plan_;
    std::vector<std::span<const std::byte>> data_;
    std::deque<std::vector<float>> with_one_nan_;
};

std::string to_json(const std::vector<report::record>& probes) {
    report::document d;
    d.head = {{"schema", std::string("mx.probes/1")}};
    d.results = probes;
    std::string text;
    report::write_json(d, {}, [&](std::string_view part) { text += part; });
    return text;
}

}  // namespace

training::training(unfilled how, const run_request& request, execution_context on)
    : request_(request), on_(std::move(on)) {
    check(request_);
    model_ = make_model(request_, on_);
    if (how.fresh && !request_.init_file.empty() && request_.config.empty()) read_initial_values();
}

training::training(const run_request& request, execution_context on)
    : training(unfilled{true}, request, std::move(on)) {
    if (values_.empty()) values_.assign(model_->initial_values());
}

namespace {

// The updates of norm biases among the first `done` steps, since Adam's moments were zero.
std::uint64_t norm_bias_updates(const run_request& r, const std::vector<layer_name>& layers,
                                std::uint64_t done) {
    std::uint64_t sum = 0, from = done == 0 ? 0 : update_after(r, done - 1).moments_from;
    for (std::size_t i = 0; i <= r.interventions.size(); ++i) {
        const std::uint64_t to =
            i < r.interventions.size() ? std::min(r.interventions[i].after, done) : done;
        if (to <= from) continue;
        if (precision_of(settings_after(r, from), layers).norm_bias_trains) sum += to - from;
        from = to;
    }
    return sum;
}

run_request request_in(const tensor_file& file, const named_files& named) {
    const auto kind = file.metadata().find("kind");
    if (kind == file.metadata().end() || kind->second != llm::checkpoint_kind) {
        file.fail(
            fmt::format("is not a checkpoint of this version of mx train: its metadata has "
                        "{}",
                        kind == file.metadata().end() ? "no kind" : "kind " + kind->second));
    }
    std::map<std::string, std::string> text;
    for (const auto& [key, value] : file.metadata()) {
        if (key.rfind(request_prefix, 0) == 0) text[key.substr(request_prefix.size())] = value;
    }
    try {
        run_request r = from_text(text);
        settle_files(r, named);
        check(r);
        return r;
    } catch (const base::error& e) {
        file.fail(e.message());
    }
}

}  // namespace

training::training(const std::string& checkpoint, execution_context on, const named_files& named)
    : training(unfilled{false}, request_in(tensor_file(checkpoint), named), std::move(on)) {
    const tensor_file file(checkpoint);
    for (const parameter& p : model_->parameters().all()) {
        if (file.info(p.name).shape != p.shape) file.fail("is not of the run's network", p.name);
    }
    values_.assign(model_->parameters().size(), 0.0f);
    const bool adam = request_.by == optimizer::adam;
    if (adam) {
        moments_.first.assign(values_.size(), 0.0f);
        moments_.second.assign(values_.size(), 0.0f);
    }
    const auto read = [&](const char* prefix, const parameter& p, mirrored& to) {
        const std::vector<float> x = file.read(prefix + p.name, p.shape);
        std::ranges::copy(x, of(to.change_here(), p));
    };
    for (const parameter& p : model_->parameters().all()) {
        read("", p, values_);
        if (!adam) continue;
        read("adam.m.", p, moments_.first);
        read("adam.v.", p, moments_.second);
    }
    const std::vector<std::byte> losses = file.bytes("history.loss", tensor::dtype::f32);
    const std::vector<std::byte> norms = file.bytes("history.gradient_norm", tensor::dtype::f64);
    if (losses.size() / 4 != norms.size() / 8) file.fail("has histories of different lengths");
    history_.resize(losses.size() / 4);
    for (std::size_t i = 0; i < history_.size(); ++i) {
        std::memcpy(&history_[i].loss, losses.data() + 4 * i, 4);
        std::memcpy(&history_[i].gradient_norm, norms.data() + 8 * i, 8);
    }
    norm_bias_updates_ = norm_bias_updates(request_, model_->layers(), done());
    const std::vector<std::byte> probes = file.bytes("history.probes", tensor::dtype::u8);
    const std::string_view text(reinterpret_cast<const char*>(probes.data()), probes.size());
    for (const report::record& r : report::read_results(text, checkpoint).results) {
        probes_.push_back(r);
    }
}

void training::save(const std::string& path) const {
    tensor_writer w;
    const bool fresh = moments_.first.empty();
    const std::vector<float> zeros(fresh ? values_.size() : 0);
    for (const parameter& p : model_->parameters().all()) {
        w.add(p.name, p.shape, of(values_.here(), p));
        if (request_.by != optimizer::adam) continue;
        w.add("adam.m." + p.name, p.shape, of(fresh ? zeros : moments_.first.here(), p));
        w.add("adam.v." + p.name, p.shape, of(fresh ? zeros : moments_.second.here(), p));
    }
    std::vector<float> losses;
    std::vector<double> norms;
    for (const step_figures& s : history_) {
        losses.push_back(s.loss);
        norms.push_back(s.gradient_norm);
    }
    const std::string probes = to_json(probes_);
    w.add("history.loss", {losses.size()}, losses.data());
    w.add("history.gradient_norm", tensor::dtype::f64, {norms.size()}, norms.data());
    w.add("history.probes", tensor::dtype::u8, {probes.size()}, probes.data());
    io::metadata_map metadata{{"kind", std::string(llm::checkpoint_kind)},
                              {"step", fmt::format("{}", done())}};
    for (const auto& [key, value] : to_text(request_)) {
        metadata[std::string(request_prefix) + key] = value;
    }
    w.write(path, metadata);
}

void training::read_initial_values() {
    const tensor_file file(request_.init_file);
    std::vector<float> values(model_->parameters().size());
    for (const parameter& p : model_->parameters().all()) {
        const std::string name = file.has(p.name) ? p.name : "init." + p.name;
        const std::vector<float> x = file.read(name, p.shape);
        std::ranges::copy(x, of(values, p));
    }
    values_.assign(std::move(values));
}

void training::extend(std::uint64_t steps, const std::vector<intervention>& more) {
    if (steps < done()) base::refuse("--steps {}: {} are done already", steps, done());
    request_.steps = steps;
    for (const intervention& i : more) {
        if (i.after < done()) base::refuse("--at {}: {} steps are done already", i.after, done());
        request_.interventions.push_back(i);
    }
    std::ranges::stable_sort(request_.interventions,
                             [](const auto& a, const auto& b) { return a.after < b.after; });
    check(request_);
    model_->check_steps(request_.steps + update_after(request_, request_.steps).skipped);
    how_.reset();
}

void training::observe(std::uint64_t every, int draws) {
    request_.probe_every = every;
    request_.probe_draws = draws;
}

void training::nudge(std::uint64_t copy, std::uint64_t after) {
    if (after < done()) base::refuse("--nudge-at {}: {} steps are done already", after, done());
    if (after >= request_.steps) {
        base::refuse("--nudge-at {}: the run ends after {} steps", after, request_.steps);
    }
    request_.nudge = copy;
    request_.nudge_after = after;
}

bool training::diverged() const {
    if (history_.empty()) return false;
    const step_figures& last = history_.back();
    return !std::isfinite(last.loss) || !std::isfinite(last.gradient_norm);
}

const precision& training::precision_now() {
    std::size_t many = 0;
    for (const intervention& i : request_.interventions) many += i.after <= done() ? 1u : 0u;
    if (!how_ || many != how_many_)
        how_ = precision_of(settings_after(request_, done()), model_->layers());
    how_many_ = many;
    return *how_;
}

void training::apply_nudge() {
    for (const parameter& p : model_->parameters().all()) {
        if (p.kind != parameter_kind::weight) continue;
        std::vector<float> z(p.count);
        const std::string stream = fmt::format("nudge.{}.{}", request_.nudge, p.name);
        on_.kernels().normal({request_.seed, base::tensor_id(stream)}, 0, p.count, z.data());
        float* const w = of(values_.change_here(), p);
        for (std::size_t i = 0; i < p.count; ++i) {
            w[i] *= 1.0f + static_cast<float>(nudge_size) * z[i];
        }
    }
}

void training::clip(double most, double norm) {
    if (most == 0 || !(norm > most)) return;
    on_.run(jobs::scale{{}, static_cast<float>(most / norm), gradients_.change_there(on_).data()},
            gradients_.size());
}

double training::gradient_norm() {
    const std::vector<parameter>& all = model_->parameters().all();
    std::vector<jobs::part> parts;
    for (const parameter& p : all) parts.push_back({p.first, p.count});
    on_.run(jobs::sums_of_squares{parts_.put(on_, std::span<const jobs::part>(parts)),
                                  gradients_.there(on_).data(), sums_.reserve(on_, all.size())},
            all.size());
    double sum = 0;
    for (const double one : sums_.get(on_, all.size())) sum += one;
    return std::isnan(sum) ? std::numeric_limits<double>::quiet_NaN() : std::sqrt(sum);
}

template <typename Work>
void training::with_memory(Work&& work) {
    try {
        work();
    } catch (const base::cuda::out_of_memory& short_of) {
        // Nothing that a step changes is changed before it has all its memory.
        model_->observer = nullptr;
        for (mirrored* const all : {&values_, &moments_.first, &moments_.second}) {
            all->assign(all->here());
        }
        gradients_.assign(gradients_.size(), 0.0f);
        on_.leave_device(short_of);
        work();
    }
}

void training::step(const std::string& dump) {
    if (request_.nudge != 0 && request_.nudge_after == done()) apply_nudge();
    with_memory([&] { take_step(dump); });
}

void training::take_step(const std::string& dump) {
    const std::uint64_t number_of = done() + 1;
    const update_state now = update_after(request_, done());
    const precision& how = precision_now();
    if (gradients_.empty()) gradients_.assign(values_.size(), 0.0f);
    model_->make_batch(on_, how, number_of + now.skipped);
    std::optional<report::record> probe;
    if (request_.probe_every != 0 && done() % request_.probe_every == 0) probe = take_probe(how);
    if (!dump.empty()) write_dump(dump, how);
    step_figures figures{};
    figures.loss = model_->forward(on_, how, values_.there(on_), request_.seed, number_of);
    if (base::is_nan(figures.loss)) figures.loss = base::quiet_nan();
    model_->backward(on_, how, values_.there(on_), gradients_.change_there(on_));
    figures.gradient_norm = gradient_norm();
    clip(now.by.clip, figures.gradient_norm);
    const bool fresh = now.moments_from == done();
    if (fresh) {
        moments_.first.assign({});
        moments_.second.assign({});
    }
    const std::uint64_t updates = (fresh ? 0 : norm_bias_updates_) + (how.norm_bias_trains ? 1 : 0);
    update(on_, request_.by, model_->parameters(),
           {number_of - now.moments_from, how.norm_bias_trains ? updates : 0},
           rate_of(now.by, number_of), gradients_.there(on_), values_.change_there(on_), moments_,
           now.by.adam);
    norm_bias_updates_ = updates;
    if (probe) probes_.push_back(std::move(*probe));
    history_.push_back(figures);
}

void training::evaluate() {
    with_memory([&] {
        held_out_loss_ = model_->held_out_loss(on_, precision_now(), values_.there(on_),
                                               request_.seed, done() + 1);
    });
}

report::record training::take_probe(const precision& how) {
    const int draws = request_.probe_draws;
    const precision plain;
    const std::uint64_t step = done() + 1;
    std::vector<float> g, q;
    const auto gradient = [&](const precision& p, std::uint64_t seed, std::vector<float>& to) {
        model_->forward(on_, p, values_.there(on_), seed, step);
        model_->backward(on_, p, values_.there(on_), gradients_.change_there(on_));
        to = gradients_.here();
    };
    gradient(plain, request_.seed, g);
    gradient(how, request_.seed, q);
    step_probe probe;
    gradient_sums all, without_bias;
    for (const parameter& p : model_->parameters().all()) {
        const std::span<const float> own(of(q, p), p.count), exact(of(g, p), p.count);
        gradient_sums one;
        one.add(own, exact);
        all.add(own, exact);
        if (p.kind != parameter_kind::norm_bias) without_bias.add(own, exact);
        probe.gradients.emplace_back(p.name, report::written(measures_members, one.measures()));
    }
    probe.with_norm_biases = all.measures();

    // Bias and spread of the gradient over draws.
    if (is_random(how) && draws > 1) {
        std::vector<double> mean(g.size()), square(g.size());
        for (int i = 0; i < draws; ++i) {
            if (i > 0) gradient(how, request_.seed + (static_cast<std::uint64_t>(i) << 32), q);
            for (std::size_t k = 0; k < g.size(); ++k) {
                const double x = static_cast<double>(q[k]);
                mean[k] += x / draws;
                square[k] += x * x / draws;
            }
        }
        double bias = 0, spread = 0, norm = 0;
        for (std::size_t k = 0; k < g.size(); ++k) {
            const double exact = static_cast<double>(g[k]);
            bias += (mean[k] - exact) * (mean[k] - exact);
            // Unbiased estimate of the variance of one draw.
            spread += std::max(0.0, square[k] - mean[k] * mean[k]) * draws / (draws - 1);
            norm += exact * exact;
        }
        probe.redraws = {draws, std::sqrt(bias / norm), std::sqrt(spread / norm)};
    }

    // Blocks of gains, weights and activations with their recipes, or E4M3 without one.
    const auto recipe_or = [](const operand_rule& r) {
        return r.recipe && r.recipe->blocks ? *r.recipe->blocks
                                            : codec::parse_block_recipe("mxfp8:round=away");
    };
    const auto gain_or = [&](const precision& p) {
        return p.gain.recipe && p.gain.recipe->blocks ? *p.gain.recipe->blocks
                                                      : recipe_or(p.operands[0][1]);
    };
    report::record of_activations;
    const auto figures_of = [&](const codec::recipe& r, std::span<const float> x) {
        return report::written(block_figures_members, block_figures_of(on_, r, x));
    };
    for (const parameter& p : model_->parameters().all()) {
        if (p.kind != parameter_kind::weight && p.kind != parameter_kind::norm_gain) continue;
        const precision& own = how.of(std::string_view(p.name).substr(0, p.name.rfind('.')));
        const codec::recipe r =
            p.kind == parameter_kind::weight ? recipe_or(own.operands[0][1]) : gain_or(own);
        const std::span<const float> x(of(values_.here(), p), p.count);
        probe.blocks.emplace_back(p.name, figures_of(r, x));
        if (p.kind != parameter_kind::norm_gain) continue;
        probe.gains.emplace_back(p.name, report::written(gain_sizes_members, gain_sizes_of(r, x)));
    }
    model_->observer = [&](const layer_value& v) {
        if (v.norm) return;
        const codec::recipe r = recipe_or(how.of(v.layer).operands[0][0]);
        of_activations.emplace_back(fmt::format("{}.{}", v.layer, v.name),
                                    figures_of(r, std::span(v.data, v.rows * v.cols)));
    };
    model_->forward(on_, how, values_.there(on_), request_.seed, step);
    model_->observer = nullptr;
    for (auto& member : of_activations) probe.blocks.push_back(std::move(member));
    report::record r{{"step", static_cast<std::int64_t>(step)}};
    report::append(r, measures_members, without_bias.measures());
    report::append(r, probe_members, probe);
    return r;
}

void training::write_dump(const std::string& path, const precision& how) {
    const std::uint64_t step = done() + 1;
    struct copy {
        std::string name;
        std::uint64_t rows, cols;
        std::vector<float> data;
    };
    // The input of each layer, followed by the gradient of its output.
    std::vector<std::pair<std::string, std::vector<copy>>> layers;
    model_->observer = [&](const layer_value& v) {
        auto layer = std::ranges::find(layers, v.layer, [](const auto& l) { return l.first; });
        if (layer == layers.end()) layer = layers.insert(layer, {std::string(v.layer), {}});
        layer->second.push_back({fmt::format("{}.{}", v.layer, v.name), v.rows, v.cols,
                                 std::vector<float>(v.data, v.data + v.rows * v.cols)});
    };
    model_->forward(on_, how, values_.there(on_), request_.seed, step);
    model_->backward(on_, how, values_.there(on_), gradients_.change_there(on_));
    model_->observer = nullptr;
    tensor_writer w;
    for (const layer_value& v : model_->batch()) {
        w.add(std::string(v.name), {v.rows, v.cols}, v.data);
    }
    for (const token_values& v : model_->token_batch()) {
        w.add(std::string(v.name), tensor::dtype::u32, {v.ids.size()}, v.ids.data());
    }
    for (const parameter& p : model_->parameters().all()) {
        w.add(p.name, p.shape, of(values_.here(), p));
        w.add("grad." + p.name, p.shape, of(gradients_.here(), p));
    }
    for (const auto& [layer, values] : layers) {
        for (const copy& c : values) w.add(c.name, {c.rows, c.cols}, c.data.data());
    }
    w.write(path, {{"kind", "mx.dump/1"},
                   {"step", fmt::format("{}", step)},
                   {"precision", to_string(settings_after(request_, done()))}});
}

}  // namespace mx::lab

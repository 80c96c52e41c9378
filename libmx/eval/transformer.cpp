// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libmx/base/random.hpp"
#include "libmx/lab/product.hpp"

namespace mx::eval {

using llm::naming, llm::norm_place, llm::qk_norm;

namespace {

constexpr std::size_t grain = 32768;  // elements; smaller ranges are not worth a thread
constexpr std::size_t near_rows = 64, most_rows_read = 4096;  // of the embedding
constexpr std::size_t rows_at_once = 256;  // of queries, a multiple of every block of a recipe

std::size_t rows_of(std::size_t width) { return std::max<std::size_t>(1, grain / width); }

void angles(const model_shape& s, double base, bool scaled, const std::vector<float>& factors,
            std::size_t positions, std::vector<double>& cosine, std::vector<double>& sine) {
    constexpr double inverse_two_pi = 0x1.45f306dc9c883p-3;
    const std::size_t half = s.head_size / 2;
    cosine.resize(positions * half);
    sine.resize(positions * half);
    for (std::size_t i = 0; i < half; ++i) {
        const double share = static_cast<double>(2 * i) / static_cast<double>(s.head_size);
        double f = simd::exponential(-share * simd::logarithm(base));
        if (scaled) f = llm::scaled_frequency(s.scaling, f);
        if (!factors.empty()) f /= static_cast<double>(factors[i]);
        for (std::size_t p = 0; p < positions; ++p) {
            const double turns = static_cast<double>(p) * f * inverse_two_pi;
            const double within = turns - std::floor(turns);
            cosine[p * half + i] = simd::cosine_of_turns(within);
            sine[p * half + i] = simd::sine_of_turns(within);
        }
    }
}

std::string words(const transform::rotation& r) {
    return fmt::format("{} {} {} {}", static_cast<int>(r.what), r.size, r.seed, r.file);
}

constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;  // spreads numbers over the keys of draws

// `x` rounded to float32, rotated and quantized along its rows, in `buffer`; `x` itself if the rule
// does nothing. `draws` keys stochastic rounding.
template <typename T>
const T* quantized_rows(lab::execution_context& on, const lab::operand_rule& rule,
                        const transform::rotation& rotate, std::uint64_t draws, const T* x,
                        std::size_t rows, std::size_t cols, base::aligned_buffer<float>& narrow,
                        lab::array_of<T>& buffer) {
    if (!rule.recipe && rotate.what == transform::kind::none) return x;
    if constexpr (sizeof(T) == sizeof(float)) {
        return lab::quantized(on, rule, rotate, {x, rows, cols, {0, draws}}, lab::axis::last,
                              buffer)
            .data;
    } else {
        float* const to = narrow.reserve(rows * cols);
        on.split(rows * cols, grain, [&](std::size_t begin, std::size_t end, int) {
            for (std::size_t i = begin; i < end; ++i) to[i] = static_cast<float>(x[i]);
        });
        return lab::quantized(on, rule, rotate, {to, rows, cols, {0, draws}}, buffer).data;
    }
}

// The rounding of operands and results besides recipes ("vector").
template <typename T>
void round_all(lab::execution_context& on, lab::rounding how, std::size_t count, T* y) {
    if (how == lab::rounding::none) return;
    std::vector<float> narrow(y, y + count);
    on.kernels().round(how, narrow.data(), count, narrow.data());
    std::copy(narrow.begin(), narrow.end(), y);
}

}  // namespace

std::vector<lab::setting> settings_of_recipe(const std::string& text) {
    if (text.find(' ') == std::string::npos && text.find('=') == std::string::npos) {
        return {{"all", lab::to_string(lab::parse_rule(text)), {}}};
    }
    // "mxfp8:scale=rceil" is a recipe, "w=mxfp8" and "*.q_proj:w=mxfp8" are settings.
    const std::string head = text.substr(0, text.find('='));
    const std::size_t colon = head.rfind(':');
    const std::string key = colon == std::string::npos ? head : head.substr(colon + 1);
    const bool setting = std::ranges::any_of(lab::precision_keys(), [&](const auto& k) {
        return k.name == key || (!k.also.empty() && k.also == key);
    });
    const bool recipe = colon != std::string::npos && text.find(' ') == std::string::npos &&
                        (key == "scale" || !setting);
    if (recipe) return {{"all", lab::to_string(lab::parse_rule(text)), {}}};
    return lab::parse_settings(text);
}

std::vector<float> read_by_threads(const lab::execution_context& on, const model_weights& model,
                                   const place& where, std::size_t begin, std::size_t end) {
    const auto cols = static_cast<std::size_t>(model.extents(where).back());
    std::vector<float> values((end - begin) * cols);
    on.split(
        end - begin, std::max<std::size_t>(1, (std::size_t{1} << 18) / cols),
        [&](std::size_t first, std::size_t last, int) {
            const std::vector<float> some = model.read_rows(where, begin + first, begin + last);
            std::ranges::copy(some, values.begin() + static_cast<std::ptrdiff_t>(first * cols));
        });
    return values;
}

// Scratch of one thread for attention.
template <typename T>
struct transformer<T>::worker {
    lab::execution_context on;
    base::aligned_buffer<T> q, k, v, p, o;
    lab::array_of<T> quantized;
    base::aligned_buffer<float> narrow;
    explicit worker(std::string_view backend) : on(1, backend) {}
};

template <typename T>
transformer<T>::transformer(const model_weights& model, lab::execution_context& on,
                            std::size_t most_positions)
    : model_(model),
      shape_(model.shape()),
      on_(on),
      kernels_(simd::of<T>(simd::named(on.kernels().name))) {
    std::vector<float> factors;
    if (model.has({role::rope_factors})) factors = model.read({role::rope_factors});
    angles(shape_, shape_.rope_base, true, factors, most_positions, cosine_, sine_);
    if (shape_.local_rope_base != 0) {
        angles(shape_, shape_.local_rope_base, false, {}, most_positions, local_cosine_,
               local_sine_);
    }
    layer_ = shape_.depth;
    for (const float g : model.read({role::last_norm})) {
        last_gain_.push_back(static_cast<double>(g) +
                             (shape_.names == naming::gguf ? 0 : shape_.kind->gain_offset));
    }
    for (int i = 0; i < on.threads(); ++i) {
        workers_.push_back(std::make_unique<worker>(on.kernels().name));
    }
}

template <typename T>
transformer<T>::~transformer() = default;

template <typename T>
void transformer<T>::load(std::size_t layer) {
    layer_ = layer;
    gains_.clear();
    vectors_.clear();
    prepared_.clear();
    weights_.clear();
    router_.clear();
    const double offset = shape_.names == naming::gguf ? 0 : shape_.kind->gain_offset;
    // model_weights has checked that the model has what it needs and nothing else.
    for (const role r : {role::attention_norm, role::query_norm, role::key_norm,
                         role::attention_out_norm, role::mlp_norm, role::mlp_out_norm}) {
        if (!model_.has({r, layer})) continue;
        for (const float g : model_.read({r, layer})) {
            gains_[r].push_back(static_cast<double>(g) + offset);
        }
    }
    for (const role r : {role::query_bias, role::key_bias, role::value_bias, role::output_bias}) {
        if (!model_.has({r, layer})) continue;
        const std::vector<float> b = model_.read({r, layer});
        vectors_[r].assign(b.begin(), b.end());
    }
    if (shape_.experts != 0) router_ = model_.read({role::router, layer});
    for (const place& p : model_.linears(layer)) {
        const auto rows = static_cast<std::size_t>(model_.extents(p)[0]);
        weights_.push_back(read_by_threads(on_, model_, p, 0, rows));
    }
}

template <typename T>
void transformer<T>::embed(const std::vector<std::uint32_t>& ids, T* h) const {
    const std::size_t d = shape_.width;
    const T scale = static_cast<T>(shape_.kind->scaled_embedding
                                       ? static_cast<float>(std::sqrt(static_cast<double>(d)))
                                       : 1.0f);
    // Rows that are near each other in the file are read together.
    std::vector<std::size_t> order(ids.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t t) { return ids[t]; });
    for (std::size_t k = 0; k < order.size();) {
        const std::size_t first = ids[order[k]];
        std::size_t end = k + 1;
        while (end < order.size() && ids[order[end]] - ids[order[end - 1]] <= near_rows &&
               ids[order[end]] - first < most_rows_read) {
            ++end;
        }
        const std::vector<float> rows =
            model_.read_rows({role::embedding}, first, ids[order[end - 1]] + 1);
        for (; k < end; ++k) {
            const float* const row = rows.data() + (ids[order[k]] - first) * d;
            T* const to = h + order[k] * d;
            for (std::size_t i = 0; i < d; ++i) to[i] = static_cast<T>(row[i]) * scale;
        }
    }
}

template <typename T>
void transformer<T>::last_norm(const T* h, std::size_t rows, T* y) const {
    on_.split(rows, rows_of(shape_.width), [&](std::size_t begin, std::size_t end, int) {
        const std::size_t at = begin * shape_.width;
        kernels_.norm(h + at, end - begin, shape_.width, shape_.eps, last_gain_.data(), y + at);
    });
}

template <typename T>
void transformer<T>::normalize(role what, const T* x, std::size_t rows, std::size_t width, T* y) {
    const double* const gain = gains_.at(what).data();
    on_.split(rows, rows_of(width), [&](std::size_t begin, std::size_t end, int) {
        const std::size_t at = begin * width;
        kernels_.norm(x + at, end - begin, width, shape_.eps, gain, y + at);
    });
}

template <typename T>
const T* transformer<T>::quantized(const lab::operand_rule& rule, const transform::rotation& rotate,
                                   const std::string& name, const token_batch& b, const T* x,
                                   std::size_t rows, std::size_t cols, lab::array_of<T>& buffer) {
    const std::uint64_t draws = base::tensor_id(name) ^ (b.number * odd);
    return quantized_rows(on_, rule, rotate, draws, x, rows, cols, narrow_, buffer);
}

template <typename T>
const lab::packed_operand<T>& transformer<T>::weight_of(const lab::precision& p, const place& where,
                                                        std::size_t index) {
    const lab::operand_rule& rule = p.operands[0][1];
    const std::string key = fmt::format("{} {} {} {}", index, lab::to_string(rule),
                                        words(p.rotations[0]), static_cast<int>(p.vector_forward));
    const auto [at, fresh] = prepared_.try_emplace(key);
    if (!fresh) return at->second;
    const std::vector<float>& stored = weights_[index];
    const tensor::shape shape = model_.extents(where);
    const auto rows = static_cast<std::size_t>(shape[0]), cols = static_cast<std::size_t>(shape[1]);
    std::vector<T> values;
    const T* from = nullptr;
    if constexpr (sizeof(T) == sizeof(float)) from = stored.data();
    if (from == nullptr || p.vector_forward != lab::rounding::none) {
        values.assign(stored.begin(), stored.end());
        round_all(on_, p.vector_forward, values.size(), values.data());
        from = values.data();
    }
    lab::array_of<T> buffer;
    const T* const q =
        quantized(rule, p.rotations[0], model_.name(where), {}, from, rows, cols, buffer);
    lab::pack(on_, lab::operand_view_of<T>{q, rows, cols, false}, at->second);
    return at->second;
}

template <typename T>
const T* transformer<T>::input_of(const lab::precision& p, const std::string& layer,
                                  const token_batch& b, std::size_t rows, std::size_t cols,
                                  const T* x) {
    const lab::operand_rule& rule = p.operands[0][0];
    if (!rule.recipe && p.rotations[0].what == transform::kind::none &&
        p.vector_forward == lab::rounding::none) {
        return x;
    }
    // q, k and v share one input, gate and up another: it is quantized once.
    const std::string key = fmt::format("{} {} {}", lab::to_string(rule), words(p.rotations[0]),
                                        static_cast<int>(p.vector_forward));
    if (input_ == x && input_key_ == key) return quantized_input_;
    input_ = x;
    input_key_ = key;
    const T* from = x;
    if (p.vector_forward != lab::rounding::none) {
        T* const to = rounded_x_.reserve(rows * cols);
        std::copy_n(x, rows * cols, to);
        round_all(on_, p.vector_forward, rows * cols, to);
        from = to;
    }
    quantized_input_ =
        quantized(rule, p.rotations[0], layer + ".x", b, from, rows, cols, quantized_x_);
    return quantized_input_;
}

template <typename T>
void transformer<T>::linear(const arm& how, const place& where, const token_batch& b,
                            std::size_t rows, const T* x, T* y) {
    if (observer) {
        const auto in = static_cast<std::size_t>(model_.extents(where)[1]);
        observer({model_.layer_name(where), "x", rows, in, x});
    }
    multiply(how, where, b, rows, x, y);
    if (on_product) on_product(where, b, rows, x, y);
}

template <typename T>
void transformer<T>::multiply(const arm& how, const place& where, const token_batch& b,
                              std::size_t rows, const T* x, T* y, bool inputs) {
    const std::string layer = model_.layer_name(where);
    const lab::precision& p = how.how.of(layer);
    const tensor::shape shape = model_.extents(where);
    const auto out = static_cast<std::size_t>(shape[0]), in = static_cast<std::size_t>(shape[1]);
    const std::vector<place> all = model_.linears(layer_);
    const auto index = static_cast<std::size_t>(
        std::ranges::find_if(all,
                             [&](const place& one) {
                                 return one.what == where.what && one.expert == where.expert;
                             }) -
        all.begin());
    if (p.accumulate) {
        const std::vector<float> narrow(x, x + rows * in);
        std::vector<float> sums(rows * out);
        lab::multiply_by_model(p, lab::stage::fprop, {narrow.data(), rows, in, {}}, lab::axis::last,
                               {weights_[index].data(), out, in, {}}, lab::axis::last,
                               on_.threads(), sums.data());
        std::ranges::copy(sums, y);
    } else {
        const T* const left = inputs ? input_of(p, layer, b, rows, in, x) : x;
        lab::multiply(on_, lab::operand_view_of<T>{left, rows, in, false},
                      weight_of(p, where, index), y);
    }
    round_all(on_, p.vector_forward, rows * out, y);
}

template <typename T>
void transformer<T>::add_bias(const place& where, std::size_t rows, std::size_t cols, T* y) {
    const auto at = vectors_.find(where.what);
    if (at == vectors_.end()) return;
    for (std::size_t r = 0; r < rows; ++r) kernels_.add(at->second.data(), cols, y + r * cols);
}

template <typename T>
void transformer<T>::attend(const arm& how, const token_batch& b, const T* q, block_cache<T>& cache,
                            T* o) {
    const std::size_t size = shape_.head_size, group = shape_.heads / shape_.key_heads;
    const std::size_t width = shape_.query_width(), key_width = shape_.key_width();
    const std::size_t window = shape_.has_window(layer_) ? shape_.window : 0;
    const std::size_t parts = (b.rows + rows_at_once - 1) / rows_at_once;
    const double scale = shape_.scale_of_scores();
    const bool rules = how.attention.recipe.has_value();
    const std::size_t positions = cache.positions;
    T* kept = nullptr;
    if (observer && keeps_probabilities) {
        kept = probabilities_.reserve(shape_.heads * b.rows * positions);
        std::fill_n(kept, shape_.heads * b.rows * positions, T{0});
    }
    on_.split(
        b.sequences * shape_.key_heads * parts, 1,
        [&](std::size_t begin, std::size_t end, int thread) {
            worker& by = *workers_[static_cast<std::size_t>(thread)];
            // Every operand of every head has draws of its own; `first` is its first row.
            const auto rounded = [&](std::string_view operand, std::size_t head, std::size_t first,
                                     std::size_t rows, std::size_t cols, T* x) {
                const std::uint64_t place = (layer_ * shape_.heads + head) * odd + first;
                const std::uint64_t draws =
                    base::tensor_id(operand) ^ (place * odd + b.number) * odd;
                const T* const done = quantized_rows(by.on, how.attention, {}, draws, x, rows, cols,
                                                     by.narrow, by.quantized);
                if (done != x) std::copy_n(done, rows * cols, x);
            };
            for (std::size_t unit = begin; unit < end; ++unit) {
                const std::size_t sequence = unit / (shape_.key_heads * parts);
                const std::size_t key_head = unit / parts % shape_.key_heads;
                const std::size_t first = unit % parts * rows_at_once;  // of the new rows
                const std::size_t last = std::min(b.rows, first + rows_at_once);
                const std::size_t rows = last - first;
                // Positions of the rows' keys.
                const std::size_t from =
                    window != 0 && b.start + first + 1 > window ? b.start + first + 1 - window : 0;
                const std::size_t seen = b.start + last;
                // Blocks of values along tokens begin at the sequence's start.
                const std::size_t keys = seen - from;
                const std::size_t all = cache.positions;
                const T* const k = cache.keys.data() + sequence * all * key_width;
                const T* const v = cache.values.data() + sequence * all * key_width;
                T* const head_k = by.k.reserve(keys * size);
                T* const head_v = by.v.reserve(std::max(keys, all) * size);
                for (std::size_t j = 0; j < keys; ++j) {
                    std::copy_n(k + (from + j) * key_width + key_head * size, size,
                                head_k + j * size);
                }
                rounded("attention.k", key_head, from, keys, size, head_k);
                if (rules) {  // the transpose: blocks along the tokens
                    for (std::size_t j = 0; j < all; ++j) {
                        for (std::size_t i = 0; i < size; ++i) {
                            head_v[i * all + j] = v[j * key_width + key_head * size + i];
                        }
                    }
                    rounded("attention.v", key_head, 0, size, all, head_v);
                    T* const turned = by.o.reserve(keys * size);
                    for (std::size_t j = 0; j < keys; ++j) {
                        for (std::size_t i = 0; i < size; ++i) {
                            turned[j * size + i] = head_v[i * all + from + j];
                        }
                    }
                    std::copy_n(turned, keys * size, head_v);
                } else {
                    for (std::size_t j = 0; j < keys; ++j) {
                        std::copy_n(v + (from + j) * key_width + key_head * size, size,
                                    head_v + j * size);
                    }
                }
                for (std::size_t head = key_head * group; head < (key_head + 1) * group; ++head) {
                    T* const head_q = by.q.reserve(rows * size);
                    const std::size_t at = (sequence * b.rows + first) * width + head * size;
                    for (std::size_t r = 0; r < rows; ++r) {
                        std::copy_n(q + at + r * width, size, head_q + r * size);
                    }
                    rounded("attention.q", head, first, rows, size, head_q);
                    T* const p = by.p.reserve(rows * keys);
                    lab::multiply(by.on, lab::operand_view_of<T>{head_q, rows, size, false},
                                  lab::operand_view_of<T>{head_k, keys, size, false}, p);
                    for (std::size_t r = 0; r < rows; ++r) {
                        const std::size_t position = b.start + first + r;
                        const std::size_t low =
                            window != 0 && position + 1 > window ? position + 1 - window - from : 0;
                        const std::size_t high = position + 1 - from;
                        T* const row = p + r * keys;
                        kernels_.softmax(row + low, high - low, scale, row + low);
                        std::fill(row, row + low, T{0});
                        std::fill(row + high, row + keys, T{0});
                        if (kept == nullptr) continue;
                        std::copy_n(row, keys,
                                    kept + (head * b.rows + first + r) * positions + from);
                    }
                    rounded("attention.p", head, first, rows, keys, p);
                    T* const out = by.o.reserve(std::max(rows, keys) * size);
                    lab::multiply(by.on, lab::operand_view_of<T>{p, rows, keys, false},
                                  lab::operand_view_of<T>{head_v, size, keys, true}, out);
                    for (std::size_t r = 0; r < rows; ++r) {
                        std::copy_n(out + r * size, size, o + at + r * width);
                    }
                }
            }
        });
}

template <typename T>
void transformer<T>::mlp(const arm& how, const token_batch& b, const T* m, T* y) {
    const std::size_t tokens = b.tokens(), count = tokens * shape_.hidden;
    T* const g = gate_.reserve(count);
    T* const u = up_.reserve(count);
    linear(how, {role::gate, layer_}, b, tokens, m, g);
    linear(how, {role::up, layer_}, b, tokens, m, u);
    on_.split(count, grain, [&](std::size_t begin, std::size_t end, int) {
        kernels_.activate(shape_.gate, g + begin, u + begin, end - begin, g + begin);
    });
    input_ = nullptr;
    linear(how, {role::down, layer_}, b, tokens, g, y);
}

// Softmax over all experts; the `experts_used` most probable ones (the first of equals), whose
// probabilities are divided by their sum if the model says so.
template <typename T>
void transformer<T>::experts(const arm& how, const token_batch& b, const T* m, T* y) {
    const std::size_t tokens = b.tokens(), d = shape_.width, count = shape_.experts;
    const std::vector<T> router(router_.begin(), router_.end());
    std::vector<T> scores(tokens * count);
    lab::multiply(on_, lab::operand_view_of<T>{m, tokens, d, false},
                  lab::operand_view_of<T>{router.data(), count, d, false}, scores.data());
    std::vector<std::vector<std::pair<std::size_t, T>>> chosen(count);  // by expert: token, weight
    std::vector<std::size_t> order(count);
    for (std::size_t t = 0; t < tokens; ++t) {
        T* const p = scores.data() + t * count;
        kernels_.softmax(p, count, 1, p);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) { return p[i] > p[j]; });
        double sum = 0;
        for (std::size_t i = 0; i < shape_.experts_used; ++i)
            sum += static_cast<double>(p[order[i]]);
        if (!shape_.experts_renormalized) sum = 1;
        for (std::size_t i = 0; i < shape_.experts_used; ++i) {
            chosen[order[i]].push_back({t, static_cast<T>(static_cast<double>(p[order[i]]) / sum)});
        }
    }
    std::fill_n(y, tokens * d, T{0});
    std::vector<T> x, out;
    for (std::size_t e = 0; e < count; ++e) {  // sums of a token are in the order of the experts
        const std::size_t rows = chosen[e].size();
        if (rows == 0) continue;
        x.resize(rows * d);
        out.resize(rows * d);
        for (std::size_t r = 0; r < rows; ++r) {
            std::copy_n(m + chosen[e][r].first * d, d, x.data() + r * d);
        }
        T* const g = gate_.reserve(rows * shape_.hidden);
        T* const u = up_.reserve(rows * shape_.hidden);
        input_ = nullptr;
        linear(how, {role::expert_gate, layer_, e}, b, rows, x.data(), g);
        linear(how, {role::expert_up, layer_, e}, b, rows, x.data(), u);
        kernels_.activate(shape_.gate, g, u, rows * shape_.hidden, g);
        input_ = nullptr;
        linear(how, {role::expert_down, layer_, e}, b, rows, g, out.data());
        for (std::size_t r = 0; r < rows; ++r) {
            const auto [token, weight] = chosen[e][r];
            for (std::size_t i = 0; i < d; ++i) y[token * d + i] += weight * out[r * d + i];
        }
    }
}

template <typename T>
void transformer<T>::forward(const arm& how, const token_batch& b, T* h, block_cache<T>* cache) {
    const std::size_t tokens = b.tokens(), d = shape_.width, size = shape_.head_size;
    const std::size_t qw = shape_.query_width(), kw = shape_.key_width();
    const norm_place norms = shape_.kind->norms;
    T* x = h;
    if (norms != norm_place::after) {
        x = x_.reserve(tokens * d);
        normalize(role::attention_norm, h, tokens, d, x);
    }
    input_ = nullptr;
    T* const q = q_.reserve(tokens * qw);
    T* const k = k_.reserve(tokens * kw);
    T* const v = v_.reserve(tokens * kw);
    linear(how, {role::query, layer_}, b, tokens, x, q);
    linear(how, {role::key, layer_}, b, tokens, x, k);
    linear(how, {role::value, layer_}, b, tokens, x, v);
    add_bias({role::query_bias}, tokens, qw, q);
    add_bias({role::key_bias}, tokens, kw, k);
    add_bias({role::value_bias}, tokens, kw, v);
    if (shape_.kind->norm_of_qk == qk_norm::head) {
        normalize(role::query_norm, q, tokens * shape_.heads, size, q);
        normalize(role::key_norm, k, tokens * shape_.key_heads, size, k);
    } else if (shape_.kind->norm_of_qk == qk_norm::all_heads) {
        normalize(role::query_norm, q, tokens, qw, q);
        normalize(role::key_norm, k, tokens, kw, k);
    }
    const bool local = shape_.local_rope_base != 0 && shape_.has_window(layer_);
    const std::vector<double>& cosine = local ? local_cosine_ : cosine_;
    const std::vector<double>& sine = local ? local_sine_ : sine_;
    on_.split(tokens, rows_of(qw), [&](std::size_t begin, std::size_t end, int) {
        const std::size_t half = size / 2;
        for (std::size_t t = begin; t < end; ++t) {
            const std::size_t at = (b.start + t % b.rows) * half;
            const auto turn = [&](T* row, std::size_t heads) {
                for (std::size_t a = 0; a < heads; ++a) {
                    kernels_.turn(row + a * size, half, cosine.data() + at, sine.data() + at,
                                  shape_.pairs, row + a * size);
                }
            };
            turn(q + t * qw, shape_.heads);
            turn(k + t * kw, shape_.key_heads);
        }
    });
    const std::string block = fmt::format("layers.{}", layer_);
    const T* const stored_k =
        quantized(how.kv, {}, block + ".k", b, k, tokens * shape_.key_heads, size, quantized_kv_);
    block_cache<T>& to = cache != nullptr ? *cache : own_;
    if (cache == nullptr) {
        to.positions = b.rows;
        to.keys.resize(tokens * kw);
        to.values.resize(tokens * kw);
    }
    const auto keep = [&](const T* from, std::vector<T>& rows) {
        for (std::size_t s = 0; s < b.sequences; ++s) {
            std::copy_n(from + s * b.rows * kw, b.rows * kw,
                        rows.data() + (s * to.positions + b.start) * kw);
        }
    };
    keep(stored_k, to.keys);
    const T* const stored_v =
        quantized(how.kv, {}, block + ".v", b, v, tokens * shape_.key_heads, size, quantized_kv_);
    keep(stored_v, to.values);
    if (observer) {
        observer({model_.layer_name({role::key, layer_}), "k_cache", tokens, kw, k});
        observer({model_.layer_name({role::value, layer_}), "v_cache", tokens, kw, v});
    }
    T* const o = o_.reserve(tokens * qw);
    attend(how, b, q, to, o);
    if (observer && keeps_probabilities) {
        observer({model_.layer_name({role::query, layer_}), "p", shape_.heads * b.rows,
                  to.positions, probabilities_.data()});
    }
    T* const y = y_.reserve(tokens * d);
    input_ = nullptr;
    linear(how, {role::output, layer_}, b, tokens, o, y);
    add_bias({role::output_bias}, tokens, d, y);
    if (norms != norm_place::before) normalize(role::attention_out_norm, y, tokens, d, y);
    const auto add = [&] {
        on_.split(tokens * d, grain, [&](std::size_t begin, std::size_t end, int) {
            kernels_.add(y + begin, end - begin, h + begin);
        });
    };
    add();
    T* m = h;
    if (norms != norm_place::after) {
        m = x_.reserve(tokens * d);
        normalize(role::mlp_norm, h, tokens, d, m);
    }
    input_ = nullptr;
    if (shape_.experts != 0) {
        experts(how, b, m, y);
    } else {
        mlp(how, b, m, y);
    }
    if (norms != norm_place::before) normalize(role::mlp_out_norm, y, tokens, d, y);
    add();
}

template class transformer<float>;
template class transformer<double>;

}  // namespace mx::eval

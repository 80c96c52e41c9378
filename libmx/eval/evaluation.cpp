// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/eval/transformer.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/lab/product.hpp"
#include "libmx/llm/token_file.hpp"

namespace mx::eval {
namespace {

// Extents of a piece of the logits. The sums over the vocabulary are over pieces of this width, so
// it is part of the result.
constexpr std::size_t piece_vocabulary = 2048;
constexpr std::size_t piece_tokens = 512;

// The residual stream of all windows, for arms that are equal so far.
template <typename T>
struct state {
    std::vector<T> h;
};

void check(const model_weights& model, const evaluation_request& r) {
    const model_shape& s = model.shape();
    llm::require_ids_below(s.vocabulary, r.tokens, {});
    for (const window& w : r.windows) {
        if (s.context == 0 || w.count <= s.context) continue;
        base::refuse("a window of {} tokens is longer than the model's {}; give --context {}",
                     w.count, s.context, s.context);
    }
}

// What an arm does in a block, as text: arms with the same text compute the same.
std::string precision_text(const lab::precision& p) {
    std::string text =
        fmt::format("{}/{}/{}", lab::to_string(p.operands[0][0]), lab::to_string(p.operands[0][1]),
                    static_cast<int>(p.vector_forward));
    if (p.accumulate) text += "/" + gemm::to_string(*p.accumulate);
    return text;
}

std::string block_text(const model_weights& model, const arm& a, std::size_t layer) {
    std::string text = fmt::format("{} {}", lab::to_string(a.kv), lab::to_string(a.attention));
    for (const place& p : model.linears(layer)) {
        text += " " + precision_text(a.how.of(model.layer_name(p)));
    }
    return text;
}

template <typename T>
class run {
  public:
    run(const model_weights& model, lab::execution_context& on, const std::vector<arm>& arms,
        const evaluation_request& r)
        : model_(model), on_(on), r_(r), kernels_(simd::of<T>(simd::named(on.kernels().name))) {
        all_.push_back(&plain_);
        for (const arm& a : arms) all_.push_back(&a);
    }

    evaluation all() {
        const std::size_t d = model_.shape().width;
        std::size_t rows = 0, longest = 0;
        std::vector<std::uint32_t> ids;
        for (const window& w : r_.windows) {
            rows += w.count;
            longest = std::max(longest, w.count);
            ids.insert(ids.end(), r_.tokens.begin() + static_cast<std::ptrdiff_t>(w.begin),
                       r_.tokens.begin() + static_cast<std::ptrdiff_t>(w.begin + w.count));
        }
        transformer<T> net(model_, on_, longest);
        auto first = std::make_shared<state<T>>();
        first->h.resize(rows * d);
        net.embed(ids, first->h.data());
        states_.assign(all_.size(), first);
        for (std::size_t layer = 0; layer < model_.shape().depth; ++layer) {
            base::stop_if(r_.cancel);
            if (r_.progress) r_.progress(layer, model_.shape().depth + 1);
            show({model_.block_name(layer), "residual", rows, d, states_.front()->h.data()});
            net.load(layer);
            run_block(net, layer);
        }
        if (r_.progress) r_.progress(model_.shape().depth, model_.shape().depth + 1);
        show(
            {model_.layer_name({role::last_norm}), "residual", rows, d, states_.front()->h.data()});
        for (std::size_t i = 0; i < states_.size(); ++i) {
            const std::shared_ptr<state<T>>& s = states_[i];
            if (std::find(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(i), s) ==
                states_.begin() + static_cast<std::ptrdiff_t>(i)) {
                net.last_norm(s->h.data(), rows, s->h.data());
            }
        }
        show({model_.layer_name(model_.head()), "x", rows, d, states_.front()->h.data()});
        return scores(net);
    }

  private:
    void show(const seen_matrix<T>& m) const {
        if (!r_.observer) return;
        const std::vector<float> values(m.data, m.data + m.rows * m.cols);
        r_.observer(m.layer, m.name, m.rows, m.cols, values.data());
    }

    void run_block(transformer<T>& net, std::size_t layer) {
        // Arms with the same state that do the same have the same state afterwards.
        std::map<std::pair<state<T>*, std::string>, std::vector<std::size_t>> groups;
        std::map<state<T>*, std::size_t> users;
        for (std::size_t i = 0; i < all_.size(); ++i) {
            groups[{states_[i].get(), block_text(model_, *all_[i], layer)}].push_back(i);
        }
        for (const auto& [key, members] : groups) ++users[key.first];
        std::vector<std::pair<std::size_t, const std::vector<std::size_t>*>> order;
        for (const auto& [key, members] : groups) order.push_back({members.front(), &members});
        std::ranges::sort(order);  // so that the progress of a run does not depend on addresses
        for (const auto& [lead, members] : order) {
            base::stop_if(r_.cancel);
            std::shared_ptr<state<T>> now = states_[lead];
            if (--users[now.get()] > 0) {
                auto copy = std::make_shared<state<T>>();
                copy->h = now->h;
                now = std::move(copy);
            }
            for (const std::size_t i : *members) states_[i] = now;
            watch(net, lead == 0);
            std::size_t at = 0;
            for (std::size_t w = 0; w < r_.windows.size(); ++w) {
                const token_batch b{1, r_.windows[w].count, 0, w};
                net.forward(*all_[lead], b, now->h.data() + at);
                at += b.rows * model_.shape().width;
            }
        }
    }

    // Measures and shows the linear layers of the model as it is.
    void watch(transformer<T>& net, bool base) {
        net.observer = nullptr;
        net.on_product = nullptr;
        if (!base) return;
        net.keeps_probabilities = r_.probabilities;
        if (r_.observer) {
            net.observer = [this](const seen_matrix<T>& m) { show(m); };
        }
        if (!r_.layer_errors) return;
        net.on_product = [this, &net](const place& where, const token_batch& b, std::size_t rows,
                                      const T* x, const T* y) {
            const auto out = static_cast<std::size_t>(model_.extents(where)[0]);
            const std::string layer = model_.layer_name(where);
            std::vector<T> other(rows * out);
            for (std::size_t i = 1; i < all_.size(); ++i) {
                const lab::precision& how = all_[i]->how.of(layer);
                if (precision_text(how) == precision_text(plain_.how)) continue;
                output_error& e = errors_[{layer, i - 1}];
                for (const bool inputs : {false, true}) {
                    net.multiply(*all_[i], where, b, rows, x, other.data(), inputs);
                    double wrong = 0, all = 0;
                    for (std::size_t k = 0; k < other.size(); ++k) {
                        const auto exact = static_cast<double>(y[k]);
                        const double off = static_cast<double>(other[k]) - exact;
                        wrong += off * off;
                        all += exact * exact;
                    }
                    (inputs ? e.both : e.weights) += wrong;
                    if (inputs) e.all += all;
                }
            }
        };
    }

    // The operands of the head where it is quantized.
    struct head_operands {
        std::vector<T> x, w;
    };
    struct scored_state {
        std::shared_ptr<state<T>> of;
        std::string words;
        std::unique_ptr<head_operands> own;
        // By scored token.
        std::vector<simd::logit_sums> sums = {};
        std::vector<double> crossed = {};  // of exp(p - largest) (p - q), p the base's logits
        std::vector<double> hit = {};      // the logit of the predicted token

        const std::vector<T>& inputs() const { return own ? own->x : of->h; }
    };
    // Logits of `rows` tokens from `token` on, for `wide` ids from `first` on.
    struct logit_piece {
        std::size_t token, rows, first, wide;
    };
    // The base's logits of a piece, exp(z - largest) of them, and `largest` before the piece.
    struct base_piece {
        std::vector<T> logits = std::vector<T>(piece_tokens * piece_vocabulary);
        std::vector<double> terms = std::vector<double>(piece_tokens * piece_vocabulary);
        std::vector<double> before = std::vector<double>(piece_tokens);
    };

    // Adds a piece of the base's logits to its sums.
    void add_base(const evaluation& e, const logit_piece& at, base_piece& p,
                  scored_state& to) const {
        on_.split(at.rows, 1, [&](std::size_t begin, std::size_t end, int) {
            for (std::size_t t = begin; t < end; ++t) {
                simd::logit_sums& sums = to.sums[at.token + t];
                const T* const row = p.logits.data() + t * at.wide;
                p.before[t] = sums.sum == 0 ? INFINITY : sums.largest;
                kernels_.sum_logits(row, at.wide, at.first, sums, p.terms.data() + t * at.wide);
                keep_hit(e, at, t, row, to);
            }
        });
    }
    // Adds a piece of other logits.
    void add_other(const evaluation& e, const logit_piece& at, const base_piece& p,
                   const scored_state& base, const std::vector<T>& logits, scored_state& to) const {
        on_.split(at.rows, 1, [&](std::size_t begin, std::size_t end, int) {
            std::vector<double> terms(at.wide);
            for (std::size_t t = begin; t < end; ++t) {
                const std::size_t token = at.token + t;
                const T* const row = logits.data() + t * at.wide;
                kernels_.sum_logits(row, at.wide, at.first, to.sums[token], terms.data());
                keep_hit(e, at, t, row, to);
                kernels_.add_crossed(p.terms.data() + t * at.wide, p.logits.data() + t * at.wide,
                                     row, at.wide, base.sums[token], p.before[t],
                                     to.crossed[token]);
            }
        });
    }
    static void keep_hit(const evaluation& e, const logit_piece& at, std::size_t t, const T* row,
                         scored_state& to) {
        const std::size_t id = e.predicted[at.token + t];
        if (id >= at.first && id < at.first + at.wide) {
            to.hit[at.token + t] = static_cast<double>(row[id - at.first]);
        }
    }

    // Null where the head is not quantized. The whole head is held, because formats may scale a
    // tensor by its largest value.
    std::unique_ptr<head_operands> quantized_head(transformer<T>& net, const place& head,
                                                  const lab::precision& how,
                                                  const state<T>& s) const {
        const lab::operand_rule& of_x = how.operands[0][0];
        const lab::operand_rule& of_w = how.operands[0][1];
        if (!of_x.recipe && !of_w.recipe) return nullptr;
        const std::size_t d = model_.shape().width;
        const std::string name = model_.layer_name(head);
        auto made = std::make_unique<head_operands>();
        const std::vector<float> read = model_.read(head);
        const std::vector<T> w(read.begin(), read.end());
        lab::array_of<T> buffer;
        const T* const q =
            net.quantized(of_w, how.rotations[0], name, {}, w.data(), w.size() / d, d, buffer);
        made->w.assign(q, q + w.size());
        made->x.resize(s.h.size());
        std::size_t at = 0;
        for (std::size_t i = 0; i < r_.windows.size(); ++i) {
            const std::size_t rows = r_.windows[i].count;
            const T* const from = net.quantized(of_x, how.rotations[0], name + ".x",
                                                {1, rows, 0, i}, s.h.data() + at, rows, d, buffer);
            std::copy_n(from, rows * d, made->x.data() + at);
            at += rows * d;
        }
        return made;
    }

    // The head, over pieces of the vocabulary and of the tokens.
    evaluation scores(transformer<T>& net) {
        const model_shape& s = model_.shape();
        const std::size_t d = s.width;
        evaluation e;
        e.windows = r_.windows;
        std::vector<std::size_t> rows;  // of the states, those that are scored
        std::size_t at = 0;
        for (std::size_t w = 0; w < r_.windows.size(); ++w) {
            const window& one = r_.windows[w];
            for (std::size_t i = one.first; i < one.last; ++i) {
                rows.push_back(at + i);
                e.predicted.push_back(r_.tokens[one.begin + i + 1]);
                e.window_of.push_back(w);
            }
            at += one.count;
        }
        // The states that differ, with the base first, and how they multiply by the head.
        const place head = model_.head();
        std::vector<scored_state> distinct;
        std::vector<std::size_t> index(all_.size());
        for (std::size_t i = 0; i < all_.size(); ++i) {
            const lab::precision& how = all_[i]->how.of(model_.layer_name(head));
            const std::string words = precision_text(how);
            const auto same = std::ranges::find_if(distinct, [&](const scored_state& one) {
                return one.of == states_[i] && one.words == words;
            });
            index[i] = static_cast<std::size_t>(same - distinct.begin());
            if (same == distinct.end()) {
                distinct.push_back(
                    {states_[i], words, quantized_head(net, head, how, *states_[i])});
            }
        }
        const std::size_t n = rows.size();
        for (scored_state& one : distinct) {
            one.sums.resize(n);
            one.crossed.resize(n);
            one.hit.resize(n);
        }
        std::vector<T> x(piece_tokens * d), logits(piece_tokens * piece_vocabulary);
        base_piece of_base;
        for (std::size_t v0 = 0; v0 < s.vocabulary; v0 += piece_vocabulary) {
            base::stop_if(r_.cancel);
            const std::size_t wide = std::min(piece_vocabulary, s.vocabulary - v0);
            const std::vector<float> read = read_by_threads(on_, model_, head, v0, v0 + wide);
            const std::vector<T> weights(read.begin(), read.end());
            for (std::size_t t0 = 0; t0 < n; t0 += piece_tokens) {
                const logit_piece piece{t0, std::min(piece_tokens, n - t0), v0, wide};
                for (scored_state& one : distinct) {
                    for (std::size_t t = 0; t < piece.rows; ++t) {
                        std::copy_n(one.inputs().data() + rows[t0 + t] * d, d, x.data() + t * d);
                    }
                    const bool is_base = &one == &distinct.front();
                    const T* const w = one.own ? one.own->w.data() + v0 * d : weights.data();
                    lab::multiply(on_, lab::operand_view_of<T>{x.data(), piece.rows, d, false},
                                  lab::operand_view_of<T>{w, wide, d, false},
                                  is_base ? of_base.logits.data() : logits.data());
                    if (is_base) {
                        add_base(e, piece, of_base, one);
                    } else {
                        add_other(e, piece, of_base, distinct.front(), logits, one);
                    }
                }
            }
        }
        std::vector<token_scores> found(distinct.size());
        for (std::size_t k = 0; k < distinct.size(); ++k) {
            token_scores& to = found[k];
            for (std::size_t t = 0; t < n; ++t) {
                const simd::logit_sums& p = distinct.front().sums[t];
                const simd::logit_sums& q = distinct[k].sums[t];
                const double log_p = p.largest + simd::logarithm(p.sum);
                const double log_q = q.largest + simd::logarithm(q.sum);
                to.nll.push_back(log_q - distinct[k].hit[t]);
                to.divergence.push_back(k == 0 ? 0
                                               : distinct[k].crossed[t] / p.sum - (log_p - log_q));
                to.top.push_back(static_cast<std::uint32_t>(q.top));
                if (k == 0) e.entropy.push_back(log_p - p.weighted / p.sum);
            }
        }
        for (const auto& [key, sum] : errors_) {
            e.layers.push_back({key.first, key.second, sum.weights / sum.all, sum.both / sum.all});
        }
        e.base = found[index[0]];
        for (std::size_t i = 1; i < all_.size(); ++i) e.arms.push_back(found[index[i]]);
        return e;
    }

    const model_weights& model_;
    lab::execution_context& on_;
    const evaluation_request& r_;
    const simd::kernels_of<T>& kernels_;
    struct output_error {
        double weights = 0, both = 0, all = 0;
    };

    arm plain_;
    std::map<std::pair<std::string, std::size_t>, output_error> errors_;
    std::vector<const arm*> all_;
    std::vector<std::shared_ptr<state<T>>> states_;
};

template <typename T>
std::vector<std::uint32_t> sampled(const model_weights& model, lab::execution_context& on,
                                   std::size_t sequences, std::size_t length, std::uint32_t start,
                                   std::uint64_t seed, const evaluation_request& control) {
    const model_shape& s = model.shape();
    const std::size_t d = s.width;
    std::vector<std::unique_ptr<transformer<T>>> blocks;
    std::vector<block_cache<T>> caches(s.depth);
    for (std::size_t i = 0; i < s.depth; ++i) {
        base::stop_if(control.cancel);
        blocks.push_back(std::make_unique<transformer<T>>(model, on, length));
        blocks.back()->load(i);
        caches[i].positions = length;
        caches[i].keys.resize(sequences * length * s.key_width());
        caches[i].values.resize(caches[i].keys.size());
    }
    const std::vector<float> read = read_by_threads(on, model, model.head(), 0, s.vocabulary);
    lab::packed_operand<T> head;
    {
        const std::vector<T> values(read.begin(), read.end());
        lab::pack(on, lab::operand_view_of<T>{values.data(), s.vocabulary, d, false}, head);
    }
    std::vector<std::uint32_t> all(sequences * length, start), now(sequences, start);
    std::vector<T> h(sequences * d), z(sequences * s.vocabulary);
    const auto& kernels = simd::of<T>(simd::named(on.kernels().name));
    const arm plain;
    const std::uint64_t name = base::tensor_id("mx.eval.sample");
    for (std::size_t position = 0; position + 1 < length; ++position) {
        base::stop_if(control.cancel);
        if (control.progress) control.progress(position, length);
        blocks.front()->embed(now, h.data());
        for (std::size_t i = 0; i < s.depth; ++i) {
            blocks[i]->forward(plain, {sequences, 1, position, 0}, h.data(), &caches[i]);
        }
        blocks.front()->last_norm(h.data(), sequences, h.data());
        lab::multiply(on, lab::operand_view_of<T>{h.data(), sequences, d, false}, head, z.data());
        on.split(sequences, 1, [&](std::size_t begin, std::size_t end, int) {
            std::vector<double> e(s.vocabulary);
            for (std::size_t i = begin; i < end; ++i) {
                simd::logit_sums sums;
                kernels.sum_logits(z.data() + i * s.vocabulary, s.vocabulary, 0, sums, e.data());
                const std::uint64_t at = std::uint64_t{i} * length + position;
                const double u =
                    (static_cast<double>(base::random_u32({seed, name}, at)) + 0.5) * 0x1p-32;
                double left = u * sums.sum;
                std::uint32_t id = 0;
                while (id + 1 < s.vocabulary && (left -= e[id]) >= 0) ++id;
                now[i] = id;
                all[i * length + position + 1] = id;
            }
        });
    }
    return all;
}

}  // namespace

std::vector<std::uint32_t> sample(const model_weights& model, lab::execution_context& on,
                                  arithmetic in, std::size_t sequences, std::size_t length,
                                  std::uint32_t start, std::uint64_t seed,
                                  const evaluation_request& control) {
    if (start >= model.shape().vocabulary) {
        base::refuse("token {} to begin with: the model has a vocabulary of {}", start,
                     model.shape().vocabulary);
    }
    return in == arithmetic::float64
               ? sampled<double>(model, on, sequences, length, start, seed, control)
               : sampled<float>(model, on, sequences, length, start, seed, control);
}

std::vector<window> windows_of(std::size_t tokens, std::size_t context, std::size_t stride) {
    std::vector<window> all;
    for (std::size_t begin = 0; begin + 1 < tokens; begin += stride) {
        const std::size_t count = std::min(context, tokens - begin);
        // The first rows' targets were predicted by the window before.
        all.push_back({begin, count, all.empty() ? 0 : context - stride,
                       std::min(count, tokens - begin - 1)});
        if (begin + count == tokens) break;
    }
    return all;
}

std::vector<window> separate_windows(std::size_t tokens, std::size_t context) {
    std::vector<window> all;
    for (std::size_t begin = 0; begin < tokens; begin += context) {
        all.push_back({begin, context, 0, context - 1});
    }
    return all;
}

std::vector<lab::layer_name> layers_of(const model_weights& model) {
    std::vector<lab::layer_name> all;
    const model_shape& s = model.shape();
    for (std::size_t i = 0; i < s.depth; ++i) {
        for (const place& p : model.linears(i)) all.push_back({model.layer_name(p), false});
    }
    all.push_back({model.layer_name(model.head()), true});
    return all;
}

evaluation evaluate(const model_weights& model, lab::execution_context& on,
                    const std::vector<arm>& arms, const evaluation_request& request) {
    check(model, request);
    if (request.in == arithmetic::float64) return run<double>(model, on, arms, request).all();
    return run<float>(model, on, arms, request).all();
}

}  // namespace mx::eval

// SPDX-License-Identifier: Apache-2.0
// The request of a training run, which determines every bit of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/model_config.hpp"
#include "libmx/lab/language_model.hpp"
#include "libmx/lab/optimizer.hpp"
#include "libmx/lab/precision.hpp"
#include "libmx/lab/proxy.hpp"

namespace mx::lab {

/// How labels are made: the teacher's output plus noise (paper), or that output scaled to rms 1
/// plus noise (teacher).
enum class task_kind : std::uint8_t { paper, teacher };
enum class loss_kind : std::uint8_t { mse, kl };
/// Who draws initial values, teacher and inputs: mx, or PyTorch's generator (torch_stream).
enum class stream_kind : std::uint8_t { mx, torch };

/// Settings that apply from update `after` + 1 on.
struct intervention {
    std::uint64_t after = 0;
    std::vector<setting> settings;  ///< of the precision
    std::vector<setting> update{};  ///< of the optimizer and the batches: update_state
    friend bool operator==(const intervention&, const intervention&) = default;
};

enum class model_kind : std::uint8_t { proxy, olmo, llama };

struct run_request {
    model_kind model = model_kind::proxy;
    student_shape shape;  ///< width, depth, activation and norm: of language models too
    // For language models.
    std::size_t heads = 2, key_heads = 0;  ///< key heads 0: as many as heads
    std::size_t context = 64;
    bool qk_norm = false;
    std::size_t experts = 0, experts_used = 2;  ///< of each block; no experts: one MLP
    double balance = 0.01;                      ///< routing_rule::balance
    std::string text_file;                      ///< "": made_text(), or tokens_file
    std::string tokens_file;                    ///< ids, with a `config`
    /// Of the model in init_file, which is then one that mx eval reads; it replaces the other
    /// members of the network but the context. Empty: another network.
    io::config_entries config;

    std::size_t batch = 256;  ///< tokens
    std::uint64_t steps = 1000;
    double rate = 1e-3, least_rate = 1e-5;
    std::uint64_t cosine_steps = 0;  ///< 0: the rate is constant
    std::uint64_t warmup_steps = 0;  ///< of them, or before the constant rate: from 0 in a line
    std::uint64_t seed = 1;
    /// Of the initial parameters; of teacher, batches and the noise of labels. nullopt: `seed`.
    std::optional<std::uint64_t> init_seed, data_seed;
    stream_kind stream = stream_kind::mx;
    task_kind task = task_kind::paper;
    loss_kind loss = loss_kind::mse;
    double temperature = 1;
    optimizer by = optimizer::adam;
    adam_numbers adam;
    double clip = 0;  ///< the gradient's norm is brought down to this; 0: it is not
    double noise = 5e-3;
    start begin = start::pytorch;
    double least_gain = 1, most_gain = 1;
    std::vector<setting> settings;  ///< of the precision, from the beginning
    std::vector<intervention> interventions;
    /// If `nudge` is not 0, the weights of this copy are multiplied by 1 + 1e-4 z, z standard
    /// normal, after `nudge_after` updates; `nudge` is the number of the copy.
    std::uint64_t nudge = 0, nudge_after = 0;
    std::string init_file;  ///< a model, if there is a config, or parameters; "": from the seed
    std::string data_file;  ///< "": made from the seed
    /// Steps between probes, the first at step 1; 0: no probes. Probes do not change the run.
    std::uint64_t probe_every = 0;
    int probe_draws = 4;  ///< of a probe under stochastic rounding

    friend bool operator==(const run_request&, const run_request&) = default;
};

inline constexpr double nudge_size = 1e-4;
/// Results hold no larger integers.
inline constexpr std::uint64_t most_seed = (std::uint64_t{1} << 63) - 1;

/// A named size of the language models.
struct model_size {
    std::string_view name;
    std::size_t width, depth, heads, context, batch;
    double rate;
};
inline constexpr std::array model_sizes{
    model_size{"tiny", 64, 2, 2, 64, 2048, 4e-3},
    model_size{"small", 128, 4, 4, 128, 4096, 2e-3},
    model_size{"medium", 256, 4, 4, 256, 8192, 1e-3},
    model_size{"h200", 512, 8, 8, 512, 65536, 1e-3},
};

/// The default request for a model. `size` is one of model_sizes for language models; "" selects
/// tiny, and is the only value for the proxy. Language models warm up for a fifth of the steps and
/// then decay along half a cosine to a tenth of the learning rate; fit_schedule() sets this once
/// the number of steps is known, and the batch of a training that goes on from a model. Throws
/// base::error (usage) for unknown names.
run_request request_for(const std::string& model, const std::string& size);
void fit_schedule(run_request& r);
/// Makes a request for llama one that goes on from the model at `init`, with the context, batch and
/// learning rate that are usual then. Throws base::error as llm::model_weights and
/// language_shape_of do.
void begin_with_model(run_request& r, const std::string& init);
language_shape language_shape_of(const run_request& r);
std::string_view name_of(model_kind m);

/// A named number or choice of a request: an option of mx train and an entry of checkpoints.
struct request_key {
    std::string_view name;
    std::string_view type;   ///< for help
    std::string_view group;  ///< for help
    bool proxy, language;    ///< whose requests have it
    std::string_view summary;
    void (*set)(run_request& r, const std::string& text);
    std::string (*get)(const run_request& r);
};

/// THE LIST of request keys.
std::span<const request_key> request_keys();

/// Sets one key. Throws base::error (usage) for values that the key does not accept, naming the
/// option and what it accepts, and for keys that the model does not have.
void set_key(run_request& r, const request_key& key, const std::string& text);

/// Parses the argument "S SETTINGS" of --at. Throws base::error (usage).
intervention parse_intervention(const std::string& text);

/// Throws base::error (usage) if the request is contradictory.
void check(const run_request& r);

/// Converts a request to text and back. from_text throws base::error (usage).
std::map<std::string, std::string> to_text(const run_request& r);
run_request from_text(const std::map<std::string, std::string>& text);

/// Files that a run still reads when it is resumed, by the key of the request: text, tokens, data.
using named_files = std::map<std::string, std::string>;

/// Replaces the files of a request that a checkpoint holds by those that the user named, and
/// refuses (base::error, usage) others that are not below this folder: a checkpoint may come from
/// others.
void settle_files(run_request& r, const named_files& named);

/// The settings of the update after `done` updates.
std::vector<setting> settings_after(const run_request& r, std::uint64_t done);

/// What interventions have changed in how parameters are updated.
struct update_state {
    run_request by;                  ///< with rate, clip and Adam's numbers as they are now
    std::uint64_t skipped = 0;       ///< batches: update s uses batch s + skipped
    std::uint64_t moments_from = 0;  ///< updates before Adam began with moments of zero
};

/// For the update after `done` updates: of the interventions so far, lr, clip, beta2, adam-eps and
/// weight-decay replace the request's, moments=reset sets moments_from, and skip=N adds N.
update_state update_after(const run_request& r, std::uint64_t done);

/// The learning rate of update `step`, counted from 1: `rate` step / warmup_steps during warm-up;
/// then constant, or half a cosine from rate to least_rate until cosine_steps.
double rate_of(const run_request& r, std::uint64_t step);

}  // namespace mx::lab

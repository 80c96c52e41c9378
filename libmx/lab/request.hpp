// SPDX-License-Identifier: Apache-2.0
// What decides every bit of a training of the proxy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/lab/optimizer.hpp"
#include "libmx/lab/precision.hpp"
#include "libmx/lab/proxy.hpp"

namespace mx::lab {

/// Where labels come from: the teacher's output and noise, or that output scaled to rms 1 and
/// noise.
enum class task_kind : std::uint8_t { paper, teacher };
enum class loss_kind : std::uint8_t { mse, kl };

/// Settings that hold from the update after the first `after` ones on.
struct intervention {
    std::uint64_t after = 0;
    std::vector<setting> settings;
    friend bool operator==(const intervention&, const intervention&) = default;
};

struct run_request {
    student_shape shape;
    std::size_t batch = 256;
    std::uint64_t steps = 1000;
    double rate = 1e-3, least_rate = 1e-5;
    std::uint64_t cosine_steps = 0;  ///< 0: the rate is constant
    std::uint64_t seed = 1;
    task_kind task = task_kind::paper;
    loss_kind loss = loss_kind::mse;
    double temperature = 1;
    optimizer by = optimizer::adam;
    double noise = 5e-3;
    start begin = start::pytorch;
    double least_gain = 1, most_gain = 1;
    std::vector<setting> settings;  ///< of the precision, from the beginning
    std::vector<intervention> interventions;
    /// Copy number of a run whose weights are multiplied by 1 + 1e-4 z after `nudge_after` updates,
    /// z normal; 0: none is.
    std::uint64_t nudge = 0, nudge_after = 0;
    std::string init_file, data_file;  ///< "": made from the seed
    /// Steps between probes, the first at step 1; 0: none. They change no bit of the training.
    std::uint64_t probe_every = 0;
    int probe_draws = 4;  ///< of a probe under stochastic rounding

    friend bool operator==(const run_request&, const run_request&) = default;
};

inline constexpr double nudge_size = 1e-4;

/// A number or choice of a request by name: an option of mx train, and an entry of checkpoints.
struct request_key {
    std::string_view name;
    std::string_view type;   ///< for help
    std::string_view group;  ///< for help
    std::string_view summary;
    void (*set)(run_request& r, const std::string& text);
    std::string (*get)(const run_request& r);
};

/// THE LIST of them.
std::span<const request_key> request_keys();

/// Sets one. Throws base::error (usage) naming the option and what it takes.
void set_key(run_request& r, const request_key& key, const std::string& text);

/// Parses "S SETTINGS" of --at. Throws base::error (usage).
intervention parse_intervention(const std::string& text);

/// Throws base::error (usage) where the request contradicts itself.
void check(const run_request& r);

/// All of it as text, and back. from_text throws base::error (usage).
std::map<std::string, std::string> to_text(const run_request& r);
run_request from_text(const std::map<std::string, std::string>& text);

/// The settings that hold for the update after `done` ones.
std::vector<setting> settings_after(const run_request& r, std::uint64_t done);

/// The rate of update number `step`, from 1: constant, or half a cosine from rate to least_rate.
double rate_of(const run_request& r, std::uint64_t step);

}  // namespace mx::lab

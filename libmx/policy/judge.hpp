// SPDX-License-Identifier: Apache-2.0
// The judgement: a policy applied to measured tensors. Pure: results in, decisions out.
//
// Tensors that are not operands of products keep their stored precision. For every other class the
// candidates of the policy are judged on each tensor alone, against their effect on normal data.
// The smallest safe one is recommended for the class; tensors for which it is ruled out get the
// next safe one or keep their precision, and so do those that are stored in few bits already. A
// class whose safe candidates were not measured is undecided: no other measured recipe replaces
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/policy/measured_model.hpp"
#include "libmx/policy/missing.hpp"
#include "libmx/policy/policy.hpp"
#include "libmx/policy/scores.hpp"
#include "libmx/policy/targets.hpp"
#include "libmx/policy/trial.hpp"

namespace mx::policy {

/// The recommendation of the stored precision.
inline constexpr std::string_view keep_choice = "keep";

/// A recipe over the operands of a class. Pooled figures are over its tensors, each divided by its
/// RMS, weighted by their elements.
struct class_recipe {
    std::string recipe;  ///< canonical, without axis and seeds
    std::string preset;
    verdict is = verdict::evaluate;  ///< at best
    support on_target = support::emulated;
    double bits = 0;       ///< per element
    double sqnr_db = 0;    ///< pooled; infinite where nothing is lost
    double normal_db = 0;  ///< of the recipe on normal data
    std::uint64_t bytes = 0;
    std::uint64_t elements = 0;                 ///< of the tensors it was measured on
    std::uint64_t vetoed_elements = 0;          ///< of those that it is ruled out for
    std::vector<std::size_t> vetoed, doubtful;  ///< tensors: no, needs evaluation
    std::optional<std::size_t> dominant;        ///< the tensor that most of the error is of
    std::string reason;                         ///< a scale rule that gains the margin; else empty
    std::string scored;                         ///< what the scores of a task say; else empty
    std::vector<trial> trials;                  ///< by operand of the class
};

/// The operands of a role, or those of them that are stored in few bits already.
struct class_judgement {
    std::string role;
    bool quantized = false;  ///< stored in fewer bits than quantized_bits: they are kept
    /// Indices of tensors. Those without whole blocks are judged, too, to show what harms them, and
    /// count in no sum.
    std::vector<std::size_t> operands;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;  ///< as stored
    /// The policy's candidates that were measured, in its order.
    std::vector<class_recipe> candidates;
    std::optional<std::size_t> chosen;  ///< none: kept, or undecided
    bool undecided = false;
    /// The best measured recipe of about 4, 6 and 8 bits, whatever the policy says about it.
    std::optional<class_recipe> four, six, eight;
    std::vector<class_recipe> baselines;  ///< those of policy::baselines() that were measured
    std::string reason;                   ///< a sentence

    /// The candidate chosen; null: none.
    const class_recipe* recommended() const { return chosen ? &candidates[*chosen] : nullptr; }
};

struct decision {
    std::string role;           ///< with the roles that the policy gives by name
    bool operand = false;       ///< of a product
    bool whole_blocks = false;  ///< an operand that kernels take; others keep their precision
    bool quantized = false;     ///< an operand that is stored in few bits already, and is kept
    std::uint64_t padded = 0;   ///< what its K, which blocks do not divide, is padded to; else 0
    bool counted = true;  ///< in the totals: not the state of an optimizer, nor, in a dump of a
                          ///< training step, what is no operand
    bool undecided = false;
    std::string recipe{keep_choice};  ///< as measured, with its axis
    verdict is = verdict::safe;
    std::optional<reached_limit>
        veto;  ///< the limit that ruled out, or casts doubt on, the recipe of its class
    std::optional<std::size_t> column;  ///< of the recipe in the table; none: kept or undecided
    double over_normal = 0;             ///< error_over_normal of the recipe
    std::string reason;                 ///< a phrase, or what a rule of the policy says
    bool by_rule = false;               ///< the reason is the words of such a rule
    std::uint64_t bytes = 0;       ///< 0 if the tensor that counts its storage is treated alike
    std::uint64_t could_save = 0;  ///< bytes that the keeping rule's recipe would save
};

/// An operand under the recipe of its class or, where none is recommended, under the candidate that
/// suits it least. Worst first: those for which the recipe is ruled out, then by squared error
/// relative to normal data, and last those whose error is that of one element. Operands without
/// whole blocks are among them only if they reach a limit.
struct risk {
    std::size_t tensor = 0;
    std::string recipe;
    bool recommended = false;                    ///< the recipe is that of the class
    double over_normal = 0;                      ///< error_over_normal
    double one_element = 0;                      ///< trial::one_element
    double energy = 0;                           ///< the squared error over the tensor's squares
    double underflow = 0, normal_underflow = 0;  ///< rates, of the tensor and of normal data
    verdict is = verdict::safe;
    std::optional<reached_limit> why;
    std::string remedy;  ///< what is recommended for the tensor where the recipe is ruled out

    /// Whether it is worth a sentence: a limit, or half a decibel more than normal data.
    bool noted() const { return why || over_normal >= 1.122; }
};

struct judgement_totals {
    std::uint64_t elements = 0, operand_elements = 0;
    std::uint64_t stored = 0, recommended = 0;  ///< bytes
    std::uint64_t kept = 0;                     ///< bytes that keep their precision
    std::uint64_t undecided = 0;                ///< stored bytes
    std::uint64_t not_counted = 0;              ///< stored bytes that the others leave out
    double ratio() const;                       ///< stored over recommended; 1 for no bytes
};

struct judgement {
    std::string policy_name, policy_version, target_name;
    std::vector<decision> decisions;       ///< by tensor
    std::vector<class_judgement> classes;  ///< those with operands, the largest first
    std::vector<risk> risks;
    std::vector<missing_recipes> missing;
    judgement_totals totals;
    bool of_a_step = false;  ///< the tensors are a dump of a training step: some are NAME.dy
    /// "tensor error only", or what the scores of a task say about a chosen recipe.
    std::string confidence;
    std::vector<std::string> unused_scores;  ///< recipes with scores that are no candidates
};

judgement judge(const measured_model& m, const policy& by, const target& on,
                std::span<const score> scores = {});

/// Why a tensor keeps its stored precision whatever is measured of it: it is not an operand of a
/// product, or the policy keeps it. Empty for the others, which `mx quantize` quantizes too.
/// `role`: policy::role_of.
std::string why_kept(const measured_tensor& t, std::string_view role, const policy& by);

/// Why an operand that is stored in few bits already is kept (setting `quantized_bits`); empty for
/// others.
std::string why_quantized(const measured_tensor& t, const policy& by);

/// "training" if there are gradients or moments, else "inference".
std::string_view default_policy(std::span<const measured_tensor> tensors);

/// The policy that the user stated, else the default one of the tensors.
policy policy_for(const std::optional<policy>& stated, std::span<const measured_tensor> tensors);

}  // namespace mx::policy

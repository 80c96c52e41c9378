// SPDX-License-Identifier: Apache-2.0
// Matrices that inference engines load as one, and that therefore have one format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mx::engine {

/// Whether the matrices of all experts of a layer count as one: their format is, each has scales of
/// its own.
enum class expert_fusion : std::uint8_t { together, apart };

/// The name of the fused matrix that a tensor or layer is a part of, or the name itself. One
/// name for q, k and v of attention ("layers.0.attn.{q,k,v}_proj"), for gate and up of an MLP
/// ("layers.0.mlp.{gate,up}_proj"), and for all matrices of a layer's experts
/// ("layers.0.mlp.experts.*"); with `apart`, gate and up of each expert. Names are those of Hugging
/// Face checkpoints, GGUF and llama2.c.
std::string fused_name(std::string_view name, expert_fusion experts = expert_fusion::together);

}  // namespace mx::engine

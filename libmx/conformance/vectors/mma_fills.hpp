// SPDX-License-Identifier: Apache-2.0
// The distributions and probes of the list in mma_inputs.cpp, one function each.
#pragma once

#include "libmx/conformance/vectors/mma_tile_maker.hpp"

namespace mx::conformance::vectors {

void fill_bits(mma_tile_maker& t);
void fill_finite(mma_tile_maker& t);
void fill_gauss(mma_tile_maker& t);
void fill_wide_products(mma_tile_maker& t);
void fill_cancel(mma_tile_maker& t);
void fill_tiny_products(mma_tile_maker& t);
void fill_huge_products(mma_tile_maker& t);
void fill_align(mma_tile_maker& t);
void fill_floor(mma_tile_maker& t);

/// Whether products of a case can be so small that the alignment floor shows.
bool reaches_floor(const mma_case& what);

void probe_alignment_bits(mma_tile_maker& t);
void probe_subnormal_largest(mma_tile_maker& t);
void probe_floor(mma_tile_maker& t);
void probe_group_cancels(mma_tile_maker& t);
void probe_scale_pairs(mma_tile_maker& t);
void probe_nan_scales(mma_tile_maker& t);
void probe_overflow(mma_tile_maker& t);
void probe_zeros(mma_tile_maker& t);
void probe_underflow(mma_tile_maker& t);

std::size_t eight_tiles(const mma_case& what);
std::size_t floor_tiles(const mma_case& what);
std::size_t group_tiles(const mma_case& what);
std::size_t scale_pair_tiles(const mma_case& what);
std::size_t scaled_tiles(const mma_case& what);

}  // namespace mx::conformance::vectors

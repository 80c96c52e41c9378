// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/figures.hpp"

#include <algorithm>

namespace mx::diff {

void value_figures::merge(const value_figures& other) {
    elements += other.elements;
    compared += other.compared;
    changed += other.changed;
    max_difference = std::max(max_difference, other.max_difference);
    a2.merge(other.a2);
    b2.merge(other.b2);
    ab.merge(other.ab);
    difference2.merge(other.difference2);
    difference.merge(other.difference);
}

void move_figures::merge(const move_figures& other) {
    blocks += other.blocks;
    scales_moved += other.scales_moved;
    elements += other.elements;
    codes_moved += other.codes_moved;
    elements_at_equal_scale += other.elements_at_equal_scale;
    moved_at_equal_scale += other.moved_at_equal_scale;
    followed += other.followed;
    flipped_back += other.flipped_back;
}

void dump_figures::merge(const dump_figures& other) {
    counted += other.counted;
    overflow += other.overflow;
    clamp += other.clamp;
    eligible_blocks += other.eligible_blocks;
    saturated_blocks += other.saturated_blocks;
    maxima += other.maxima;
    in_clamp_zone += other.in_clamp_zone;
    distance.merge(other.distance);
}

void code_figures::merge(const code_figures& other) {
    for (std::size_t i = 0; i < moves.size(); ++i) moves[i].merge(other.moves[i]);
    for (std::size_t i = 0; i < dumps.size(); ++i) dumps[i].merge(other.dumps[i]);
}

}  // namespace mx::diff

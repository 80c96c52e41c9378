// SPDX-License-Identifier: Apache-2.0
// The results of a conversion instruction (PTX cvt.rn.satfinite to codes, cvt.rn.f16x2 back) from
// the emulator: the converter that the host uses instead.
#pragma once

#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/format/cast.hpp"

namespace mx::codec::cuda {

class instruction_stand_in {
  public:
    explicit MX_HD instruction_stand_in(const ocp_params& p) : p_(p) {}
    MX_HD value_pair values(const row_grid& g, float first, float second) const {
        return {p_.value[code_of(first * g.in_ones)] * g.per_unit,
                p_.value[code_of(second * g.in_ones)] * g.per_unit};
    }
    MX_HD std::uint32_t codes(const row_grid& g, float first, float second) const {
        return code_of(first * g.in_ones) | code_of(second * g.in_ones) << 8;
    }

  private:
    MX_HD std::uint32_t code_of(float y) const {
        return format::cast_code(p_.element, {}, base::bits_of(y), true, 0);
    }
    const ocp_params& p_;
};

}  // namespace mx::codec::cuda

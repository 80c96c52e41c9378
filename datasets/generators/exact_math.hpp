// SPDX-License-Identifier: Apache-2.0
// Logarithm and exponential from correctly rounded operations only, so that every IEEE machine
// and compiler gets the same bits; the last bit of libm's own functions differs between systems.
#pragma once

namespace mx::synth {

/// Natural logarithm of a normal x > 0. Error below 2e-16 absolute plus 4e-16 relative.
double exact_log(double x);

/// e^x for |x| <= 700, relative error below 1e-15. Values outside are a precondition violation.
double exact_exp(double x);

}  // namespace mx::synth

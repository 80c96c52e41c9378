// SPDX-License-Identifier: Apache-2.0
#include "libmx/transform/rotation.hpp"

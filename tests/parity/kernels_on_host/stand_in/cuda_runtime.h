// SPDX-License-Identifier: Apache-2.0
// Everything is in card.hpp, which is included before all else, as nvcc does with its own.
#pragma once

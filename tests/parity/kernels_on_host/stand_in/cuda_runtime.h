// SPDX-License-Identifier: Apache-2.0
// Everything is in card.hpp, which is included first, as nvcc does with its own header.
#pragma once

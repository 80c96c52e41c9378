// SPDX-License-Identifier: Apache-2.0
// Includes Catch2 version 2 (Debian 12) or version 3 (current Ubuntu).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

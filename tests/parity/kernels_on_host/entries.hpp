// SPDX-License-Identifier: Apache-2.0
// Entry points of kernels for both sides: a launch of mx and one of mx_card have the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace card {

/// Like the enqueue functions of the kernels of codec/cuda, its elements, gemm/cuda and lab/cuda.
int enqueue_segments(const void* launch, void* stream);
int enqueue_elements(const void* launch, void* stream);
int enqueue_products(const void* launch, void* stream);
int enqueue_chains(const void* launch, void* stream);
int enqueue_job(const void* job, std::uint64_t count, void* stream);
int enqueue_work(const void* work, void* stream);

int enqueue_read(const std::byte* from, std::uint64_t bytes, std::uint32_t* sum, void* stream);
int enqueue_copy(std::byte* to, const std::byte* from, std::uint64_t bytes, void* stream);

/// instruction_path::compare of a format.
int compare_conversions(const char* format, const void* expected, const void* words,
                        unsigned long long* different, void* stream);

}  // namespace card

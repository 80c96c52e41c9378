// SPDX-License-Identifier: Apache-2.0
// A sum without a reduction clause: ThreadSanitizer must report it (the test expects that).
#include <cstdio>

int main() {
    long sum = 0;
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 10000; ++i) sum += i;
    std::printf("%ld\n", sum);
    return 0;
}

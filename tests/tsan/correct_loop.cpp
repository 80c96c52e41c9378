// SPDX-License-Identifier: Apache-2.0
// Correct OpenMP code of the kinds mx uses, for which ThreadSanitizer must report nothing. It
// reports errors with libgomp, whose barriers it does not recognise, and without archer.
#include <cstdio>
#include <cstdlib>
#include <vector>

int main() {
    constexpr int elements = 10000;
    std::vector<long> squares(elements);
    long total = 0;
    for (int pass = 0; pass < 20; ++pass) {
        long sum = 0;
#pragma omp parallel for num_threads(4) schedule(dynamic, 16)
        for (int i = 0; i < elements; ++i) squares[static_cast<std::size_t>(i)] = long{i} * i;
            // The next loop, with another number of threads, reads what other threads wrote.
#pragma omp parallel for num_threads(3) reduction(+ : sum)
        for (int i = 0; i < elements; ++i) sum += squares[static_cast<std::size_t>(i)];
#pragma omp parallel num_threads(4)
        {
#pragma omp critical
            total += sum;
        }
    }
    std::printf("%ld\n", total);
    return total == 80L * 333283335000L ? EXIT_SUCCESS : EXIT_FAILURE;
}

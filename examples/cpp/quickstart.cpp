// SPDX-License-Identifier: Apache-2.0
// Quantizes an array, then measures the tensors of a checkpoint: quickstart FILE [RECIPE]...
#include <mx/mx.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

// An array of your own: codes, scales and values.
void quantize_an_array() {
    std::vector<float> w(64 * 128);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 97) - 48;
    const mx::blocks q = mx::quantize({w, 64, 128}, mx::parse_recipe("nvfp4"));
    const std::vector<float> d = mx::dequantize(q);
    std::printf("nvfp4: %zu bytes of codes, %zu scales, a tensor scale of %g; %g becomes %g\n",
                q.packed_codes().size(), q.scales().size(), double{*q.tensor_scale()},
                double{w[1]}, double{d[1]});
}

// Every tensor of a file, read once for all recipes.
void measure_a_file(const std::string& path, const std::vector<mx::recipe>& recipes) {
    for (const mx::view& t : mx::open(path)) {
        std::printf("%s", t.name().c_str());
        for (const mx::row& figures : mx::measure(t, recipes)) {
            std::printf("  %.2f dB", figures.sqnr_db);
        }
        std::printf("\n");
    }
}

}  // namespace

int main(int count, char** arguments) {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    if (words.empty()) {
        std::fprintf(stderr, "quickstart FILE [RECIPE]...\n");
        return 2;
    }
    try {
        std::vector<mx::recipe> recipes;
        for (std::size_t i = 1; i < words.size(); ++i) {
            recipes.push_back(mx::parse_recipe(words[i]));
        }
        if (recipes.empty()) {
            for (const char* text : {"bf16", "e4m3:scale=tensor", "mxfp8", "nvfp4"}) {
                recipes.push_back(mx::parse_recipe(text));
            }
        }
        quantize_an_array();
        measure_a_file(words.front(), recipes);
    } catch (const mx::error& e) {
        std::fprintf(stderr, "quickstart: %s\n", e.what());
        return 1;
    }
    return 0;
}

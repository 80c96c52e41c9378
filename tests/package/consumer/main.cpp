// SPDX-License-Identifier: Apache-2.0
// The example of docs/guide/library.md on small arrays with known results; prints the figures of a
// file for comparison with `mx analyze`.
#include <mx/mx.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::printf("failed: %s\n", what);
    std::exit(1);
}

// A safetensors file of one F32 tensor, 1x2: under the floor rule, E4M3 turns 960 into 896.
void write_file() {
    std::string header = R"({"norm.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
    while (header.size() % 8 != 0) header += ' ';
    const std::uint64_t length = header.size();
    const float values[] = {960.0f, 957.0f};
    std::ofstream out("two_floats.safetensors", std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header;
    out.write(reinterpret_cast<const char*>(values), sizeof values);
}

// A bf16 matrix under blocks of 16 and under tiles: the same bytes on every backend.
void compare_backends() {
    std::vector<std::uint16_t> x(96 * 80);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<std::uint16_t>(0x3c00 + i * 7919 % 1021 + (i % 3 == 0 ? 0x8000 : 0));
    }
    const mx::view matrix(x.data(), mx::dtype::bf16, {96, 80});
    for (const char* text : {"mxfp4:block=1x16", "mxint8:block=8x8"}) {
        const mx::recipe r = mx::parse_recipe(text);
        const mx::blocks expected = mx::quantize(matrix, r, {1, "scalar"});
        const std::vector<float> values = mx::dequantize(expected);
        for (const char* backend : {"neon", "sse4", "avx2", "avx512", "cuda"}) {
            try {
                const mx::blocks q = mx::quantize(matrix, r, {2, backend});
                require(q.packed_codes() == expected.packed_codes(), "codes of a backend");
                require(mx::dequantize(q) == values, "values of a backend");
                std::printf("%s by %s\n", text, backend);
            } catch (const mx::error& e) {
                require(e.kind() == mx::error_kind::unavailable, e.what());
            }
        }
    }
}

}  // namespace

int main() {
    std::vector<float> w(64 * 64, 1.f);
    const mx::recipe r = mx::parse_recipe("nvfp4:scale=two-level");
    const mx::blocks q = mx::quantize({w, 64, 64}, r);
    require(q.codes().size() == 4096 && q.scales().size() == 256, "sizes");
    require(mx::dequantize(q) == w, "ones are kept");
    const mx::row m = mx::measure({w, 64, 64}, r);
    require(m.rmse < 1e-7 && m.clamp_rate == 0, "figures of ones");
    write_file();
    for (const auto& t : mx::open("two_floats.safetensors").select("*norm*")) {
        const mx::row figures = mx::measure(t, mx::parse_recipe("mxfp8:scale=floor"));
        require(figures.max_abs_error == 64, "the known error");
        std::printf("%s rmse %.17g clamp_rate %.1f\n", t.name().c_str(), figures.rmse,
                    figures.clamp_rate);
    }
    compare_backends();
    return 0;
}

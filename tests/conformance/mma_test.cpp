// SPDX-License-Identifier: Apache-2.0
// Vectors of matrix instructions: a model with any parameter off by one, a result with any bit off
// and metadata that does not fit are all found.
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"
#include "tests/memory_model.hpp"

namespace {

namespace gemm = mx::gemm;
using mx::base::error_kind;
using mx::conformance::verify::verification;
using mx::tensor::dtype;
using mx::tests::memory_model;

memory_model copy_of(const mx::io::reader& file) {
    memory_model copy;
    for (std::size_t t = 0; t < file.tensors().size(); ++t) {
        const mx::io::tensor_info& info = file.tensors()[t];
        std::vector<std::byte> bytes(info.bytes);
        file.open(t)->read(0, bytes);
        copy.add(info.name, info.type, info.shape, bytes);
    }
    for (const auto& [key, value] : file.metadata()) copy.describe(key, value);
    return copy;
}

std::vector<std::string> all_paths() {
    std::vector<std::string> paths = mx::tests::vector_files("mma");
    for (const std::string& path : mx::tests::vector_files("recorded")) paths.push_back(path);
    return paths;
}

verification verify(const mx::io::reader& file,
                    const mx::conformance::verify::verify_options& how = {}) {
    return mx::conformance::verify::verify_vectors(file, "file", how);
}

// The name of the model that a file was compared with: "sm100.f16: bf16 x bf16" begins with it.
std::string model_of(const verification& v) { return v.by.substr(0, v.by.find(": ")); }

// Differences per model over all files, with `change` made to every model that it can be made to.
using change = std::function<bool(gemm::accumulator&)>;
std::map<std::string, std::uint64_t> differences(const change& make) {
    std::map<std::string, std::uint64_t> found;
    for (const std::string& path : all_paths()) {
        const auto file = mx::io::open_model(path);
        mx::conformance::verify::verify_options how;
        const std::string name = model_of(verify(*file));
        how.accumulator = gemm::parse_accumulator(name);
        if (make(*how.accumulator)) found[name] += verify(*file, how).differences;
    }
    return found;
}

std::vector<std::string> unchanged(const std::map<std::string, std::uint64_t>& found) {
    std::vector<std::string> names;
    for (const auto& [name, count] : found) {
        if (count == 0) names.push_back(name);
    }
    return names;
}

}  // namespace

TEST_CASE("one fraction bit more or less shows in every model but those whose data cannot tell") {
    for (const int by : {-1, 1}) {
        const auto found = differences([&](gemm::accumulator& m) {
            m.fraction_bits += by;
            return true;
        });
        CHECK(found.size() == 23);
        // B200's recordings of fp8 only bound F from below, those of f16 results hardly depend on
        // it (H100's share their model with vectors that do).
        CHECK(unchanged(found) == std::vector<std::string>{"sm100.mma.f16.f16acc", "sm100.mma.fp8",
                                                           "sm100.mma.fp8.f16acc",
                                                           "sm90.mma.fp8.f16acc"});
    }
    const auto found = differences([](gemm::accumulator& m) {
        m.fraction_bits = 18;
        return m.name == "sm100.mma.fp8";
    });
    CHECK(unchanged(found).empty());
    CHECK(found.size() == 1);
}

TEST_CASE("steps shorter by one show in every model") {
    const auto found = differences([](gemm::accumulator& m) {
        // The recordings of tf32 are of 4 terms.
        const int by = m.enters == gemm::intake::halves ? 2 : 1;
        m.fused_length = m.name.find("mma.tf32") != std::string::npos ? 3 : m.fused_length - by;
        // A step ends where a group does, and it is the steps of groups that are aligned.
        if (m.how == gemm::algorithm::grouped) m.fused_length = 48;
        return true;
    });
    CHECK(unchanged(found).empty());
    // A group is exact however long: only that it is aligned as a whole shows.
    const auto groups = differences([](gemm::accumulator& m) {
        m.group_length = 2;
        return m.how == gemm::algorithm::grouped;
    });
    CHECK(groups.size() == 2);
    CHECK(unchanged(groups).empty());
}

TEST_CASE("a floor off by one shows where products get as small") {
    for (const int by : {-1, 1}) {
        const auto found = differences([&](gemm::accumulator& m) {
            m.exponent_floor += by;
            return true;
        });
        for (const char* name : {"sm100.f16", "sm100.tf32", "sm100.mxf8f6f4", "sm90.wgmma.f16",
                                 "sm90.wgmma.tf32", "sm90.mma.f16.f16acc"}) {
            CAPTURE(name, by);
            CHECK(found.at(name) > 0);
        }
        // Products of fp8 stay above 2^-64, accumulators align at -126 and more.
        CHECK(found.at("sm100.f8f6f4") == 0);
        CHECK(found.at("sm90.wgmma.fp8") == 0);
    }
    const auto scaled = differences([](gemm::accumulator& m) {
        --m.exponent_floor;
        return m.name == "sm100.mxf4";
    });
    CHECK(scaled.at("sm100.mxf4") > 0);
}

TEST_CASE("the conversion, and how the accumulator enters, show") {
    const auto converted = differences([](gemm::accumulator& m) {
        if (gives_f16(m)) return false;
        m.convert = gemm::conversion::rne_fp32;
        return true;
    });
    // The same recordings are too coarse: what is added afterwards covers the difference.
    CHECK(unchanged(converted) == std::vector<std::string>{"sm100.mma.fp8"});
    const auto entered = differences([](gemm::accumulator& m) {
        m.c = m.c == gemm::entry::term ? gemm::entry::afterwards : gemm::entry::term;
        return true;
    });
    CHECK(unchanged(entered).empty());
}

TEST_CASE("which of every four k a step takes shows in f16 results") {
    const auto found = differences([](gemm::accumulator& m) {
        if (m.enters != gemm::intake::halves) return false;
        m.enters = gemm::intake::codes;
        m.promote_every = 2 * m.fused_length;
        m.c = gemm::entry::term;
        return true;
    });
    CHECK(found.at("sm100.mma.fp8.f16acc") > 20);
    CHECK(found.at("sm90.mma.fp8.f16acc") > 10);
    CHECK(found.at("sm100.mma.fp8") == 0);  // too coarse to show a difference
}

TEST_CASE("any bit of any result is found, and named") {
    std::mt19937_64 random(5);
    int flipped = 0;
    for (const std::string& path : all_paths()) {
        const auto file = mx::io::open_model(path);
        memory_model copy = copy_of(*file);
        for (std::size_t t = 0; t < copy.tensors().size(); ++t) {
            const mx::io::tensor_info& info = copy.tensors()[t];
            if (info.name != "D" && !info.name.ends_with(".D")) continue;
            const std::size_t bit = random() % (8 * info.bytes);
            copy.bytes(t)[bit / 8] ^= std::byte{1} << (bit % 8);
            const verification v = verify(copy);
            copy.bytes(t)[bit / 8] ^= std::byte{1} << (bit % 8);
            ++flipped;
            CAPTURE(path, info.name, bit);
            REQUIRE(v.differences == 1);
            CHECK(v.first.at(0).tensor == info.name);
            CHECK(v.first.at(0).index == bit / 8 / (info.bytes / info.elements));
        }
    }
    CHECK(flipped == 50 * 9 + 16);
}

namespace {

// The file of `path` with one metadata entry changed must be refused with these words.
void refuses(const std::string& path, const std::string& key, const std::string& value,
             const std::string& words) {
    const auto file = mx::io::open_model(path);
    memory_model copy = copy_of(*file);
    copy.describe(key, value);
    CAPTURE(key, value);
    try {
        verify(copy);
        FAIL("not refused");
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == error_kind::input);
        CHECK_THAT(e.what(), Catch::Matchers::Contains(words));
    }
}

std::string path_of(const std::string& folder, const std::string& name) {
    for (const std::string& path : mx::tests::vector_files(folder)) {
        if (mx::tests::stem(path) == name) return path;
    }
    throw std::out_of_range(name);
}

// `tensor` of the file with another shape, or of another type.
void refuses_shape(const std::string& path, const std::string& name, const mx::tensor::shape& shape,
                   const std::string& words) {
    const auto file = mx::io::open_model(path);
    memory_model copy;
    for (std::size_t t = 0; t < file->tensors().size(); ++t) {
        const mx::io::tensor_info& info = file->tensors()[t];
        const mx::tensor::shape& as = info.name == name ? shape : info.shape;
        std::vector<std::byte> bytes(*mx::tensor::element_count(as) * info.bytes / info.elements);
        copy.add(info.name, info.type, as, bytes);
    }
    for (const auto& [key, value] : file->metadata()) copy.describe(key, value);
    CAPTURE(name, words);
    try {
        verify(copy);
        FAIL("not refused");
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == error_kind::input);
        CHECK_THAT(e.what(), Catch::Matchers::Contains(words));
    }
}

}  // namespace

TEST_CASE("metadata of matrix instructions that does not fit is refused") {
    const std::string mma = path_of("mma", "sm100.mxf8f6f4.e4m3.e4m3.f32.single");
    refuses(mma, "F", "24", "says F=24, but accumulator sm100.mxf8f6f4 has 25");
    refuses(mma, "F", "25 bits", "an integer");
    refuses(mma, "exponent_floor", "-132", "exponent_floor=-132");
    refuses(mma, "rounding", "RNE-FP32", "rounding=RNE-FP32");
    refuses(mma, "a_format", "e9m9", "no operand format");
    refuses(mma, "a_format", "f16", "no accumulator model");
    refuses(mma, "scale_format", "none", "no accumulator model");
    refuses(mma, "scale_block", "16", "no accumulator model");
    refuses(mma, "scale_block", "-32", "an integer");
    refuses(mma, "architecture", "sm_61", "no accumulator model");
    refuses(mma, "architecture", "(none)", "names no chip");
    refuses(mma, "instruction", "imma", "no accumulator model");
    refuses(mma, "acc_format", "f64", "acc_format=f64");
    refuses(mma, "acc_format", "f16", "no accumulator model");
    refuses(mma, "instruction_k", "0", "an integer");
    refuses(mma, "k_total", "64", "has 32 elements along k");
    const std::string recorded = path_of("recorded", "b200.f16.f16");
    refuses(recorded, "model", "magic", "model=magic");
    refuses(recorded, "model", "fused-step", "of results in f16");
    refuses(recorded, "out_format", "f32", "of results in f32");
    refuses(recorded, "conversion", "RZ-FP32", "conversion=RZ-FP32");
    refuses(recorded, "b_format", "bf16", "no accumulator model");
}

TEST_CASE("a file that does not state the model's parameters is compared all the same") {
    const auto without = [](const std::string& path, const std::vector<std::string>& keys) {
        const auto file = mx::io::open_model(path);
        memory_model copy = copy_of(*file);
        for (const std::string& key : keys) copy.forget(key);
        copy.describe("architecture", "sm_100a");
        return copy;
    };
    memory_model captured = without(path_of("mma", "sm100.mxf8f6f4.e4m3.e4m3.f32.single"),
                                    {"F", "exponent_floor", "rounding", "k_total"});
    CHECK(verify(captured).differences == 0);
    CHECK(model_of(verify(captured)) == "sm100.mxf8f6f4");
    for (std::size_t t = 0; t < captured.tensors().size(); ++t) {
        if (captured.tensors()[t].name == "finite.D") captured.bytes(t)[0] ^= std::byte{1};
    }
    CHECK(verify(captured).differences == 1);
    CHECK(
        verify(without(path_of("recorded", "b200.bf16.f32"), {"F", "exponent_floor", "conversion"}))
            .differences == 0);
}

TEST_CASE("an instruction shorter than a step of the model is a step of its own") {
    // Two k8 instructions: 2^29 - 2^29 in the first, 1 in the second. A single step of 16 aligns
    // all at 29 and truncates the 1, which is 29 bits below, while F is 25.
    memory_model m;
    for (const auto& [key, value] : {std::pair{"kind", "mma"},
                                     {"architecture", "sm_100"},
                                     {"instruction", "mma.sync m16n8k8 bf16"},
                                     {"a_format", "bf16"},
                                     {"b_format", "bf16"},
                                     {"acc_format", "f32"},
                                     {"instruction_k", "8"}}) {
        m.describe(key, value);
    }
    std::vector<std::uint16_t> a(16, 0), b(16, 0x3f80);
    a[0] = 0x4e00;  // 2^29
    a[1] = 0xce00;
    a[8] = 0x3f80;  // 1
    m.add("one.A", dtype::u16, {1, 1, 16}, a);
    m.add("one.B", dtype::u16, {1, 1, 16}, b);
    m.add("one.C", dtype::u32, {1, 1, 1}, std::vector<std::uint32_t>{0});
    m.add("one.D", dtype::u32, {1, 1, 1}, std::vector<std::uint32_t>{0x3f800000});
    const verification v = verify(m);
    CHECK(model_of(v) == "sm100.mma.f16:fused_length=8");
    CHECK(v.differences == 0);
    m.describe("instruction_k", "16");
    CHECK(model_of(verify(m)) == "sm100.mma.f16");
    CHECK(verify(m).differences == 1);
}

TEST_CASE("tensors of matrix instructions that do not fit are refused") {
    const std::string mma = path_of("mma", "sm100.mxf8f6f4.e4m3.e4m3.f32.single");
    refuses_shape(mma, "bits.A", {1, 8}, "tiles x rows x k");
    refuses_shape(mma, "bits.A", {0, 8, 32}, "tiles x rows x k");
    refuses_shape(mma, "bits.B", {1, 4, 31}, "tiles x columns x k");
    refuses_shape(mma, "bits.C", {1, 4, 8}, "the operands call for 1x8x4");
    refuses_shape(mma, "bits.D", {32}, "the operands call for 1x8x4");
    refuses_shape(mma, "bits.SFA", {1, 8, 2}, "the operands call for 1x8x1");
    const std::string recorded = path_of("recorded", "b200.tf32.f32");
    refuses_shape(recorded, "A", {1000}, "rows x k");
    refuses_shape(recorded, "B", {4, 250}, "where A is");
    refuses_shape(recorded, "D", {249}, "249 values; the inputs require 250");

    const auto file = mx::io::open_model(mma);
    memory_model copy = copy_of(*file);
    copy.add("bits.E", dtype::u8, {1}, std::vector<std::uint8_t>(1));
    CHECK_THROWS_AS(verify(copy), mx::base::error);
    // A code of six bits in an entry of eight.
    const auto narrow = mx::io::open_model(path_of("mma", "sm100.f8f6f4.e2m3.e2m3.f32.single"));
    copy = copy_of(*narrow);
    for (std::size_t t = 0; t < copy.tensors().size(); ++t) {
        if (copy.tensors()[t].name == "bits.A") copy.bytes(t)[3] |= std::byte{0x40};
    }
    CHECK_THROWS_AS(verify(copy), mx::base::error);
}

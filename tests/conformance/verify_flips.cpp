// SPDX-License-Identifier: Apache-2.0
// A bit that changes a value of a contract tensor is found, and its place is named.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/format/decode.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/conformance/vectors.hpp"
#include "tests/memory_model.hpp"

namespace {

using mx::conformance::verify::verification;
using mx::tests::memory_model;

// Which rows of a tensor go into a smaller file.
using rows = std::vector<std::size_t>;
// The rows to keep of a tensor; none: leave the tensor out.
using selection = std::function<std::optional<rows>(const mx::io::tensor_info&)>;
constexpr std::nullopt_t leave_out = std::nullopt;

rows all_rows(const mx::io::tensor_info& t) {
    rows all(t.shape.empty() ? 1 : t.shape[0]);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
}

memory_model part_of(const mx::io::reader& file, const selection& keep) {
    memory_model part;
    for (std::size_t t = 0; t < file.tensors().size(); ++t) {
        const mx::io::tensor_info& info = file.tensors()[t];
        const std::optional<rows> kept = keep(info);
        if (!kept) continue;
        std::vector<std::byte> bytes(info.bytes);
        file.open(t)->read(0, bytes);
        const std::size_t rows_in = info.shape.empty() ? 1 : info.shape[0];
        const std::size_t width = rows_in == 0 ? 0 : bytes.size() / rows_in;
        std::vector<std::byte> out;
        for (const std::size_t r : *kept) {
            const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(r * width);
            out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(width));
        }
        mx::tensor::shape shape = info.shape;
        if (!shape.empty()) shape[0] = kept->size();
        part.add(info.name, info.type, shape, out);
    }
    for (const auto& [key, value] : file.metadata()) part.describe(key, value);
    return part;
}

bool is_input(const std::string& name) {
    return name == "input" || name == "fp32.input" || name == "amax" || name == "rbits" ||
           name == "category" || name == "is_bf16";
}

bool is_nan_code(const memory_model& file, std::uint8_t code) {
    const auto named = file.metadata().find("element");
    if (named == file.metadata().end()) return false;
    const auto* f = mx::format::find_element_format(named->second);
    return f != nullptr && code < f->codes() && std::isnan(mx::format::decode(*f, code));
}

bool is_nan_word(std::span<const std::byte> bytes, std::size_t word) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + 4 * word, 4);
    return (bits & mx::base::f32_magnitude_mask) > mx::base::f32_infinity;
}

// One of the bits of a file.
struct place {
    std::size_t tensor;
    std::size_t bit;
};

// The result of a flip.
enum class outcome : std::uint8_t { found, same_class, missed };

outcome flip_and_verify(memory_model& file, const place& at) {
    const mx::io::tensor_info& info = file.tensors()[at.tensor];
    const std::span<std::byte> bytes = file.bytes(at.tensor);
    const std::size_t width = mx::tensor::row_of(info.type).bits / 8;
    const std::size_t index = at.bit / 8 / width;
    const bool is_float = info.type == mx::tensor::dtype::f32 || info.name.ends_with("bits");
    const bool is_code = info.name.find("code") != std::string::npos && info.name != "scale_code";
    const auto nan_now = [&] {
        if (is_float) return is_nan_word(bytes, index);
        return is_code && is_nan_code(file, std::to_integer<std::uint8_t>(bytes[index]));
    };
    const bool nan_before = nan_now();
    const auto flip = [&] { bytes[at.bit / 8] ^= static_cast<std::byte>(1u << (at.bit % 8)); };
    flip();
    const bool same_class = nan_before && nan_now();
    mx::conformance::verify::verify_options options;
    options.show = 100000;
    const verification v = mx::conformance::verify::verify_vectors(file, "flipped", options);
    flip();
    if (same_class) return v.differences == 0 ? outcome::same_class : outcome::missed;
    // An index that moved is missing at its old place and surplus at the new one.
    const bool exact = !info.name.ends_with("diff_index");
    for (const mx::conformance::verify::difference& d : v.first) {
        if (d.tensor == info.name && (!exact || d.index == index)) return outcome::found;
    }
    return outcome::missed;
}

// All bits of the contract tensors of a file of which no value is skipped.
void flip_everything(memory_model file, std::size_t at_least) {
    const verification before = mx::conformance::verify::verify_vectors(file, "whole", {});
    REQUIRE(before.differences == 0);
    std::uint64_t skipped = 0;
    for (const auto& s : before.skipped) skipped += s.values;
    REQUIRE(skipped == 0);
    std::size_t found = 0;
    for (std::size_t t = 0; t < file.tensors().size(); ++t) {
        if (is_input(file.tensors()[t].name)) continue;
        for (std::size_t bit = 0; bit < 8 * file.tensors()[t].bytes; ++bit) {
            const outcome o = flip_and_verify(file, {t, bit});
            if (o == outcome::missed) FAIL(file.tensors()[t].name << " bit " << bit);
            found += o == outcome::found ? 1 : 0;
        }
    }
    CHECK(found >= at_least);
}

std::string vector_path(const std::string& name) {
    return std::string(MX_SOURCE_DIR) + "/datasets/vectors/" + name + ".safetensors";
}

}  // namespace

TEST_CASE("every bit of a small blocks file counts") {
    const char* names[] = {"blocks/torchao_e4m3_even_32",
                           "blocks/torchao_e2m1_rceil_16",
                           "blocks/ocp-gfloat_int8_floor_32",
                           "dialects/quark_e2m3_even_32",
                           "dialects/tetrajet_e3m0_ceil-div-max_32",
                           "dialects/microxcaling_int4_floor_32_away",
                           "dialects/modelopt_e2m1_rceil_32",
                           "nvfp4/torchao_nvfp4_single-level_16",
                           "search/search_mxfp4_32"};
    for (const char* name : names) {
        CAPTURE(name);
        const auto file = mx::io::open_model(vector_path(name));
        const std::size_t count = file->tensors()[0].shape[0];
        // Five rows over the whole file, none of them non-finite (torchao's last category). Only
        // files that the contract names: tetrajet's files contain more.
        const auto contract = mx::tests::split(file->metadata().at("contract"), ' ');
        const auto keep = [&](const mx::io::tensor_info& t) -> std::optional<rows> {
            const bool named =
                std::find(contract.begin(), contract.end(), t.name) != contract.end();
            if (!named && !is_input(t.name)) return leave_out;
            return rows{0, count / 4, count / 2, 3 * count / 5, 7 * count / 10};
        };
        flip_everything(part_of(*file, keep), 2000);
    }
}

TEST_CASE("every bit of a small elements file counts") {
    for (const char* name :
         {"elements/e2m1", "elements/e4m3", "elements/int4", "elements/e8m0", "elements/ue4m3"}) {
        CAPTURE(name);
        const auto file = mx::io::open_model(vector_path(name));
        const auto v = mx::tests::read_vectors(vector_path(name));
        const std::vector<float>& x = v.tensor.at("fp32.input");
        rows kept;
        for (std::size_t i = 0; i < x.size(); i += 97) {
            const bool masked =
                v.tensor.contains("fp32.finite_mask") && v.tensor.at("fp32.finite_mask")[i] == 0;
            if (std::isfinite(x[i]) && !masked) kept.push_back(i);
        }
        const auto keep = [&](const mx::io::tensor_info& t) -> std::optional<rows> {
            if (t.name == "decode_table") return all_rows(t);
            if (t.name.starts_with("fp32.")) return kept;
            return leave_out;
        };
        flip_everything(part_of(*file, keep), 1000);
    }
}

TEST_CASE("every bit of where implementations depart counts") {
    for (const char* name : {"e2m1", "e4m3", "e8m0", "ue4m3"}) {
        CAPTURE(name);
        const std::string path = vector_path("dialects/departures_" + std::string(name));
        const auto file = mx::io::open_model(path);
        // The first inputs, and their entries in the lists, which are in ascending order.
        constexpr std::size_t inputs = 400;
        const auto keep = [&](const mx::io::tensor_info& t) -> std::optional<rows> {
            rows kept = all_rows(t);
            const bool by_payload = t.name.find("torchao") != std::string::npos;
            if (t.name.starts_with("special.") && !by_payload) return kept;
            if (!t.name.starts_with("fp32.")) return leave_out;
            if (t.name.find(".diff_") == std::string::npos) {
                kept.resize(inputs);
                return kept;
            }
            const std::string list = t.name.substr(0, t.name.rfind('.'));
            const auto bytes = mx::tests::bytes_of(*file, list + ".diff_index");
            std::vector<std::uint32_t> index(bytes.size() / 4);
            if (!bytes.empty()) std::memcpy(index.data(), bytes.data(), bytes.size());
            kept.resize(static_cast<std::size_t>(
                std::lower_bound(index.begin(), index.end(), inputs) - index.begin()));
            return kept;
        };
        flip_everything(part_of(*file, keep), 300);
    }
}

TEST_CASE("every bit of a small scales file counts") {
    for (const char* name : {"scales/amax_to_scale", "dialects/amax_to_scale"}) {
        const auto file = mx::io::open_model(vector_path(name));
        const auto v = mx::tests::read_vectors(vector_path(name));
        const std::vector<float>& amax = v.tensor.at("amax");
        rows kept;
        for (std::size_t i = 0; i < amax.size(); i += 211) {
            if (amax[i] > 1e-30f && amax[i] < 1e38f) kept.push_back(i);
        }
        REQUIRE(kept.size() >= 8);
        kept.resize(8);
        flip_everything(part_of(*file, [&](const mx::io::tensor_info&) { return kept; }), 1000);
    }
}

TEST_CASE("every bit of a small stochastic file counts") {
    for (const char* name : {"stochastic/e4m3", "dialects/stochastic_e2m1"}) {
        const auto file = mx::io::open_model(vector_path(name));
        const auto keep = [](const mx::io::tensor_info& t) {
            rows kept = all_rows(t);
            if (t.name != "decode_table") kept.resize(40);
            return kept;
        };
        flip_everything(part_of(*file, keep), 900);
    }
}

TEST_CASE("a sample of the bits of whole files counts") {
    std::mt19937 random(20260101);
    std::size_t flipped = 0;
    for (const char* folder : {"blocks", "nvfp4", "dialects", "stochastic"}) {
        for (const std::string& path : mx::tests::vector_files(folder)) {
            CAPTURE(path);
            const auto file = mx::io::open_model(path);
            memory_model whole = part_of(*file, all_rows);
            const verification v = mx::conformance::verify::verify_vectors(whole, path, {});
            // Files with rows outside the contract are covered above, row by row.
            if (!v.skipped.empty()) continue;
            for (int n = 0; n < 3; ++n) {
                const std::size_t t = random() % whole.tensors().size();
                const mx::io::tensor_info& info = whole.tensors()[t];
                const auto contract = whole.metadata().find("contract");
                const bool named = v.kind != "blocks" || info.name.ends_with("_scale") ||
                                   contract->second.find(info.name) != std::string::npos;
                const bool spare = v.kind == "blocks" && info.name == "scale" &&
                                   contract->second.find("scale_code") != std::string::npos;
                if (is_input(info.name) || !named || spare || info.bytes == 0) continue;
                const place at{t, random() % (8 * info.bytes)};
                CAPTURE(info.name, at.bit);
                CHECK(flip_and_verify(whole, at) != outcome::missed);
                ++flipped;
            }
        }
    }
    CHECK(flipped > 100);
}

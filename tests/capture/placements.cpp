// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/placements.hpp"

#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/mx_capture/known_products.hpp"
#include "libmx/base/status.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "tests/catch.hpp"

using namespace mx::capture;
using mx::conformance::vectors::mma_case;
using mx::conformance::vectors::mma_tile;
using mx::conformance::vectors::mma_tile_cols;
using mx::conformance::vectors::mma_tile_rows;

namespace {

auto parts_of(const placement& p) { return std::tuple(p.matrix, p.codes, p.scales, p.results); }

// A card that reads its operands at one place: elsewhere it finds nothing but the accumulators.
class card : public device {
  public:
    card(const chip& c, const placement& reads)
        : emulated_(make_emulated_device(c)), reads_(reads) {}

    std::vector<std::uint32_t> multiply(const instruction& i, std::size_t steps, bool accumulate,
                                        std::span<const mma_tile> tiles) override {
        ++asked;
        if (refuses && parts_of(i.where) == parts_of(*refuses)) {
            throw mx::base::error(mx::base::error_kind::unavailable, "did not arrive");
        }
        if (parts_of(i.where) == parts_of(reads_)) return answer(i, steps, accumulate, tiles);
        std::vector<std::uint32_t> d;
        for (const mma_tile& t : tiles) d.insert(d.end(), t.c.begin(), t.c.end());
        return d;
    }
    std::vector<std::uint8_t> narrow(const mx::conformance::vectors::narrowing&,
                                     std::span<const std::uint32_t>) override {
        return {};
    }
    std::vector<std::uint64_t> hash_cells(const mx::conformance::vectors::narrowing&,
                                          std::uint32_t) override {
        return {};
    }
    std::vector<std::uint16_t> widen(const mx::conformance::vectors::widening&,
                                     std::size_t) override {
        return {};
    }
    std::vector<std::uint32_t> narrow_stochastically(
        const mx::conformance::vectors::stochastic_narrowing&,
        std::span<const mx::conformance::vectors::stochastic_input>) override {
        return {};
    }
    library_product multiply_by_library(const library_problem&) override { return {}; }

    int asked = 0;
    std::optional<placement> refuses = {};

  protected:
    std::vector<std::uint32_t> answer(const instruction& i, std::size_t steps, bool accumulate,
                                      std::span<const mma_tile> tiles) {
        return emulated_->multiply(i, steps, accumulate, tiles);
    }

  private:
    std::unique_ptr<device> emulated_;
    placement reads_;
};

// Every code, one after the other.
std::vector<std::uint32_t> counted(const mx::gemm::operand_format& f, std::size_t count) {
    std::vector<std::uint32_t> codes;
    for (std::uint32_t i = 0; codes.size() < count; ++i) {
        codes.push_back((i * 5 + 1) & ((1u << f.code_bits()) - 1u));
    }
    return codes;
}

instruction named(const chip& c, const std::string& name) {
    for (const instruction& i : instructions_of(c)) {
        if (i.name == name) return i;
    }
    FAIL("no instruction " << name);
    return {};
}

}  // namespace

TEST_CASE("placements: the documented one first, each once, with a name of its own") {
    for (const chip& c : chips) {
        for (const instruction& i : instructions_of(c)) {
            INFO(c.name << " " << i.name);
            const auto list = placements_of(i);
            CHECK(to_string(list.front()) == mx::conformance::verify::documented_placement);
            std::set<std::string> names;
            for (const placement& p : list) CHECK(names.insert(to_string(p)).second);
            // What registers of a warp hold leaves nothing to choose.
            const bool wide = i.what.a->code_bits() >= 8 && i.what.b->code_bits() >= 8;
            if (i.by == unit::mma_sync && wide && i.what.scale == nullptr) CHECK(list.size() == 1);
        }
    }
    const chip& b200 = *find_chip("sm_100a");
    CHECK(placements_of(named(b200, "tcgen05.mxf8f6f4.e3m2.e4m3.e8m0x32")).size() == 3 * 5 * 4);
    CHECK(placements_of(named(b200, "tcgen05.f16.f16.f16.f16")).size() == 3 * 2);
    CHECK(placements_of(named(*find_chip("sm_90a"), "wgmma.f16.f16.f16")).size() == 3);
}

TEST_CASE("known products are what every model gives") {
    for (const char* name : {"sm_90a", "sm_100a", "sm_120a"}) {
        const chip& c = *find_chip(name);
        const auto emulated = make_emulated_device(c);
        for (instruction i : instructions_of(c)) {
            if (placements_of(i).size() == 1) continue;
            // A chain of eight of every kind; the formats' codes are those of a single one.
            const bool same = i.what.a == i.what.b && i.what.a->name != "e5m2";
            mma_case what = i.what;
            what.steps = same ? 8 : 1;
            INFO(c.name << " " << i.name << " x " << what.steps);
            CHECK(settle(i, what, *emulated) == mx::conformance::verify::documented_placement);
        }
    }
}

TEST_CASE("the card decides where operands lie") {
    const chip& c = *find_chip("sm_100a");
    instruction i = named(c, "tcgen05.mxf8f6f4.e2m1.e4m3.e8m0x32");
    placement reads;
    reads.codes = code_layout::low_bits;
    reads.scales = scale_layout::reversed;
    card one(c, reads);
    CHECK(settle(i, i.what, one) == "codes in low bits of bytes, scales reversed");
    CHECK(parts_of(i.where) == parts_of(reads));
    CHECK(one.asked > 2);

    // A placement that the card refuses is none, and others may be.
    card refusing(c, reads);
    refusing.refuses = placement{};
    CHECK(settle(i, i.what, refusing) == "codes in low bits of bytes, scales reversed");
    CHECK(refusing.asked == one.asked);

    // If none matches, the documented placement remains, and the recording says so.
    reads.results = result_layout::high_half;
    card none(c, reads);
    CHECK(settle(i, i.what, none) == mx::conformance::verify::no_placement);
    CHECK(parts_of(i.where) == parts_of(placement{}));
    CHECK(none.asked == static_cast<int>(placements_of(i).size()));
    none.refuses = placement{};
    CHECK_THROWS_WITH(settle(i, i.what, none), "placement 'documented': did not arrive");
}

TEST_CASE("wgmma has other placements, too") {
    const chip& c = *find_chip("sm_90a");
    for (const char* name : {"wgmma.tf32.tf32.f32", "wgmma.e5m2.e4m3.f16"}) {
        for (const matrix_layout m : {matrix_layout::offsets_swapped, matrix_layout::swizzled}) {
            instruction i = named(c, name);
            card one(c, {m, {}, {}, {}});
            CHECK(settle(i, i.what, one) == to_string({m, {}, {}, {}}));
            CHECK(i.where.matrix == m);
        }
    }
}

namespace {

// A GPU that reads codes and scales of registers and shared memory from the positions in `reads`,
// regardless of what is written there.
class reading_card final : public card {
  public:
    reading_card(const chip& c, const placement& reads) : card(c, reads), reads_(reads) {}

    std::vector<std::uint32_t> multiply(const instruction& i, std::size_t steps, bool accumulate,
                                        std::span<const mma_tile> tiles) override {
        ++asked;
        std::vector<mma_tile> seen(tiles.begin(), tiles.end());
        for (mma_tile& t : seen) {
            t.a = codes_seen(i, *i.what.a, t.a, steps);
            t.b = codes_seen(i, *i.what.b, t.b, steps);
            const bool turned = (i.where.scales == scale_layout::reversed) !=
                                (reads_.scales == scale_layout::reversed);
            if (turned) t.sfa = turned_scales(i, t.sfa, mma_tile_rows, steps);
            if (turned) t.sfb = turned_scales(i, t.sfb, mma_tile_cols, steps);
        }
        return answer(i, steps, accumulate, seen);
    }

  private:
    // What lies in the bits of every element.
    std::vector<std::uint32_t> codes_seen(instruction i, const mx::gemm::operand_format& f,
                                          const std::vector<std::uint32_t>& codes,
                                          std::size_t steps) const {
        const std::size_t k = i.what.instruction_k;
        const std::size_t rows = codes.size() / (k * steps);
        const auto written = packed_slices(i, f, codes, rows, steps);
        i.where = reads_;
        std::vector<std::size_t> first(k);
        for (std::size_t e = 0; e < k; ++e) {
            std::vector<std::uint32_t> one(k);
            one[e] = 1;
            const auto bytes = packed_slices(i, f, one, 1, 1);
            while ((bytes[first[e] / 8] >> first[e] % 8 & 1) == 0) ++first[e];
        }
        std::vector<std::uint32_t> seen(codes.size());
        for (std::size_t at = 0; at < seen.size(); ++at) {
            const std::size_t row = at / (k * steps), step = at / k % steps;
            const std::uint8_t* slice = written.data() + (step * rows + row) * slice_bytes;
            for (std::size_t j = 0; j < static_cast<std::size_t>(f.code_bits()); ++j) {
                const std::size_t bit = first[at % k] + j;
                seen[at] |= (slice[bit / 8] >> bit % 8 & 1u) << j;
            }
        }
        return seen;
    }

    // For reversed words, the bytes from the lowest on.
    static std::vector<std::uint8_t> turned_scales(const instruction& i,
                                                   const std::vector<std::uint8_t>& scales,
                                                   std::size_t rows, std::size_t steps) {
        if (scales.empty()) return scales;
        const auto words = packed_scales(i.what, scales, rows, steps);
        const std::size_t each = i.what.instruction_k / i.what.scale->block;
        std::vector<std::uint8_t> seen(scales.size());
        for (std::size_t at = 0; at < seen.size(); ++at) {
            const std::size_t row = at / (each * steps), step = at / each % steps;
            const std::uint32_t word = words[step * rows + row];
            seen[at] = static_cast<std::uint8_t>(word >> 8 * (3 - at % each));
        }
        return seen;
    }

    placement reads_;
};

}  // namespace

// The recorder takes the first placement that gives the known products; only the placement that the
// GPU reads may give them.
TEST_CASE("known products tell placements apart") {
    const std::pair<const char*, std::vector<const char*>> some[] = {
        {"sm_100a",
         {"tcgen05.f8f6f4.e2m1.e3m2.f32", "tcgen05.mxf8f6f4.e2m1.e2m1.e8m0x32",
          "tcgen05.mxf8f6f4.e4m3.e2m3.e8m0x32", "tcgen05.mxf4.e2m1.e2m1.e8m0x32",
          "tcgen05.mxf4nvf4.e2m1.e2m1.ue4m3x16"}},
        {"sm_120a",
         {"mma_sync.f8f6f4.e2m1.e5m2.f16", "mma_sync.mxf8f6f4.e2m1.e2m1.e8m0x32",
          "mma_sync.mxf4nvf4.e2m1.e2m1.ue4m3x16"}},
    };
    for (const auto& [chip_name, names] : some) {
        const chip& c = *find_chip(chip_name);
        for (const char* name : names) {
            instruction i = named(c, name);
            for (const placement& p : placements_of(i)) {
                const bool here =
                    p.matrix == matrix_layout::documented &&
                    p.results == result_layout::documented &&
                    (p.scales == scale_layout::documented || p.scales == scale_layout::reversed);
                if (!here) continue;
                INFO(c.name << " " << i.name << ": " << to_string(p));
                reading_card one(c, p);
                REQUIRE(settle(i, i.what, one) != mx::conformance::verify::no_placement);
                // Another name for the same bytes is as good.
                const auto bytes = [&](const placement& where) {
                    i.where = where;
                    auto all = packed_slices(i, *i.what.a, counted(*i.what.a, 64), 64 / 32, 1);
                    const auto of_b = packed_slices(i, *i.what.b, counted(*i.what.b, 64), 2, 1);
                    all.insert(all.end(), of_b.begin(), of_b.end());
                    return all;
                };
                const placement found = i.where;
                if (i.what.instruction_k == 32) CHECK(bytes(found) == bytes(p));
                const bool distinct =
                    i.what.scale != nullptr && i.what.scale->block < i.what.instruction_k;
                if (distinct) CHECK(found.scales == p.scales);
            }
        }
    }
}

TEST_CASE("codes lie where the placement says") {
    const chip& c = *find_chip("sm_120a");
    instruction i = named(c, "mma_sync.f8f6f4.e2m1.e3m2.f32");
    const std::vector<std::uint32_t> codes(32, 5);
    const auto first_byte = [&](code_layout where) {
        i.where.codes = where;
        return static_cast<int>(packed_slices(i, *i.what.a, codes, 1, 1)[0]);
    };
    CHECK(first_byte(code_layout::documented) == 5 << 2);
    CHECK(first_byte(code_layout::low_bits) == 5);
    CHECK(first_byte(code_layout::middle_bits) == 5 << 2);
    CHECK(first_byte(code_layout::high_bits) == 5 << 4);
    CHECK(first_byte(code_layout::packed) == 0x55);
}

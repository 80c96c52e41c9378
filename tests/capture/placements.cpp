// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/placements.hpp"

#include <optional>
#include <set>
#include <tuple>

#include "apps/mx_capture/known_products.hpp"
#include "libmx/base/status.hpp"
#include "libmx/pipeline/verify/captured.hpp"
#include "tests/catch.hpp"

using namespace mx::capture;
using mx::pipeline::mma_case;
using mx::pipeline::mma_tile;

namespace {

auto parts_of(const placement& p) { return std::tuple(p.matrix, p.codes, p.scales, p.results); }

// A card that reads its operands at one place: elsewhere it finds nothing but the accumulators.
class card final : public device {
  public:
    card(const chip& c, const placement& reads)
        : emulated_(make_emulated_device(c)), reads_(reads) {}

    std::vector<std::uint32_t> multiply(const instruction& i, std::size_t steps, bool accumulate,
                                        std::span<const mma_tile> tiles) override {
        ++asked;
        if (refuses && parts_of(i.where) == parts_of(*refuses)) {
            throw mx::base::error(mx::base::error_kind::unavailable, "did not arrive");
        }
        if (parts_of(i.where) == parts_of(reads_)) {
            return emulated_->multiply(i, steps, accumulate, tiles);
        }
        std::vector<std::uint32_t> d;
        for (const mma_tile& t : tiles) d.insert(d.end(), t.c.begin(), t.c.end());
        return d;
    }
    std::vector<std::uint8_t> narrow(const mx::pipeline::narrowing&,
                                     std::span<const std::uint32_t>) override {
        return {};
    }
    std::vector<std::uint64_t> hash_cells(const mx::pipeline::narrowing&, std::uint32_t) override {
        return {};
    }
    std::vector<std::uint16_t> widen(const mx::pipeline::widening&, std::size_t) override {
        return {};
    }
    std::vector<std::uint32_t> narrow_stochastically(
        const mx::pipeline::stochastic_narrowing&,
        std::span<const mx::pipeline::stochastic_input>) override {
        return {};
    }
    library_product multiply_by_library(const library_problem&) override { return {}; }

    int asked = 0;
    std::optional<placement> refuses = {};

  private:
    std::unique_ptr<device> emulated_;
    placement reads_;
};

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
            CHECK(to_string(list.front()) == mx::pipeline::documented_placement);
            std::set<std::string> names;
            for (const placement& p : list) CHECK(names.insert(to_string(p)).second);
            // What runs everywhere leaves nothing to choose.
            const bool wide = i.what.a->code_bits() >= 8 && i.what.b->code_bits() >= 8;
            if (i.by != unit::tcgen05 && wide && i.what.scale == nullptr) CHECK(list.size() == 1);
        }
    }
    const chip& b200 = *find_chip("sm_100a");
    CHECK(placements_of(named(b200, "tcgen05.mxf8f6f4.e3m2.e4m3.e8m0x32")).size() == 3 * 5 * 4);
    CHECK(placements_of(named(b200, "tcgen05.f16.f16.f16.f16")).size() == 3 * 2);
}

TEST_CASE("known products are what every model gives") {
    for (const char* name : {"sm_100a", "sm_120a"}) {
        const chip& c = *find_chip(name);
        const auto emulated = make_emulated_device(c);
        for (instruction i : instructions_of(c)) {
            if (placements_of(i).size() == 1) continue;
            // A chain of eight of every kind; the formats' codes are those of a single one.
            const bool same = i.what.a == i.what.b && i.what.a->name != "e5m2";
            mma_case what = i.what;
            what.steps = same ? 8 : 1;
            INFO(c.name << " " << i.name << " x " << what.steps);
            CHECK(settle(i, what, *emulated) == mx::pipeline::documented_placement);
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

    // None: the documented one stays, and the recording says so.
    reads.results = result_layout::high_half;
    card none(c, reads);
    CHECK(settle(i, i.what, none) == mx::pipeline::no_placement);
    CHECK(parts_of(i.where) == parts_of(placement{}));
    CHECK(none.asked == static_cast<int>(placements_of(i).size()));
    none.refuses = placement{};
    CHECK_THROWS_WITH(settle(i, i.what, none), "placement 'documented': did not arrive");
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

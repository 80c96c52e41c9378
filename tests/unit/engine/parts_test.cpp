// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/parts.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "libmx/base/scaled.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/sweep.hpp"
#include "tests/catch.hpp"

using namespace mx;
using engine::tensor_range;

namespace {

// Tensors of F32, defined by their sizes only.
class sizes final : public io::reader {
  public:
    explicit sizes(const std::vector<std::uint64_t>& elements) {
        for (const std::uint64_t n : elements) {
            io::tensor_info info;
            info.name = std::to_string(infos_.size());
            info.shape = {n};
            info.elements = n;
            info.bytes = 4 * n;
            infos_.push_back(info);
        }
    }
    const std::vector<io::tensor_info>& tensors() const override { return infos_; }
    std::unique_ptr<io::byte_source> open(std::size_t) const override { return nullptr; }
    const std::map<std::string, std::string>& metadata() const override { return none_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override { return {}; }

    std::vector<engine::tensor_ref> all() const {
        std::vector<engine::tensor_ref> refs;
        for (std::size_t i = 0; i < infos_.size(); ++i) refs.push_back({this, i});
        return refs;
    }

  private:
    std::vector<io::tensor_info> infos_;
    std::map<std::string, std::string> none_;
};

// The largest part in bytes; every element has to be in one part, in order.
std::uint64_t check_parts(const std::vector<std::uint64_t>& elements, std::uint64_t count,
                          engine::splitting split = engine::splitting::allowed) {
    const sizes file(elements);
    const auto tensors = file.all();
    std::size_t tensor = 0;
    std::uint64_t element = 0, most = 0;
    for (std::uint64_t i = 1; i <= count; ++i) {
        std::uint64_t bytes = 0;
        for (const tensor_range& p : engine::ranges_of(tensors, {i, count}, split)) {
            REQUIRE(p.tensor == tensor);
            REQUIRE(p.first == element);
            REQUIRE(p.end <= elements[p.tensor]);
            REQUIRE((p.end > p.first || elements[p.tensor] == 0));
            if (split == engine::splitting::none)
                REQUIRE((p.first == 0 && p.end == elements[p.tensor]));
            bytes += engine::bytes_of(tensors[p.tensor].info(), p);
            element = p.end;
            if (element == elements[p.tensor]) {
                ++tensor;
                element = 0;
            }
        }
        most = std::max(most, bytes);
    }
    REQUIRE(tensor == elements.size());
    return most;
}

}  // namespace

TEST_CASE("parts hold every element once and are even") {
    std::vector<std::uint64_t> many;
    for (std::uint64_t i = 0; i < 59; ++i) many.push_back(1000 + i * i * 37 % 9001);
    const std::vector<std::vector<std::uint64_t>> models{
        many, {1000000, 3, 0, 5}, {0, 0, 7000, 0}, {5, 100000, 90000, 1, 40000, 0}};
    for (const auto& elements : models) {
        std::uint64_t total = 0;
        for (const std::uint64_t n : elements) total += 4 * n;
        for (const std::uint64_t count : {1, 2, 3, 7, 64}) {
            const std::uint64_t most = check_parts(elements, count);
            // To within the four bytes of an element at either end.
            CHECK(10 * most <= 11 * total / count + 80);
            check_parts(elements, count, engine::splitting::none);
        }
    }
    check_parts({}, 3);
    check_parts({0, 0}, 3);
    check_parts({1}, 5);
}

TEST_CASE("tensors are split only where no border is near") {
    const sizes file({104, 100, 96});
    const auto tensors = file.all();
    CHECK(engine::ranges_of(tensors, {2, 3}) == std::vector<tensor_range>{{1, 0, 100}});
    const sizes uneven({150, 150});
    const auto split = engine::ranges_of(uneven.all(), {2, 3});
    CHECK(split == std::vector<tensor_range>{{0, 100, 150}, {1, 0, 50}});
    CHECK(engine::ranges_of(uneven.all(), {2, 3}, engine::splitting::none).size() <= 1);
}

TEST_CASE("the panels of ranges are those of the tensor") {
    std::string reason;
    for (const char* recipe : {"mxfp4", "mxfp8:axis=0", "mxfp6:block=4x4", "mxfp4:axis=flat"}) {
        const auto layout = engine::lay_out({7, 300, 130}, codec::parse_recipe(recipe), reason);
        const engine::grid_job job{0, layout->grid};
        const std::uint64_t whole = 7 * 300 * 130;
        std::uint64_t elements = 0, panels = 0;
        const std::uint64_t all = engine::plan_passes(0, {&job, 1}, 4096).front().panels.count();
        std::uint64_t before = 0;
        for (const std::uint64_t border : {1u, 5000u, 130000u, 272999u, 273000u}) {
            engine::pass p = engine::plan_passes(0, {&job, 1}, 4096).front();
            p.panels.keep_range(before, border, whole);
            if (p.panels.count() > 0) {
                const engine::panel first = p.panels.at(0);
                const engine::pass full = engine::plan_passes(0, {&job, 1}, 4096).front();
                const engine::panel same = full.panels.at(panels);
                CHECK(first.row == same.row);
                CHECK(first.col == same.col);
                CHECK(first.batch == same.batch);
            }
            elements += p.panels.elements();
            panels += p.panels.count();
            before = border;
        }
        CHECK(elements == whole);
        CHECK(panels == all);
    }
}

TEST_CASE("the number of a part is checked") {
    CHECK(engine::parse_part("3/7") == engine::part_number{3, 7});
    CHECK(engine::parse_part("1/1") == engine::part_number{1, 1});
    for (const char* text : {"", "/", "0/4", "5/4", "1/0", "/4", "4/", "1/2/3", "-1/4", "+1/4",
                             " 1/4", "1/4 ", "0x1/4", "1/1000001", "99999999999999999999/4"}) {
        INFO(text);
        CHECK_THROWS_AS(engine::parse_part(text), base::error);
    }
}

TEST_CASE("sums that do not make up the tensors are refused") {
    const sizes file({10, 0, 20});
    const auto tensors = file.all();
    const auto range = [](std::size_t t, std::uint64_t first, std::uint64_t end) {
        engine::range_sums s;
        s.of = {t, first, end};
        s.tensor = std::to_string(t);
        return s;
    };
    const auto arranged = [&](std::vector<engine::range_sums> sums) {
        engine::partial_run partial;
        partial.sums = std::move(sums);
        partial.arrange(tensors);
        return partial.sums.size();
    };
    CHECK(arranged({range(2, 5, 20), range(1, 0, 0), range(0, 0, 10), range(2, 0, 5)}) == 4);
    CHECK_THROWS_AS(arranged({range(1, 0, 0), range(0, 0, 10), range(2, 0, 5)}), base::error);
    CHECK_THROWS_AS(arranged({range(0, 0, 10), range(2, 0, 20)}), base::error);
    CHECK_THROWS_AS(arranged({range(0, 0, 10), range(0, 5, 10), range(1, 0, 0), range(2, 0, 20)}),
                    base::error);
    CHECK_THROWS_AS(arranged({range(0, 0, 10), range(1, 0, 0), range(2, 0, 20), range(3, 0, 1)}),
                    base::error);
    auto renamed = range(0, 0, 10);
    renamed.tensor = "other";
    CHECK_THROWS_AS(arranged({renamed, range(1, 0, 0), range(2, 0, 20)}), base::error);
}

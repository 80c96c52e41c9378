// SPDX-License-Identifier: Apache-2.0
// The colours of figures are distinguishable for colour-blind readers.
#include <map>
#include <vector>

#include "libmx/report/svg/svg.hpp"
#include "tests/catch.hpp"
#include "tests/unit/report/colour_vision.hpp"

using namespace mx;

namespace {

using palette = std::map<std::string, unsigned>;

// The custom properties of a block of the style sheet, the first from `from` on.
palette palette_from(const std::string& css, std::size_t from) {
    palette p;
    const std::size_t end = css.find('}', from);
    for (auto at = css.find("--mx-", from); at < end; at = css.find("--mx-", at + 1)) {
        const std::size_t colon = css.find(':', at);
        p[css.substr(at + 5, colon - at - 5)] =
            static_cast<unsigned>(std::stoul(css.substr(colon + 2, 6), nullptr, 16));
    }
    return p;
}

std::vector<palette> palettes() {
    const std::string css(report::svg::style_sheet());
    return {palette_from(css, css.find(":root{")),
            palette_from(css, css.find(":root[data-theme=dark]{"))};
}

std::vector<unsigned> run(const palette& p, const std::string& family, int from, int to) {
    std::vector<unsigned> colours;
    for (int k = from; k <= to; ++k) colours.push_back(p.at(family + std::to_string(k)));
    return colours;
}

}  // namespace

TEST_CASE("colour distances are those of the published examples") {
    // Sharma, Wu and Dalal, table 1.
    CHECK(ciede2000({50, 2.6772, -79.7751}, {50, 0, -82.7485}) == Approx(2.0425).margin(5e-5));
    CHECK(ciede2000({50, 2.5, 0}, {73, 25, -18}) == Approx(27.1492).margin(5e-5));
    CHECK(ciede2000({60.2574, -34.0099, 36.2677}, {60.4626, -34.1751, 39.4387}) ==
          Approx(1.2644).margin(5e-5));
    CHECK(ciede2000({2.0776, 0.0795, -1.135}, {0.9033, -0.0636, -0.5514}) ==
          Approx(0.9082).margin(5e-5));
    // Red and green of one lightness: different, but not for deuteranopes.
    CHECK(distance(0xc05020, 0x808000, vision::normal) >
          3 * distance(0xc05020, 0x808000, vision::deuteranope));
}

TEST_CASE("ten series are told apart, whoever looks, on a light and on a dark page") {
    for (const palette& p : palettes()) {
        const std::vector<unsigned> series = run(p, "s", 1, 10);
        for (std::size_t a = 0; a < series.size(); ++a) {
            CAPTURE(a + 1);
            CHECK(contrast(series[a], p.at("paper")) >= 3);
            for (std::size_t b = 0; b < a; ++b) {
                for (const vision who : visions) {
                    CAPTURE(b + 1, static_cast<int>(who));
                    CHECK(distance(series[a], series[b], who) >= 12);
                }
            }
        }
    }
}

TEST_CASE("the worst cells of a heat map stand out from the page, and text on cells is legible") {
    for (const palette& p : palettes()) {
        const unsigned paper = p.at("paper");
        for (const auto& [family, from, to, strong] :
             {std::tuple("h", 0, 9, 5), std::tuple("g", 1, 5, 4), std::tuple("b", 1, 5, 4)}) {
            CAPTURE(family);
            const std::vector<unsigned> shades = run(p, family, from, to);
            for (std::size_t k = 0; k < shades.size(); ++k) {
                CAPTURE(k);
                const bool on_strong = from + static_cast<int>(k) >= strong;
                CHECK(contrast(shades[k], p.at(on_strong ? "t2" : "t1")) >= 4.5);
                if (k == 0) continue;
                CHECK(contrast(shades[k], paper) > contrast(shades[k - 1], paper));
                for (const vision who : visions) {
                    CHECK(distance(shades[k], shades[k - 1], who) >= 3);
                }
            }
            CHECK(contrast(shades.back(), paper) >= 7);
        }
        // Values within and beyond a limit, at equal distance, have different hues.
        for (int k = 3; k <= 5; ++k) {
            for (const vision who : visions) {
                const std::string place = std::to_string(k);
                CHECK(distance(p.at("g" + place), p.at("b" + place), who) >= 20);
            }
        }
    }
}

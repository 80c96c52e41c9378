// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "libmx/report/svg/svg.hpp"

namespace mx::report::svg {
namespace {

// s: series; h: cells of heat maps, the last one worst and furthest from the background; g and b:
// cells within and beyond a limit, the last one furthest from it; f: parts of bars; t: text on
// light and dark shades. Series differ by at least 12 (CIEDE2000), also for deuteranopes and
// protanopes; h, g and b are monotone in lightness (tests/unit/report/palette_test.cpp). Dashes,
// markers, outlines and hatching carry the same information.
constexpr std::string_view light = R"(
--mx-ink:#1b2027;--mx-soft:#565f6b;--mx-rule:#dfe3e8;--mx-paper:#ffffff;
--mx-zone:#f4dfae;--mx-zone-edge:#8a6100;--mx-alarm:#a3200c;
--mx-s1:#2c5dc7;--mx-s2:#975500;--mx-s3:#39a07e;--mx-s4:#5d1235;--mx-s5:#1d91ff;
--mx-s6:#ca7f18;--mx-s7:#162387;--mx-s8:#89484d;--mx-s9:#008387;--mx-s10:#5c1b02;
--mx-h0:#faf4dd;--mx-h1:#cfe3ae;--mx-h2:#91d496;--mx-h3:#37c394;--mx-h4:#12a698;
--mx-h5:#008288;--mx-h6:#0a6e84;--mx-h7:#025475;--mx-h8:#213b54;--mx-h9:#1e2534;
--mx-g1:#e4eef7;--mx-g2:#bcd7ec;--mx-g3:#7fb2dc;--mx-g4:#2f77b5;--mx-g5:#124a85;
--mx-b1:#fbe9d6;--mx-b2:#f7c99a;--mx-b3:#ee9a4d;--mx-b4:#b95708;--mx-b5:#7c3600;
--mx-t1:#0b0d10;--mx-t2:#ffffff;
)";

constexpr std::string_view dark = R"(
--mx-ink:#e6e9ee;--mx-soft:#a3acb8;--mx-rule:#30363f;--mx-paper:#15181d;
--mx-zone:#4a3c17;--mx-zone-edge:#e0b354;--mx-alarm:#ff9d87;
--mx-s1:#0a83f4;--mx-s2:#c3a46d;--mx-s3:#3b8468;--mx-s4:#d688a2;--mx-s5:#1ec4ff;
--mx-s6:#f1ec6d;--mx-s7:#c54699;--mx-s8:#638203;--mx-s9:#32fff9;--mx-s10:#bfefc8;
--mx-h0:#1d2a3a;--mx-h1:#1b3b55;--mx-h2:#124b68;--mx-h3:#0b5c75;--mx-h4:#066d7e;
--mx-h5:#2aa191;--mx-h6:#5fb98f;--mx-h7:#97cf90;--mx-h8:#cfe3ae;--mx-h9:#faf4dd;
--mx-g1:#17293a;--mx-g2:#1c3f5e;--mx-g3:#215a88;--mx-g4:#5fa2d8;--mx-g5:#a9d2f3;
--mx-b1:#3b2713;--mx-b2:#5f3a12;--mx-b3:#8a5210;--mx-b4:#e39a4d;--mx-b5:#f9cf9f;
--mx-t1:#ffffff;--mx-t2:#0b0d10;
)";

constexpr std::string_view rules = R"(
svg.plot{display:block;width:100%;max-width:36rem;height:auto;color:var(--mx-ink)}
svg.wide{max-width:72rem;min-width:44rem}
svg.sample{display:inline-block;width:1.75rem;height:1rem;flex:none}
ul.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:.3rem 0;padding:0;max-width:none;
list-style:none;font-size:.8rem}
.legend li{display:flex;align-items:center;gap:.4rem;margin:0}
.plot text{font:12px "Liberation Sans",Arial,Helvetica,sans-serif;fill:var(--mx-ink);
pointer-events:none}
.plot .soft{fill:var(--mx-soft)}
.plot .num{font-size:11px}
.plot .head{font-weight:bold}
.plot .mid{text-anchor:middle}
.plot .end{text-anchor:end}
.plot .none{font-size:14px;fill:var(--mx-soft)}
.plot .grid{fill:none;stroke:var(--mx-rule)}
.plot .axis{fill:none;stroke:var(--mx-soft)}
.plot .lead{fill:none;stroke:var(--mx-soft);stroke-width:.7}
.plot .zone{fill:var(--mx-zone);stroke:none}
.plot .edge{fill:none;stroke:var(--mx-zone-edge);stroke-dasharray:2 2}
.plot .level{fill:none;stroke:var(--mx-alarm);stroke-width:1.4;stroke-dasharray:6 3}
.plot .band{fill:currentColor;fill-opacity:.16;stroke:none}
.plot .line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}
.plot .range{fill:none;stroke:currentColor;stroke-width:1.8}
.plot .front{color:var(--mx-soft);stroke-width:1.3}
.plot .mark{fill:currentColor;stroke:var(--mx-paper);stroke-width:.8}
.plot .touch{fill:transparent;stroke:none}
.plot .bar{fill:currentColor;stroke:none}
.plot .cells path,.plot .parts path{stroke:var(--mx-paper);stroke-width:.5}
.plot .hatch{fill:none;stroke:var(--mx-ink)}
.plot .blank{fill:var(--mx-paper)}
.plot .undefined{fill:none;stroke:var(--mx-soft)}
.plot text.dark{fill:#0b0d10}
.plot text.bright{fill:#ffffff}
.plot text.faint{fill:var(--mx-t1)}
.plot text.strong{fill:var(--mx-t2)}
.plot .cells .miss{stroke:var(--mx-ink);stroke-width:1.6}
.plot .halo{stroke:var(--mx-paper);stroke-width:3;stroke-linejoin:round;paint-order:stroke}
.plot .cells path:hover,.plot .parts path:hover,.plot .bar path:hover,.plot .mark path:hover{
stroke:var(--mx-ink);stroke-width:1.5}
.plot .s1{color:var(--mx-s1)}
.plot .s2{color:var(--mx-s2)}.plot .s2 .line{stroke-dasharray:7 3}
.plot .s3{color:var(--mx-s3)}.plot .s3 .line{stroke-dasharray:2 2}
.plot .s4{color:var(--mx-s4)}.plot .s4 .line{stroke-dasharray:9 3 2 3}
.plot .s5{color:var(--mx-s5)}.plot .s5 .line{stroke-dasharray:12 4}
.plot .s6{color:var(--mx-s6)}.plot .s6 .line{stroke-dasharray:4 3}
.plot .s7{color:var(--mx-s7)}.plot .s7 .line{stroke-dasharray:9 3 2 3 2 3}
.plot .s8{color:var(--mx-s8)}.plot .s8 .line{stroke-dasharray:1 3}
.plot .s9{color:var(--mx-s9)}.plot .s9 .line{stroke-dasharray:14 3 3 3}
.plot .s10{color:var(--mx-s10)}.plot .s10 .line{stroke-dasharray:5 2 1 2}
.plot .h0{fill:var(--mx-h0)}.plot .h1{fill:var(--mx-h1)}.plot .h2{fill:var(--mx-h2)}
.plot .h3{fill:var(--mx-h3)}.plot .h4{fill:var(--mx-h4)}.plot .h5{fill:var(--mx-h5)}
.plot .h6{fill:var(--mx-h6)}.plot .h7{fill:var(--mx-h7)}.plot .h8{fill:var(--mx-h8)}
.plot .h9{fill:var(--mx-h9)}
.plot .g1{fill:var(--mx-g1)}.plot .g2{fill:var(--mx-g2)}.plot .g3{fill:var(--mx-g3)}
.plot .g4{fill:var(--mx-g4)}.plot .g5{fill:var(--mx-g5)}
.plot .b1{fill:var(--mx-b1)}.plot .b2{fill:var(--mx-b2)}.plot .b3{fill:var(--mx-b3)}
.plot .b4{fill:var(--mx-b4)}.plot .b5{fill:var(--mx-b5)}
.plot .f1{fill:#324a83}.plot .f2{fill:#904742}.plot .f3{fill:#7c65a5}.plot .f4{fill:#589867}
.plot .f5{fill:#719fd9}.plot .f6{fill:#e3a072}.plot .f7{fill:#f3addb}.plot .f8{fill:#87f2eb}
.plot .on-dark{fill:none;stroke:#ffffff;stroke-opacity:.45}
.plot .on-light{fill:none;stroke:#0b0d10;stroke-opacity:.4}
)";

std::string sheet() {
    const std::string day(light);
    const std::string night(dark);
    std::string css = ":root{" + day + "}\n";
    css += "@media (prefers-color-scheme:dark){:root:not([data-theme=light]){" + night + "}}\n";
    css += ":root[data-theme=dark]{" + night + "}\n";
    css += std::string(rules);
    // Browsers do not print backgrounds unless the style requests it.
    css += "@media print{:root,:root:not([data-theme=light]),:root[data-theme=dark]{" + day +
           "}svg.plot,svg.wide{min-width:0;break-inside:avoid;print-color-adjust:exact}}\n";
    return css;
}

}  // namespace

std::string_view style_sheet() {
    static const std::string css = sheet();
    return css;
}

}  // namespace mx::report::svg

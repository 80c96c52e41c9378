// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "libmx/report/svg/svg.hpp"

namespace mx::report::svg {
namespace {

// s: series, the first darkest; h: cells of heat maps, 9 worst; f: parts of bars. Each is monotone
// in lightness, so that grey keeps the order, and the hues differ for the common kinds of colour
// blindness. Dashes, markers and hatching say the same once more.
constexpr std::string_view light = R"(
--mx-ink:#1b2027;--mx-soft:#565f6b;--mx-rule:#dfe3e8;--mx-paper:#ffffff;
--mx-zone:#f4dfae;--mx-zone-edge:#8a6100;
--mx-s1:#102c84;--mx-s2:#7f0412;--mx-s3:#5a3190;--mx-s4:#00692d;
--mx-s5:#1360b3;--mx-s6:#a35303;--mx-s7:#ae4e92;--mx-s8:#10958f;
--mx-h0:#faf4dd;--mx-h1:#cfe3ae;--mx-h2:#91d496;--mx-h3:#37c394;--mx-h4:#12a698;
--mx-h5:#008a91;--mx-h6:#0a6e84;--mx-h7:#025475;--mx-h8:#213b54;--mx-h9:#1e2534;
)";

constexpr std::string_view dark = R"(
--mx-ink:#e6e9ee;--mx-soft:#a3acb8;--mx-rule:#30363f;--mx-paper:#15181d;
--mx-zone:#4a3c17;--mx-zone-edge:#e0b354;
--mx-s1:#dee8fd;--mx-s2:#fecfca;--mx-s3:#d8c4fe;--mx-s4:#82db96;
--mx-s5:#87bbfd;--mx-s6:#eb9556;--mx-s7:#d67fba;--mx-s8:#0eaba5;
--mx-h0:#e4dec8;--mx-h1:#bdd09c;--mx-h2:#81c386;--mx-h3:#1fb486;--mx-h4:#009a8c;
--mx-h5:#008a91;--mx-h6:#07677b;--mx-h7:#024f6e;--mx-h8:#1e3851;--mx-h9:#1d2433;
)";

constexpr std::string_view rules = R"(
svg.plot{display:block;width:100%;max-width:60rem;min-width:34rem;height:auto;color:var(--mx-ink)}
.plot text{font:12px "Liberation Sans",Arial,Helvetica,sans-serif;fill:var(--mx-ink)}
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
.plot .line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}
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
.plot .h0{fill:var(--mx-h0)}.plot .h1{fill:var(--mx-h1)}.plot .h2{fill:var(--mx-h2)}
.plot .h3{fill:var(--mx-h3)}.plot .h4{fill:var(--mx-h4)}.plot .h5{fill:var(--mx-h5)}
.plot .h6{fill:var(--mx-h6)}.plot .h7{fill:var(--mx-h7)}.plot .h8{fill:var(--mx-h8)}
.plot .h9{fill:var(--mx-h9)}
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
    // Browsers leave backgrounds out on paper unless told that they carry meaning.
    css += "@media print{:root,:root:not([data-theme=light]),:root[data-theme=dark]{" + day +
           "}svg.plot{min-width:0;break-inside:avoid;print-color-adjust:exact}}\n";
    return css;
}

}  // namespace

std::string_view style_sheet() {
    static const std::string css = sheet();
    return css;
}

}  // namespace mx::report::svg

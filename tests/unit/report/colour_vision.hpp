// SPDX-License-Identifier: Apache-2.0
// How different colours look: CIEDE2000 (Sharma, Wu and Dalal 2005) of the colours that readers
// with normal, deuteranope and protanope vision see, simulated after Machado, Oliveira and
// Fernandes (2009).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

namespace mx {

using triple = std::array<double, 3>;

enum class vision { normal, deuteranope, protanope };
inline constexpr std::array visions{vision::normal, vision::deuteranope, vision::protanope};

inline triple times(const std::array<triple, 3>& m, const triple& v) {
    triple out{};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t k = 0; k < 3; ++k) out[i] += m[i][k] * v[k];
    }
    return out;
}

/// Linear sRGB of 0xrrggbb.
inline triple linear_of(unsigned rgb) {
    triple out{};
    for (std::size_t i = 0; i < 3; ++i) {
        const double c = static_cast<double>((rgb >> (16 - 8 * i)) & 0xff) / 255;
        out[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    }
    return out;
}

inline triple seen_by(vision who, const triple& linear) {
    static constexpr std::array<triple, 3> deuteranope{{{0.367322, 0.860646, -0.227968},
                                                        {0.280085, 0.672501, 0.047413},
                                                        {-0.011820, 0.042940, 0.968881}}};
    static constexpr std::array<triple, 3> protanope{{{0.152286, 1.052583, -0.204868},
                                                      {0.114503, 0.786281, 0.099216},
                                                      {-0.003882, -0.048116, 1.051998}}};
    if (who == vision::normal) return linear;
    triple out = times(who == vision::deuteranope ? deuteranope : protanope, linear);
    for (double& c : out) c = std::clamp(c, 0.0, 1.0);
    return out;
}

/// CIELAB for D65.
inline triple lab_of(const triple& linear) {
    static constexpr std::array<triple, 3> to_xyz{{{0.4124564, 0.3575761, 0.1804375},
                                                   {0.2126729, 0.7151522, 0.0721750},
                                                   {0.0193339, 0.1191920, 0.9503041}}};
    const triple xyz = times(to_xyz, linear);
    const triple white{0.95047, 1, 1.08883};
    triple f{};
    for (std::size_t i = 0; i < 3; ++i) {
        const double t = xyz[i] / white[i];
        f[i] = t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
    }
    return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

inline double ciede2000(const triple& p, const triple& q) {
    const auto degrees = [](double b, double a) {
        const double h = std::atan2(b, a) * 180 / std::numbers::pi;
        return a == 0 && b == 0 ? 0 : h < 0 ? h + 360 : h;
    };
    const auto rad = [](double h) { return h * std::numbers::pi / 180; };
    const auto part = [](double c) {
        const double c7 = std::pow(c, 7);
        return std::sqrt(c7 / (c7 + std::pow(25.0, 7)));
    };
    const double g = 0.5 * (1 - part((std::hypot(p[1], p[2]) + std::hypot(q[1], q[2])) / 2));
    const double a1 = (1 + g) * p[1], a2 = (1 + g) * q[1];
    const double c1 = std::hypot(a1, p[2]), c2 = std::hypot(a2, q[2]);
    const double h1 = degrees(p[2], a1), h2 = degrees(q[2], a2);
    const bool grey = c1 * c2 == 0;
    double dh = grey ? 0 : h2 - h1;
    if (dh > 180) dh -= 360;
    if (dh < -180) dh += 360;
    double hm = h1 + h2;
    if (!grey) hm = std::abs(h1 - h2) <= 180 ? hm / 2 : hm < 360 ? (hm + 360) / 2 : (hm - 360) / 2;
    const double lm = (p[0] + q[0]) / 2, cm = (c1 + c2) / 2;
    const double t = 1 - 0.17 * std::cos(rad(hm - 30)) + 0.24 * std::cos(rad(2 * hm)) +
                     0.32 * std::cos(rad(3 * hm + 6)) - 0.20 * std::cos(rad(4 * hm - 63));
    const double l50 = (lm - 50) * (lm - 50);
    const double dl = (q[0] - p[0]) / (1 + 0.015 * l50 / std::sqrt(20 + l50));
    const double dc = (c2 - c1) / (1 + 0.045 * cm);
    const double dhue = 2 * std::sqrt(c1 * c2) * std::sin(rad(dh / 2)) / (1 + 0.015 * cm * t);
    const double turn = -2 * part(cm) * std::sin(rad(60 * std::exp(-std::pow((hm - 275) / 25, 2))));
    return std::sqrt(dl * dl + dc * dc + dhue * dhue + turn * dc * dhue);
}

inline double distance(unsigned a, unsigned b, vision who) {
    return ciede2000(lab_of(seen_by(who, linear_of(a))), lab_of(seen_by(who, linear_of(b))));
}

/// Relative luminance's contrast, 1 to 21 (WCAG 2).
inline double contrast(unsigned a, unsigned b) {
    const auto luminance = [](unsigned rgb) {
        const triple l = linear_of(rgb);
        return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2];
    };
    const double x = luminance(a), y = luminance(b);
    return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace mx

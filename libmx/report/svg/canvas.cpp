// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/canvas.hpp"

#include <fmt/format.h>

#include <cmath>

#include "libmx/report/markup.hpp"

namespace mx::report::svg {

std::string coordinate(double x) {
    if (!std::isfinite(x)) return "0";
    std::string text = fmt::format("{:.2f}", x);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

path_data& path_data::to(char command, double x, double y) {
    text_ += command;
    text_ += coordinate(x);
    const std::string second = coordinate(y);
    if (second.front() != '-') text_ += ' ';
    text_ += second;
    return *this;
}

path_data& path_data::across(double x) {
    text_ += 'H' + coordinate(x);
    return *this;
}

path_data& path_data::down(double y) {
    text_ += 'V' + coordinate(y);
    return *this;
}

path_data& path_data::close() {
    text_ += 'z';
    return *this;
}

path_data& path_data::round(double x, double y, double radius) {
    move(x - radius, y);
    const std::string r = coordinate(radius);
    const std::string across = coordinate(2 * radius);
    text_ +=
        "a" + r + " " + r + " 0 1 0 " + across + " 0a" + r + " " + r + " 0 1 0-" + across + " 0z";
    return *this;
}

path_data box(double left, double top, double width, double height) {
    path_data d;
    d.move(left, top);
    d.text_ += "h" + coordinate(width) + "v" + coordinate(height) + "h" + coordinate(-width) + "z";
    return d;
}

canvas& canvas::start(std::string_view name) {
    name_ = name;
    out_.append("<").append(name);
    return *this;
}

canvas& canvas::with(std::string_view key, double value) { return with(key, coordinate(value)); }

canvas& canvas::with(std::string_view key, std::string_view value) {
    out_.append(" ").append(key).append("=\"").append(escaped(value)).append("\"");
    return *this;
}

void canvas::done() { out_ += "/>\n"; }

void canvas::text(std::string_view content) {
    out_ += '>' + escaped(content);
    close(name_);
}

void canvas::titled(std::string_view title) {
    out_ += "><title>" + escaped(title) + "</title>";
    close(name_);
}

void canvas::open() { out_ += ">\n"; }

void canvas::close(std::string_view name) { out_.append("</").append(name).append(">\n"); }

void canvas::group(std::string_view classes) { start("g").with("class", classes).open(); }

void canvas::label(double x, double y, std::string_view classes, std::string_view content) {
    start("text");
    if (!classes.empty()) with("class", classes);
    with("x", x).with("y", y).text(content);
}

void canvas::path(const path_data& d, std::string_view classes) {
    start("path").with("class", classes).with(d).done();
}

}  // namespace mx::report::svg

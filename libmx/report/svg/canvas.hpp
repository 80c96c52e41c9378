// SPDX-License-Identifier: Apache-2.0
// Elements written one after the other: the only place where angle brackets of figures come from.
#pragma once

#include <string>
#include <string_view>

namespace mx::report::svg {

/// `x` with at most two decimals and no more characters than it needs; 0 when it is not finite.
std::string coordinate(double x);

/// The d attribute of a <path>, in absolute coordinates.
class path_data {
  public:
    path_data& move(double x, double y) { return to('M', x, y); }
    path_data& line(double x, double y) { return to('L', x, y); }
    path_data& across(double x);
    path_data& down(double y);
    path_data& close();
    /// A circle.
    path_data& round(double x, double y, double radius);
    bool empty() const { return text_.empty(); }
    const std::string& text() const { return text_; }

  private:
    friend path_data box(double left, double top, double width, double height);
    path_data& to(char command, double x, double y);
    std::string text_;
};

/// A rectangle as path data: shorter than <rect>, of which a heat map has thousands.
path_data box(double left, double top, double width, double height);

/// Attributes follow the name of the element; `done`, `text`, `titled` or `open` end its tag.
class canvas {
  public:
    canvas& start(std::string_view name);
    canvas& with(std::string_view key, double value);
    canvas& with(std::string_view key, std::string_view value);
    canvas& with(const path_data& d) { return with("d", d.text()); }
    void done();
    /// The element holds `content`, escaped.
    void text(std::string_view content);
    /// The element holds a <title>, which is shown where the pointer rests on it.
    void titled(std::string_view title);
    /// What follows is inside, up to `close`.
    void open();
    void close(std::string_view name);

    /// <g class="...">, up to close("g").
    void group(std::string_view classes);
    /// A text at a place; its classes, if any, decide size, anchor and ink.
    void label(double x, double y, std::string_view classes, std::string_view content);
    void path(const path_data& d, std::string_view classes);
    /// What another canvas wrote.
    void markup(std::string_view written) { out_ += written; }

    std::string take() { return std::move(out_); }

  private:
    std::string out_;
    std::string name_;  // of the element whose tag is not ended
};

}  // namespace mx::report::svg

// SPDX-License-Identifier: Apache-2.0
// Writes SVG elements in sequence; no other code writes angle brackets of figures.
#pragma once

#include <string>
#include <string_view>

namespace mx::report::svg {

/// `x` with at most two decimals and as few characters as possible; 0 if it is not finite.
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

/// A rectangle as path data: shorter than <rect>, of which a heat map would need thousands.
path_data box(double left, double top, double width, double height);

/// Attributes follow the name of the element; `done`, `text`, `titled` or `open` ends its tag.
class canvas {
  public:
    canvas& start(std::string_view name);
    canvas& with(std::string_view key, double value);
    canvas& with(std::string_view key, std::string_view value);
    canvas& with(const path_data& d) { return with("d", d.text()); }
    void done();
    /// Closes the element with `content`, escaped, inside.
    void text(std::string_view content);
    /// Closes the element with a <title> inside, which browsers show as a tooltip.
    void titled(std::string_view title);
    /// Following elements are nested, up to `close`.
    void open();
    void close(std::string_view name);

    /// <g class="...">, ended by close("g").
    void group(std::string_view classes);
    /// A text at a position; its classes, if any, determine size, anchor and colour.
    void label(double x, double y, std::string_view classes, std::string_view content);
    void path(const path_data& d, std::string_view classes);
    /// Appends the output of another canvas.
    void markup(std::string_view written) { out_ += written; }

    std::string take() { return std::move(out_); }

  private:
    std::string out_;
    std::string name_;  // of the element whose tag is still open
};

}  // namespace mx::report::svg

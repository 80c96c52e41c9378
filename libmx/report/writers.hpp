// SPDX-License-Identifier: Apache-2.0
// THE LIST of writers: one document in, text out.
#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "libmx/report/document.hpp"

namespace mx::report {

/// Takes the text piece by piece, in order.
using sink = std::function<void(std::string_view)>;

/// Numbers read back exactly, null is undefined; invalid UTF-8 becomes U+FFFD. One record a line.
void write_json(const document& d, const layout& l, const sink& out);
/// RFC 4180 (CRLF, quotes doubled), numbers read back exactly, undefined is empty. Nested members
/// are left out, except "shape", written as 64x128.
void write_csv(const document& d, const layout& l, const sink& out);
/// The sections as GitHub-flavoured tables, every name in full. Nested members are left out.
void write_markdown(const document& d, const layout& l, const sink& out);
/// The sections with their figures as one HTML page that needs nothing beside it: no network, no
/// other file. Readable without its script; opens light or dark, and prints.
void write_html(const document& d, const layout& l, const sink& out);
/// The sections as aligned text of at most layout::width columns where names and text allow it.
void write_table(const document& d, const layout& l, const sink& out);

struct writer {
    std::string_view name;  ///< also the option: --json FILE
    std::string_view summary;
    void (*write)(const document&, const layout&, const sink&);
};

inline constexpr std::array writers{
    writer{"json", "every member of every record, histograms included", write_json},
    writer{"csv", "one line per record, RFC 4180, without nested members", write_csv},
    writer{"markdown", "the tables, with every name in full", write_markdown},
    writer{"html", "a page with figures, for a browser or print", write_html},
    writer{"table", "aligned text for a terminal", write_table},
};

}  // namespace mx::report

// SPDX-License-Identifier: Apache-2.0
// THE LIST of writers: one document in, text out.
#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "libmx/report/document.hpp"

namespace mx::report {

/// Receives the text piece by piece, in order.
using sink = std::function<void(std::string_view)>;

/// JSON, one record per line. Numbers round-trip exactly, null is undefined; invalid UTF-8 becomes
/// U+FFFD.
void write_json(const document& d, const layout& l, const sink& out);
/// RFC 4180 CSV (CRLF, quotes doubled). Numbers round-trip exactly, undefined is empty. Nested
/// members are omitted, except "shape", written as 64x128.
void write_csv(const document& d, const layout& l, const sink& out);
/// The sections as GitHub-flavoured Markdown tables with full names. Nested members are omitted.
void write_markdown(const document& d, const layout& l, const sink& out);
/// The sections with their figures as one self-contained HTML page: no network access, no other
/// files. Readable without its script; light or dark; printable.
void write_html(const document& d, const layout& l, const sink& out);
/// The sections as aligned text of at most layout::width columns if names and text allow it.
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

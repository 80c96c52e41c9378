// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/project/configurations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/suggest.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/report/csv_reader.hpp"

namespace mx::project {
namespace {

std::vector<std::string> parts_of(const std::string& text, char between) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    for (std::size_t at = text.find(between); at != std::string::npos;
         at = text.find(between, from)) {
        parts.push_back(text.substr(from, at - from));
        from = at + 1;
    }
    parts.push_back(text.substr(from));
    return parts;
}

operand_format parse_format(const std::string& name) {
    if (name == "bf16") return {name, unit::bf16, 16};
    if (name == "fp8") return {name, unit::fp8, 8};
    const format::block_format* block = format::find_block_format(name);
    if (block == nullptr) {
        std::vector<std::string_view> names{"bf16", "fp8"};
        for (const format::block_format& f : format::block_formats) names.push_back(f.name);
        base::refuse(base::unknown("format", name, names));
    }
    const auto& element = *base::find_named(format::element_formats, block->element);
    if (!element.floating()) {
        base::refuse("{}: its elements are integers, which no profile has a rate for", name);
    }
    const double scale = format::find_scale_format(block->scale)->bits();
    const double bits = element.bits() + scale / (block->block_rows * block->block_cols);
    const unit is = element.bits() == 8 ? unit::fp8 : element.bits() == 6 ? unit::fp6 : unit::fp4;
    return {std::string(block->name), is, bits};
}

void apply(configuration& c, const std::string& key, const std::string& value) {
    const auto one_of = [&](std::vector<std::string_view> names) {
        if (std::ranges::find(names, value) == names.end())
            base::refuse(base::unknown(key, value, names));
    };
    if (key == "scope") {
        one_of({"mlp", "attention", "linear"});
        c.mlp = value != "attention";
        c.attention = value != "mlp";
    } else if (key == "products") {
        one_of({"all", "fprop"});
        c.forward_only = value == "fprop";
    } else if (key == "fp6") {
        one_of({"own", "fp8", "fp4"});
        c.fp6 = value == "own" ? fp6_rate::own : value == "fp8" ? fp6_rate::fp8 : fp6_rate::fp4;
    } else {
        base::refuse(base::unknown("setting", key, {"scope", "products", "fp6"}));
    }
}

std::string name_of(const configuration& c) {
    std::string name = c.weights.name;
    if (c.activations.name != name || c.gradients.name != name) {
        name += fmt::format("/{}/{}", c.activations.name, c.gradients.name);
    }
    std::string more;
    const auto add = [&](const char* text) {
        more += fmt::format("{}{}", more.empty() ? ":" : ",", text);
    };
    if (!c.attention) add("scope=mlp");
    if (!c.mlp) add("scope=attention");
    if (c.forward_only) add("products=fprop");
    if (c.fp6 != fp6_rate::own) add(c.fp6 == fp6_rate::fp8 ? "fp6=fp8" : "fp6=fp4");
    return name + more;
}

}  // namespace

bool configuration::mixed() const {
    return weights.is != activations.is || (!forward_only && weights.is != gradients.is);
}

configuration parse_configuration(const std::string& text) {
    configuration c;
    const std::size_t colon = text.find(':');
    const std::vector<std::string> formats = parts_of(text.substr(0, colon), '/');
    if (formats.size() != 1 && formats.size() != 3) {
        base::refuse("'{}' is not FORMAT or WEIGHTS/ACTIVATIONS/GRADIENTS", text);
    }
    try {
        c.weights = parse_format(formats.front());
        c.activations = parse_format(formats[formats.size() / 2]);
        c.gradients = parse_format(formats.back());
        for (const std::string& setting : colon == std::string::npos
                                              ? std::vector<std::string>()
                                              : parts_of(text.substr(colon + 1), ',')) {
            const std::size_t at = setting.find('=');
            if (at == std::string::npos) base::refuse("'{}' is not KEY=VALUE", setting);
            apply(c, setting.substr(0, at), setting.substr(at + 1));
        }
    } catch (const base::error& e) {
        base::refuse("configuration '{}': {}", text, e.message());
    }
    c.name = name_of(c);
    return c;
}

std::vector<target_row> read_targets(const std::string& path) {
    io::input_stream file(path);
    const report::csv_table table =
        report::read_csv([&](std::span<char> out) { return file.read(out); }, path);
    const std::size_t name = table.column("configuration"), speedup = table.column("speedup");
    std::vector<target_row> rows;
    for (const auto& row : table.rows) {
        const auto fail = [&](const std::string& what) {
            throw base::error(base::error_kind::input, fmt::format("line {}: {}", row.line, what),
                              {path, {}, {}});
        };
        const std::string& text = row.fields[speedup];
        const auto x = report::finite_number(text);
        if (!x || !(*x > 0)) fail(fmt::format("'{}' is not a positive speed-up", text));
        target_row t;
        try {
            t.of = parse_configuration(row.fields[name]);
        } catch (const base::error& e) {
            fail(e.message());
        }
        t.speedup = *x;
        const std::size_t point = text.find('.');
        const std::size_t digits = point == std::string::npos ? 0 : text.size() - point - 1;
        t.half_unit = 0.5 * std::pow(10.0, -static_cast<double>(std::min<std::size_t>(digits, 15)));
        for (const target_row& other : rows) {
            if (other.of.name == t.of.name) fail(fmt::format("{} is there twice", t.of.name));
        }
        rows.push_back(std::move(t));
    }
    if (rows.empty()) throw base::error(base::error_kind::input, "has no row", {path, {}, {}});
    if (rows.size() > 12) {
        throw base::error(base::error_kind::input, "has more than 12 rows", {path, {}, {}});
    }
    return rows;
}

}  // namespace mx::project

// SPDX-License-Identifier: Apache-2.0
// The parts of a run, nearly right, as mx merge reads them. The input chooses the run, the number
// of its parts, and which of their fields are wrong, and how. Only base::error may be thrown; sound
// parts must merge to the bytes of the whole run.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/documents/diff.hpp"
#include "libmx/documents/parts.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/report/writers.hpp"
#include "tests/fuzz/author.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/reader_target.hpp"
#include "tests/memory_model.hpp"

namespace mx::fuzz {
namespace {

using json = nlohmann::ordered_json;

std::shared_ptr<tests::memory_model> make_model(float scale) {
    const auto values = [&](std::size_t count) {
        std::vector<float> v(count);
        for (std::size_t i = 0; i < count; ++i) {
            v[i] = std::ldexp(scale * static_cast<float>(i * 37 % 101) - 40,
                              static_cast<int>(i % 11) - 9);
        }
        return v;
    };
    auto m = std::make_shared<tests::memory_model>();
    m->add("layers.0.mlp.up.weight", tensor::dtype::f32, {6, 64}, values(384));
    m->add("layers.0.norm.weight", tensor::dtype::f32, {64}, values(64));
    m->add("none", tensor::dtype::f32, {0, 4}, std::vector<float>());
    m->add("layers.1.norm.weight", tensor::dtype::f32, {96}, values(96));
    m->add("mask", tensor::dtype::boolean, {4}, std::vector<std::uint8_t>(4));
    return m;
}

engine::run_control one_thread() {
    engine::run_control control;
    control.threads = 1;
    return control;
}

const documents::run_environment environment{
    [] {
        static const auto model = make_model(1);
        return documents::opened_tensors{model->all(), {{"model.safetensors", 2000, ""}}};
    },
    [](auto) { return one_thread(); }};

template <typename Options, typename Run>
report::document measure(const documents::part_options& parts, Run run) {
    Options o;
    o.recipes = {"mxfp4", "nvfp4:scale=search"};
    o.parts = parts;
    return run(o, environment).document;
}

// THE LIST of runs.
using run_function = report::document (*)(const documents::part_options& parts);
const std::array<run_function, 6> runs{
    [](const documents::part_options& parts) {
        return measure<documents::analyze_options>(parts, documents::analyze);
    },
    [](const documents::part_options& parts) {
        return measure<documents::analyze_options>(parts, [](auto& o, auto& from) {
            o.histograms = o.decompose = true;
            return documents::analyze(o, from);
        });
    },
    [](const documents::part_options& parts) {
        return measure<documents::analyze_options>(parts, [](auto& o, auto& from) {
            o.groups = {"layers.*"};
            return documents::analyze(o, from);
        });
    },
    [](const documents::part_options& parts) {
        return measure<documents::compare_options>(parts, documents::compare);
    },
    [](const documents::part_options& parts) {
        return measure<documents::cluster_options>(parts, [](auto& o, auto& from) {
            o.recipes = {"mxfp8:scale=floor"};
            return documents::cluster(o, from);
        });
    },
    [](const documents::part_options& parts) {
        documents::diff_options o;
        o.in.files = {"a", "b"};
        o.recipes = {"mxfp4"};
        o.parts = parts;
        documents::dump_environment dumps{[](auto) { return one_thread(); },
                                          [](const std::string& path, const auto&) {
                                              return documents::opened_dump{
                                                  make_model(path == "a" ? 1 : 0.75f),
                                                  {{path, 2000, ""}}};
                                          },
                                          false};
        return documents::diff(o, dumps);
    },
};

documents::part_options some_part(std::uint64_t index, std::uint64_t count, bool page_sums) {
    documents::part_options o;
    o.shard = fmt::format("{}/{}", index, count);
    o.page_sums = page_sums;
    o.given.command = "analyze";
    o.given.files = {"model.safetensors"};
    o.given.options = {{"recipe", "mxfp4"}, {"all", {}}};
    return o;
}

std::string text_of(const report::document& d) {
    std::string text;
    report::write_json(d, {}, [&](std::string_view more) { text += more; });
    return text;
}

const std::string& whole_run(std::uint64_t run) {
    static std::map<std::uint64_t, std::string> known;
    std::string& text = known[run];
    if (text.empty()) text = text_of(runs[run]({}));
    return text;
}

const json& part_of_run(std::uint64_t run, std::uint64_t index, std::uint64_t count,
                        bool page_sums) {
    static std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, bool>, json> known;
    json& part = known[{run, index, count, page_sums}];
    if (part.is_null()) part = json::parse(text_of(runs[run](some_part(index, count, page_sums))));
    return part;
}

// A text of several words holds sums, in hexadecimal digits.
std::string words(author& by, const std::string& right) {
    std::string text;
    std::size_t at = 0;
    for (std::size_t end = 0; (end = right.find(' ', at)) != std::string::npos; at = end + 1) {
        const std::string word = right.substr(at, end - at);
        const auto number = base::parsed<std::uint64_t>(word, 16);
        text += by.part((number ? fmt::format("{:x}", by.number(*number)) : by.text(word)) + ' ');
    }
    return text + by.text(right.substr(at));
}

std::string written(author& by, const json& right) {
    std::string inner;
    const auto add = [&](const std::string& item) {
        const std::string all = by.part("," + item);
        inner += inner.empty() && !all.empty() ? all.substr(1) : all;
    };
    if (right.is_object()) {
        for (const auto& [key, value] : right.items()) {
            const std::string name = json_text(by.text(key));
            add(name + ":" + written(by, value));
        }
        return "{" + inner + "}";
    }
    if (right.is_array()) {
        for (const json& value : right) add(written(by, value));
        return "[" + inner + "]";
    }
    if (right.is_string()) return json_text(words(by, right.get<std::string>()));
    if (right.is_number_unsigned()) return fmt::format("{}", by.number(right));
    return by.text(right.dump());
}

std::string part_file(author& by, const json& right) {
    std::string text;
    for (const auto& [key, value] : right.items()) {
        const bool changed = key == "part" || key == "part_sums";
        text += fmt::format("{}{}:{}", text.empty() ? "{\n" : ",\n", json_text(key),
                            changed ? written(by, value) : value.dump());
    }
    return by.file(text + "\n}\n");
}

}  // namespace

const std::string_view format = "near_parts";

bool belongs(const std::string&) { return true; }

void try_input(const std::uint8_t* data, std::size_t size) {
    static folder place;
    choices from(data, size);
    author by(from);
    const std::uint64_t run = from.below(runs.size()), count = 1 + from.below(3);
    const bool page_sums = from.once_in(2);
    // Sums of one run may come to another.
    const std::uint64_t merging = from.once_in(8) ? from.below(runs.size()) : run;
    std::vector<std::string> paths;
    for (std::uint64_t i = 1; i <= count; ++i) {
        const std::string text = part_file(by, part_of_run(run, i, count, page_sums));
        for (std::uint64_t left = by.times(); left > 0; --left) {
            paths.push_back(place.write(fmt::format("{}.json", i), text));
        }
    }
    if (paths.empty()) return;
    std::string merged;
    try {
        std::vector<documents::part_head> heads;
        for (const std::string& path : paths) heads.push_back(documents::read_part_head(path));
        const bool complete = documents::missing_parts(heads).empty();
        require(complete || !by.sound(), "sound parts are complete");
        if (!complete) return;
        documents::part_options o;
        o.merged = paths;
        merged = text_of(runs[merging](o));
    } catch (const base::error& e) {  // refused, which is an answer
        if (by.sound() && merging == run) fmt::print(stderr, "{}\n", e.message());
        require(!by.sound() || merging != run, "sound parts are merged");
        return;
    }
    require(!by.sound() || merging != run || merged == whole_run(run),
            "sound parts merge to the whole run");
}

}  // namespace mx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    mx::fuzz::try_input(data, size);
    return 0;
}

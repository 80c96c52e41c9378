// SPDX-License-Identifier: Apache-2.0
// The index against the files, and the values of tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "libmx/base/random.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/engine/fused.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/studies/lint/parts.hpp"

namespace mx::lint {
namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void against_index(inspection& at) {
    if (!at.of.has_index) return;
    std::map<std::string_view, std::set<std::string_view>> in;  // files that have a tensor
    for (const io::tensor_ref& t : at.of.arrays) in[t.info().name].insert(t.info().file);
    std::set<std::string_view> missing;
    for (const finding& f : at.of.broken) missing.insert(f.tensor);
    std::set<std::string> there;
    for (const auto& file : at.of.files) {
        for (const auto& [path, bytes] : file->files()) there.insert(path);
    }
    for (const auto& [tensor, shard] : at.of.index) {
        const auto found = in.find(tensor);
        if (found != in.end() && found->second.contains(shard)) continue;
        if (!there.contains(shard)) continue;  // told once for the shard
        at.found.push_back(
            {"index", severity::error, shard, tensor,
             found == in.end()
                 ? fmt::format("the index lists it, and '{}' does not have it", last_part(shard))
                 : fmt::format("it is in '{}', not in '{}', as the index states",
                               last_part(std::string(*found->second.begin())), last_part(shard)),
             "engines refuse the checkpoint, or leave the weight as it was initialized",
             "write the index again"});
    }
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < at.of.arrays.size(); ++i) {
        const io::tensor_info& t = at.info(i);
        total += t.bytes;
        if (at.of.index.contains(t.name)) continue;
        at.add("index", severity::error, i, "the index does not list it",
               "engines that load by the index leave it as it was initialized",
               "write the index again");
    }
    if (!at.of.total_size.empty() && at.of.total_size != std::to_string(total) &&
        at.of.broken.empty()) {
        at.found.push_back({"index",
                            severity::warning,
                            {},
                            {},
                            fmt::format("the index states {} bytes of tensors, the files hold {}",
                                        at.of.total_size, total),
                            "programs that plan memory by it are misled",
                            "write the index again"});
    }
}

void stored_twice(inspection& at) {
    struct copies {
        std::size_t first, count = 0;
    };
    std::map<std::string_view, std::size_t> first;
    std::map<std::pair<std::string_view, std::string_view>, copies> of_files;
    for (std::size_t i = 0; i < at.of.arrays.size(); ++i) {
        const auto [place, added] = first.emplace(at.info(i).name, i);
        if (added) continue;
        copies& c = of_files[{at.info(i).file, at.info(place->second).file}];
        if (c.count++ == 0) c.first = i;
    }
    for (const auto& [files, c] : of_files) {
        at.add("index", severity::error, c.first,
               fmt::format(
                   "it{} in '{}', too",
                   c.count == 1 ? std::string(" is") : fmt::format(" and {} more are", c.count - 1),
                   last_part(std::string(files.second))),
               "which of the two counts depends on the engine", "delete one of the copies");
    }
}

// The bytes of an array in a number, for comparisons.
struct fingerprint {
    std::uint64_t hash = 0x9e3779b97f4a7c15u;
    void add(std::span<const std::byte> bytes) {
        for (std::size_t i = 0; i < bytes.size(); i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
            hash = (hash ^ word) * 0xff51afd7ed558ccdu;
            hash ^= hash >> 32;
        }
    }
};

struct contents {
    std::uint64_t nan = 0, inf = 0;
    bool zero = true;
    fingerprint print;
};

contents contents_of(inspection& at, std::size_t array) {
    const io::tensor_info& t = at.info(array);
    const io::tensor_ref& ref = at.of.arrays[array];
    const auto source = ref.file->open(ref.index);
    const tensor::dtype_row& row = tensor::row_of(t.type);
    contents c;
    constexpr std::uint64_t piece = 1 << 16;
    std::vector<float> values;
    std::vector<std::byte> scratch, bytes;
    for (std::uint64_t first = 0; first < t.bytes; first += piece) {
        bytes.resize(std::min(piece, t.bytes - first));
        source->read(first, bytes);
        c.print.add(bytes);
        c.zero =
            c.zero && std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
    }
    if (row.to_f32 == tensor::widening::none || row.bits < 8) return c;
    for (std::uint64_t first = 0; first < t.elements; first += piece) {
        values.resize(std::min(piece, t.elements - first));
        io::read_f32(*source, t.type, first, values, scratch);
        for (const float x : values) {
            c.nan += std::isnan(x) ? 1u : 0u;
            c.inf += std::isinf(x) ? 1u : 0u;
        }
    }
    return c;
}

// The name without the number of the expert, and the number; empty: it is of none.
std::pair<std::string, std::string> expert_of(const std::string& name) {
    constexpr std::string_view experts = "experts.";
    const std::size_t at = name.find(experts);
    if (at == std::string::npos) return {};
    const std::size_t number = at + experts.size(), end = name.find('.', number);
    if (end == std::string::npos) return {};
    return {name.substr(0, number) + "*" + name.substr(end), name.substr(number, end - number)};
}

}  // namespace

void check_index(inspection& at) {
    at.found.insert(at.found.end(), at.of.broken.begin(), at.of.broken.end());
    against_index(at);
    stored_twice(at);
}

void check_values(inspection& at) {
    if (!at.request.values) return;
    std::vector<bool> scales(at.of.arrays.size()), codes(at.of.arrays.size());
    for (const io::pairing& p : at.of.pairs.found) {
        for (const std::size_t part : p.parts()) scales[part] = true;
        scales[p.codes] = false;
        codes[p.codes] = true;
    }
    std::map<std::pair<std::string, std::uint64_t>, std::size_t> experts;
    for (std::size_t i = 0; i < at.of.arrays.size(); ++i) {
        const io::tensor_info& t = at.info(i);
        if (scales[i] || t.elements == 0 || !t.tied_to.empty()) continue;  // scale-value has them
        const contents c = contents_of(at, i);
        if (c.nan + c.inf > 0) {
            at.add("value", severity::error, i,
                   fmt::format("{} NaN and {} Inf of {} elements", c.nan, c.inf, t.elements),
                   "every output that they take part in is NaN or Inf",
                   "take the tensor from the source");
        }
        const bool matrix = t.shape.size() > 1;
        const bool number = tensor::row_of(t.type).to_f32 != tensor::widening::none;
        if (c.zero && matrix && (codes[i] || number)) {
            at.add("value", severity::warning, i, "all of its values are 0",
                   "its module adds nothing", "see whether it was ever loaded");
            continue;
        }
        const auto [family, expert] = expert_of(t.name);
        if (family.empty() || !matrix) continue;
        const auto [place, added] = experts.emplace(std::pair(family, c.print.hash), i);
        if (added) continue;
        at.add("value", severity::warning, i,
               fmt::format("it has the bytes of '{}'", at.info(place->second).name),
               "one of the two experts is the other's copy", "take the expert from the source");
    }
}

}  // namespace mx::lint

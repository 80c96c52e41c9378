// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace mx::diff {
namespace {

std::string extents_of(const tensor::shape& shape) {
    std::string text;
    for (const std::uint64_t extent : shape)
        text += fmt::format("{}{}", text.empty() ? "" : "x", extent);
    return text.empty() ? "a scalar" : text;
}

// The tensor names of all dumps in the order of the first, with their positions.
class directory {
  public:
    directory(std::span<const io::reader* const> dumps, std::span<const std::string> paths)
        : dumps_(dumps), paths_(paths) {
        single_ = std::ranges::all_of(dumps,
                                      [](const io::reader* d) { return d->tensors().size() == 1; });
        for (std::size_t d = 0; d < dumps.size(); ++d) {
            for (std::size_t i = 0; i < dumps[d]->tensors().size(); ++i) {
                const std::string& own = dumps[d]->tensors()[i].name;
                const std::string& name = single_ ? dumps[0]->tensors()[0].name : own;
                const auto [at, added] = places_.emplace(name, std::vector<place>(dumps.size()));
                if (added) names_.push_back(name);
                at->second[d] = {true, i};
            }
        }
    }

    const std::vector<std::string>& names() const { return names_; }

    std::vector<engine::tensor_ref> found(const std::string& name) const {
        std::vector<engine::tensor_ref> refs;
        const std::vector<place>& at = places_.at(name);
        for (std::size_t d = 0; d < at.size(); ++d) {
            if (at[d].known) refs.push_back({dumps_[d], at[d].index});
        }
        return refs;
    }

    // Why the first dump without the tensor lacks it.
    std::string absence(const std::string& name) const {
        const std::vector<place>& at = places_.at(name);
        for (std::size_t d = 0; d < at.size(); ++d) {
            if (at[d].known) continue;
            const auto packed = places_.find(name + ".codes");
            if (packed != places_.end() && packed->second[d].known) {
                return fmt::format("packed in {}; unpack that with 'mx dequantize' first",
                                   paths_[d]);
            }
            return fmt::format("not in {}", paths_[d]);
        }
        return {};
    }

  private:
    struct place {
        bool known = false;
        std::size_t index = 0;
    };
    std::span<const io::reader* const> dumps_;
    std::span<const std::string> paths_;
    bool single_ = false;
    std::vector<std::string> names_;
    std::map<std::string, std::vector<place>> places_;
};

// "shape 4x8 in a.safetensors, 4x9 in b.safetensors", or "". There is one tensor per dump.
std::string disagreement(const std::vector<engine::tensor_ref>& refs,
                         std::span<const std::string> paths) {
    for (std::size_t d = 1; d < refs.size(); ++d) {
        if (refs[d].info().shape == refs[0].info().shape) continue;
        return fmt::format("shape {} in {}, {} in {}", extents_of(refs[0].info().shape), paths[0],
                           extents_of(refs[d].info().shape), paths[d]);
    }
    return {};
}

// Why these cannot be compared, or "". `refs`: the tensors that the dumps have.
std::string obstacle(const directory& all, const std::string& name,
                     const std::vector<engine::tensor_ref>& refs,
                     std::span<const std::string> paths) {
    if (refs.size() < paths.size()) return all.absence(name);
    if (std::string text = disagreement(refs, paths); !text.empty()) return text;
    std::vector<engine::skipped_tensor> skipped;
    engine::numeric_only(refs, skipped);
    if (!skipped.empty()) return skipped.front().reason;
    return refs.front().info().elements == 0 ? "it has no elements" : "";
}

}  // namespace

matched_dumps match_dumps(std::span<const io::reader* const> dumps,
                          std::span<const std::string> paths,
                          const std::vector<engine::tensor_ref>& chosen) {
    std::set<std::pair<const io::reader*, std::size_t>> selected;
    for (const engine::tensor_ref& t : chosen) selected.emplace(t.file, t.index);
    const directory all(dumps, paths);
    matched_dumps result;
    for (const std::string& name : all.names()) {
        std::vector<engine::tensor_ref> refs = all.found(name);
        const bool any = std::ranges::any_of(refs, [&](const engine::tensor_ref& t) {
            return selected.contains({t.file, t.index});
        });
        if (!any) continue;
        const std::string reason = obstacle(all, name, refs, paths);
        if (reason.empty()) {
            result.tensors.push_back({std::move(refs)});
        } else {
            result.left_out.push_back({refs.front().info().file, name, "", reason});
        }
    }
    return result;
}

}  // namespace mx::diff

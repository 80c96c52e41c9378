// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/model.hpp"

#include <fmt/format.h>

#include <optional>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/base/task.hpp"
#include "libmx/io/input_paths.hpp"

namespace mx::engine {
namespace {

[[noreturn]] void nothing_matches(const std::string& glob, const std::vector<tensor_ref>& all) {
    std::vector<std::string_view> names;
    for (const tensor_ref& t : all) {
        if (names.size() < 10000) names.emplace_back(t.info().name);
    }
    const std::string near = base::nearest(glob, names);
    const std::string hint =
        near.empty() ? "the files have no tensors"
                     : fmt::format("the nearest name is '{}'; `mx tensors` lists all", near);
    base::refuse("--tensor '{}' matches no tensor: {}", glob, hint);
}

}  // namespace

model::model(const std::vector<std::string>& paths, const io::open_options& options,
             const view_request& views) {
    const std::vector<std::string> files = io::input_paths(paths);
    std::optional<base::task> opening;
    // The reader of a sharded model reports its shards.
    if (files.size() > 1) opening.emplace("opening", files.size());
    for (const std::string& path : files) {
        readers_.push_back(io::open_model(path, options));
        if (opening) opening->step();
    }
    view_request shown = views;
    // Raw data must have a dtype.
    shown.integers = shown.integers || !options.dtype.empty();
    view_ = make_view(readers_, shown);
}

std::vector<tensor_ref> select(std::span<const io::reader* const> readers,
                               const std::vector<std::string>& globs) {
    std::vector<tensor_ref> all;
    for (const io::reader* r : readers) {
        for (std::size_t i = 0; i < r->tensors().size(); ++i) all.push_back({r, i});
    }
    if (globs.empty()) return all;
    std::vector<bool> chosen(all.size());
    for (const std::string& glob : globs) {
        bool any = false;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!base::glob_match(glob, all[i].info().name)) continue;
            chosen[i] = true;
            any = true;
        }
        if (!any) nothing_matches(glob, all);
    }
    std::vector<tensor_ref> picked;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (chosen[i]) picked.push_back(all[i]);
    }
    return picked;
}

std::vector<tensor_ref> model::select(const std::vector<std::string>& globs) const {
    const io::reader* const all = &reader();
    return engine::select(std::span(&all, 1), globs);
}

std::vector<std::pair<std::string, std::uint64_t>> model::files() const {
    std::vector<std::pair<std::string, std::uint64_t>> files;
    for (const std::unique_ptr<io::reader>& r : readers_) {
        for (const auto& f : r->files()) files.push_back(f);
    }
    return files;
}

}  // namespace mx::engine

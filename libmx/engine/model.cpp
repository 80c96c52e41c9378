// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/model.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/base/task.hpp"
#include "libmx/io/input_paths.hpp"

namespace mx::engine {
namespace {

[[noreturn]] void nothing_matches(const std::string& glob, const std::vector<tensor_ref>& all) {
    std::vector<std::string_view> names;
    for (const tensor_ref& t : all) names.emplace_back(t.info().name);
    base::refuse("--tensor '{}' matches no tensor: {}; `mx tensors` lists all", glob,
                 base::no_match(glob, "-t", names));
}

}  // namespace

model::model(const std::vector<std::string>& paths, const io::open_options& options,
             const view_request& views) {
    const io::opening_scope headers;  // views are made of them, too
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        const std::vector<std::string> of = io::input_paths({path});
        files.insert(files.end(), of.begin(), of.end());
        given_.insert(given_.end(), of.size(), path);
        if (of.size() < 2 || !io::is_folder(path)) continue;
        for (const std::string& file : of) parts_.emplace(file, path);
    }
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

void require_names_once(std::span<const tensor_ref> tensors, const std::string& of) {
    std::map<std::string_view, const std::string*> files;  // by name
    for (const tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        const auto [at, added] = files.emplace(info.name, &info.file);
        if (added) continue;
        base::refuse(
            fmt::format("the model is there twice: '{}' is in {} and in {}; name one of the files, "
                        "or choose with --tensor so that each name is there once",
                        base::printable(info.name), *at->second, info.file),
            {of, {}, {}});
    }
}

std::vector<tensor_ref> model::tensors() const {
    const io::reader* const all = &reader();
    return engine::select(std::span(&all, 1), {});
}

std::vector<tensor_ref> model::select(const std::vector<std::string>& globs) const {
    const io::reader* const all = &reader();
    std::vector<tensor_ref> selected = engine::select(std::span(&all, 1), globs);
    // Files that are named one by one may be dumps of one model; those of a directory are its
    // parts.
    std::map<std::string, std::vector<tensor_ref>> of;  // by directory
    for (const tensor_ref& t : selected) {
        const auto at = parts_.find(t.info().file);
        if (at != parts_.end()) of[at->second].push_back(t);
    }
    for (const auto& [directory, tensors] : of) require_names_once(tensors, directory);
    return selected;
}

std::vector<input_file> model::files() const {
    std::vector<input_file> files;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
        for (const auto& [path, bytes] : readers_[i]->files()) {
            files.push_back({path, bytes, given_[i]});
        }
    }
    return files;
}

}  // namespace mx::engine

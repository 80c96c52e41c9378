// SPDX-License-Identifier: Apache-2.0
#include "libmx/lint/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "libmx/base/glob.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/widen.hpp"

namespace mx::lint {
namespace {

namespace fs = std::filesystem;
using tensor::dtype;

enum class part : std::uint8_t { codes, scale, tensor_scale, input_scale, other };

// The ending of an array's name after its module. The longest that matches counts.
struct part_ending {
    std::string_view ending;
    part is;
    bool generic = false;  ///< other things are called so, too
    bool divides = false;
};
constexpr std::array part_endings{
    part_ending{".weight", part::codes},
    part_ending{".weight_packed", part::codes},
    part_ending{".qweight", part::codes},
    part_ending{"_blocks", part::codes},
    part_ending{".blocks", part::codes},
    part_ending{".weight_scale", part::scale},
    part_ending{".weight_scale_inv", part::scale},
    part_ending{"_weight_scale", part::scale},
    part_ending{"_weight_scale_inv", part::scale},
    part_ending{"_scale_inv", part::scale},
    part_ending{"_scales", part::scale, true},
    part_ending{".scales", part::scale, true},
    part_ending{".scale", part::scale, true},
    part_ending{".scale_weight", part::scale},
    part_ending{".weight.absmax", part::scale},
    part_ending{".SCB", part::scale},
    part_ending{".weight_scale_2", part::tensor_scale},
    part_ending{"_weight_scale_2", part::tensor_scale},
    part_ending{".weight_global_scale", part::tensor_scale, false, true},
    part_ending{".input_scale", part::input_scale},
    part_ending{"_input_scale", part::input_scale},
    part_ending{".input_global_scale", part::input_scale, false, true},
    part_ending{".qzeros", part::other},
    part_ending{".weight_zero_point", part::other},
    part_ending{".weight_shape", part::other},
    part_ending{".weight_g_idx", part::other},
    part_ending{".weight.quant_map", part::other},
    part_ending{".weight.nested_absmax", part::other},
    part_ending{".weight.nested_quant_map", part::other},
};

const part_ending* ending_of(std::string_view name) {
    const part_ending* best = nullptr;
    for (const part_ending& e : part_endings) {
        if (!name.ends_with(e.ending) || name.size() == e.ending.size()) continue;
        if (best == nullptr || e.ending.size() > best->ending.size()) best = &e;
    }
    return best;
}

// A dtype of codes of few bits, whatever the name.
bool is_code_type(dtype t) {
    return t == dtype::f4 || t == dtype::f6_e2m3 || t == dtype::f6_e3m2 || t == dtype::f8_e4m3 ||
           t == dtype::f8_e5m2 || t == dtype::f8_e4m3fnuz || t == dtype::f8_e5m2fnuz;
}
bool is_word(dtype t) {
    return t == dtype::u8 || t == dtype::i8 || t == dtype::i32 || t == dtype::u32;
}

std::string parent_of(const std::string& path) {
    const fs::path p = fs::path(path).parent_path();
    return p.empty() ? std::string(".") : p.string();
}

}  // namespace

std::size_t module::first() const {
    return codes ? *codes : scale ? *scale : tensor_scale ? *tensor_scale : *input_scale;
}

std::string pattern_of(std::string_view name) {
    std::string pattern;
    for (std::size_t begin = 0; begin <= name.size();) {
        const std::size_t end = std::min(name.find('.', begin), name.size());
        const std::string_view word = name.substr(begin, end - begin);
        const bool number = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
            return std::isdigit(c) != 0;
        });
        if (begin > 0) pattern += '.';
        pattern += number ? std::string_view("*") : word;
        begin = end + 1;
    }
    return pattern;
}

std::string described_array(const io::tensor_info& t) {
    return fmt::format("{} ({} {})", io::short_name(t.name), tensor::row_of(t.type).name,
                       tensor::to_string(t.shape));
}

checkpoint::checkpoint(const std::string& path, const lint_options& how)
    : values_(how.values), cancel_(how.cancel) {
    const bool index = path.ends_with(".safetensors.index.json");
    const bool folder = io::is_folder(path);
    // A shard alone lacks what others hold.
    const bool shard = path.ends_with(".safetensors") && !io::missing_shards({path}).empty();
    folder_ = folder ? path : parent_of(path);
    listed_ = folder || index || shard || io::is_remote(path) ? io::paths_in(folder_)
                                                              : std::vector<std::string>();
    if (folder || (index && (!listed_.empty() || io::is_remote(path))) ||
        (shard && !listed_.empty())) {
        opened_ = folder_;
        open_folder(index ? path : "");
    } else {
        opened_ = path;
        for (const std::string& part : gguf_parts(path)) files_.push_back(io::open_model(part));
    }
    for (const auto& file : files_) {
        for (std::size_t i = 0; i < file->tensors().size(); ++i) {
            const io::tensor_info& t = file->tensors()[i];
            const auto [known, added] = names_.emplace(t.name, arrays_.size());
            if (added) {
                arrays_.push_back({file.get(), i});
                continue;
            }
            broken_.push_back(finding_at(severity::error, t.name, "is in two files",
                                         fmt::format("{} and {}", info(known->second).file, t.file),
                                         "an engine loads whichever file it reads last",
                                         "remove one of the two"));
        }
    }
    if (arrays_.empty() && broken_.empty()) {
        throw base::error(base::error_kind::input, "holds no tensors", {path, {}, {}});
    }
    read_configuration();
    // A tensor that is decoded from its own bytes has no scales beside it.
    pairings_ = io::find_pairings(arrays_, false);
    pairing_of_.resize(arrays_.size());
    for (std::size_t i = 0; i < pairings_.found.size(); ++i) {
        for (const std::size_t part : pairings_.found[i].parts()) pairing_of_[part] = i + 1;
    }
    group();
    if (!how.original.empty()) open_original(how.original);
}

std::vector<std::string> checkpoint::gguf_parts(const std::string& path) {
    std::vector<std::string> parts{path};
    if (!path.ends_with(".gguf") || io::missing_shards(parts).empty()) return parts;
    parts = {io::is_remote(path) ? path : fs::path(path).lexically_normal().string()};
    for (const std::string& other : io::paths_in(parent_of(path))) {
        const std::string p =
            io::is_remote(other) ? other : fs::path(other).lexically_normal().string();
        const bool shard = p.ends_with(".gguf") && !io::missing_shards({p}).empty();
        if (shard && p != parts.front() && io::missing_shards({parts.front(), p}).size() < 2) {
            parts.push_back(p);
        }
    }
    std::ranges::sort(parts);
    const std::vector<std::string> missing = io::missing_shards(parts);
    complete_ = missing.empty();
    if (!complete_ && !io::is_remote(path)) lacks_shards(path, missing.front());
    return parts;
}

void checkpoint::lacks_shards(const std::string& where, const std::string& missing) {
    complete_ = false;
    broken_.push_back(finding_at(severity::error, where, "lacks shards", missing,
                                 "an engine refuses the checkpoint", "fetch the missing files"));
}

void checkpoint::open_files(const std::vector<std::string>& paths) {
    struct opened {
        std::unique_ptr<io::reader> file;
        std::string problem;
    };
    std::vector<opened> all(paths.size());
    const int at_once = paths.empty() ? 1 : io::opened_at_once(paths.front());
    base::parallel_for(paths.size(), at_once, nullptr, [&](std::uint64_t i, int) {
        try {
            all[i].file = io::open_safetensors(io::input_file::open(paths[i]), {});
        } catch (const base::error& e) {
            if (e.kind() != base::error_kind::input) throw;
            all[i].problem = e.message();
        }
    });
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (all[i].file) {
            files_.push_back(std::move(all[i].file));
        } else {
            cannot_read(paths[i], all[i].problem, "fetch or write the file again");
        }
    }
}

void checkpoint::cannot_read(const std::string& file, const std::string& problem,
                             std::string repair) {
    broken_.push_back(finding_at(severity::error, file, "cannot be read", problem,
                                 "an engine refuses the checkpoint", std::move(repair)));
}

void checkpoint::open_folder(const std::string& given) {
    std::vector<std::string> files, indexes;
    for (const std::string& path : listed_) {
        if (path.ends_with(".safetensors")) files.push_back(path);
        if (path.ends_with(".safetensors.index.json")) indexes.push_back(path);
    }
    if (listed_.empty() && !given.empty()) {  // servers list no files: what the index names
        indexes = {given};
        for (const auto& [shard, names] : io::read_shard_index(given).shards) {
            files.push_back(shard);
        }
    }
    const std::string& folder = folder_;
    if (files.empty()) {
        files_.push_back(io::open_model(folder));  // of another kind, or it says what is wrong
        return;
    }
    open_files(files);
    for (const std::string& index : indexes) check_index(index, files);
    if (indexes.empty()) {
        for (const std::string& missing : io::missing_shards(files)) {
            lacks_shards(folder, missing);
        }
        if (files.size() > 1) {
            broken_.push_back(finding_at(
                severity::warning, folder, "holds several files and no index",
                fmt::format("{} files", files.size()), "some engines load the first file only",
                "write model.safetensors.index.json"));
        }
    }
}

void checkpoint::check_index(const std::string& index, const std::vector<std::string>& files) {
    io::shard_index stated;
    try {
        stated = io::read_shard_index(index);
    } catch (const base::error& e) {
        if (e.kind() != base::error_kind::input) throw;
        broken_.push_back(finding_at(severity::error, index, "cannot be read as an index",
                                     e.message(), "an engine refuses the checkpoint",
                                     "write it again from the headers of the shards"));
        return;
    }
    base::view_map<const std::string*> where;  // by tensor: the path of the shard
    for (const auto& [shard, names] : stated.shards) {
        for (const std::string& name : names) where.emplace(name, &shard);
        if (std::ranges::find(files, shard) == files.end()) {
            broken_.push_back(finding_at(
                severity::error, names.front(), "its shard in the index does not exist",
                fmt::format("{}, of {} tensors", shard, names.size()),
                "an engine refuses the checkpoint", "fetch the file or correct the index"));
        }
    }
    std::uint64_t bytes = 0;
    bool all = true;  // the shards of the index could be read
    base::view_map<const std::string*> stored;
    for (const auto& file : files_) {
        const std::string path = file->files().front().first;
        // A file beside a complete set, such as the same model in one piece, is another model.
        const bool named = stated.shards.contains(path);
        std::string first;
        std::size_t omitted = 0;
        for (const io::tensor_info& t : file->tensors()) {
            if (named) {
                stored.emplace(t.name, &t.file);
                bytes += t.bytes;
            }
            if (!where.contains(t.name) && omitted++ == 0) first = t.name;
        }
        if (omitted != 0) {
            broken_.push_back(finding_at(
                severity::error, first, "is in a file, but not in the index",
                fmt::format("{} of {} tensors of {}", omitted, file->tensors().size(), path),
                "an engine that follows the index leaves it out",
                "add it to the index or remove it"));
        }
    }
    for (const auto& [shard, names] : stated.shards) {
        const auto open = std::ranges::any_of(
            files_, [&path = shard](const auto& f) { return f->files().front().first == path; });
        all = all && open;
        for (const std::string& name : names) {
            const auto at = stored.find(name);
            if (at == stored.end() && open) {
                broken_.push_back(finding_at(severity::error, name,
                                             "is in the index, but in no shard", shard,
                                             "an engine refuses the checkpoint",
                                             "remove it from the index, or write the tensor"));
            } else if (at != stored.end() && *at->second != shard) {
                broken_.push_back(finding_at(
                    severity::error, name, "is in another shard than the index says",
                    fmt::format("{}, not {}", *at->second, shard),
                    "an engine that follows the index does not find it", "correct the index"));
            }
        }
    }
    const auto total = stated.counts.find("total_size");
    if (all && total != stated.counts.end() && total->second != bytes) {
        broken_.push_back(
            finding_at(severity::warning, index, "total_size is not that of the tensors",
                       fmt::format("{} bytes stated, {} stored", total->second, bytes),
                       "memory is planned for another size; tied tensors that are stored once "
                       "can explain it",
                       fmt::format("write {}", bytes)));
    }
}

io::config_entries checkpoint::entries_of(std::string_view name) {
    const std::string path = fmt::format("{}/{}", folder_, name);
    std::optional<std::string> there;
    if (io::is_remote(folder_)) {
        for (const std::string& p : listed_) {
            if (p.substr(p.rfind('/') + 1) == name) there = p;
        }
        if (listed_.empty()) {
            try {
                io::input_file::open(path);
                there = path;
            } catch (const base::error& e) {  // most likely there is none
                if (e.kind() != base::error_kind::input) throw;
            }
        }
    } else if (std::error_code ignored; fs::is_regular_file(path, ignored)) {
        there = path;
    }
    if (!there) return {};
    try {
        return io::read_entries(*there);
    } catch (const base::error& e) {
        if (e.kind() != base::error_kind::input) throw;
        cannot_read(*there, e.message(), "write it again");
        return {};
    }
}

void checkpoint::read_configuration() {
    config_ = entries_of("config.json");
    for (const std::string_view prefix :
         {"quantization_config.", "compression_config.", "text_config.quantization_config."}) {
        if (prefix.starts_with("text") && !quantization_.empty()) break;
        for (auto at = config_.lower_bound(std::string(prefix));
             at != config_.end() && at->first.starts_with(prefix); ++at) {
            quantization_.emplace(at->first.substr(prefix.size()), at->second);
        }
    }
    // modelopt's own file; the first statement counts.
    constexpr std::string_view prefix = "quantization.";
    for (auto& [key, value] : entries_of("hf_quant_config.json")) {
        if (key.starts_with(prefix)) quantization_.emplace(key.substr(prefix.size()), value);
    }
}

void checkpoint::group() {
    base::text_map<std::size_t> places;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const std::string& name = info(i).name;
        const part_ending* const e = ending_of(name);
        if (e == nullptr) continue;
        const std::string stem = name.substr(0, name.size() - e->ending.size());
        const auto [at, added] = places.emplace(stem, modules_.size());
        if (added) {
            modules_.emplace_back();
            modules_.back().name = stem;
        }
        module& m = modules_[at->second];
        switch (e->is) {
            case part::codes:
                m.codes = i;
                m.coded = m.coded || e->ending != ".weight";
                break;
            case part::scale:
                m.scale = i;
                m.generic = e->generic;
                break;
            case part::tensor_scale:
                m.tensor_scale = i;
                m.divides = e->divides;
                break;
            case part::input_scale:
                m.input_scale = i;
                break;
            case part::other:
                m.others.push_back(i);
                break;
        }
    }
    base::text_set generic_in_use;  // endings of scales that some codes have
    for (module& m : modules_) {
        // Stacked experts have no ending.
        if (const auto bare = array(m.name); !m.codes && bare) m.codes = *bare;
        if (!m.codes) continue;
        const io::tensor_info& t = info(*m.codes);
        const std::size_t paired = pairing_of_[*m.codes];
        m.coded = m.coded || is_code_type(t.type) || paired != 0 || !t.layout.empty() ||
                  (is_word(t.type) && (m.scale || m.tensor_scale || !m.others.empty()));
        // Codes that the reader decodes have the dtype of their values.
        const bool values = t.type == dtype::f32 || t.type == dtype::bf16 || t.type == dtype::f16;
        m.coded = m.coded && (!values || !t.layout.empty());
        if (m.coded && m.generic) {
            generic_in_use.insert(info(*m.scale).name.substr(m.name.size()));
        }
    }
    // A scale of a general name belongs to codes, or is like one that does.
    for (module& m : modules_) {
        if (!m.generic || m.coded) continue;
        const io::tensor_info& t = info(*m.scale);
        const bool like_others = generic_in_use.contains(t.name.substr(m.name.size()));
        const bool bytes = t.type == dtype::u8 || t.type == dtype::f8_e8m0 || !m.others.empty();
        if (m.codes || (!like_others && !bytes)) m.scale.reset();
    }
    std::erase_if(modules_, [](const module& m) { return !m.codes && !m.any_scale(); });
    std::ranges::sort(modules_, {}, &module::name);
}

void checkpoint::open_original(const std::string& path) {
    original_.emplace(std::vector{path}, io::open_options{});
    for (const io::tensor_ref& t : original_->tensors()) originals_.emplace(t.info().name, t);
    const auto shared = [&](const io::tensor_ref& a) { return originals_.contains(a.info().name); };
    const bool paired = std::ranges::any_of(
        pairings_.found, [&](const io::pairing& p) { return originals_.contains(p.name); });
    if (paired || std::ranges::any_of(arrays_, shared)) return;
    throw base::error(
        base::error_kind::input,
        "holds no tensor by the name of one of the checkpoint; --original is the model "
        "that was quantized",
        {path, {}, {}});
}

std::optional<io::tensor_ref> checkpoint::original(std::string_view name) const {
    const auto at = originals_.find(name);
    if (at == originals_.end() || !at->second.info().note.empty() ||
        tensor::row_of(at->second.info().type).to_f32 == tensor::widening::none) {
        return {};
    }
    return at->second;
}

std::optional<std::size_t> checkpoint::array(std::string_view name) const {
    const auto at = names_.find(name);
    return at == names_.end() ? std::nullopt : std::optional(at->second);
}

const io::pairing* checkpoint::pairing_of(const module& m) const {
    const std::size_t at = m.codes ? pairing_of_[*m.codes] : 0;
    return at == 0 ? nullptr : &pairings_.found[at - 1];
}

std::vector<checkpoint::element_run> checkpoint::sample_of(std::size_t array) const {
    constexpr std::uint64_t piece_bytes = 1 << 16;
    const io::tensor_info& t = info(array);
    const auto bits = static_cast<std::uint64_t>(tensor::row_of(t.type).bits);
    const std::uint64_t each = piece_bytes * 8 / bits;
    std::vector<element_run> all;
    if (!values_ && t.elements > 3 * each) {
        return {{0, each}, {(t.elements - each) / 2, each}, {t.elements - each, each}};
    }
    for (std::uint64_t at = 0; at < t.elements; at += each) {
        all.push_back({at, std::min(each, t.elements - at)});
    }
    return all;
}

std::string checkpoint::counted_scales(std::size_t array) const {
    std::uint64_t read = 0;
    for (const element_run& p : sample_of(array)) read += p.count;
    const std::uint64_t all = info(array).elements;
    return read == all ? fmt::format("{} scale{}", all, all == 1 ? "" : "s")
                       : fmt::format("{} scales read of {}", read, all);
}

std::vector<float> checkpoint::values_of(std::size_t array, std::uint64_t first,
                                         std::size_t count) const {
    const io::tensor_info& t = info(array);
    if (tensor::row_of(t.type).to_f32 == tensor::widening::none || first >= t.elements) return {};
    std::vector<float> out(
        static_cast<std::size_t>(std::min<std::uint64_t>(count, t.elements - first)));
    std::vector<std::byte> scratch;
    io::read_f32(*open(array), t.type, first, out, scratch);
    return out;
}

std::vector<std::byte> checkpoint::bytes_of(std::size_t array, std::uint64_t first,
                                            std::size_t count) const {
    const io::tensor_info& t = info(array);
    if (first >= t.bytes) return {};
    std::vector<std::byte> out(
        static_cast<std::size_t>(std::min<std::uint64_t>(count, t.bytes - first)));
    open(array)->read(first, out);
    return out;
}

lint_result lint(const std::string& path, const lint_options& how) {
    std::vector<std::string_view> names;
    for (const rule_row& r : rules) names.push_back(r.name);
    const auto require_rule = [&](std::string_view option, std::string_view name) {
        if (std::ranges::find(names, name) != names.end()) return;
        base::refuse("{}: unknown rule '{}'; there are {}", option,
                     base::printable(std::string(name)), fmt::join(names, ", "));
    };
    for (const std::string& r : how.rules) require_rule("--rules", r);
    std::vector<std::pair<std::string, std::string>> ignored;
    for (const std::string& i : how.ignore) {
        const std::size_t colon = i.find(':');
        ignored.emplace_back(i.substr(0, colon),
                             colon == std::string::npos ? "*" : i.substr(colon + 1));
        require_rule("--ignore", ignored.back().first);
    }
    const checkpoint c(path, how);
    lint_result result;
    std::vector<finding>& all = result.findings;
    for (const rule_row& r : rules) {
        if (!how.rules.empty() && std::ranges::find(how.rules, r.name) == how.rules.end()) continue;
        if (!r.applies(how)) continue;
        std::vector<finding> found;
        r.find(c, found);
        std::ranges::stable_sort(found, {}, &finding::tensor);
        for (finding& f : found) {
            f.rule = r.name;
            if (std::ranges::any_of(ignored, [&](const auto& i) {
                    return i.first == f.rule && base::glob_match(i.second, f.tensor);
                })) {
                continue;
            }
            all.push_back(std::move(f));
        }
    }
    std::ranges::stable_sort(all, {}, &finding::level);
    for (const module& m : c.modules()) {
        for (const auto at : {m.scale, m.tensor_scale, m.input_scale}) {
            if (!at) continue;
            result.scale_bytes += c.info(*at).bytes;
            for (const checkpoint::element_run& p : c.sample_of(*at)) {
                result.scale_bytes_read += *tensor::byte_count(c.info(*at).type, p.count);
            }
        }
    }
    return result;
}

}  // namespace mx::lint

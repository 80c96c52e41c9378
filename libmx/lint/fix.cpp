// SPDX-License-Identifier: Apache-2.0
#include "libmx/lint/fix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/engine/fused.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/lint/checkpoint.hpp"

namespace mx::lint {
namespace {

constexpr std::size_t bytes_at_once = std::size_t{1} << 20;

// The code that each code of a dtype of one byte becomes; none: it has no exact counterpart.
using code_map = std::array<std::optional<std::byte>, 256>;

// What replaces the bytes of an array.
struct replacement {
    std::optional<code_map> codes{};
    std::vector<std::byte> number{};  // the whole array
};
using replacements = base::text_map<replacement>;  // by name

// The codes of value v * by / under. Products of a code and a float32 are exact in double.
code_map rescaled(tensor::dtype type, float by, float under) {
    std::array<std::byte, 256> bytes;
    std::array<float, 256> value;
    for (std::size_t c = 0; c < bytes.size(); ++c) bytes[c] = static_cast<std::byte>(c);
    io::widen(type, bytes, 0, value);
    code_map map;
    for (std::size_t c = 0; c < bytes.size(); ++c) {
        if (!std::isfinite(value[c])) {
            map[c] = bytes[c];
            continue;
        }
        const double want = static_cast<double>(value[c]) * by;
        const auto same = std::ranges::find_if(value, [&](float v) {
            return static_cast<double>(v) * under == want &&
                   std::signbit(v) == std::signbit(value[c]);
        });
        if (same != value.end()) map[c] = bytes[static_cast<std::size_t>(same - value.begin())];
    }
    return map;
}

// A checkpoint with what becomes of its arrays.
class fixer {
  public:
    fixer(const checkpoint& c, const std::atomic<bool>* cancel) : c_(c), cancel_(cancel) {
        for (const module& m : c.modules()) {
            for (const auto& at : {m.tensor_scale, m.scale}) {
                if (at) owner_.emplace(c.info(*at).name, &m);
            }
            partners_[engine::fused_name(m.name, engine::expert_fusion::apart)].push_back(&m);
        }
    }

    const replacements& replaced() const { return replaced_; }

    // Gives the partners of the scale `name` one tensor scale. Returns what was done; empty with
    // `why` set if that is not possible.
    std::string share_scale(const std::string& name, std::string& why) {
        const auto owner = owner_.find(name);
        if (owner == owner_.end()) {
            why = "which range activations have is in no file of the checkpoint";
            return {};
        }
        const module& named = *owner->second;
        const bool outer = named.tensor_scale && c_.info(*named.tensor_scale).name == name;
        const auto scale_of = outer ? &module::tensor_scale : &module::scale;
        const auto rescaled_of = outer ? &module::scale : &module::codes;
        std::vector<const module*> group;
        for (const module* m :
             partners_.at(engine::fused_name(named.name, engine::expert_fusion::apart))) {
            if (!(m->*scale_of) || c_.info(*(m->*scale_of)).elements != 1) continue;
            const io::tensor_info& t = c_.info(*(m->*scale_of));
            const io::tensor_info& other = c_.info(*(named.*scale_of));
            if (t.type != other.type || t.shape != other.shape || m->divides != named.divides) {
                why = "the scales of partners differ in dtype, shape or use";
                return {};
            }
            group.push_back(m);
        }
        for (const module* like : group) {
            replacements all;
            const std::size_t scale = *(like->*scale_of);
            if (!share(group, scale_of, rescaled_of, scale, all)) continue;
            std::string names;
            for (const module* m : group) {
                names += fmt::format("{}{}", names.empty() ? "" : ", ",
                                     m->name.substr(m->name.rfind('.') + 1));
            }
            replaced_.merge(all);
            return fmt::format(
                "{} have the {}scale of {}, {:.6g}, under which every value is exact", names,
                outer ? "tensor " : "", like->name, c_.values_of(scale, 0, 1).at(0));
        }
        why = fmt::format("under no partner's {}scale do all {} of the others stay exact",
                          outer ? "tensor " : "", outer ? "block scales" : "codes");
        return {};
    }

  private:
    bool share(const std::vector<const module*>& group,
               std::optional<std::size_t> module::*scale_of,
               std::optional<std::size_t> module::*rescaled_of, std::size_t scale,
               replacements& all) const {
        const float shared = c_.values_of(scale, 0, 1).at(0);
        const std::vector<std::byte> bytes =
            c_.bytes_of(scale, 0, static_cast<std::size_t>(c_.info(scale).bytes));
        for (const module* m : group) {
            const float own = c_.values_of(*(m->*scale_of), 0, 1).at(0);
            if (own == shared) continue;
            if (!(m->*rescaled_of)) return false;
            const io::tensor_info& t = c_.info(*(m->*rescaled_of));
            const tensor::dtype_row& row = tensor::row_of(t.type);
            if (row.bits != 8 || t.type == tensor::dtype::u8 || !t.layout.empty() ||
                row.to_f32 == tensor::widening::none) {
                return false;
            }
            const code_map map =
                m->divides ? rescaled(t.type, shared, own) : rescaled(t.type, own, shared);
            for (std::uint64_t at = 0; at < t.bytes; at += bytes_at_once) {
                base::stop_if(cancel_);
                for (const std::byte b : c_.bytes_of(*(m->*rescaled_of), at, bytes_at_once)) {
                    if (!map[std::to_integer<std::size_t>(b)]) return false;
                }
            }
            all[t.name].codes = map;
            all[c_.info(*(m->*scale_of)).name].number = bytes;
        }
        return true;
    }

    const checkpoint& c_;
    const std::atomic<bool>* cancel_;
    base::view_map<const module*> owner_;  // by the name of a scale of weights
    std::map<std::string, std::vector<const module*>> partners_;
    replacements replaced_;
};

// Every tensor of a folder. Throws base::error for what a new index would hide.
std::vector<io::tensor_ref> all_tensors(const std::string& folder,
                                        std::vector<std::unique_ptr<io::reader>>& open) {
    std::vector<std::string> files, indexes;
    for (const std::string& path : io::paths_in(folder)) {
        if (path.ends_with(".safetensors")) files.push_back(path);
        if (path.ends_with(io::shards_ending)) indexes.push_back(path);
    }
    if (files.empty())
        base::refuse("--fix: {}: holds no safetensors files", base::printable(folder));
    io::require_all_shards(folder, files);
    std::vector<io::tensor_ref> all;
    base::view_map<const io::tensor_info*> names;
    for (const std::string& file : files) {
        open.push_back(io::open_safetensors(io::input_file::open(file), {}));
        for (std::size_t i = 0; i < open.back()->tensors().size(); ++i) {
            const io::tensor_info& t = open.back()->tensors()[i];
            const auto [first, added] = names.emplace(t.name, &t);
            if (!added) {
                throw base::error(base::error_kind::input,
                                  fmt::format("is in {}, too: remove one of the two before --fix",
                                              base::printable(first->second->file)),
                                  {t.file, t.name, {}});
            }
            all.push_back({open.back().get(), i});
        }
    }
    for (const std::string& index : indexes) {
        io::shard_index stated;
        try {
            stated = io::read_shard_index(index);
        } catch (const base::error& e) {
            if (e.kind() != base::error_kind::input) throw;
            continue;  // the headers say what is there
        }
        for (const auto& [shard, of] : stated.shards) {
            for (const std::string& name : of) {
                if (names.contains(name)) continue;
                throw base::error(base::error_kind::input,
                                  "is in no file of the folder: fetch it, or remove it from the "
                                  "index, before --fix",
                                  {index, name, {}});
            }
        }
    }
    return all;
}

void copy(const io::tensor_ref& from, const replacement* by, std::size_t array,
          io::array_writer& to, const std::atomic<bool>* cancel) {
    if (by != nullptr && !by->codes) return to.write(array, 0, by->number);
    const std::unique_ptr<io::byte_source> source = from.file->open(from.index);
    const std::uint64_t size = from.info().bytes;
    std::vector<std::byte> bytes;
    for (std::uint64_t at = 0; at < size; at += bytes_at_once) {
        base::stop_if(cancel);
        bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes_at_once, size - at)));
        source->read(at, bytes);
        if (by != nullptr) {
            for (std::byte& b : bytes) b = *(*by->codes)[std::to_integer<std::size_t>(b)];
        }
        to.write(array, at, bytes);
    }
}

// The files of a folder besides weights and their index.
std::vector<io::companion_file> beside(const std::string& folder) {
    std::vector<io::companion_file> files = io::companions_in(folder);
    for (const char* name : {"config.json", "hf_quant_config.json", "quantize_config.json"}) {
        const std::filesystem::path path = std::filesystem::path(folder) / name;
        std::error_code ignored;
        if (std::filesystem::is_regular_file(path, ignored)) {
            files.push_back({name, {}, path.string()});
        }
    }
    return files;
}

}  // namespace

std::vector<repair> fix(const std::string& path, const lint_options& how, const std::string& out,
                        const std::atomic<bool>* cancel) {
    const checkpoint c(path, lint_options{});
    std::error_code ignored;
    if (io::is_remote(path) || !std::filesystem::is_directory(c.folder(), ignored)) {
        base::refuse("--fix: {}: is no folder of safetensors files: name the folder of a model",
                     base::printable(path));
    }
    std::vector<std::unique_ptr<io::reader>> open;
    const std::vector<io::tensor_ref> tensors = all_tensors(c.folder(), open);
    fixer f(c, cancel);
    std::vector<repair> all;
    lint_result found_all = lint(path, how);
    for (finding& found : found_all.findings) {
        repair r;
        if (found.rule == "index") {
            r.done = true;
            r.how = "the index is written from the headers of the files";
        } else if (found.rule == "fused-scales") {
            std::string why;
            r.how = f.share_scale(found.tensor, why);
            r.done = !r.how.empty();
            if (!r.done) r.how = why;
        } else {
            r.how = "nothing in the checkpoint says what is right";
        }
        r.of = std::move(found);
        all.push_back(std::move(r));
    }
    std::vector<io::planned_array> plan;
    for (const io::tensor_ref& t : tensors) {
        plan.push_back({t.info().name, t.info().type, t.info().shape});
    }
    const auto writer =
        io::create_model_folder(out, plan, beside(c.folder()), io::usual_shard_bytes);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto by = f.replaced().find(tensors[i].info().name);
        copy(tensors[i], by == f.replaced().end() ? nullptr : &by->second, i, *writer, cancel);
    }
    writer->commit();
    return all;
}

}  // namespace mx::lint

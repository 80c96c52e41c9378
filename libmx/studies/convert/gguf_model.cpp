// SPDX-License-Identifier: Apache-2.0
// What a folder becomes is what llama.cpp's converter makes of it (ggml-org/llama.cpp@00bd27a,
// conversion/base.py, and conversion/llama.py@7bca1fd).
#include "libmx/studies/convert/gguf_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/io/gguf/gguf_types.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/model_config.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/io/strided.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/llm/model_weights.hpp"
#include "libmx/tokens/gguf_vocabulary.hpp"

namespace mx::convert {
namespace {

constexpr std::uint32_t quantization_version = 2;  // GGML_QNT_VERSION of ggml.h
constexpr std::string_view rope_factors_name = "rope_freqs.weight";

// Of matrices as they are: what llama.cpp multiplies by.
std::optional<std::uint32_t> type_of_kept(tensor::dtype type) {
    for (const io::gguf_type& t : io::gguf_types) {
        const bool kept =
            type == tensor::dtype::f32 || type == tensor::dtype::f16 || type == tensor::dtype::bf16;
        if (kept && t.decode == nullptr && t.read_as == type) return t.id;
    }
    return std::nullopt;
}

// The tensors of a folder under their names in GGUF, with rows in its order; vectors, and matrices
// of other types than those above, in F32.
class gguf_view final : public io::reader {
  public:
    struct row {
        engine::tensor_ref from;
        std::uint64_t heads = 0;  // of queries and keys whose neighbours turn together
        tensor::dtype stored;     // from
    };

    const std::vector<io::tensor_info>& tensors() const override { return infos_; }
    const std::map<std::string, std::string>& metadata() const override { return none_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override { return {}; }

    void add(const engine::tensor_ref& from, std::string name, std::uint64_t heads) {
        io::tensor_info info = from.info();
        const auto rank = static_cast<int>(info.shape.size());
        info.name = std::move(name);
        info.sums_over = {};
        if (rank == 2 && info.name.find("_embd") == std::string::npos) {
            info.sums_over = {1, 2, "GGUF: ggml multiplies along ne0, the last axis"};
        }
        if (rank != 2 || !type_of_kept(info.type)) {
            info.type = tensor::dtype::f32;
            info.bytes = 4 * info.elements;
        }
        rows_.push_back({from, heads, from.info().type});
        infos_.push_back(std::move(info));
    }

    void add(std::string_view name, std::vector<float> values, const std::string& file) {
        io::tensor_info info;
        info.name = name;
        info.file = file;
        info.shape = {values.size()};
        info.elements = values.size();
        info.bytes = 4 * values.size();
        rows_.push_back({{nullptr, 0}, 0, tensor::dtype::f32});
        infos_.push_back(std::move(info));
        made_ = std::make_shared<std::vector<float>>(std::move(values));
    }

    std::unique_ptr<io::byte_source> open(std::size_t index) const override {
        const row& r = rows_.at(index);
        const io::tensor_info& info = infos_[index];
        if (r.from.file == nullptr) {
            return io::make_source([made = made_](std::uint64_t at, std::span<std::byte> out) {
                const auto all = std::as_bytes(std::span(*made));
                std::ranges::copy(all.subspan(static_cast<std::size_t>(at), out.size()),
                                  out.begin());
            });
        }
        std::unique_ptr<io::byte_source> source = r.from.file->open(r.from.index);
        if (info.type != r.stored) source = widened(std::move(source), r.stored);
        if (r.heads == 0) return source;
        // Row 2 i + j of a head is its row i + j * half.
        const std::uint64_t half = info.shape[0] / r.heads / 2;
        const std::uint64_t width = info.shape.size() == 2 ? info.shape[1] : 1;
        return io::from_strided(std::move(source), {r.heads, half, 2, width},
                                {2 * half * width, width, half * width, 1},
                                static_cast<std::size_t>(tensor::row_of(info.type).bits / 8));
    }

  private:
    static std::unique_ptr<io::byte_source> widened(std::unique_ptr<io::byte_source> source,
                                                    tensor::dtype stored) {
        return io::make_element_source(
            sizeof(float), [from = io::shared_source(std::move(source)), stored](
                               std::uint64_t first, std::span<std::byte> out) {
                std::vector<float> values(out.size() / sizeof(float));
                std::vector<std::byte> scratch;
                io::read_f32(*from, stored, first, values, scratch);
                std::ranges::copy(std::as_bytes(std::span(values)), out.begin());
            });
    }

    std::vector<io::tensor_info> infos_;
    std::vector<row> rows_;
    std::shared_ptr<const std::vector<float>> made_;
    std::map<std::string, std::string> none_;
};

[[noreturn]] void refuse_folder(const std::string& folder, const std::string& tensor,
                                const std::string& why) {
    throw base::error(base::error_kind::input, "--layout gguf: " + why, {folder, tensor, {}});
}

// Throws for what llama.cpp would compute otherwise.
void check_shape(const llm::model_shape& s, const std::string& folder) {
    if (!s.kind->written_as_gguf) {
        std::vector<std::string_view> known;
        for (const llm::architecture& a : llm::architectures) {
            if (a.written_as_gguf) known.push_back(a.name);
        }
        base::refuse(
            fmt::format("--layout gguf: a folder is of {}, not {}; convert_hf_to_gguf.py of "
                        "llama.cpp makes a GGUF file, which is taken too",
                        base::joined(known, ", "), s.kind->name),
            {folder, {}, {}});
    }
    const auto refuse = [&](const std::string& why) {
        refuse_folder(folder, {}, fmt::format("llama.cpp's {} {}", s.kind->gguf, why));
    };
    if (s.window != 0 && (s.context == 0 || s.window < s.context)) {
        refuse(
            fmt::format("has no window of {} positions; if no text is longer, state that as "
                        "max_position_embeddings",
                        s.window));
    }
    if (s.gate != llm::gate_function::silu) refuse("has no gate but silu");
    if (s.context == 0) refuse("needs max_position_embeddings in config.json");
    const bool any_bias = s.kind->gguf == "llama";
    if (!any_bias && (s.output_bias || s.query_bias != s.kind->query_bias)) {
        refuse("has no such biases of attention");
    }
}

io::gguf_metadata metadata_of(const llm::model_shape& s, const std::string& folder) {
    namespace fs = std::filesystem;
    io::gguf_metadata m;
    const std::string arch(s.kind->gguf);
    const auto number = [&](std::string_view key, std::size_t value) {
        m.put_number(fmt::format("{}.{}", arch, key), static_cast<std::uint32_t>(value));
    };
    const auto real = [&](std::string_view key, double value) {
        m.put_real(fmt::format("{}.{}", arch, key), static_cast<float>(value));
    };
    m.put_text("general.architecture", arch);
    m.put_text("general.type", "model");
    std::error_code ignored;
    m.put_text("general.name", fs::weakly_canonical(folder, ignored).filename().string());
    m.put_number("general.quantization_version", quantization_version);
    number("block_count", s.depth);
    number("context_length", s.context);
    number("embedding_length", s.width);
    number("feed_forward_length", s.hidden);
    number("attention.head_count", s.heads);
    number("attention.head_count_kv", s.key_heads);
    number("attention.key_length", s.head_size);
    number("attention.value_length", s.head_size);
    real("attention.layer_norm_rms_epsilon", s.eps);
    number("rope.dimension_count", s.head_size);
    real("rope.freq_base", s.rope_base);
    if (s.scaling.factor != 1 && s.scaling.low == 0) {
        m.put_text(arch + ".rope.scaling.type", "linear");
        real("rope.scaling.factor", s.scaling.factor);
    }
    number("vocab_size", s.vocabulary);
    tokens::put_gguf_vocabulary(m, folder, s.vocabulary);
    return m;
}

// By which llama.cpp divides the frequencies of Llama 3.
std::vector<float> rope_factors(const llm::model_shape& s) {
    std::vector<float> factors;
    for (std::size_t i = 0; i < s.head_size / 2; ++i) {
        const double frequency =
            std::pow(s.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(s.head_size));
        factors.push_back(
            static_cast<float>(frequency / llm::scaled_frequency(s.scaling, frequency)));
    }
    return factors;
}

gguf_model of_folder(const std::vector<assigned_tensor>& tensors, const std::string& from) {
    if (io::is_remote(from)) {
        base::refuse(
            "--layout gguf: the files beside a model at an address are not listed; "
            "download its folder first");
    }
    const std::string config_file = io::model_config_path(from);
    const io::config_entries config = io::read_model_config(from);
    if (config.empty()) {
        base::refuse(
            "--layout gguf: takes a GGUF file, or a folder with config.json and the "
            "tokenizer",
            {from, {}, {}});
    }
    llm::model_shape shape = llm::shape_of_config(config, llm::naming::hugging_face, config_file);
    const std::string parent = std::filesystem::path(config_file).parent_path().string();
    const std::string folder = parent.empty() ? "." : parent;
    base::view_map<const assigned_tensor*> by_name;
    for (const assigned_tensor& t : tensors) by_name.emplace(t.tensor.info().name, &t);
    if (by_name.contains(llm::hugging_face_name(*shape.kind, {llm::role::head}))) {
        shape.tied = false;
    }
    check_shape(shape, folder);

    auto view = std::make_unique<gguf_view>();
    gguf_model model;
    const auto add = [&](std::optional<codec::recipe> recipe, std::string kept) {
        const io::tensor_info& info = view->tensors().back();
        const auto index = view->tensors().size() - 1;
        model.tensors.push_back({{view.get(), index}, std::move(recipe), std::move(kept)});
        model.plan.push_back({info.name, *type_of_kept(info.type), info.shape});
    };
    const bool neighbours = shape.kind->gguf_pairs == llm::rope_pairs::neighbours;
    base::text_set known;
    llm::each_place(shape, [&](const llm::place& p) {
        const std::string name = llm::hugging_face_name(*shape.kind, p);
        const auto at = by_name.find(name);
        if (at == by_name.end()) {
            refuse_folder(from, name, "is missing: the configuration says that the model has it");
        }
        known.insert(name);
        const assigned_tensor& t = *at->second;
        const io::tensor_info& info = t.tensor.info();
        const tensor::shape expected = llm::extents_of(shape, p);
        if (info.shape != expected) {
            refuse_folder(info.file, name,
                          fmt::format("has the shape {}, the configuration says {}",
                                      tensor::to_string(info.shape), tensor::to_string(expected)));
        }
        if (!info.note.empty()) refuse_folder(info.file, name, info.note);
        if (tensor::row_of(info.type).to_f32 != tensor::widening::exact) {
            refuse_folder(info.file, name,
                          fmt::format("is of the type {}, which llama.cpp does not multiply by",
                                      tensor::row_of(info.type).name));
        }
        const bool query = p.what == llm::role::query || p.what == llm::role::query_bias;
        const bool key = p.what == llm::role::key || p.what == llm::role::key_bias;
        view->add(t.tensor, llm::gguf_name(p),
                  !neighbours ? 0
                  : query     ? shape.heads
                  : key       ? shape.key_heads
                              : 0);
        add(t.recipe, t.kept);
    });
    for (const assigned_tensor& t : tensors) {
        const io::tensor_info& info = t.tensor.info();
        if (known.contains(info.name)) continue;
        if (!llm::follows_from_config(info.name)) {
            refuse_folder(info.file, info.name,
                          fmt::format("is not a tensor of architecture {}", shape.kind->name));
        }
        model.left_out.push_back({info.file, info.name, {}, "follows from the configuration"});
    }
    if (shape.scaling.factor != 1 && shape.scaling.low != 0) {
        view->add(rope_factors_name, rope_factors(shape), from);
        add({}, "follows from rope_scaling");
    }
    model.as_stored = std::move(view);
    const auto metadata = std::make_shared<io::gguf_metadata>(metadata_of(shape, folder));
    model.metadata = [metadata](std::uint32_t file_type) {
        io::gguf_metadata m = *metadata;
        m.put_number("general.file_type", file_type);
        return m;
    };
    return model;
}

gguf_model of_file(const std::vector<assigned_tensor>& tensors, const io::shared_file& file) {
    gguf_model model{tensors,
                     io::gguf_tensors(file),
                     io::open_gguf_stored(file),
                     [file](std::uint32_t type) { return io::gguf_metadata_of(file, type); },
                     {}};
    base::view_map<const io::planned_gguf_tensor*> by_name;
    for (const io::planned_gguf_tensor& t : model.plan) by_name.emplace(t.name, &t);
    for (const assigned_tensor& t : tensors) {
        const auto at = by_name.find(t.tensor.info().name);
        if (at == by_name.end() || at->second->shape != t.tensor.info().shape) {
            base::refuse("--layout gguf: tensors are written as the file has them, not as views");
        }
    }
    return model;
}

}  // namespace

gguf_model gguf_model_of(const std::vector<assigned_tensor>& tensors) {
    const std::string from = tensors.empty() ? std::string() : tensors.front().tensor.info().file;
    if (!from.empty() && !io::is_remote(from) && std::filesystem::is_regular_file(from)) {
        const io::shared_file file = io::input_file::open(from);
        const bool one = std::ranges::all_of(
            tensors, [&](const assigned_tensor& t) { return t.tensor.info().file == from; });
        if (file->head(4) == "GGUF") {
            if (!one) base::refuse("--layout gguf: takes one GGUF file");
            return of_file(tensors, file);
        }
    }
    return of_folder(tensors, from);
}

}  // namespace mx::convert

// SPDX-License-Identifier: Apache-2.0
// Keras 3 models (.keras): a zip with the weights as an HDF5 file in it.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/joined.hpp"
#include "libmx/base/named.hpp"
#include "libmx/base/status.hpp"
#include "libmx/files/zip_archive.hpp"
#include "libmx/io/keras_layers.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remarks.hpp"
#include "libmx/io/spool.hpp"

namespace mx::io {
namespace {

constexpr std::string_view weights_entry = "model.weights.h5";
constexpr std::string_view config_entry = "config.json";
constexpr std::uint64_t keras_piece = 1 << 20;
constexpr std::uint64_t largest_keras_config = 1 << 24;
// Listing a file must not fill the disk: weights hardly pack, zeros do.
constexpr std::uint64_t always_unpacked = 1 << 30;
constexpr std::uint64_t most_unpacked = 16;  // times the file

// HDF5 needs its own file: the entry becomes one without a name.
shared_file unpacked_file(const shared_file& file) {
    const auto archive = zip_archive::open(file);
    const zip_entry* const entry = base::find_named(archive->entries(), weights_entry);
    if (entry == nullptr || entry->encrypted) {
        input_error(fmt::format("has no readable {}", weights_entry), {file->path(), {}, {}});
    }
    if (entry->size > std::max(always_unpacked, most_unpacked * file->size())) {
        input_error(
            fmt::format("{} unpacks to {} bytes, more than {} times the file; unpack it with "
                        "unzip, and give the .h5 file instead",
                        weights_entry, entry->size, most_unpacked),
            {file->path(), {}, {}});
    }
    const auto bytes = archive->bytes(*entry);
    shared_file unpacked = input_file::adopt(open_unnamed_file(), file->path(), entry->size);
    std::vector<std::byte> piece;
    for (std::uint64_t at = 0; at < entry->size; at += piece.size()) {
        piece.resize(static_cast<std::size_t>(std::min(keras_piece, entry->size - at)));
        bytes->read(at, piece);
        if (!write_fully(unpacked->descriptor(), at, piece)) {
            throw base::error(base::error_kind::output,
                              fmt::format("cannot write: {}; TMPDIR can name a folder with room",
                                          std::strerror(errno)),
                              {temporary_directory(), {}, {}});
        }
    }
    return unpacked;
}

// The model's configuration; empty if there is none that can be read.
std::string config_of(const shared_file& file) {
    const auto archive = zip_archive::open(file);
    const zip_entry* const entry = base::find_named(archive->entries(), config_entry);
    if (entry == nullptr || entry->encrypted || entry->size > largest_keras_config) return {};
    std::string text(static_cast<std::size_t>(entry->size), '\0');
    try {
        archive->bytes(*entry)->read(0, std::as_writable_bytes(std::span(text)));
    } catch (const base::error&) {  // the weights can be read without it
        return {};
    }
    return text;
}

// The modes of the policies in config.json by which layers are quantized: "int8", "int4, int8".
// Empty: none is, or the file does not say.
std::string quantization_modes(const std::string& config_text) {
    constexpr std::string_view policies = "DTypePolicy";
    const nlohmann::json config = nlohmann::json::parse(config_text, nullptr, false);
    std::set<std::string> modes;
    for (std::vector<const nlohmann::json*> open{&config}; !open.empty();) {
        const nlohmann::json& at = *open.back();
        open.pop_back();
        if (!at.is_structured()) continue;
        for (const nlohmann::json& member : at) open.push_back(&member);
        if (!at.is_object() || !at.contains("class_name") || !at.contains("config")) continue;
        const nlohmann::json& name = at["class_name"];
        const nlohmann::json& of = at["config"];
        if (!name.is_string() || !name.get<std::string>().ends_with(policies) || !of.is_object()) {
            continue;
        }
        if (of.contains("mode") && of["mode"].is_string()) modes.insert(of["mode"]);
    }
    return base::joined(std::vector<std::string>(modes.begin(), modes.end()), ", ");
}

class keras_reader final : public file_reader {
  public:
    keras_reader(shared_file file, const open_options& options)
        : file_reader(std::move(file)), weights_(open_hdf5(unpacked_file(file_), options)) {
        tensors_ = weights_->tensors();
        limit_repetition();  // of the archive; the weights are those of the unpacked file
        const std::string config = config_of(file_);
        state_keras_contractions(tensors_, config);
        metadata_ = weights_->metadata();
        const std::string modes = quantization_modes(config);
        if (!modes.empty()) metadata_[keras_modes_key] = modes;
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        if (!info.note.empty()) fail(info.name, info.note);
        return weights_->open(index);
    }

  private:
    std::unique_ptr<reader> weights_;
};

}  // namespace

bool looks_like_keras(const file_probe& probe) {
    if (!looks_like_zip(probe)) return false;
    try {
        return base::find_named(zip_archive::open(probe.file)->entries(), weights_entry) != nullptr;
    } catch (const base::error&) {
        return false;  // the npz reader reports what is wrong with the archive
    }
}

std::unique_ptr<reader> open_keras(shared_file file, const open_options& options) {
    static_cast<void>(file->descriptor());  // unpacking takes all of the file to list it
    return std::make_unique<keras_reader>(std::move(file), options);
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// The arrays of a checkpoint as its files hold them, by module. For .cpp files of this room only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/base/parallel.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/io/model_config.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/lint/lint.hpp"
#include "libmx/quantized/pairings.hpp"

namespace mx::lint {

/// A matrix and the arrays that belong to it. An index is that of checkpoint::arrays().
struct module {
    std::string name;  ///< "model.layers.0.self_attn.q_proj"
    std::optional<std::size_t> codes, scale, tensor_scale, input_scale;
    std::vector<std::size_t> others;  ///< zero points, tables, orders of columns
    bool generic = false;             ///< its scale has a name that norms have, too
    bool coded = false;               ///< the weight is codes
    bool divides = false;             ///< by the tensor scale

    bool any_scale() const { return scale || tensor_scale || input_scale; }
    /// The array to name in a finding.
    std::size_t first() const;
};

/// A finding of a rule that lint() names.
inline finding finding_at(severity level, std::string tensor, std::string message,
                          std::string found, std::string effect, std::string repair) {
    return {{},
            level,
            std::move(tensor),
            std::move(message),
            std::move(found),
            std::move(effect),
            std::move(repair)};
}

class checkpoint {
  public:
    checkpoint(const std::string& path, const lint_options& how);

    bool values() const { return values_; }
    /// Throws base::error (cancelled) once that is asked for.
    void stop_if_cancelled() const { base::stop_if(cancel_); }
    /// Whether no file of a set is known to be missing.
    bool complete() const { return complete_; }
    /// The folder that was opened; of a file alone its path.
    const std::string& folder() const { return opened_; }
    const std::vector<io::tensor_ref>& arrays() const { return arrays_; }
    const io::tensor_info& info(std::size_t i) const { return arrays_[i].info(); }
    std::unique_ptr<io::byte_source> open(std::size_t i) const {
        stop_if_cancelled();
        return arrays_[i].file->open(arrays_[i].index);
    }
    std::optional<std::size_t> array(std::string_view name) const;
    /// Sorted by name.
    const std::vector<module>& modules() const { return modules_; }
    const io::pairings& pairings() const { return pairings_; }
    /// The pairing of a module's codes, if its layout was recognised.
    const io::pairing* pairing_of(const module& m) const;
    bool has_original() const { return original_.has_value(); }
    /// The tensor of this name in the model before quantization.
    std::optional<io::tensor_ref> original(std::string_view name) const;
    /// config.json; empty without one.
    const io::config_entries& config() const { return config_; }
    /// Of config.json, or else of its text_config, the members of quantization_config, without that
    /// prefix.
    const io::config_entries& quantization() const { return quantization_; }
    /// What opening found: files, an index or a configuration that cannot be read.
    const std::vector<finding>& broken() const { return broken_; }
    /// The parts of an array that are read of scales and of blocks with scales, in order.
    struct element_run {
        std::uint64_t first, count;
    };
    std::vector<element_run> sample_of(std::size_t array) const;
    /// "8 scales", or of those of a sample "8 scales read of 20"
    std::string counted_scales(std::size_t array) const;
    /// Values [first, first + count) of an array, fewer at its end.
    std::vector<float> values_of(std::size_t array, std::uint64_t first, std::size_t count) const;
    std::vector<std::byte> bytes_of(std::size_t array, std::uint64_t first,
                                    std::size_t count) const;

  private:
    /// The folder's files; where they cannot be listed, those of the `given` index.
    void open_folder(const std::string& given);
    void open_files(const std::vector<std::string>& paths);
    void cannot_read(const std::string& file, const std::string& problem, std::string repair);
    /// `path`, or all parts of a split GGUF file of which it is one.
    std::vector<std::string> gguf_parts(const std::string& path);
    void lacks_shards(const std::string& where, const std::string& missing);
    void read_configuration();
    /// Of a file of the folder; empty without it.
    io::config_entries entries_of(std::string_view name);
    void group();
    void open_original(const std::string& path);
    void check_index(const std::string& index, const std::vector<std::string>& files);

    bool values_;
    const std::atomic<bool>* cancel_;
    bool complete_ = true;
    std::optional<engine::model> original_;
    base::view_map<io::tensor_ref> originals_;
    std::string opened_;
    std::string folder_;               ///< of the files
    std::vector<std::string> listed_;  ///< its files; empty if they are not known
    std::vector<std::unique_ptr<io::reader>> files_;
    std::vector<io::tensor_ref> arrays_;
    base::view_map<std::size_t> names_;
    std::vector<module> modules_;
    io::pairings pairings_;
    std::vector<std::size_t> pairing_of_;  ///< by array: 1 + the pairing; 0 for none
    io::config_entries config_, quantization_;
    std::vector<finding> broken_;
};

/// Of a quantized tensor the first, middle and last 32 rows, at most 2^18 values each, as its
/// layout decodes them; empty if none does.
std::vector<float> decoded_sample(const checkpoint& c, const module& m);
/// The largest magnitude of all its values; 0 if no layout decodes them. NaN does not count.
float largest_decoded(const checkpoint& c, const module& m);

/// Of GGUF, whose blocks hold their scales: a part of `scale-value`.
void find_block_scales(const checkpoint&, std::vector<finding>&);
/// Of GGUF, whose header states the number of layers: a part of `index`.
void find_missing_layers(const checkpoint&, std::vector<finding>&);

/// `name` with a * for every number between points: the same for a matrix of every layer.
std::string pattern_of(std::string_view name);

/// "NAME (F32 4x16)"
std::string described_array(const io::tensor_info& t);

}  // namespace mx::lint

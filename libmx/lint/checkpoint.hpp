// SPDX-License-Identifier: Apache-2.0
// The arrays of a checkpoint as its files hold them, by module. For .cpp files of this room only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/base/text_tables.hpp"
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

class checkpoint {
  public:
    checkpoint(const std::string& path, bool values);

    bool values() const { return values_; }
    const std::string& folder() const { return folder_; }
    const std::vector<io::tensor_ref>& arrays() const { return arrays_; }
    const io::tensor_info& info(std::size_t i) const { return arrays_[i].info(); }
    std::optional<std::size_t> array(std::string_view name) const;
    /// Sorted by name.
    const std::vector<module>& modules() const { return modules_; }
    const io::pairings& pairings() const { return pairings_; }
    /// The pairing of a module's codes, if its layout was recognised.
    const io::pairing* pairing_of(const module& m) const;
    /// config.json; empty without one.
    const io::config_entries& config() const { return config_; }
    /// Of config.json the members of quantization_config, without that prefix.
    const io::config_entries& quantization() const { return quantization_; }
    /// What opening found: files, an index or a configuration that cannot be read.
    const std::vector<finding>& broken() const { return broken_; }
    /// Values [first, first + count) of an array, fewer at its end.
    std::vector<float> values_of(std::size_t array, std::uint64_t first, std::size_t count) const;
    std::vector<std::byte> bytes_of(std::size_t array, std::uint64_t first,
                                    std::size_t count) const;

  private:
    void open_folder(const std::string& folder);
    void open_file(const std::string& file);
    void read_configuration();
    /// Adds what hf_quant_config.json of modelopt states and quantization_config does not.
    void read_modelopt();
    void group();
    void check_index(const std::string& index, const std::vector<std::string>& files);

    bool values_;
    std::string folder_;
    std::vector<std::unique_ptr<io::reader>> files_;
    std::vector<io::tensor_ref> arrays_;
    base::view_map<std::size_t> names_;
    std::vector<module> modules_;
    io::pairings pairings_;
    std::vector<std::size_t> pairing_of_;  ///< by array: 1 + the pairing; 0 for none
    io::config_entries config_, quantization_;
    std::vector<finding> broken_;
};

/// `name` with a * for every number between points: the same for a matrix of every layer.
std::string pattern_of(std::string_view name);

/// "NAME (F32 4x16)"
std::string described_array(const io::tensor_info& t);

}  // namespace mx::lint

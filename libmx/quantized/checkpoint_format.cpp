// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantized/checkpoint_format.hpp"

#include <filesystem>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/strict_json.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_config = std::uint64_t{1} << 24;

constexpr std::uint64_t largest_tile = 1 << 20;

// In the object at the top, or in the members `inside` of it and below.
class config_listener final : public json_listener {
  public:
    explicit config_listener(bool inside) : inside_(inside) {}

    checkpoint_config found;

    void open(bool) override { sides_.clear(); }
    void close() override {
        if (sides_.size() == 2 && here() && states_tiles()) {
            found.tiles.push_back({sides_[0], sides_[1]});
        }
        sides_.clear();
    }
    void key(const std::string& name) override {
        if (depth() == 1) section_ = name;
        key_ = name;
    }
    void scalar(const json_scalar& value) override {
        if (depth() == (inside_ ? 2u : 1u) && here() && key_ == "checkpoint_format") {
            found.format = value.text;
        }
        if (value.is == json_scalar::type::natural && value.natural > 0 &&
            value.natural <= largest_tile) {
            sides_.push_back(value.natural);
        }
    }

  private:
    bool here() const {
        return !inside_ || section_ == "quantization_config" || section_ == "compression_config";
    }
    bool states_tiles() const { return key_ == "weight_block_size" || key_ == "block_structure"; }

    bool inside_;
    std::string section_, key_;
    std::vector<std::uint64_t> sides_;  // the numbers of the array that is open
};

checkpoint_config config_in(const fs::path& config, bool inside) {
    std::error_code ignored;
    if (!fs::is_regular_file(config, ignored)) return {};
    config_listener listener(inside);
    try {
        const shared_file file = input_file::open(config.string());
        if (file->size() > largest_config) return {};
        parse_json(file, 0, file->size(), "configuration", listener);
    } catch (const base::error&) {
        return {};
    }
    return std::move(listener.found);
}

}  // namespace

checkpoint_config config_beside(const std::string& path) {
    const fs::path folder = fs::path(path).parent_path();
    checkpoint_config own = config_in(folder / "quantize_config.json", false);
    checkpoint_config shared = config_in(folder / "config.json", true);
    if (own.format.empty()) own.format = std::move(shared.format);
    if (own.tiles.empty()) own.tiles = std::move(shared.tiles);
    return own;
}

}  // namespace mx::io

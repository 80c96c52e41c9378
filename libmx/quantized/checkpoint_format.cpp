// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantized/checkpoint_format.hpp"

#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/strict_json.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_tile = 1 << 20;

// In the object at the top, or in the sections of it that say how the model is quantized.
class config_listener final : public json_listener {
  public:
    explicit config_listener(bool inside) : inside_(inside) {}

    // In a section at the top, or else in one of text_config, as models that see have it.
    checkpoint_config take() {
        return std::move(found_[0].format.empty() && found_[0].tiles.empty() ? found_[1]
                                                                             : found_[0]);
    }

    void open(bool) override { sides_.clear(); }
    void close() override {
        if (sides_.size() == 2 && here() != nullptr && states_tiles()) {
            here()->tiles.push_back({sides_[0], sides_[1]});
        }
        sides_.clear();
    }
    void key(const std::string& name) override {
        if (depth() <= sections_.size()) sections_[depth() - 1] = name;
        key_ = name;
    }
    void scalar(const json_scalar& value) override {
        if (here() != nullptr && depth() == depth_ && key_ == "checkpoint_format") {
            here()->format = value.text;
        }
        if (value.is == json_scalar::type::natural && value.natural > 0 &&
            value.natural <= largest_tile) {
            sides_.push_back(value.natural);
        }
    }

  private:
    // Where what is said now belongs; also sets the depth of its members.
    checkpoint_config* here() {
        const auto is_section = [](const std::string& name) {
            return name == "quantization_config" || name == "compression_config";
        };
        const bool top = !inside_ || is_section(sections_[0]);
        const bool nested = sections_[0] == "text_config" && is_section(sections_[1]);
        depth_ = !inside_ ? 1 : top ? 2 : 3;
        if (depth() < depth_ || (!top && !nested)) return nullptr;
        return &found_[top ? 0 : 1];
    }
    bool states_tiles() const { return key_ == "weight_block_size" || key_ == "block_structure"; }

    bool inside_;
    std::array<checkpoint_config, 2> found_;
    std::array<std::string, 2> sections_;  // the keys of the two outer objects
    std::string key_;
    std::size_t depth_ = 0;
    std::vector<std::uint64_t> sides_;  // the numbers of the array that is open
};

checkpoint_config config_in(const fs::path& config, bool inside) {
    std::error_code ignored;
    if (!fs::is_regular_file(config, ignored)) return {};
    config_listener listener(inside);
    try {
        parse_config(input_file::open(config.string()), listener);
    } catch (const base::error&) {
        return {};
    }
    return listener.take();
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

// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/model_type.hpp"

#include <filesystem>

#include "libmx/base/status.hpp"
#include "libmx/io/strict_json.hpp"

namespace mx::io {
namespace {

constexpr std::uint64_t largest_model_config = std::uint64_t{1} << 24;

class type_listener final : public json_listener {
  public:
    std::string found;

    void open(bool) override {}
    void close() override {}
    void key(const std::string& name) override { key_ = name; }
    void scalar(const json_scalar& value) override {
        if (depth() == 1 && key_ == "model_type" && value.is == json_scalar::type::text) {
            found = value.text;
        }
    }

  private:
    std::string key_;
};

}  // namespace

std::string model_type(const std::string& path) {
    const std::filesystem::path config = std::filesystem::path(path).parent_path() / "config.json";
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(config, ignored)) return {};
    type_listener listener;
    try {
        const shared_file file = input_file::open(config.string());
        if (file->size() > largest_model_config) return {};
        parse_json(file, 0, file->size(), "configuration", listener);
    } catch (const base::error&) {
        return {};
    }
    return listener.found;
}

}  // namespace mx::io

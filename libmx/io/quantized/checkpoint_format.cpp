// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/quantized/checkpoint_format.hpp"

#include <filesystem>

#include "libmx/base/status.hpp"
#include "libmx/io/strict_json.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_config = std::uint64_t{1} << 24;

// The text of `checkpoint_format` in the object at the top, or in the member `inside` of it.
class format_listener final : public json_listener {
  public:
    explicit format_listener(std::string_view inside) : inside_(inside) {}

    std::string found;

    void open(bool) override {}
    void close() override {}
    void key(const std::string& name) override {
        if (depth() == 1) section_ = name;
        key_ = name;
    }
    void scalar(const json_scalar& value) override {
        const bool here = inside_.empty() ? depth() == 1 : depth() == 2 && section_ == inside_;
        if (here && key_ == "checkpoint_format") found = value.text;
    }

  private:
    std::string_view inside_;
    std::string section_, key_;
};

std::string format_in(const fs::path& config, std::string_view inside) {
    std::error_code ignored;
    if (!fs::is_regular_file(config, ignored)) return {};
    format_listener listener(inside);
    try {
        const shared_file file = input_file::open(config.string());
        if (file->size() > largest_config) return {};
        parse_json(file, 0, file->size(), "configuration", listener);
    } catch (const base::error&) {
        return {};
    }
    return listener.found;
}

}  // namespace

std::string checkpoint_format(const std::string& path) {
    const fs::path folder = fs::path(path).parent_path();
    const std::string own = format_in(folder / "quantize_config.json", {});
    return own.empty() ? format_in(folder / "config.json", "quantization_config") : own;
}

}  // namespace mx::io

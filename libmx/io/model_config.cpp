// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/model_config.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/strict_json.hpp"

namespace mx::io {
namespace {

constexpr std::size_t most_config_entries = std::size_t{1} << 16;

class entry_listener final : public json_listener {
  public:
    explicit entry_listener(const input_file& file) : budget_(file.path(), file.size()) {}

    config_entries found;

    void open(bool object) override {
        if (!levels_.empty()) count();
        levels_.push_back({object, 0, prefix()});
    }
    void close() override { levels_.pop_back(); }
    void key(const std::string& name) override { key_ = name; }
    void scalar(const json_scalar& value) override {
        count();
        if (++entries_ > most_config_entries) {
            fail(fmt::format("more than {} entries, the limit of mx", most_config_entries));
        }
        if (value.is == json_scalar::type::null) return;
        found[prefix()] =
            value.is == json_scalar::type::natural ? fmt::format("{}", value.natural) : value.text;
    }

  private:
    struct level {
        bool object;
        std::size_t elements;
        std::string name;
    };
    // Elements of a list are numbered.
    void count() {
        if (levels_.empty() || levels_.back().object) return;
        key_ = fmt::format("{}", levels_.back().elements++);
    }
    // What is inside has the name of what holds it, however long that is.
    std::string prefix() {
        if (levels_.empty() || levels_.back().name.empty()) return key_;
        budget_.take(levels_.back().name.size());
        return levels_.back().name + "." + key_;
    }

    read_budget budget_;
    std::size_t entries_ = 0;
    std::vector<level> levels_;
    std::string key_;
};

// A configuration as indented text, with numbers spelled and members ordered as they are, but
// without those that say how the model is quantized.
class unquantized_text final : public json_listener {
  public:
    std::string text;

    void open(bool object) override {
        if (depth() == 1 && !object) fail("is no JSON object");
        if (skips_ != 0) return;
        begin(object ? "{" : "[");
        levels_.push_back({object, true});
    }
    void close() override {
        if (skips_ != 0) {
            if (depth() == skips_ + 1) skips_ = 0;
            return;
        }
        const level done = levels_.back();
        levels_.pop_back();
        if (!done.empty && depth() > 1) line();
        if (depth() > 1) text += done.object ? "}" : "]";
    }
    void key(const std::string& name) override {
        if (skips_ != 0) return;
        if (depth() == 1) section_ = name;
        const bool may = depth() == 1 || (depth() == 2 && section_ == "text_config");
        if (may && (name == "compression_config" || name == "quantization_config")) {
            skips_ = depth();
            return;
        }
        separate();
        text += nlohmann::json(name).dump() + ": ";
    }
    void scalar(const json_scalar& value) override {
        if (depth() == 0) fail("is no JSON object");
        if (skips_ == 0) {
            using enum json_scalar::type;
            begin(value.is == null                      ? "null"
                  : value.is == json_scalar::type::text ? nlohmann::json(value.text).dump()
                                                        : value.text);
        }
        if (depth() == skips_) skips_ = 0;
    }

  private:
    struct level {
        bool object, empty;
    };
    void begin(std::string_view value) {
        if (!levels_.empty() && !levels_.back().object) separate();
        text += value;
    }
    void separate() {
        if (!levels_.back().empty) text += ",";
        levels_.back().empty = false;
        line();
    }
    void line() { text += "\n" + std::string(2 * levels_.size(), ' '); }

    std::vector<level> levels_;
    std::string section_;
    std::size_t skips_ = 0;  // the depth of the member that is left out; 0: none
};

}  // namespace

std::string model_config_path(const std::string& path) {
    namespace fs = std::filesystem;
    if (is_remote(path)) return path.substr(0, path.rfind('/')) + "/config.json";
    std::error_code ignored;
    const fs::path folder =
        fs::is_directory(path, ignored) ? fs::path(path) : fs::path(path).parent_path();
    return (folder / "config.json").string();
}

config_entries read_model_config(const std::string& path) {
    const std::string config = model_config_path(path);
    std::error_code ignored;
    if (!is_remote(config) && !std::filesystem::is_regular_file(config, ignored)) return {};
    return read_entries(config);
}

config_entries read_entries(const std::string& path) {
    const shared_file file = is_remote(path) ? open_remote(path) : input_file::open(path);
    entry_listener listener(*file);
    parse_config(file, listener);
    return std::move(listener.found);
}

std::string config_quantized_by(const std::string& path, const std::string& quantization_config) {
    const std::string config = model_config_path(path);
    // Checks the size and the number of entries.
    if (read_model_config(path).empty()) {
        input_error("engines need the model's config.json, which is not there", {config, {}, {}});
    }
    const shared_file file = input_file::open(config);
    unquantized_text kept;
    parse_config(file, kept);
    std::string added = nlohmann::ordered_json::parse(quantization_config).dump(2);
    for (std::size_t at = 0; (at = added.find('\n', at)) != std::string::npos; at += 3) {
        added.insert(at + 1, "  ");
    }
    return fmt::format("{}{}\n  \"quantization_config\": {}\n}}\n", kept.text,
                       kept.text == "{" ? "" : ",", added);
}

std::string model_type(const std::string& path) {
    if (is_remote(path)) return {};
    try {
        const config_entries entries = read_model_config(path);
        const auto found = entries.find("model_type");
        return found == entries.end() ? std::string() : found->second;
    } catch (const base::error&) {
        return {};
    }
}

}  // namespace mx::io

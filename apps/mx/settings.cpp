// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/settings.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "apps/mx/cli.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::app {
namespace {

namespace fs = std::filesystem;

// The settings file, and whether it must exist; nullopt if its folder is unknown.
std::string settings_path(bool& named) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read before any thread is started
    named = std::getenv("MX_CONFIG") != nullptr;
    if (named) return environment("MX_CONFIG");
    const std::string base = environment("XDG_CONFIG_HOME");
    if (!base.empty()) return base + "/mx/config.toml";
    const std::string home = environment("HOME");
    return home.empty() ? home : home + "/.config/mx/config.toml";
}

std::map<std::string, setting_value> read_file() {
    bool named = false;
    const std::string path = settings_path(named);
    if (path.empty()) return {};
    std::error_code failure;
    // Folders, devices and pipes are not settings files.
    if (!fs::is_regular_file(path, failure)) {
        if (!named) return {};
        throw base::error(base::error_kind::input, "MX_CONFIG names no file of settings",
                          {path, {}, {}});
    }
    std::ifstream file(path);
    if (!file) {
        throw base::error(base::error_kind::input, "cannot open the settings", {path, {}, {}});
    }
    std::map<std::string, setting_value> values;
    for (const auto& [name, value] : parse_settings_file(file, path)) {
        if (base::find_named(settings, name) == nullptr) {
            base::refuse(base::unknown("setting", name, base::names_of(settings)) +
                             "; what changes figures is said on the command line",
                         {path, {}, {}});
        }
        values[name] = {value, path + ": " + name};
    }
    return values;
}

}  // namespace

std::string environment(std::string_view name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read before any thread is started
    const char* value = std::getenv(std::string(name).c_str());
    return value == nullptr ? "" : value;
}

std::optional<setting_value> setting_of(std::string_view name) {
    const setting* s = base::find_named(settings, name);
    const std::string variable = environment(s->variable);
    if (!variable.empty()) return setting_value{variable, std::string(s->variable)};
    static const std::map<std::string, setting_value> of_file = read_file();
    const auto found = of_file.find(std::string(name));
    if (found == of_file.end()) return std::nullopt;
    return found->second;
}

}  // namespace mx::app

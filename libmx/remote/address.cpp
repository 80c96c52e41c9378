// SPDX-License-Identifier: Apache-2.0
#include "libmx/remote/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "libmx/base/secrets.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/stored_path.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/remote/server.hpp"

namespace mx::io {
namespace {

constexpr std::size_t listing_limit = std::size_t{32} << 20;
constexpr std::string_view hub_scheme = "hf://";
constexpr std::string_view s3_scheme = "s3://";

[[noreturn]] void no_address(const std::string& path, const std::string& why) {
    base::refuse(why, {path, {}, {}});
}

// A line break would be a header of its own; the value is not shown.
std::string environment(const char* name) {
    const char* found = std::getenv(name);
    std::string value = found != nullptr ? found : "";
    while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.pop_back();
    for (const char c : value) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            base::refuse("{} in the environment holds a control character", name);
        }
    }
    return value;
}

// A value that no output may repeat.
std::string secret_of(const char* name) {
    std::string value = environment(name);
    base::hide_secret(value);
    return value;
}

// The address of a service in the environment, without a slash at its end.
std::string endpoint(const char* name, std::string otherwise) {
    std::string value = environment(name);
    if (value.empty()) return otherwise;
    while (value.ends_with('/')) value.pop_back();
    if (const std::string why = objection_to(value); !why.empty()) {
        base::refuse("{} in the environment {}", name, why);
    }
    return value;
}

bool is_name(std::string_view text) {
    return !text.empty() && text != "." && text != ".." && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    });
}

bool is_commit(std::string_view text) {
    return text.size() == 40 &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

remote_address hub_address(const std::string& url, const std::string& path) {
    return {
        path,
        url,
        {secret_of("HF_TOKEN"), {}, {}, {}, {}},
        "HF_TOKEN in the environment gives the token that a private or gated repository asks for"};
}

std::string hub_endpoint() { return endpoint("HF_ENDPOINT", "https://huggingface.co"); }

// The commit and the files of the hub's answer about a repository; all else is passed over, and
// nothing is built of it.
class hub_listing final : public nlohmann::json::json_sax_t {
  public:
    explicit hub_listing(const std::string& shown) : shown_(shown) {}

    std::string commit;
    std::vector<std::string> files;

    bool null() override { return other(); }
    bool boolean(bool) override { return other(); }
    bool number_integer(number_integer_t) override { return other(); }
    bool number_unsigned(number_unsigned_t) override { return other(); }
    bool number_float(number_float_t, const string_t&) override { return other(); }
    bool binary(binary_t&) override { return other(); }
    bool string(string_t& text) override {
        if (depth_ == 1 && member_ == "sha") commit = text;
        if (depth_ == 3 && in_files_ && member_ == "rfilename") {
            if (!base::stays_inside(text)) wrong();
            files.push_back(text);
            return true;
        }
        return other();
    }
    bool key(string_t& name) override {
        member_ = name;
        if (depth_ == 1) in_files_ = name == "siblings";
        return true;
    }
    bool start_object(std::size_t) override {
        if (depth_ == 1) other();
        if (depth_ == 2 && in_files_) before_ = files.size();
        return open();
    }
    bool start_array(std::size_t) override {
        return !(depth_ == 2 && in_files_) ? open() : other();
    }
    bool end_object() override {
        // Each names a file.
        if (--depth_ == 2 && in_files_ && files.size() != before_ + 1) wrong();
        return true;
    }
    bool end_array() override {
        --depth_;
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
        return false;
    }

  private:
    static constexpr int depth_limit = 64;

    [[noreturn]] void wrong() const {
        input_error("the hub's list of files holds something else", {shown_, {}, {}});
    }
    // A value that is not what its place requires.
    bool other() const {
        if ((depth_ == 1 || depth_ == 2) && in_files_) wrong();
        return true;
    }
    bool open() {
        if (++depth_ > depth_limit) {
            input_error(fmt::format("the hub's answer is nested more than {} deep", depth_limit),
                        {shown_, {}, {}});
        }
        return true;
    }

    const std::string& shown_;
    std::string member_;
    bool in_files_ = false;
    int depth_ = 0;
    std::size_t before_ = 0;  // files when the current one's object began
};

hub_repository ask_hub(const hub_place& place) {
    const std::string name = fmt::format("{}/{}", place.organisation, place.name);
    const std::string shown = fmt::format("hf://{}@{}", name, place.revision);
    server hub(hub_address(fmt::format("{}/api/models/{}/revision/{}", hub_endpoint(), name,
                                       url_encoded(place.revision, "%")),
                           shown));
    hub_listing listing(shown);
    const bool valid = nlohmann::json::sax_parse(hub.whole(listing_limit), &listing);
    if (!valid || !is_commit(listing.commit)) {
        input_error("the hub's answer names no commit", {shown, {}, {}});
    }
    hub_repository found{fmt::format("hf://{}@{}", name, listing.commit), std::move(listing.files)};
    std::ranges::sort(found.files);
    return found;
}

remote_address s3_address(const std::string& path) {
    const std::string rest = path.substr(s3_scheme.size());
    const std::size_t slash = rest.find('/');
    const std::string bucket = rest.substr(0, slash);
    if (!is_name(bucket) || slash == std::string::npos || slash + 1 == rest.size() ||
        rest.ends_with('/')) {
        no_address(path, "an address of S3 is s3://BUCKET/KEY, of a file and not of a folder");
    }
    http_credentials who{{},
                         environment("AWS_ACCESS_KEY_ID"),
                         secret_of("AWS_SECRET_ACCESS_KEY"),
                         secret_of("AWS_SESSION_TOKEN"),
                         environment("AWS_REGION")};
    if (who.region.empty()) who.region = environment("AWS_DEFAULT_REGION");
    if (who.region.empty()) who.region = "us-east-1";
    if (!is_name(who.region)) base::refuse("AWS_REGION in the environment names no region");
    std::string base = endpoint("AWS_ENDPOINT_URL_S3", endpoint("AWS_ENDPOINT_URL", ""));
    const std::string key = url_encoded(rest.substr(slash + 1));
    std::string url;
    if (!base.empty()) {
        url = fmt::format("{}/{}/{}", base, bucket, key);
    } else if (bucket.find('.') != std::string::npos) {  // no certificate is for two levels
        url = fmt::format("https://s3.{}.amazonaws.com/{}/{}", who.region, bucket, key);
    } else {
        url = fmt::format("https://{}.s3.{}.amazonaws.com/{}", bucket, who.region, key);
    }
    return {path, url, std::move(who),
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN in the environment say "
            "who asks, AWS_REGION where the bucket is"};
}

}  // namespace

hub_place parse_hub_place(const std::string& path) {
    const std::string rest = path.substr(hub_scheme.size());
    const std::size_t first = std::min(rest.find('/'), rest.size());
    const std::size_t second = std::min(rest.find('/', first + 1), rest.size());
    hub_place place{rest.substr(0, first), {}, "main", {}};
    if (first < rest.size()) place.name = rest.substr(first + 1, second - first - 1);
    if (second < rest.size()) place.file = rest.substr(second + 1);
    while (place.file.ends_with('/')) place.file.pop_back();
    if (const std::size_t at = place.name.find('@'); at != std::string::npos) {
        place.revision = place.name.substr(at + 1);
        place.name.resize(at);
    }
    if (!is_name(place.organisation) || !is_name(place.name) || place.revision.empty() ||
        place.revision == "." || place.revision == ".." ||
        (!place.file.empty() && !base::stays_inside(place.file))) {
        no_address(path, "an address of the hub is hf://ORG/NAME[@REVISION][/FILE]");
    }
    return place;
}

const hub_repository& resolve(const hub_place& place) {
    // A revision is resolved to the same commit for as long as the program runs.
    static std::mutex guard;
    static std::map<std::string, hub_repository> known;
    const std::lock_guard lock(guard);
    const std::string key = fmt::format("{}/{}@{}", place.organisation, place.name, place.revision);
    const auto at = known.find(key);
    return at != known.end() ? at->second : known.emplace(key, ask_hub(place)).first->second;
}

remote_address address_of(const std::string& path) {
    if (path.starts_with(s3_scheme)) return s3_address(path);
    if (path.starts_with(hub_scheme)) {
        const hub_place place = parse_hub_place(path);
        const std::string name = fmt::format("{}/{}", place.organisation, place.name);
        const std::string of = is_commit(place.revision)
                                   ? fmt::format("hf://{}@{}", name, place.revision)
                                   : resolve(place).path;
        if (place.file.empty()) no_address(path, "names a repository; name one of its files");
        return hub_address(fmt::format("{}/{}/resolve/{}/{}", hub_endpoint(), name,
                                       of.substr(of.find('@') + 1), url_encoded(place.file)),
                           fmt::format("{}/{}", of, place.file));
    }
    if (const std::string why = objection_to(path); !why.empty()) {
        // Possible secrets are not repeated.
        const std::size_t host = path.find("://") + 3;
        const std::size_t end = std::min(path.find_first_of("?#"), path.size());
        const std::size_t at = path.find('@', host);
        no_address(at < std::min(end, path.find('/', host))
                       ? path.substr(0, host) + path.substr(at + 1, end - at - 1)
                       : path.substr(0, end),
                   why);
    }
    // Users and indices may write spaces; the rest is used as it is.
    return {path, url_encoded(path, ":%!$&'()*+,;=@[]"), {}, {}};
}

std::optional<std::vector<std::string>> remote_listing(const std::string& path) {
    if (!path.starts_with(hub_scheme)) {
        if (path.ends_with('/')) {
            no_address(path, "is a folder; name one of its files, as only hf:// can be listed");
        }
        return std::nullopt;
    }
    const hub_place place = parse_hub_place(path);
    const hub_repository& all = resolve(place);
    const std::string folder = place.file.empty() ? "" : place.file + "/";
    std::vector<std::string> paths;
    bool any = place.file.empty();
    for (const std::string& file : all.files) {
        if (!file.starts_with(folder)) continue;
        any = true;
        if (file.find('/', folder.size()) == std::string::npos) {
            paths.push_back(fmt::format("{}/{}", all.path, file));
        }
    }
    if (!any) return std::nullopt;
    return paths;
}

}  // namespace mx::io

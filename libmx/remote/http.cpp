// SPDX-License-Identifier: Apache-2.0
#include "libmx/remote/http.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "libmx/base/parsed.hpp"
#include "libmx/base/secrets.hpp"
#include "libmx/io/remote.hpp"

namespace mx::io {
namespace {

constexpr long connect_seconds = 20;
// A server that sends nothing for this long has lost the request.
constexpr long silent_seconds = 30;
// Of all header lines and trailers of an answer, and of a body that nobody reads.
constexpr std::size_t headers_limit = std::size_t{256} << 10;
constexpr std::size_t dropped_limit = std::size_t{64} << 10;

using url_handle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;
using header_list = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

url_handle parsed_url(const std::string& url) {
    url_handle handle(curl_url(), &curl_url_cleanup);
    if (handle == nullptr) throw std::bad_alloc();
    if (curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) handle.reset();
    return handle;
}

std::string part_of(const url_handle& url, CURLUPart part) {
    char* text = nullptr;
    if (curl_url_get(url.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
    std::string copy(text);
    curl_free(text);
    return copy;
}

void add(header_list& list, const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    static_cast<void>(list.release());
    list.reset(longer);
}

// The longest waiting time of a RateLimit header: "name";r=0;t=55 or limit=9, remaining=0,
// reset=55.
std::optional<double> seconds_of(std::string_view rate_limit) {
    std::optional<double> most;
    for (const std::string_view mark : {";t=", "; t=", "reset="}) {
        for (std::size_t at = rate_limit.find(mark); at != std::string_view::npos;
             at = rate_limit.find(mark, at + 1)) {
            const std::string_view rest = rate_limit.substr(at + mark.size());
            const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
            const auto seconds = base::parsed<std::uint32_t>(std::string(rest.substr(0, digits)));
            if (seconds) most = std::max(most.value_or(0), static_cast<double>(*seconds));
        }
    }
    return most;
}

// What a request in progress is known by in libcurl's calls.
struct transfer {
    CURL* handle;
    const http_request& request;
    std::span<std::byte> body;
    http_answer answer;
    std::size_t headers = 0, dropped = 0;  // bytes
    const char* ended = nullptr;           // why the transfer was ended here
};

double seconds_over(std::chrono::steady_clock::time_point until) {
    if (until == std::chrono::steady_clock::time_point::max()) return -1;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - until).count();
}

std::size_t take_header(char* text, std::size_t, std::size_t count, void* self) {
    auto& t = *static_cast<transfer*>(self);
    if ((t.headers += count) > headers_limit) {
        t.ended = "its headers do not end";
        return 0;
    }
    const std::string_view line(text, count);
    if (line.starts_with("HTTP/")) t.answer = {};  // earlier headers were provisional
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return count;
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())) != 0) {
        value.remove_prefix(1);
    }
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())) != 0) {
        value.remove_suffix(1);
    }
    if (name == "content-range") t.answer.content_range = value;
    if (name == "etag") t.answer.etag = value;
    if (name == "last-modified") t.answer.last_modified = value;
    if (name == "x-amz-bucket-region") t.answer.bucket_region = value;
    if (name == "content-length") {
        t.answer.whole_bytes = base::parsed<std::uint64_t>(std::string(value));
    }
    if (name.starts_with("ratelimit")) {
        const auto plain = name == "ratelimit-reset"
                               ? base::parsed<std::uint32_t>(std::string(value))
                               : std::nullopt;
        const auto seconds = plain ? std::optional<double>(*plain) : seconds_of(value);
        if (seconds) t.answer.wait = std::max(t.answer.wait.value_or(0), *seconds);
    }
    return count;
}

std::size_t take_body(char* text, std::size_t, std::size_t count, void* self) {
    auto& t = *static_cast<transfer*>(self);
    long status = 0;
    curl_easy_getinfo(t.handle, CURLINFO_RESPONSE_CODE, &status);
    // The body of a whole file is not read if a range was requested.
    if (status == 200 && t.request.begin) return 0;
    if (status != (t.request.begin ? 206 : 200)) {
        t.dropped += count;
        return t.dropped > dropped_limit ? 0 : count;
    }
    if (count > t.body.size() - t.answer.bytes) {
        t.answer.too_long = true;
        return 0;
    }
    std::memcpy(t.body.data() + t.answer.bytes, text, count);
    t.answer.bytes += count;
    return count;
}

}  // namespace

std::string remote_support() { return curl_version_info(CURLVERSION_NOW)->version; }

std::string origin_of(const std::string& url) {
    const url_handle handle = parsed_url(url);
    if (handle == nullptr) return {};
    const std::string scheme = part_of(handle, CURLUPART_SCHEME);
    if (scheme != "http" && scheme != "https") return {};
    std::string host = part_of(handle, CURLUPART_HOST);
    std::ranges::transform(host, host.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return fmt::format("{}://{}:{}", scheme, host, part_of(handle, CURLUPART_PORT));
}

std::string objection_to(const std::string& url) {
    const url_handle handle = parsed_url(url);
    if (handle == nullptr || origin_of(url).empty()) return "is no address of http or https";
    for (const auto& [part, what] :
         {std::pair(CURLUPART_USER, "a user name"), std::pair(CURLUPART_PASSWORD, "a password"),
          std::pair(CURLUPART_QUERY, "a query (?...)"),
          std::pair(CURLUPART_FRAGMENT, "a fragment (#...)")}) {
        if (part_of(handle, part).empty()) continue;
        return fmt::format(
            "has {}, which may be secret and would stand in results; mx takes "
            "addresses without, s3:// with AWS_* in the environment, or the file once "
            "it is fetched",
            what);
    }
    return {};
}

std::string url_encoded(const std::string& text, std::string_view kept) {
    std::string out;
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        const bool plain =
            u < 0x80 &&
            (std::isalnum(u) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos ||
             kept.find(c) != std::string_view::npos);
        out += plain ? std::string(1, c) : fmt::format("%{:02X}", u);
    }
    return out;
}

std::vector<std::string> headers_of(const http_request& request) {
    std::vector<std::string> lines;
    if (!request.unchanged_since.empty()) lines.push_back("If-Range: " + request.unchanged_since);
    if (request.who == nullptr) return lines;
    const http_credentials& who = *request.who;
    if (!who.bearer.empty()) lines.push_back("Authorization: Bearer " + who.bearer);
    if (!who.key.empty()) {
        lines.emplace_back("x-amz-content-sha256: UNSIGNED-PAYLOAD");
        if (!who.session.empty()) lines.push_back("x-amz-security-token: " + who.session);
    }
    return lines;
}

bool holds_secret(const http_credentials& who, const std::string& text) {
    return without_secrets(who, text) != text;
}

std::string without_secrets(const http_credentials& who, std::string text) {
    return base::without_words(std::move(text), {who.bearer, who.secret, who.session});
}

struct http_session::handles {
    CURL* easy = nullptr;
    CURLM* multi = nullptr;
};

http_session::http_session() : handles_(std::make_unique<handles>()) {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (ready == CURLE_OK) {
        handles_->easy = curl_easy_init();
        handles_->multi = curl_multi_init();
    }
    if (handles_->easy == nullptr || handles_->multi == nullptr) throw std::bad_alloc();
}

http_session::~http_session() {
    curl_easy_cleanup(handles_->easy);
    curl_multi_cleanup(handles_->multi);
}

void http_session::pause(double seconds, const std::atomic<bool>& stop) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!stop && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

void http_session::wake() { curl_multi_wakeup(handles_->multi); }

http_answer http_session::get(const http_request& request, std::span<std::byte> body,
                              const std::atomic<bool>& stop) {
    CURL* const easy = handles_->easy;
    CURLM* const multi = handles_->multi;
    curl_easy_reset(easy);  // connections stay
    transfer t{easy, request, body, {}};
    std::array<char, CURL_ERROR_SIZE> problem{};
    header_list headers(nullptr, &curl_slist_free_all);
    std::string range;
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "mx/" MX_VERSION);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem.data());
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, connect_seconds);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, silent_seconds);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, static_cast<void*>(&t));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, static_cast<void*>(&t));
    if (request.begin) {
        range = fmt::format("{}-{}", *request.begin, request.end - 1);  // a range includes its end
        curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());
    }
    for (const std::string& line : headers_of(request)) add(headers, line);
    if (request.who != nullptr && !request.who->key.empty()) {
        const std::string how = fmt::format("aws:amz:{}:s3", request.who->region);
        curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, how.c_str());
        curl_easy_setopt(easy, CURLOPT_USERNAME, request.who->key.c_str());
        curl_easy_setopt(easy, CURLOPT_PASSWORD, request.who->secret.c_str());
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());

    curl_multi_add_handle(multi, easy);
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    for (int running = 1; running != 0 && !stop;) {
        if (curl_multi_perform(multi, &running) != CURLM_OK) break;
        if (running == 0) break;
        if (seconds_over(request.until) >
            static_cast<double>(t.answer.bytes) / least_bytes_per_second) {
            t.ended = "it comes too slowly, or not at all";
            break;
        }
        curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
        if (message->msg == CURLMSG_DONE) code = message->data.result;
    }
    long status = 0;
    curl_off_t wait = 0;
    char* redirect = nullptr;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &wait);
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &redirect);
    t.answer.status = static_cast<int>(status);
    if (wait > 0) t.answer.wait = static_cast<double>(wait);
    if (redirect != nullptr) t.answer.redirect = redirect;
    if (code != CURLE_OK) {
        t.answer.problem = t.ended != nullptr   ? t.ended
                           : problem[0] != '\0' ? problem.data()
                                                : curl_easy_strerror(code);
    }
    curl_multi_remove_handle(multi, easy);
    return std::move(t.answer);
}

}  // namespace mx::io

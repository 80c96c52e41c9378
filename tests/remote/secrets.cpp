// SPDX-License-Identifier: Apache-2.0
// For any answers of servers: credentials from the environment are in no message, and are sent only
// to the named host.
#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/remote/server.hpp"
#include "tests/catch.hpp"

using namespace mx;

namespace {

constexpr std::size_t exchanges = 100000;
constexpr std::uint64_t file_bytes = 4096;

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

// The target of a redirect, and whether it is the named host.
struct place {
    std::string_view url;
    bool at_home;
};
constexpr std::array places{
    place{"https://home.example/again", true},
    place{"https://HOME.example:443/x?y=z", true},
    place{"https://home.example:444/", false},
    place{"https://store.example/signed?X-Amz-Signature=0123", false},
    place{"https://home.example@store.example/", false},
    place{"https://home.example.store.example/", false},
    place{"https://store.example/https://home.example/", false},
    place{"https://[::1]:8000/", false},
    place{"https://user:word@home.example/", true},
    place{"http://home.example/", false},
    place{"http://store.example/", false},
    place{"ftp://home.example/", false},
    place{"//", false},
};

// Answers as no server should, and records what it receives.
class hostile_server final : public io::http_session {
  public:
    io::http_credentials who;
    std::vector<std::string> secrets;
    std::size_t asked = 0, elsewhere = 0, known = 0;
    std::string leak;  ///< the first secret sent to a wrong host

    // Of the home host and of those named by redirects; the latter by address.
    std::set<std::string> away;
    std::mt19937 random{20261123};

    bool one_in(unsigned n) { return random() % n == 0; }

    bool holds(const std::string& text) const {
        const std::string small = lower(text);
        return std::ranges::any_of(secrets, [&](const std::string& s) {
            return small.find(lower(s)) != std::string::npos;
        });
    }

    // Texts that contain received secrets, or what a server may want to receive.
    std::string words() {
        std::string text = "what became of ";
        for (int i = static_cast<int>(random() % 3); i >= 0; --i) {
            std::string secret = secrets[random() % secrets.size()];
            if (one_in(3)) secret = lower(secret);
            text += one_in(2) ? secret : "Bearer \"" + secret + "\"\n";
        }
        return text;
    }

    std::string redirect() {
        const place& to = places[random() % places.size()];
        std::string url(to.url);
        if (one_in(4)) url += "?token=" + secrets[random() % secrets.size()];
        bool home = to.at_home;
        if (one_in(4)) {
            url = "https://" + secrets[random() % secrets.size()] + ".example/";
            home = false;
        }
        if (!home) away.insert(url);
        return url;
    }

    io::http_answer get(const io::http_request& request, std::span<std::byte> body,
                        const std::atomic<bool>&) override {
        ++asked;
        const bool home = !away.contains(request.url);
        std::string sent = request.url;
        for (const std::string& line : headers_of(request)) sent += "\n" + line;
        if (home) {
            known += request.who != nullptr ? 1u : 0u;
        } else {
            ++elsewhere;
            if ((request.who != nullptr || holds(sent)) && leak.empty()) leak = sent;
        }
        return answer_to(request, body);
    }
    void pause(double, const std::atomic<bool>&) override {}

  private:
    io::http_answer answer_to(const io::http_request& request, std::span<std::byte> body) {
        io::http_answer a;
        constexpr std::array statuses{0,   200, 206, 206, 206, 301, 302, 302, 307, 400,
                                      401, 403, 404, 408, 410, 416, 418, 429, 500, 503};
        a.status = statuses[random() % statuses.size()];
        if (a.status == 0 || one_in(4)) a.problem = words();
        if (a.status >= 300 && a.status < 309) a.redirect = redirect();
        if (one_in(3)) a.etag = one_in(2) ? "\"one\"" : words();
        if (one_in(8)) a.last_modified = words();
        if (one_in(8)) a.bucket_region = words();
        if (one_in(4)) a.wait = static_cast<double>(random() % 700);
        if (one_in(4)) a.whole_bytes = random() % (std::size_t{1} << 12);
        a.content_range = words();
        if (a.status == 206 && request.begin && !one_in(8)) {
            const std::uint64_t end = std::min(request.end, file_bytes);
            a.content_range = "bytes " + std::to_string(*request.begin) + "-" +
                              std::to_string(end - 1) + "/" + std::to_string(file_bytes);
            a.bytes = one_in(2) ? body.size() : random() % (body.size() + 1);
        }
        a.too_long = one_in(16);
        return a;
    }
};

}  // namespace

TEST_CASE("secrets are in no message and go to no other host") {
    hostile_server net;
    std::size_t messages = 0, hidden = 0, fine = 0;
    const std::string token = "hf_AbCdEfGhIjKlMnOp", secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCY",
                      session = "FwoGZXIvYXdzEBYaDKz==";
    net.secrets = {token, secret, session};
    std::vector<std::byte> out(512);
    const std::atomic<bool> never{false};
    while (net.asked < exchanges) {
        net.away.clear();
        io::remote_address address{"hf://org/name@main/file",
                                   "https://home.example/file",
                                   {token, {}, {}, {}, {}},
                                   "HF_TOKEN in the environment"};
        if (net.one_in(2)) {
            address.path = "s3://bucket/key";
            address.who = {{}, "AKIAEXAMPLE", secret, session, "us-east-1"};
        }
        // Values that are not in the environment are unknown, so they are not searched for.
        net.secrets =
            address.who.bearer.empty() ? std::vector{secret, session} : std::vector{token};
        try {
            io::server s(address, &net);
            if (net.one_in(8)) {
                static_cast<void>(s.whole(256));
            } else {
                static_cast<void>(s.open(1024));
                s.read(net, 1024, out, never);
            }
            ++fine;
        } catch (const base::error& e) {
            ++messages;
            const std::string said = std::string(e.what()) + e.message();
            if (net.holds(said)) FAIL("in a message: " << said);
            hidden += said.find("(secret)") != std::string::npos ? 1u : 0u;
        }
        if (!net.leak.empty()) FAIL("to another host: " << net.leak);
    }
    // Each of these must have happened for the test to be meaningful.
    CHECK(messages > 1000);
    CHECK(hidden > 100);
    CHECK(fine > 100);
    CHECK(net.elsewhere > 1000);
    CHECK(net.known > exchanges / 4);
}

TEST_CASE("what requests say of who asks") {
    const io::http_credentials hub{"hf_token_of_somebody", {}, {}, {}, {}};
    const io::http_credentials s3{{}, "key", "the secret of it", "the session", "us-east-1"};
    io::http_request request{"https://home.example/", &hub, 0, 1, "\"etag\""};
    CHECK(headers_of(request) ==
          std::vector<std::string>{"If-Range: \"etag\"",
                                   "Authorization: Bearer hf_token_of_somebody"});
    request.who = &s3;
    for (const std::string& line : headers_of(request)) CHECK(line.find("secret") == line.npos);
    request.who = nullptr;
    CHECK(headers_of(request) == std::vector<std::string>{"If-Range: \"etag\""});
    CHECK(io::without_secrets(s3, "of THE secret OF IT, the session, key") ==
          "of (secret), (secret), key");
    CHECK(io::without_secrets({}, "nothing") == "nothing");
    CHECK_FALSE(io::holds_secret({"short", {}, {}, {}, {}}, "a short word"));
}

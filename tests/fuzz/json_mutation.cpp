// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/json_mutation.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace mx::fuzz {
namespace {

using json = nlohmann::ordered_json;

constexpr int most_depth = 64;  // what is deeper is left out

void collect(json& at, std::vector<json*>& all) {
    all.push_back(&at);
    if (!at.is_structured()) return;
    for (json& below : at) collect(below, all);
}

json other_value(const json& now, std::mt19937_64& random) {
    switch (random() % 12) {
        case 0:
            return nullptr;
        case 1:
            return json::array();
        case 2:
            return json::object();
        case 3:
            return random() % 2 == 0;
        case 4:
            return "";
        case 5:
            return std::numeric_limits<std::int64_t>::max() >> random() % 64;
        case 6:
            return -static_cast<std::int64_t>(random() % 3);
        case 7:
            return std::ldexp(1.0 + static_cast<double>(random() % 8) / 8,
                              static_cast<int>(random() % 2090) - 1060);
        case 8:
            return json::array({now, now});
        case 9:
            return json::object({{"name", now}});
        case 10:
            return now.is_number_integer() ? json(now.get<std::uint64_t>() + 1) : json(now.dump());
        default:
            return now.is_string() ? json(now.get<std::string>() + ":scale=ceil") : json(1);
    }
}

}  // namespace

bool mutate_json(std::vector<std::uint8_t>& input, std::mt19937_64& random) {
    json document = json::parse(
        input.begin(), input.end(), [](int depth, auto, auto&) { return depth < most_depth; },
        false);
    if (document.is_discarded()) return false;
    std::vector<json*> all;
    collect(document, all);
    json& at = *all[random() % all.size()];
    const json& other = *all[random() % all.size()];
    const json copy = other;
    switch (random() % 4) {
        case 0:
            at = copy;
            break;
        case 1:
            if (at.is_object() && !at.empty()) {
                const auto gone =
                    std::next(at.begin(), static_cast<std::ptrdiff_t>(random() % at.size()));
                at.erase(gone);
            } else if (at.is_array() && !at.empty()) {
                at.erase(random() % at.size());
            } else {
                at = other_value(at, random);
            }
            break;
        case 2:
            if (at.is_array() && !at.empty()) {
                const json again = at[random() % at.size()];
                at.push_back(again);
            } else if (at.is_object()) {
                at["again"] = copy;
            } else {
                at = other_value(at, random);
            }
            break;
        default:
            at = other_value(at, random);
    }
    const std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
    input.assign(text.begin(), text.end());
    return true;
}

}  // namespace mx::fuzz

#ifdef MX_FUZZ_LIBFUZZER
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// libFuzzer's own mutations find the syntax; every other time the document is changed instead.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<std::uint8_t> input(data, data + size);
    if (random() % 2 == 0 && mx::fuzz::mutate_json(input, random) && input.size() <= most) {
        std::memcpy(data, input.data(), input.size());
        return input.size();
    }
    return LLVMFuzzerMutate(data, size, most);
}
#endif

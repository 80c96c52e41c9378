// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/file_throughput.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"

namespace mx::bench {
namespace {

constexpr int least_rounds = 5;

struct amount {
    double elements = 0, bytes = 0;
};

amount analysed(const std::vector<engine::tensor_ref>& tensors, const analysis::analysis& a) {
    std::set<std::pair<std::string, std::string>> left_out;
    for (const engine::skipped_tensor& s : a.skipped) left_out.emplace(s.file, s.tensor);
    amount all;
    for (const engine::tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        if (left_out.count({info.file, info.name}) != 0) continue;
        all.elements += static_cast<double>(info.elements);
        all.bytes += static_cast<double>(info.stored_bytes != 0 ? info.stored_bytes : info.bytes);
    }
    return all;
}

}  // namespace

file_rate measure_files(const std::vector<engine::tensor_ref>& tensors, const codec::recipe& recipe,
                        double seconds, const engine::run_control& control) {
    analysis::analysis_request request;
    request.recipes = {recipe};
    const amount all = analysed(tensors, analysis::analyze(tensors, request, control));
    if (all.elements == 0) {
        throw base::error(base::error_kind::usage,
                          "recipe '" + codec::to_string(recipe) +
                              "' suits no tensor of these files; 'mx analyze' says why");
    }
    file_rate best{0, all.bytes / all.elements};
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0;; ++round) {
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::duration<double> past = now - start;
        if (round >= least_rounds && past.count() >= seconds) return best;
        analysis::analyze(tensors, request, control);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - now;
        best.elements_per_second = std::max(best.elements_per_second, all.elements / took.count());
    }
}

}  // namespace mx::bench

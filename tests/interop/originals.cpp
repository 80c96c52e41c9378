// SPDX-License-Identifier: Apache-2.0
// Compares published checkpoints with their conversions: in the folder MX_CHECKPOINTS, every file
// of a format that mx reads must give, byte for byte, the tensors of each .safetensors file next to
// it. Exit code 77: MX_CHECKPOINTS is not set.
//
// A conversion may leave tensors out and may drop a prefix that is common to all its names
// ("model_state_dict."); it may not rename, reshape or change a dtype. NAME.KIND.safetensors (a
// second dot) contains other values on purpose, for example a BF16 copy, and is ignored.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/reader.hpp"

namespace {

using namespace mx;
namespace fs = std::filesystem;

constexpr int skipped = 77;
constexpr std::uint64_t piece = 1 << 20;

struct counts {
    std::size_t pairs = 0;
    std::size_t tensors = 0;
    std::size_t differences = 0;
};

const io::tensor_info* find(const io::reader& file, const std::string& name) {
    const auto& all = file.tensors();
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const io::tensor_info& t) { return t.name == name; });
    return at == all.end() ? nullptr : &*at;
}

// The prefix of the conversion's names in the original.
std::string prefix_of(const io::reader& original, const io::reader& conversion) {
    if (conversion.tensors().empty()) return {};
    const std::string& name = conversion.tensors().front().name;
    if (find(original, name) != nullptr) return {};
    for (const io::tensor_info& t : original.tensors()) {
        if (t.name.ends_with("." + name)) return t.name.substr(0, t.name.size() - name.size());
    }
    return {};
}

bool same_bytes(const io::reader& a, const io::tensor_info& x, const io::reader& b,
                const io::tensor_info& y) {
    const auto left = a.open(static_cast<std::size_t>(&x - a.tensors().data()));
    const auto right = b.open(static_cast<std::size_t>(&y - b.tensors().data()));
    std::vector<std::byte> one;
    std::vector<std::byte> other;
    for (std::uint64_t at = 0; at < x.bytes; at += piece) {
        one.resize(static_cast<std::size_t>(std::min(piece, x.bytes - at)));
        other.resize(one.size());
        left->read(at, one);
        right->read(at, other);
        if (one != other) return false;
    }
    return true;
}

void compare(const std::string& path, const io::reader& original, const fs::path& converted,
             counts& total) {
    const auto conversion = io::open_model(converted.string());
    const std::string prefix = prefix_of(original, *conversion);
    std::size_t same = 0;
    for (const io::tensor_info& y : conversion->tensors()) {
        const io::tensor_info* x = find(original, prefix + y.name);
        std::string problem;
        if (x == nullptr) {
            problem = "is not in the original";
        } else if (x->type != y.type || x->shape != y.shape || x->bytes != y.bytes) {
            problem = "has another dtype or shape";
        } else if (!same_bytes(original, *x, *conversion, y)) {
            problem = "has other bytes";
        }
        if (problem.empty()) {
            ++same;
        } else {
            ++total.differences;
            std::cout << "  " << base::printable(y.name) << ": " << problem << "\n";
        }
    }
    ++total.pairs;
    total.tensors += same;
    std::cout << path << ": " << same << " of " << conversion->tensors().size() << " tensors of "
              << converted.filename().string() << " identical, "
              << original.tensors().size() - std::min(original.tensors().size(), same)
              << " more in the original\n";
}

std::vector<fs::path> files_below(const fs::path& folder) {
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) all.push_back(entry.path());
    }
    std::sort(all.begin(), all.end());
    return all;
}

std::vector<fs::path> conversions_beside(const fs::path& file, const std::vector<fs::path>& all) {
    std::vector<fs::path> found;
    for (const fs::path& other : all) {
        if (other.parent_path() == file.parent_path() && other.extension() == ".safetensors" &&
            other.stem().extension().empty()) {
            found.push_back(other);
        }
    }
    return found;
}

counts run(const fs::path& folder) {
    counts total;
    const std::vector<fs::path> all = files_below(folder);
    for (const fs::path& file : all) {
        const auto conversions = conversions_beside(file, all);
        if (file.extension() == ".safetensors" || conversions.empty()) continue;
        std::unique_ptr<io::reader> original;
        try {
            original = io::open_model(file.string());
        } catch (const base::error& e) {  // a README, or a format that mx does not read
            std::cout << "ignored: " << e.what() << "\n";
            continue;
        }
        for (const fs::path& conversion : conversions) {
            compare(file.string(), *original, conversion, total);
        }
    }
    return total;
}

}  // namespace

int main() {
    const char* folder = std::getenv("MX_CHECKPOINTS");
    if (folder == nullptr || *folder == '\0') {
        std::cout << "skipped: MX_CHECKPOINTS names no folder of checkpoints and conversions\n";
        return skipped;
    }
    try {
        const counts total = run(folder);
        std::cout << total.pairs << " pairs, " << total.tensors << " identical tensors, "
                  << total.differences << " differences\n";
        return total.pairs > 0 && total.differences == 0 ? 0 : 1;
    } catch (const std::exception& e) {
        std::cout << e.what() << "\n";
        return 1;
    }
}

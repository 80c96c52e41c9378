// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/conformance/verify/capture_folder.hpp"
#include "libmx/conformance/verify/mma_file.hpp"

namespace mx::conformance::verify {
namespace {

namespace fs = std::filesystem;

const vector_kind& kind_of(const vector_file& file, const verify_options& options) {
    const std::string* name = file.find("kind");
    const std::string kind_name =
        name == nullptr && options.recipe ? std::string("blocks") : file.at("kind");
    if (const vector_kind* kind = base::find_named(vector_kinds, kind_name)) return *kind;
    file.fail("{}", base::unknown("kind of vectors in the metadata", kind_name,
                                  base::names_of(vector_kinds)));
}

}  // namespace

verification verify_vectors(const io::reader& file, const std::string& path,
                            const verify_options& options) {
    const vector_file vectors(file, path);
    const vector_kind& kind = kind_of(vectors, options);
    comparison found(options.show);
    verification& result = found.found();
    result.file = path;
    result.kind = kind.name;
    result.by = kind.compare(vectors, options, found);
    // A recording of an instruction without a model may be kept until there is a model.
    const bool unmodelled = is_recording(vectors) && !result.skipped.empty();
    if (result.compared == 0 && !unmodelled) vectors.fail("holds no value that could be compared");
    return std::move(result);
}

std::vector<std::string> vector_paths(const std::vector<std::string>& paths) {
    std::vector<std::string> all;
    for (const std::string& path : paths) {
        std::error_code failure;
        if (!fs::is_directory(path, failure)) {
            all.push_back(path);
            continue;
        }
        if (is_capture(path)) {
            const std::vector<std::string> inside = captured_files(path);
            all.insert(all.end(), inside.begin(), inside.end());
            continue;
        }
        std::vector<std::string> inside;
        for (fs::directory_iterator it(path, failure), end; !failure && it != end;
             it.increment(failure)) {
            if (it->path().extension() == ".safetensors") inside.push_back(it->path().string());
        }
        if (failure || inside.empty()) {
            const std::string why = failure ? fmt::format("cannot list: {}", failure.message())
                                            : "holds no *.safetensors file";
            throw base::error(base::error_kind::input, why, {path, {}, {}});
        }
        std::ranges::sort(inside);
        all.insert(all.end(), inside.begin(), inside.end());
    }
    return all;
}

}  // namespace mx::conformance::verify

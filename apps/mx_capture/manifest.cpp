// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/manifest.hpp"

#include <filesystem>

#include "libmx/files/file_digest.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/report/members.hpp"
#include "libmx/report/writers.hpp"

namespace mx::capture {

using report::tally;

void manifest::add_file(const std::string& folder, const std::string& file) {
    const std::string path = (std::filesystem::path(folder) / file).string();
    files.push_back({{"file", file},
                     {"bytes", tally(std::filesystem::file_size(path))},
                     {"sha256", io::sha256_of(path)}});
}

void manifest::write(const std::string& path) const {
    report::document d;
    d.head = {{"schema", std::string("mx.capture/1")},
              {"tool", report::record{{"name", std::string("mx_capture")},
                                      {"version", std::string(MX_VERSION)},
                                      {"sha256", program}}},
              {"recorded_from_hardware", facts.hardware},
              {"date", date},
              {"device", facts.name},
              {"compute_capability",
               facts.hardware
                   ? report::value(std::to_string(facts.major) + "." + std::to_string(facts.minor))
                   : report::value()},
              {"arch", std::string(target.name)},
              {"driver", facts.driver},
              {"cuda_runtime", facts.runtime},
              {"cublaslt", facts.cublaslt},
              {"only", only.empty() ? report::value() : report::value(only)},
              {"seed", tally(how_much.seed)},
              {"tiles", tally(how_much.tiles)},
              {"hash_groups", tally(how_much.hash_groups)},
              {"cell_stride", tally(how_much.cell_stride)},
              {"stochastic_inputs", tally(how_much.stochastic)}};
    d.results = files;
    report::list missing;
    for (const failure& f : failures) {
        missing.emplace_back(report::record{{"part", f.part}, {"reason", f.reason}});
    }
    d.tail = {{"not_recorded", std::move(missing)}};
    io::output_file file(path);
    report::write_json(d, {}, [&](std::string_view text) { file.append(text); });
    file.commit();
}

}  // namespace mx::capture

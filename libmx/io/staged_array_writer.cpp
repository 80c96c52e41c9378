// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/staged_array_writer.hpp"

#include <fmt/format.h>

#include <utility>

#include "libmx/base/status.hpp"

namespace mx::io {
namespace {

class staged_arrays final : public array_writer {
  public:
    staged_arrays(std::unique_ptr<staged_output> stage, std::vector<array_place> places)
        : stage_(std::move(stage)), places_(std::move(places)) {}

    void write(std::size_t index, std::uint64_t offset, std::span<const std::byte> bytes) override {
        const array_place& place = places_.at(index);
        if (offset > place.bytes || bytes.size() > place.bytes - offset) {
            throw base::error(base::error_kind::output,
                              fmt::format("bytes {} to {} are outside array {} of {} bytes", offset,
                                          offset + bytes.size(), index, place.bytes),
                              {stage_->path(), {}, {}});
        }
        stage_->write_at(place.offset + offset, bytes);
    }
    void commit() override { stage_->commit(); }

  private:
    std::unique_ptr<staged_output> stage_;
    std::vector<array_place> places_;
};

}  // namespace

std::unique_ptr<array_writer> stage_arrays(const std::string& path, const std::string& header,
                                           std::vector<array_place> places) {
    std::uint64_t size = header.size();
    for (array_place& place : places) {
        place.offset += header.size();
        size = std::max(size, place.offset + place.bytes);
    }
    auto stage = std::make_unique<staged_output>(path);
    stage->reserve(size);
    stage->write_at(0, std::as_bytes(std::span(header)));
    return stage_arrays(std::move(stage), std::move(places));
}

std::unique_ptr<array_writer> stage_arrays(std::unique_ptr<staged_output> stage,
                                           std::vector<array_place> places) {
    return std::make_unique<staged_arrays>(std::move(stage), std::move(places));
}

std::uint64_t planned_bytes(const std::string& path, const planned_array& array) {
    const auto elements = tensor::element_count(array.shape);
    const auto bytes = elements ? tensor::byte_count(array.type, *elements) : std::nullopt;
    if (!bytes) {
        throw base::error(base::error_kind::output,
                          fmt::format("shape {} is too large", tensor::to_string(array.shape)),
                          {path, array.name, {}});
    }
    return *bytes;
}

}  // namespace mx::io

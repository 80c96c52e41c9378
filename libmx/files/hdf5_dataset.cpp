// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/hdf5_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "libmx/files/hdf5_tree.hpp"
#include "libmx/files/hdf5_types.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

constexpr std::size_t smallest_cache = 1 << 20;  // HDF5's default

[[noreturn]] void fail(const tensor_info& info, const std::string& what) {
    throw base::error(base::error_kind::input, fmt::format("{}: {}", what, hdf5_problem()),
                      {info.file, info.name, {}});
}

// Room for one row of chunks, so that reading along rows unpacks every chunk once.
std::size_t chunk_cache(hid_t plist, const tensor::shape& shape, std::size_t element) {
    std::array<hsize_t, H5S_MAX_RANK> chunk{};
    const int rank = H5Pget_chunk(plist, H5S_MAX_RANK, chunk.data());
    std::uint64_t bytes = element;
    for (int k = 0; k < rank && static_cast<std::size_t>(k) < shape.size(); ++k) {
        const std::uint64_t side = chunk[static_cast<std::size_t>(k)];
        const std::uint64_t extent = shape[static_cast<std::size_t>(k)];
        const std::uint64_t chunks = k == 0 || side == 0 ? 1 : (extent + side - 1) / side;
        if (side != 0 && bytes > hdf5_chunk_limit / side / std::max<std::uint64_t>(1, chunks)) {
            return hdf5_chunk_limit / 2;
        }
        bytes *= side * chunks;
    }
    return static_cast<std::size_t>(
        std::clamp<std::uint64_t>(bytes, smallest_cache, hdf5_chunk_limit / 2));
}

class dataset_source final : public byte_source {
  public:
    dataset_source(std::shared_ptr<const hdf5_id> file, const tensor_info& info)
        : file_(std::move(file)), info_(info) {
        const hdf5_scope scope;
        open_with(H5P_DEFAULT);
        const hdf5_id plist(H5Dget_create_plist(dataset_.get()), H5Pclose);
        if (H5Pget_layout(plist.get()) != H5D_CHUNKED) return;
        const hdf5_id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
        H5Pset_chunk_cache(access.get(), 12421, chunk_cache(plist.get(), info_.shape, width_), 1.0);
        dataset_.close();  // an open dataset keeps the cache it was first opened with
        open_with(access.get());
    }
    ~dataset_source() override {
        const hdf5_scope scope;
        memory_type_.close();
        dataset_.close();
        file_.reset();
    }

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        if (offset > info_.bytes || out.size() > info_.bytes - offset) {
            throw base::error(base::error_kind::input, "read past the end of the tensor",
                              {info_.file, info_.name, {}});
        }
        const hdf5_scope scope;
        read_whole_elements(offset, out, width_,
                            [this](std::uint64_t first, std::span<std::byte> elements) {
                                read_elements(first, elements);
                            });
    }

  private:
    void open_with(hid_t access) {
        dataset_ = {H5Dopen2(file_->get(), info_.name.c_str(), access), H5Dclose};
        if (!dataset_.valid()) fail(info_, "cannot open");
        const hdf5_id stored(H5Dget_type(dataset_.get()), H5Tclose);
        memory_type_ = little_endian(stored.get());
        width_ = H5Tget_size(memory_type_.get());
        if (!memory_type_.valid() ||
            width_ * 8 != static_cast<std::size_t>(tensor::row_of(info_.type).bits)) {
            fail(info_, "changed while being read");
        }
    }

    // A range in C order is a few boxes: the rest of a row, whole rows, the start of a row, and
    // so on for each axis. Takes the largest box at every step.
    void read_elements(std::uint64_t first, std::span<std::byte> out) const {
        const tensor::shape& shape = info_.shape;
        const std::size_t rank = shape.size();
        while (!out.empty()) {
            const std::uint64_t count = out.size() / width_;
            std::array<hsize_t, H5S_MAX_RANK> start{};
            std::array<hsize_t, H5S_MAX_RANK> extent{};
            std::uint64_t rest = first;
            for (std::size_t k = rank; k-- > 0;) {
                start[k] = rest % shape[k];
                rest /= shape[k];
                extent[k] = 1;
            }
            std::uint64_t inner = 1;  // elements of one step along axis k
            std::uint64_t taken = 1;
            for (std::size_t k = rank; k-- > 0;) {
                extent[k] = std::min<std::uint64_t>(shape[k] - start[k], count / inner);
                taken = inner * extent[k];
                const bool whole = start[k] == 0 && extent[k] == shape[k];
                inner *= shape[k];
                if (!whole || k == 0 || count < inner) break;
            }
            const std::span<std::byte> part = out.first(static_cast<std::size_t>(taken) * width_);
            read_box(start.data(), extent.data(), part);
            out = out.subspan(part.size());
            first += taken;
        }
    }

    void read_box(const hsize_t* start, const hsize_t* extent, std::span<std::byte> out) const {
        const hsize_t count = out.size() / width_;
        const hdf5_id memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
        const hdf5_id space(H5Dget_space(dataset_.get()), H5Sclose);
        const bool scalar = info_.shape.empty();
        const bool fine = (scalar || H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start,
                                                         nullptr, extent, nullptr) >= 0) &&
                          H5Dread(dataset_.get(), memory_type_.get(), memory.get(), space.get(),
                                  H5P_DEFAULT, out.data()) >= 0;
        if (!fine) fail(info_, "cannot read; the file is damaged or cut short");
    }

    std::shared_ptr<const hdf5_id> file_;
    tensor_info info_;
    hdf5_id dataset_;
    hdf5_id memory_type_;
    std::size_t width_ = 1;
};

}  // namespace

std::unique_ptr<byte_source> open_hdf5_dataset(std::shared_ptr<const hdf5_id> file,
                                               const tensor_info& info) {
    return std::make_unique<dataset_source>(std::move(file), info);
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// HDF5 plans the file and is closed again; the data is then written to the positions it chose. So
// any thread can write, and a full disk is an error of ours.
#include <fmt/format.h>
#include <hdf5.h>
#include <sys/mman.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <limits>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "libmx/files/hdf5_handle.hpp"
#include "libmx/files/hdf5_types.hpp"
#include "libmx/io/staged_output.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

// The library crashes if it gets no memory: what it takes for a small file must be there.
void require_memory() {
    constexpr std::size_t least = 16 << 20;
    void* const space =
        ::mmap(nullptr, least, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED) throw std::bad_alloc();
    ::munmap(space, least);
}

// A file driver of HDF5. The library crashes after a failed write: it keeps the data, tries again
// when the program ends, and fails again. So no write fails here: after the first that the stage
// refuses, data goes to memory (a few MiB at most, the library's cache) until the file is closed,
// and check() reports the error. To be used inside a hdf5_scope; must outlive the file.
class hdf5_stage {
  public:
    explicit hdf5_stage(staged_output& stage);

    // The file access list to create the file with; its name is not used.
    hid_t access() const noexcept { return access_.get(); }
    // Throws what the stage threw, if anything.
    void check() const {
        if (failure_) std::rethrow_exception(failure_);
    }

    // For the driver's functions.
    void read(haddr_t at, std::span<std::byte> bytes) const {
        stage_->read_at(at, bytes);
        for (const auto& [start, part] : unwritten_) {
            const haddr_t from = std::max(at, start);
            const haddr_t to = std::min(at + bytes.size(), start + part.size());
            if (from < to) {
                std::copy_n(part.begin() + static_cast<std::ptrdiff_t>(from - start), to - from,
                            bytes.begin() + static_cast<std::ptrdiff_t>(from - at));
            }
        }
    }
    void write(haddr_t at, std::span<const std::byte> bytes) noexcept {
        if (!failure_) {
            try {
                return stage_->write_at(at, bytes);
            } catch (...) {
                failure_ = std::current_exception();
            }
        }
        unwritten_.emplace_back(at, std::vector(bytes.begin(), bytes.end()));
    }
    void resize(haddr_t size) noexcept {
        if (failure_) return;
        try {
            stage_->reserve(size);
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

  private:
    staged_output* stage_;
    std::exception_ptr failure_;
    std::vector<std::pair<haddr_t, std::vector<std::byte>>> unwritten_;  // later ones win
    hdf5_id driver_;
    hdf5_id access_;
};

// The one file of a stage, for the library.
struct driver_file : H5FD_t {
    hdf5_stage* stage = nullptr;
    haddr_t allocated = 0;  // the library's "end of address space"
    haddr_t size = 0;
};

driver_file& of(H5FD_t* file) { return *static_cast<driver_file*>(file); }
const driver_file& of(const H5FD_t* file) { return *static_cast<const driver_file*>(file); }

extern "C" {

H5FD_t* open_stage(const char*, unsigned, hid_t access, haddr_t) {
    const auto* const stage = static_cast<hdf5_stage* const*>(H5Pget_driver_info(access));
    if (stage == nullptr) return nullptr;
    auto* const file = new (std::nothrow) driver_file();
    if (file != nullptr) file->stage = *stage;
    return file;
}

herr_t close_stage(H5FD_t* file) {
    delete &of(file);
    return 0;
}

// As in the library's own driver for files, so that files have the same structure.
herr_t query_stage(const H5FD_t*, unsigned long* flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

haddr_t allocated_of(const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; }

herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    of(file).allocated = end;
    return 0;
}

haddr_t size_of(const H5FD_t* file, H5FD_mem_t) { return of(file).size; }

herr_t read_stage(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t size, void* out) {
    try {
        of(file).stage->read(at, {static_cast<std::byte*>(out), size});
        return 0;
    } catch (...) {
        return -1;
    }
}

herr_t write_stage(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t size, const void* bytes) {
    of(file).stage->write(at, {static_cast<const std::byte*>(bytes), size});
    of(file).size = std::max(of(file).size, at + size);
    return 0;
}

herr_t resize_stage(H5FD_t* file, hid_t, hbool_t) {
    if (of(file).size == of(file).allocated) return 0;
    of(file).stage->resize(of(file).allocated);
    of(file).size = of(file).allocated;
    return 0;
}

}  // extern "C"

H5FD_class_t driver() {
    H5FD_class_t d{};
#if H5_VERSION_GE(1, 13, 0)
    d.version = H5FD_CLASS_VERSION;
    d.value = static_cast<H5FD_class_value_t>(H5_VFD_RESERVED);  // the first that is free to use
#endif
    d.name = "mx_stage";
    d.maxaddr = static_cast<haddr_t>(std::numeric_limits<std::int64_t>::max());
    d.fc_degree = H5F_CLOSE_WEAK;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the driver's information is the pointer
    d.fapl_size = sizeof(hdf5_stage*);
    d.open = open_stage;
    d.close = close_stage;
    d.query = query_stage;
    d.get_eoa = allocated_of;
    d.set_eoa = set_allocated;
    d.get_eof = size_of;
    d.read = read_stage;
    d.write = write_stage;
    d.truncate = resize_stage;
    std::ranges::fill(d.fl_map, H5FD_MEM_SUPER);
    d.fl_map[H5FD_MEM_DRAW] = H5FD_MEM_DRAW;
    d.fl_map[H5FD_MEM_GHEAP] = H5FD_MEM_DRAW;
    return d;
}

hdf5_stage::hdf5_stage(staged_output& stage) : stage_(&stage) {
    require_memory();
    static const H5FD_class_t registered = driver();
    driver_ = {H5FDregister(&registered), H5FDunregister};
    access_ = {H5Pcreate(H5P_FILE_ACCESS), H5Pclose};
    const hdf5_stage* const self = this;
    H5Pset_driver(access_.get(), driver_.get(), static_cast<const void*>(&self));
}

class layout_writer {
  public:
    layout_writer(const std::string& path, staged_output& stage) : path_(path), stage_(stage) {
        file_ = {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, stage_.access()), H5Fclose};
        if (!file_.valid()) fail({}, "cannot create");
    }

    array_place add(const planned_array& array) {
        const std::uint64_t bytes = planned_bytes(path_, array);
        const hdf5_id type = stored_type(array.type);
        if (!type.valid()) {
            output_error(fmt::format("HDF5 has no dtype {}; write safetensors",
                                     tensor::row_of(array.type).name),
                         {path_, array.name, {}});
        }
        const std::vector<hsize_t> extents(array.shape.begin(), array.shape.end());
        const hdf5_id space(extents.empty() ? H5Screate(H5S_SCALAR)
                                            : H5Screate_simple(static_cast<int>(extents.size()),
                                                               extents.data(), nullptr),
                            H5Sclose);
        const hdf5_id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
        H5Pset_create_intermediate_group(links.get(), 1);
        H5Pset_char_encoding(links.get(), H5T_CSET_UTF8);
        const hdf5_id plist(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        H5Pset_layout(plist.get(), H5D_CONTIGUOUS);
        H5Pset_alloc_time(plist.get(), H5D_ALLOC_TIME_EARLY);
        H5Pset_fill_time(plist.get(), H5D_FILL_TIME_NEVER);
        H5Pset_obj_track_times(plist.get(), false);  // the same input gives the same bytes
        const hdf5_id dataset(space.valid()
                                  ? H5Dcreate2(file_.get(), array.name.c_str(), type.get(),
                                               space.get(), links.get(), plist.get(), H5P_DEFAULT)
                                  : H5I_INVALID_HID,
                              H5Dclose);
        stage_.check();
        if (!dataset.valid()) fail(array.name, "cannot create a dataset of this name and shape");
        if (meaning_of(type.get(), {}).type != array.type) {
            describe(dataset.get(), hdf5_dtype_attribute,
                     std::string(tensor::row_of(array.type).name));
        }
        if (bytes == 0) return {};
        const haddr_t offset = H5Dget_offset(dataset.get());
        if (offset == HADDR_UNDEF) fail(array.name, "cannot reserve room");
        return {offset, bytes};
    }

    void describe(const std::string& name, const std::string& text) {
        describe(file_.get(), name, text);
    }

    void close() {
        const bool closed = file_.close();
        stage_.check();
        if (!closed) fail({}, "cannot write");
    }

  private:
    void describe(hid_t object, const std::string& name, const std::string& text) const {
        const hdf5_id type(H5Tcopy(H5T_C_S1), H5Tclose);
        H5Tset_size(type.get(), text.size() + 1);
        H5Tset_cset(type.get(), H5T_CSET_UTF8);
        const hdf5_id space(H5Screate(H5S_SCALAR), H5Sclose);
        const hdf5_id attribute(
            H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
            H5Aclose);
        if (!attribute.valid() || H5Awrite(attribute.get(), type.get(), text.c_str()) < 0) {
            fail({}, fmt::format("cannot store the metadata '{}' of {} bytes", name, text.size()));
        }
    }

    [[noreturn]] void fail(const std::string& name, const std::string& what) const {
        output_error(fmt::format("{}: {}", what, hdf5_problem()), {path_, name, {}});
    }

    std::string path_;
    hdf5_stage stage_;
    hdf5_id file_;
};

}  // namespace

std::unique_ptr<array_writer> create_hdf5(const std::string& path,
                                          const std::vector<planned_array>& plan,
                                          const metadata_map& metadata) {
    check_ending(path, {".h5", ".hdf5"});
    auto stage = std::make_unique<staged_output>(path);
    std::vector<array_place> places;
    {
        const hdf5_scope scope;
        layout_writer layout(path, *stage);
        for (const planned_array& array : plan) places.push_back(layout.add(array));
        for (const auto& [name, text] : metadata) layout.describe(name, text);
        layout.close();
    }
    return stage_arrays(std::move(stage), std::move(places));
}

}  // namespace mx::io

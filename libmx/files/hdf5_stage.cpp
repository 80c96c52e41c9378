// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/hdf5_stage.hpp"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <new>
#include <span>

namespace mx::io {
namespace {

// The one file of a stage, as the library sees it.
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

// What the library's own driver for files says, so that files are laid out as that does it.
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
    std::fill(std::begin(d.fl_map), std::end(d.fl_map), H5FD_MEM_SUPER);
    d.fl_map[H5FD_MEM_DRAW] = H5FD_MEM_DRAW;
    d.fl_map[H5FD_MEM_GHEAP] = H5FD_MEM_DRAW;
    return d;
}

}  // namespace

hdf5_stage::hdf5_stage(staged_output& stage) : stage_(&stage) {
    static const H5FD_class_t registered = driver();
    driver_ = {H5FDregister(&registered), H5FDunregister};
    access_ = {H5Pcreate(H5P_FILE_ACCESS), H5Pclose};
    const hdf5_stage* const self = this;
    H5Pset_driver(access_.get(), driver_.get(), static_cast<const void*>(&self));
}

void hdf5_stage::read(haddr_t at, std::span<std::byte> bytes) const {
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

void hdf5_stage::write(haddr_t at, std::span<const std::byte> bytes) noexcept {
    if (!failure_) {
        try {
            return stage_->write_at(at, bytes);
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    unwritten_.emplace_back(at, std::vector(bytes.begin(), bytes.end()));
}

void hdf5_stage::resize(haddr_t size) noexcept {
    if (failure_) return;
    try {
        stage_->reserve(size);
    } catch (...) {
        failure_ = std::current_exception();
    }
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/hdf5_image.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace mx::io {
namespace {

// The library would make copies of the image; it is given the same memory each time instead.
extern "C" void* same_memory(std::size_t, H5FD_file_image_op_t, void* image) { return image; }
extern "C" void* no_copy(void* to, const void*, std::size_t, H5FD_file_image_op_t, void*) {
    return to;
}
extern "C" void* no_growth(void*, std::size_t, H5FD_file_image_op_t, void*) { return nullptr; }
extern "C" herr_t no_release(void*, H5FD_file_image_op_t, void*) { return 0; }
extern "C" void* same_data(void* image) { return image; }
extern "C" herr_t no_data_release(void*) { return 0; }

// The library insists that no file has the name of an image; none can be below a device.
constexpr const char* image_name = "/dev/null/image";

}  // namespace

file_image::file_image(const input_file& file) {
    if (file.size() == 0) return;
    const auto size = static_cast<std::size_t>(file.size());
    // Writable in private, because the library takes its images so; it opens them for reading.
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                            file.descriptor(), 0);
    if (at == MAP_FAILED) {
        throw base::error(base::error_kind::input,
                          fmt::format("cannot map: {}", std::strerror(errno)),
                          {file.path(), {}, {}});
    }
    bytes_ = {static_cast<std::byte*>(at), size};
}

file_image::~file_image() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

hdf5_id open_hdf5_image(std::span<std::byte> image) {
    const hdf5_id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5FD_file_image_callbacks_t callbacks{same_memory, no_copy,         no_growth,   no_release,
                                          same_data,   no_data_release, image.data()};
    const bool given = H5Pset_fapl_core(access.get(), 1 << 20, false) >= 0 &&
                       H5Pset_file_image_callbacks(access.get(), &callbacks) >= 0 &&
                       H5Pset_file_image(access.get(), image.data(), image.size()) >= 0;
    if (!given) return {};
    return {H5Fopen(image_name, H5F_ACC_RDONLY, access.get()), H5Fclose};
}

}  // namespace mx::io

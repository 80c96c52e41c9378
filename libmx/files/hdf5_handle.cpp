// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/hdf5_handle.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace mx::io {
namespace {

std::recursive_mutex*& library_mutex() {
    static std::recursive_mutex first;
    static std::recursive_mutex* current = &first;
    return current;
}

extern "C" herr_t keep_description(unsigned, const H5E_error2_t* error, void* kept) {
    if (error->desc != nullptr) *static_cast<const char**>(kept) = error->desc;
    return 1;  // the first is the innermost
}

// Set, under the lock, by the first failure. With a damaged file the library may be unable to close
// itself at the program's end, and then prints messages unless its reports are off.
bool stay_silent = false;

// The library would copy the image; it receives the same memory each time instead.
extern "C" void* same_memory(std::size_t, H5FD_file_image_op_t, void* image) { return image; }
extern "C" void* no_copy(void* to, const void*, std::size_t, H5FD_file_image_op_t, void*) {
    return to;
}
extern "C" void* no_growth(void*, std::size_t, H5FD_file_image_op_t, void*) { return nullptr; }
extern "C" herr_t no_release(void*, H5FD_file_image_op_t, void*) { return 0; }
extern "C" void* same_data(void* image) { return image; }
extern "C" herr_t no_data_release(void*) { return 0; }

// The library requires that no file has the name of an image; none can be below a device.
constexpr const char* image_name = "/dev/null/image";

}  // namespace

hdf5_scope::hdf5_scope() : lock_(*library_mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &report_, &report_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

hdf5_scope::~hdf5_scope() {
    if (!stay_silent) H5Eset_auto2(H5E_DEFAULT, report_, report_data_);
}

void hdf5_after_fork() {
    static std::recursive_mutex of_child;
    library_mutex() = &of_child;
}

bool hdf5_id::close() noexcept {
    if (id_ < 0) return true;
    const hdf5_scope scope;
    return close_(std::exchange(id_, H5I_INVALID_HID)) >= 0;
}

std::string hdf5_problem() {
    stay_silent = true;
    const char* text = nullptr;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_description, static_cast<void*>(&text));
    return text != nullptr ? text : "unknown failure";
}

file_image::file_image(const input_file& file) {
    if (file.size() == 0) return;
    const auto size = static_cast<std::size_t>(file.size());
    // Writable in private, as the library requires for images; it opens them for reading.
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                            file.descriptor(), 0);
    if (at == MAP_FAILED) {
        input_error(fmt::format("cannot map: {}", std::strerror(errno)), {file.path(), {}, {}});
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

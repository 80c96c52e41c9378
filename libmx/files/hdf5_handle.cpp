// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/hdf5_handle.hpp"

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

// Set, under the lock, by the first failure. A damaged file can leave the library unable to close
// itself at the program's end, about which it complains unless its reports are off then.
bool stay_silent = false;

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

}  // namespace mx::io

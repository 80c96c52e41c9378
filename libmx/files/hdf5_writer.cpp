// SPDX-License-Identifier: Apache-2.0
// HDF5 lays the file out and is closed again; the data then goes to the places it chose. So any
// thread can write, and a full disk is an error of ours (hdf5_stage.hpp).
#include <fmt/format.h>

#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/files/hdf5_handle.hpp"
#include "libmx/files/hdf5_stage.hpp"
#include "libmx/files/hdf5_types.hpp"
#include "libmx/io/staged_output.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

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
            throw base::error(base::error_kind::output,
                              fmt::format("HDF5 has no dtype {}; write safetensors",
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
        throw base::error(base::error_kind::output, fmt::format("{}: {}", what, hdf5_problem()),
                          {path_, name, {}});
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

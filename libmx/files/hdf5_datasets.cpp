// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/hdf5_datasets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <utility>

#include "libmx/files/hdf5_types.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

constexpr int group_depth_limit = 64;
constexpr std::size_t attribute_limit = 64 << 10;
// Of model_config, with every layer of a Keras model.
constexpr std::size_t keras_config_limit = 16 << 20;

struct link {
    std::string name;
    H5L_type_t type;
};

// Names are collected first and followed afterwards, outside the library's callback.
struct link_list {
    std::vector<link> links;
    std::exception_ptr failure;
};

extern "C" herr_t gather_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
    auto& list = *static_cast<link_list*>(data);
    try {
        list.links.push_back({name, info != nullptr ? info->type : H5L_TYPE_HARD});
        return 0;
    } catch (...) {
        list.failure = std::current_exception();
        return -1;
    }
}

extern "C" herr_t gather_attribute(hid_t, const char* name, const H5A_info_t*, void* data) {
    return gather_link(H5I_INVALID_HID, name, nullptr, data);
}

// The unique identity of an object in a file: its address (since 1.12, its token).
std::string identity(hid_t object) {
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t info;
    if (H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0) return {};
    return {reinterpret_cast<const char*>(&info.token), sizeof info.token};
#else
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) return {};
    return {reinterpret_cast<const char*>(&info.addr), sizeof info.addr};
#endif
}

// The text of an attribute; none when it is something else or too long.
std::optional<std::string> attribute_text(hid_t id, std::size_t limit = attribute_limit) {
    const hdf5_id type(H5Aget_type(id), H5Tclose);
    const hdf5_id space(H5Aget_space(id), H5Sclose);
    if (H5Tget_class(type.get()) != H5T_STRING ||
        H5Sget_simple_extent_type(space.get()) != H5S_SCALAR || H5Aget_storage_size(id) > limit) {
        return std::nullopt;
    }
    if (H5Tis_variable_str(type.get()) > 0) {
        char* text = nullptr;
        if (H5Aread(id, type.get(), static_cast<void*>(&text)) < 0 || text == nullptr) {
            return std::nullopt;
        }
        const std::size_t length = strnlen(text, limit + 1);
        std::string out(text, std::min(length, limit));
        H5free_memory(text);
        if (length > limit) return std::nullopt;
        return out;
    }
    std::string out(H5Tget_size(type.get()), '\0');
    if (out.size() > limit || H5Aread(id, type.get(), out.data()) < 0) {
        return std::nullopt;
    }
    out.resize(strnlen(out.data(), out.size()));
    return out;
}

// The dtype that the dataset's own attribute states for its bytes.
std::optional<tensor::dtype> named_dtype(hid_t dataset) {
    if (H5Aexists(dataset, hdf5_dtype_attribute) <= 0) return std::nullopt;
    const hdf5_id id(H5Aopen(dataset, hdf5_dtype_attribute, H5P_DEFAULT), H5Aclose);
    const auto text = id.valid() ? attribute_text(id.get()) : std::nullopt;
    return text ? tensor::find_dtype(*text) : std::nullopt;
}

class tree_walk {
  public:
    tree_walk(std::string path, std::optional<tensor::dtype> as)
        : path_(std::move(path)), as_(as) {}

    void group(hid_t id, const std::string& prefix, int depth) {
        if (!seen_.insert(identity(id)).second) return;
        if (depth > group_depth_limit) {
            fail(prefix, fmt::format("groups are nested more than {} deep", group_depth_limit));
        }
        // In native order, sorted here: to sort by name the library (1.10) first collects a table,
        // and if the file is damaged it frees unset entries.
        link_list list;
        if (H5Literate(id, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, gather_link, &list) < 0) {
            if (list.failure) std::rethrow_exception(list.failure);
            fail(prefix, fmt::format("cannot list the group: {}", hdf5_problem()));
        }
        std::ranges::sort(list.links, {}, &link::name);
        for (const link& each : list.links) follow(id, each, prefix + each.name, depth);
    }

    std::vector<tensor_info> found;

  private:
    [[noreturn]] void fail(const std::string& name, const std::string& message) const {
        input_error(message, {path_, name, {}});
    }

    void follow(hid_t group_id, const link& each, const std::string& name, int depth) {
        if (each.type != H5L_TYPE_HARD) {
            const bool soft = each.type == H5L_TYPE_SOFT;
            return skip(name, soft ? "a soft link is not followed"
                                   : "a link to another file is not followed");
        }
        const hdf5_id object(H5Oopen(group_id, each.name.c_str(), H5P_DEFAULT), H5Oclose);
        if (!object.valid()) fail(name, fmt::format("cannot open: {}", hdf5_problem()));
        switch (H5Iget_type(object.get())) {
            case H5I_GROUP:
                return group(object.get(), name + "/", depth + 1);
            case H5I_DATASET:
                return dataset(object.get(), name);
            default:
                return;  // named datatypes have no data
        }
    }

    void skip(const std::string& name, std::string note) {
        tensor_info info;
        info.name = name;
        info.type = tensor::dtype::other;
        info.shape = {0};
        info.file = path_;
        info.note = std::move(note);
        found.push_back(std::move(info));
    }

    void dataset(hid_t id, const std::string& name) {
        const hdf5_id space(H5Dget_space(id), H5Sclose);
        const hdf5_id type(H5Dget_type(id), H5Tclose);
        const hdf5_id plist(H5Dget_create_plist(id), H5Pclose);
        if (!space.valid() || !type.valid() || !plist.valid()) {
            fail(name, fmt::format("cannot read its description: {}", hdf5_problem()));
        }
        if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
            return skip(name, "a dataset without a dataspace has no values");
        }
        std::array<hsize_t, H5S_MAX_RANK> extents{};
        const int rank = H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
        if (rank < 0) fail(name, fmt::format("cannot read its shape: {}", hdf5_problem()));

        tensor_info info;
        info.name = name;
        info.file = path_;
        info.shape.assign(extents.begin(), extents.begin() + rank);
        hdf5_meaning meaning = meaning_of(type.get(), as_);
        if (meaning.type == tensor::dtype::u8)
            meaning.type = read_as(tensor::dtype::u8, named_dtype(id));
        info.type = meaning.type;
        info.note = std::move(meaning.note);
        if (!count_bytes(info)) {
            fail(name, fmt::format("shape {} is too large", tensor::to_string(info.shape)));
        }
        if (info.note.empty()) check_storage(plist.get(), type.get(), info);
        const std::uint64_t occupied = H5Dget_storage_size(id);
        if (!info.note.empty()) {
            info.bytes = occupied;
        } else if (occupied < info.bytes) {  // compressed
            info.stored_bytes = occupied;
        }
        // A dataset may have several names.
        const std::string object = identity(id);
        const auto [at, is_new] = names_.emplace(object, name);
        if (!is_new && !object.empty()) info.tied_to = at->second;
        found.push_back(std::move(info));
    }

    // Data of other files is not read, nor a chunk that would exceed the bound on memory.
    void check_storage(hid_t plist, hid_t type, tensor_info& info) {
        const H5D_layout_t layout = H5Pget_layout(plist);
        if (layout == H5D_VIRTUAL || H5Pget_external_count(plist) > 0) {
            info.type = tensor::dtype::other;
            info.note = "its data is in other files, which are not followed";
            return;
        }
        if (layout != H5D_CHUNKED || H5Pget_nfilters(plist) == 0) return;
        std::array<hsize_t, H5S_MAX_RANK> chunk{};
        const int rank = H5Pget_chunk(plist, H5S_MAX_RANK, chunk.data());
        const tensor::shape extents(chunk.begin(), chunk.begin() + std::max(rank, 0));
        const auto elements = tensor::element_count(extents);
        if (!elements || *elements > hdf5_chunk_limit / H5Tget_size(type)) {
            info.type = tensor::dtype::other;
            info.note = fmt::format("its compressed chunks of {} elements are larger than {} MiB",
                                    tensor::to_string(extents), hdf5_chunk_limit >> 20);
        }
    }

    std::string path_;
    std::optional<tensor::dtype> as_;
    std::set<std::string> seen_;
    std::map<std::string, std::string> names_;  // of datasets, by identity
};

constexpr std::size_t smallest_cache = 1 << 20;  // HDF5's default

[[noreturn]] void fail(const tensor_info& info, const std::string& what) {
    input_error(fmt::format("{}: {}", what, hdf5_problem()), {info.file, info.name, {}});
}

// Space for one row of chunks, so that reading along rows unpacks every chunk once.
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
            input_error("read past the end of the tensor", {info_.file, info_.name, {}});
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

std::vector<tensor_info> hdf5_datasets(hid_t file, const std::string& path,
                                       std::optional<tensor::dtype> as) {
    tree_walk walk(path, as);
    const hdf5_id root(H5Oopen(file, "/", H5P_DEFAULT), H5Oclose);
    if (!root.valid()) {
        input_error(fmt::format("cannot open the root group: {}", hdf5_problem()), {path, {}, {}});
    }
    walk.group(root.get(), {}, 0);
    return std::move(walk.found);
}

std::map<std::string, std::string> hdf5_attributes(hid_t file) {
    std::map<std::string, std::string> texts;
    link_list list;
    hsize_t start = 0;
    // Attributes are optional: a file with damaged ones still has its tensors.
    H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_NATIVE, &start, gather_attribute, &list);
    if (list.failure) std::rethrow_exception(list.failure);
    for (const link& each : list.links) {
        const hdf5_id id(H5Aopen(file, each.name.c_str(), H5P_DEFAULT), H5Aclose);
        if (!id.valid()) continue;
        const bool keras = each.name == "model_config";
        auto text = attribute_text(id.get(), keras ? keras_config_limit : attribute_limit);
        if (text) texts.emplace(each.name, std::move(*text));
    }
    return texts;
}

std::unique_ptr<byte_source> open_hdf5_dataset(std::shared_ptr<const hdf5_id> file,
                                               const tensor_info& info) {
    return std::make_unique<dataset_source>(std::move(file), info);
}

}  // namespace mx::io

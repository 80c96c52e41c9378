// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

#include "libmx/files/zip_archive.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/foreign_formats.hpp"
#include "libmx/io/npy_header.hpp"
#include "libmx/io/readers.hpp"

namespace mx::io {
namespace {

constexpr std::string_view array_ending = ".npy";

class npz_reader final : public file_reader {
  public:
    npz_reader(shared_file file, const open_options& options)
        : file_reader(std::move(file)), archive_(zip_archive::open(file_)) {
        const auto as = parse_as(options.as);
        std::set<std::string> names;
        for (const zip_entry& entry : archive_->entries()) {
            if (!entry.name.ends_with(array_ending)) continue;
            const std::string name = entry.name.substr(0, entry.name.size() - array_ending.size());
            if (!names.insert(name).second) fail(name, "two arrays of this name");
            add(entry, name, as);
        }
        if (entries_.empty()) fail({}, foreign());
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        if (!info.note.empty()) fail(info.name, info.note);
        const npy_layout& layout = layouts_[index];
        shared_source bytes = archive_->bytes(entries_[index]);
        if (entries_[index].method == ZIP_CM_STORE) {
            // The checksum is over the header too.
            std::vector<std::byte> header(static_cast<std::size_t>(layout.data_start));
            bytes->read(0, header);
        }
        return npy_numbers(std::move(bytes), layout);
    }

  private:
    void add(const zip_entry& entry, const std::string& name, std::optional<tensor::dtype> as) {
        npy_layout layout;
        if (entry.encrypted) {
            layout.name = name;
            layout.file = file_->path();
            layout.type = tensor::dtype::other;
            layout.note = "encrypted entries are not read";
            layout.bytes = entry.packed;  // what it would unpack to is not known to be true
            layout.shape = {0};
        } else {
            const auto head = archive_->head(entry);
            layout = read_npy_header(*head, entry.size, as, file_->path(), name);
        }
        tensors_.push_back(layout);
        // Compressed, it takes fewer bytes than its values; the header is among them.
        if (entry.packed < layout.bytes) tensors_.back().stored_bytes = entry.packed;
        layouts_.push_back(std::move(layout));
        entries_.push_back(entry);
    }

    std::string foreign() const {
        for (const zip_entry& entry : archive_->entries()) {
            for (const foreign_archive& known : foreign_archives) {
                if (entry.name.ends_with(known.entry)) return complaint(known.name, known.advice);
            }
        }
        return "is a zip archive without .npy arrays";
    }

    std::shared_ptr<zip_archive> archive_;
    std::vector<zip_entry> entries_;
    std::vector<npy_layout> layouts_;
};

}  // namespace

bool looks_like_zip(const file_probe& probe) {
    return probe.head.starts_with("PK\x03\x04") || probe.head.starts_with("PK\x05\x06");
}

std::unique_ptr<reader> open_npz(shared_file file, const open_options& options) {
    return std::make_unique<npz_reader>(std::move(file), options);
}

}  // namespace mx::io

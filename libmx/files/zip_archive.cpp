// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/zip_archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/files/range_checksum.hpp"
#include "libmx/io/spool.hpp"

namespace mx::io {
namespace {

constexpr std::size_t piece_bytes = 1 << 20;
// Deflate cannot make more than 1032 bytes of one, so a larger promise is a lie.
constexpr std::uint64_t deflate_ratio = 1032;

[[noreturn]] void input_error(const std::string& file, const std::string& entry,
                              const std::string& message) {
    throw base::error(base::error_kind::input, message, {file, entry, {}});
}

}  // namespace

// One entry, front to back or (stored ones) by position.
class zip_stream {
  public:
    zip_stream(std::shared_ptr<zip_archive> archive, zip_entry entry, zip_flags_t flags)
        : archive_(std::move(archive)), entry_(std::move(entry)) {
        const std::lock_guard lock(archive_->mutex_);
        file_ = zip_fopen_index(archive_->zip_, entry_.index, flags);
        if (file_ == nullptr) archive_->fail(zip_get_error(archive_->zip_), entry_.name);
    }
    ~zip_stream() {
        const std::lock_guard lock(archive_->mutex_);
        zip_fclose(file_);
    }
    zip_stream(const zip_stream&) = delete;
    zip_stream& operator=(const zip_stream&) = delete;

    const zip_entry& entry() const { return entry_; }
    const std::string& path() const { return archive_->path(); }

    /// Reads up to out.size() bytes; fewer only at the end.
    std::size_t read(std::span<std::byte> out) {
        const std::lock_guard lock(archive_->mutex_);
        return read_locked(out);
    }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) {
        const std::lock_guard lock(archive_->mutex_);
        if (zip_fseek(file_, static_cast<zip_int64_t>(offset), SEEK_SET) != 0) {
            archive_->fail(zip_file_get_error(file_), entry_.name);
        }
        return read_locked(out);
    }

    /// Where the byte at `offset` of a stored entry lies in the archive: libzip does not say, but
    /// it asks for that byte there.
    std::uint64_t place_of(std::uint64_t offset) {
        std::byte one{};
        const std::lock_guard lock(archive_->mutex_);
        if (zip_fseek(file_, static_cast<zip_int64_t>(offset), SEEK_SET) != 0) {
            archive_->fail(zip_file_get_error(file_), entry_.name);
        }
        if (read_locked(std::span(&one, 1)) != 1) {
            input_error(path(), entry_.name, "the entry ends early; the archive is damaged");
        }
        return archive_->last_read_;
    }

  private:
    std::size_t read_locked(std::span<std::byte> out) {
        std::size_t done = 0;
        while (done < out.size()) {
            const zip_int64_t got = zip_fread(file_, out.data() + done, out.size() - done);
            if (got < 0) archive_->fail(zip_file_get_error(file_), entry_.name);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

    std::shared_ptr<zip_archive> archive_;
    zip_entry entry_;
    zip_file_t* file_ = nullptr;
};

namespace {

[[noreturn]] void ends_early(const zip_stream& stream) {
    input_error(stream.path(), stream.entry().name, "the entry ends early; the archive is damaged");
}

class entry_head final : public byte_source {
  public:
    entry_head(std::shared_ptr<zip_archive> archive, const zip_entry& entry)
        : stream_(std::move(archive), entry, 0) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        const auto begin = static_cast<std::size_t>(offset);
        const std::size_t known = seen_.size();
        if (begin + out.size() > known) {
            seen_.resize(begin + out.size());
            if (stream_.read(std::span(seen_).subspan(known)) != seen_.size() - known) {
                ends_early(stream_);
            }
        }
        std::copy_n(seen_.begin() + static_cast<std::ptrdiff_t>(begin), out.size(), out.begin());
    }

  private:
    mutable zip_stream stream_;
    mutable std::vector<std::byte> seen_;
};

class stored_entry final : public byte_source {
  public:
    // As if it were compressed data: libzip then neither unpacks nor checks, but seeks.
    stored_entry(std::shared_ptr<zip_archive> archive, const zip_entry& entry)
        : stream_(std::move(archive), entry, ZIP_FL_COMPRESSED), checksum_(entry.size, entry.crc) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        if (stream_.read_at(offset, out) != out.size()) ends_early(stream_);
        if (!checksum_.add(offset, out)) {
            input_error(stream_.path(), stream_.entry().name,
                        "the entry's checksum is wrong; the archive is damaged");
        }
    }

  private:
    mutable zip_stream stream_;
    mutable range_checksum checksum_;
};

class packed_entry final : public byte_source {
  public:
    packed_entry(std::shared_ptr<zip_archive> archive, const zip_entry& entry)
        : archive_(std::move(archive)), entry_(entry) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        {
            const std::lock_guard lock(mutex_);
            if (!result_) result_ = unpack();
        }
        result_->read(offset, out);
    }

  private:
    std::unique_ptr<spool> unpack() const {
        auto out = std::make_unique<spool>(entry_.size);
        zip_stream stream(archive_, entry_, 0);
        std::vector<std::byte> piece(piece_bytes);
        for (std::uint64_t at = 0; at < entry_.size;) {
            const std::span<std::byte> part = std::span(piece).first(
                static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), entry_.size - at)));
            if (stream.read(part) != part.size()) ends_early(stream);
            out->write(at, part);
            at += part.size();
        }
        // libzip compares the checksum when it is asked for more than there is.
        if (stream.read(std::span(piece).first(1)) != 0) {
            input_error(archive_->path(), entry_.name, "the entry is longer than the archive says");
        }
        return out;
    }

    std::shared_ptr<zip_archive> archive_;
    zip_entry entry_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<spool> result_;
};

}  // namespace

std::shared_ptr<zip_archive> zip_archive::open(shared_file file) {
    const std::uint64_t size = file->size();
    return open(std::move(file), 0, size);
}

std::shared_ptr<zip_archive> zip_archive::open(shared_file file, std::uint64_t begin,
                                               std::uint64_t size) {
    if (begin > file->size() || size > file->size() - begin) {
        input_error(file->path(), {},
                    fmt::format("{} bytes from byte {} on are beyond its end", size, begin));
    }
    std::shared_ptr<zip_archive> archive(new zip_archive(std::move(file), begin, size));
    archive->read_directory();
    return archive;
}

zip_archive::~zip_archive() {
    if (zip_ != nullptr) zip_discard(zip_);
    zip_error_fini(&source_error_);
}

void zip_archive::read_directory() {
    zip_error_t problem;
    zip_error_init(&problem);
    zip_error_init(&source_error_);
    zip_source_t* source = zip_source_function_create(&zip_archive::serve, this, &problem);
    if (source != nullptr) {
        zip_ = zip_open_from_source(source, ZIP_RDONLY, &problem);
        if (zip_ == nullptr) zip_source_free(source);
    }
    if (zip_ == nullptr) {
        const std::string text = zip_error_strerror(&problem);
        zip_error_fini(&problem);
        if (read_failure_) std::rethrow_exception(read_failure_);
        input_error(path(), {},
                    fmt::format("is not a sound zip archive ({}); it may be cut short", text));
    }
    zip_error_fini(&problem);
    const zip_int64_t count = zip_get_num_entries(zip_, 0);
    std::uint64_t left = size_;
    for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(std::max<zip_int64_t>(count, 0)); ++i) {
        zip_stat_t status;
        if (zip_stat_index(zip_, i, ZIP_FL_ENC_RAW, &status) != 0) fail(zip_get_error(zip_), {});
        zip_entry entry;
        entry.name = status.name != nullptr ? status.name : "";
        entry.index = i;
        entry.size = status.size;
        entry.packed = status.comp_size;
        entry.crc = status.crc;
        entry.method = status.comp_method;
        entry.encrypted = status.encryption_method != ZIP_EM_NONE;
        // Many entries over the same bytes are how a small archive unpacks to any size.
        if (entry.packed > left) {
            input_error(path(), entry.name,
                        "the entries overlap: up to this one they are larger than the archive");
        }
        left -= entry.packed;
        if (entry.method == ZIP_CM_DEFLATE && entry.size / deflate_ratio > entry.packed) {
            input_error(path(), entry.name,
                        fmt::format("{} packed bytes cannot hold the {} that the archive says",
                                    entry.packed, entry.size));
        }
        if (entry.method == ZIP_CM_STORE && entry.size != entry.packed && !entry.encrypted) {
            input_error(path(), entry.name, "a stored entry has two different sizes");
        }
        entries_.push_back(std::move(entry));
    }
}

std::unique_ptr<byte_source> zip_archive::head(const zip_entry& entry) {
    return std::make_unique<entry_head>(shared_from_this(), entry);
}

std::unique_ptr<byte_source> zip_archive::bytes(const zip_entry& entry) {
    if (entry.method == ZIP_CM_STORE) {
        return std::make_unique<stored_entry>(shared_from_this(), entry);
    }
    return std::make_unique<packed_entry>(shared_from_this(), entry);
}

std::unique_ptr<byte_source> zip_archive::plain_bytes(const zip_entry& entry,
                                                      const std::string& tensor) {
    if (entry.method != ZIP_CM_STORE || entry.encrypted) return bytes(entry);
    if (entry.size == 0) return file_window(file_, begin_, 0, tensor);
    zip_stream stream(shared_from_this(), entry, ZIP_FL_COMPRESSED);
    const std::uint64_t first = stream.place_of(0);
    // A library that reads ahead in some other way would show here.
    if (stream.place_of(entry.size - 1) != first + (entry.size - 1)) return bytes(entry);
    return file_window(file_, begin_ + first, entry.size, tensor);
}

void zip_archive::fail(zip_error_t* problem, const std::string& entry) {
    if (read_failure_) std::rethrow_exception(std::exchange(read_failure_, nullptr));
    if (zip_error_code_zip(problem) == ZIP_ER_CRC) {
        input_error(path(), entry, "the entry's checksum is wrong; the archive is damaged");
    }
    input_error(path(), entry, fmt::format("cannot unpack: {}", zip_error_strerror(problem)));
}

// libzip's view of the file. Positions are ours, so archives share no file pointer.
zip_int64_t zip_archive::serve(void* self, void* data, zip_uint64_t length,
                               zip_source_cmd_t command) {
    auto& archive = *static_cast<zip_archive*>(self);
    switch (command) {
        case ZIP_SOURCE_OPEN:
            archive.position_ = 0;
            return 0;
        case ZIP_SOURCE_CLOSE:
        case ZIP_SOURCE_FREE:
            return 0;
        case ZIP_SOURCE_READ: {
            const std::uint64_t left = archive.size_ - archive.position_;
            const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, length));
            archive.last_read_ = archive.position_;
            try {
                archive.file_->read(archive.begin_ + archive.position_,
                                    std::span(static_cast<std::byte*>(data), count));
            } catch (...) {  // not through C code; fail() throws it again
                archive.read_failure_ = std::current_exception();
                zip_error_set(&archive.source_error_, ZIP_ER_READ, 0);
                return -1;
            }
            archive.position_ += count;
            return static_cast<zip_int64_t>(count);
        }
        case ZIP_SOURCE_SEEK: {
            const zip_int64_t to = zip_source_seek_compute_offset(
                archive.position_, archive.size_, data, length, &archive.source_error_);
            if (to < 0) return -1;
            archive.position_ = static_cast<std::uint64_t>(to);
            return 0;
        }
        case ZIP_SOURCE_TELL:
            return static_cast<zip_int64_t>(archive.position_);
        case ZIP_SOURCE_STAT: {
            auto* status = static_cast<zip_stat_t*>(data);
            zip_stat_init(status);
            status->size = archive.size_;
            status->valid = ZIP_STAT_SIZE;
            return sizeof(*status);
        }
        case ZIP_SOURCE_ERROR:
            return zip_error_to_data(&archive.source_error_, data, length);
        case ZIP_SOURCE_SUPPORTS:
            return zip_source_make_command_bitmap(
                ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
                ZIP_SOURCE_SUPPORTS, -1);
        default:
            zip_error_set(&archive.source_error_, ZIP_ER_OPNOTSUPP, 0);
            return -1;
    }
}

}  // namespace mx::io

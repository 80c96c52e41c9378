// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/zip_archive.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "libmx/files/zip_directory.hpp"
#include "libmx/io/spool.hpp"

namespace mx::io {
namespace {

constexpr std::size_t unpacked_piece = 1 << 20;
// Deflate makes at most 1032 bytes of one, so a larger stated size is wrong.
constexpr std::uint64_t deflate_ratio = 1032;

[[noreturn]] void refuse_entry(const std::string& file, const std::string& entry,
                               const std::string& message) {
    input_error(message, {file, entry, {}});
}

constexpr std::size_t parts_limit = 1 << 16;

std::uint32_t crc_of(std::span<const std::byte> bytes) {
    uLong crc = ::crc32(0, nullptr, 0);
    while (!bytes.empty()) {
        const std::size_t count = std::min<std::size_t>(bytes.size(), 1 << 30);
        crc = ::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(count));
        bytes = bytes.subspan(count);
    }
    return static_cast<std::uint32_t>(crc);
}

std::uint32_t joined(std::uint32_t before, std::uint32_t after, std::uint64_t after_bytes) {
    return static_cast<std::uint32_t>(
        ::crc32_combine(before, after, static_cast<z_off_t>(after_bytes)));
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
        return read_locked_at(offset, out);
    }

    /// The position in the archive of the byte at `offset` of a stored entry: libzip does not
    /// report it, but seeks to it.
    std::uint64_t place_of(std::uint64_t offset) {
        std::byte one{};
        const std::lock_guard lock(archive_->mutex_);
        if (read_locked_at(offset, std::span(&one, 1)) != 1) {
            refuse_entry(path(), entry_.name, "the entry ends early; the archive is damaged");
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

    std::size_t read_locked_at(std::uint64_t offset, std::span<std::byte> out) {
        if (zip_fseek(file_, static_cast<zip_int64_t>(offset), SEEK_SET) != 0) {
            archive_->fail(zip_file_get_error(file_), entry_.name);
        }
        return read_locked(out);
    }

    std::shared_ptr<zip_archive> archive_;
    zip_entry entry_;
    zip_file_t* file_ = nullptr;
};

namespace {

[[noreturn]] void ends_early(const zip_stream& stream) {
    refuse_entry(stream.path(), stream.entry().name,
                 "the entry ends early; the archive is damaged");
}

std::unique_ptr<spool> unpacked_entry(const std::shared_ptr<zip_archive>& archive,
                                      const zip_entry& entry) {
    auto out = std::make_unique<spool>(entry.size);
    zip_stream stream(archive, entry, 0);
    std::vector<std::byte> piece(unpacked_piece);
    for (std::uint64_t at = 0; at < entry.size;) {
        const std::span<std::byte> part = std::span(piece).first(
            static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), entry.size - at)));
        if (stream.read(part) != part.size()) ends_early(stream);
        out->write(at, part);
        at += part.size();
    }
    // libzip compares the checksum when it is asked to read beyond the end.
    if (stream.read(std::span(piece).first(1)) != 0) {
        refuse_entry(archive->path(), entry.name, "the entry is longer than the archive says");
    }
    return out;
}

}  // namespace

std::shared_ptr<zip_archive> zip_archive::open(shared_file file, std::uint64_t begin,
                                               std::optional<std::uint64_t> bytes) {
    const std::uint64_t size = bytes.value_or(file->size());
    if (begin > file->size() || size > file->size() - begin) {
        refuse_entry(file->path(), {},
                     fmt::format("{} bytes from byte {} on are beyond its end", size, begin));
    }
    std::shared_ptr<zip_archive> archive(new zip_archive(std::move(file), begin, size));
    check_zip_directory(*archive->file_, begin, size);
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
        refuse_entry(path(), {},
                     fmt::format("is not a valid zip archive ({}); it may be cut short", text));
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
            refuse_entry(path(), entry.name,
                         "the entries overlap: up to this one they are larger than the archive");
        }
        left -= entry.packed;
        if (entry.method == ZIP_CM_DEFLATE && entry.size / deflate_ratio > entry.packed) {
            refuse_entry(path(), entry.name,
                         fmt::format("{} packed bytes cannot hold the {} that the archive says",
                                     entry.packed, entry.size));
        }
        if (entry.method == ZIP_CM_STORE && entry.size != entry.packed && !entry.encrypted) {
            refuse_entry(path(), entry.name, "a stored entry has two different sizes");
        }
        entries_.push_back(std::move(entry));
    }
}

std::unique_ptr<byte_source> zip_archive::head(const zip_entry& entry) {
    const auto stream = std::make_shared<zip_stream>(shared_from_this(), entry, 0);
    return make_source([stream, seen = std::vector<std::byte>()](std::uint64_t offset,
                                                                 std::span<std::byte> out) mutable {
        const auto begin = static_cast<std::size_t>(offset);
        const std::size_t known = seen.size();
        if (begin + out.size() > known) {
            seen.resize(begin + out.size());
            if (stream->read(std::span(seen).subspan(known)) != seen.size() - known) {
                ends_early(*stream);
            }
        }
        std::copy_n(seen.begin() + static_cast<std::ptrdiff_t>(begin), out.size(), out.begin());
    });
}

std::unique_ptr<byte_source> zip_archive::bytes(const zip_entry& entry) {
    if (entry.method != ZIP_CM_STORE) {
        return spooled(
            [archive = shared_from_this(), entry] { return unpacked_entry(archive, entry); });
    }
    // As if it were compressed data: libzip then neither unpacks nor checks, but seeks.
    const auto stream = std::make_shared<zip_stream>(shared_from_this(), entry, ZIP_FL_COMPRESSED);
    const auto checksum = std::make_shared<range_checksum>(entry.size, entry.crc);
    return make_source([=](std::uint64_t offset, std::span<std::byte> out) {
        if (stream->read_at(offset, out) != out.size()) ends_early(*stream);
        if (!checksum->add(offset, out)) {
            refuse_entry(stream->path(), stream->entry().name,
                         "the entry's checksum is wrong; the archive is damaged");
        }
    });
}

std::unique_ptr<byte_source> zip_archive::plain_bytes(const zip_entry& entry,
                                                      const std::string& tensor) {
    if (entry.method != ZIP_CM_STORE || entry.encrypted) return bytes(entry);
    if (entry.size == 0) return file_window(file_, begin_, 0, tensor);
    zip_stream stream(shared_from_this(), entry, ZIP_FL_COMPRESSED);
    const std::uint64_t first = stream.place_of(0);
    // Detects a library that reads ahead in another way.
    if (stream.place_of(entry.size - 1) != first + (entry.size - 1)) return bytes(entry);
    return file_window(file_, begin_ + first, entry.size, tensor);
}

void zip_archive::fail(zip_error_t* problem, const std::string& entry) {
    if (read_failure_) std::rethrow_exception(std::exchange(read_failure_, nullptr));
    if (zip_error_code_zip(problem) == ZIP_ER_CRC) {
        refuse_entry(path(), entry, "the entry's checksum is wrong; the archive is damaged");
    }
    refuse_entry(path(), entry, fmt::format("cannot unpack: {}", zip_error_strerror(problem)));
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

bool range_checksum::add(std::uint64_t offset, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    if (settled_) return true;
    const std::uint64_t end = offset + bytes.size();
    std::uint64_t at = offset;
    while (at < end) {
        // Skip what is known, then take what lies before the next known part.
        auto next = parts_.upper_bound(at);
        if (next != parts_.begin() && std::prev(next)->second.end > at) {
            at = std::prev(next)->second.end;
            continue;
        }
        const std::uint64_t stop = next == parts_.end() ? end : std::min(end, next->first);
        const auto fresh = bytes.subspan(static_cast<std::size_t>(at - offset),
                                         static_cast<std::size_t>(stop - at));
        insert(at, {stop, crc_of(fresh)});
        at = stop;
    }
    if (parts_.size() > parts_limit) {
        settled_ = true;
        parts_.clear();
        return true;
    }
    const bool whole = size_ == 0 || (parts_.size() == 1 && parts_.begin()->first == 0 &&
                                      parts_.begin()->second.end == size_);
    if (!whole) return true;
    settled_ = true;
    return size_ == 0 ? expected_ == 0 : parts_.begin()->second.crc == expected_;
}

void range_checksum::insert(std::uint64_t begin, part added) {
    const auto after = parts_.find(added.end);
    if (after != parts_.end()) {
        added = {after->second.end,
                 joined(added.crc, after->second.crc, after->second.end - after->first)};
        parts_.erase(after);
    }
    const auto next = parts_.lower_bound(begin);
    if (next != parts_.begin() && std::prev(next)->second.end == begin) {
        part& before = std::prev(next)->second;
        before = {added.end, joined(before.crc, added.crc, added.end - begin)};
    } else {
        parts_.emplace(begin, added);
    }
}

}  // namespace mx::io

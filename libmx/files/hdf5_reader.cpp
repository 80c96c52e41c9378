// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/hdf5_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "libmx/files/hdf5_datasets.hpp"
#include "libmx/files/hdf5_handle.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/keras_layers.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remote.hpp"

namespace mx::io {
namespace {

enum service_request : std::uint64_t {
    list,
    attributes,
    open_dataset,
    read_dataset,
    close_dataset
};

// The child's side.
class hdf5_service {
  public:
    hdf5_service(std::span<std::byte> image, std::string path, std::optional<tensor::dtype> as)
        : path_(std::move(path)), as_(as) {
        hdf5_after_fork();
#if H5_VERSION_GE(1, 8, 15)
        // Filters that are not the library's own would be code from an unknown folder.
        H5PLset_loading_state(0);
#endif
        hdf5_id file = open_hdf5_image(image);
        if (!file.valid()) {
            input_error(fmt::format("is not a valid HDF5 file: {}", hdf5_problem()),
                        {path_, {}, {}});
        }
        file_ = std::make_shared<const hdf5_id>(std::move(file));
    }

    std::string answer(std::string_view message, std::span<std::byte> window) {
        message_reader from(message);
        switch (from.number()) {
            case list:
                datasets_ = hdf5_datasets(file_->get(), path_, as_);
                return encode_list();
            case attributes:
                return encode_attributes();
            case open_dataset: {
                const std::uint64_t index = from.number();
                opened& entry = opened_[index];
                if (entry.users == 0) {
                    entry.source =
                        open_hdf5_dataset(file_, datasets_.at(static_cast<std::size_t>(index)));
                }
                ++entry.users;
                return {};
            }
            case read_dataset: {
                const opened& entry = opened_.at(from.number());
                const std::uint64_t offset = from.number();
                const std::uint64_t count = from.number();
                entry.source->read(offset, window.first(static_cast<std::size_t>(count)));
                return {};
            }
            default: {
                const auto entry = opened_.find(from.number());
                if (entry != opened_.end() && --entry->second.users == 0) opened_.erase(entry);
                return {};
            }
        }
    }

  private:
    struct opened {
        std::unique_ptr<byte_source> source;
        int users = 0;
    };

    std::string encode_list() const {
        message_writer to;
        to.number(datasets_.size());
        for (const tensor_info& info : datasets_) {
            to.text(info.name).number(static_cast<std::uint64_t>(info.type)).text(info.note);
            to.number(info.bytes).number(info.stored_bytes).text(info.tied_to);
            to.number(info.shape.size());
            for (const std::uint64_t extent : info.shape) to.number(extent);
        }
        return to.finish();
    }

    std::string encode_attributes() const {
        message_writer to;
        const auto texts = hdf5_attributes(file_->get());
        to.number(texts.size());
        for (const auto& [key, value] : texts) to.text(key).text(value);
        return to.finish();
    }

    std::string path_;
    std::optional<tensor::dtype> as_;
    std::shared_ptr<const hdf5_id> file_;
    std::vector<tensor_info> datasets_;
    std::map<std::uint64_t, opened> opened_;
};

// The caller's side of a dataset.
class remote_dataset final : public byte_source {
  public:
    remote_dataset(std::shared_ptr<const isolated_worker> worker, std::size_t index,
                   const tensor_info& info)
        : worker_(std::move(worker)), index_(index), info_(info) {
        worker_->ask(message_writer().number(open_dataset).number(index_).finish());
    }
    ~remote_dataset() override {
        try {
            worker_->ask(message_writer().number(close_dataset).number(index_).finish());
        } catch (...) {
            return;  // without the child there is nothing to close
        }
    }

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        if (offset > info_.bytes || out.size() > info_.bytes - offset) {
            input_error("read past the end of the tensor", {info_.file, info_.name, {}});
        }
        while (!out.empty()) {
            const auto part = out.first(std::min(out.size(), isolated_worker::window_bytes));
            message_writer request;
            request.number(read_dataset).number(index_).number(offset).number(part.size());
            worker_->ask(request.finish(), part);
            offset += part.size();
            out = out.subspan(part.size());
        }
    }

  private:
    std::shared_ptr<const isolated_worker> worker_;
    std::size_t index_;
    tensor_info info_;
};

}  // namespace

std::shared_ptr<const isolated_worker> start_hdf5(const shared_file& file,
                                                  std::optional<tensor::dtype> as,
                                                  const worker_limits& limits) {
    const hdf5_scope scope;  // no other thread is inside the library while the child is made
    // Mapped before the fork, so that it does not count as memory of the child.
    const file_image image(*file);
    const auto make = [&]() -> isolated_worker::service {
        const auto service = std::make_shared<hdf5_service>(image.bytes(), file->path(), as);
        return [service](std::string_view message, std::span<std::byte> window) {
            return service->answer(message, window);
        };
    };
    return std::make_shared<const isolated_worker>("the HDF5 library", file->path(), limits, make);
}

std::vector<tensor_info> list_hdf5(const isolated_worker& worker, const std::string& path) {
    const std::string answer = worker.ask(message_writer().number(list).finish());
    message_reader from(answer);
    std::vector<tensor_info> datasets(static_cast<std::size_t>(from.count()));
    for (tensor_info& info : datasets) {
        info.name = from.text();
        info.type = static_cast<tensor::dtype>(
            std::min<std::uint64_t>(from.number(), static_cast<int>(tensor::dtype::other)));
        info.note = from.text();
        const std::uint64_t bytes = from.number();
        info.stored_bytes = from.number();
        info.tied_to = from.text();
        info.shape.resize(static_cast<std::size_t>(from.count()));
        for (std::uint64_t& extent : info.shape) extent = from.number();
        info.file = path;
        if (!count_bytes(info) || (info.note.empty() && info.bytes != bytes)) {
            input_error("is listed with a wrong size", {path, info.name, {}});
        }
        info.bytes = bytes;
    }
    return datasets;
}

std::unique_ptr<byte_source> open_hdf5_source(std::shared_ptr<const isolated_worker> worker,
                                              std::size_t index, const tensor_info& info) {
    return std::make_unique<remote_dataset>(std::move(worker), index, info);
}

namespace {

std::map<std::string, std::string> text_attributes(const isolated_worker& worker) {
    const std::string answer = worker.ask(message_writer().number(attributes).finish());
    message_reader from(answer);
    std::map<std::string, std::string> texts;
    for (std::uint64_t left = from.count(); left > 0; --left) {
        std::string key = from.text();
        texts.emplace(std::move(key), from.text());
    }
    return texts;
}

// All work of the HDF5 library for a reader happens in a child process: a damaged file can make it
// loop for ever, use all memory, or crash.
class hdf5_reader final : public file_reader {
  public:
    hdf5_reader(shared_file file, const open_options& options)
        : file_reader(std::move(file)), as_(parse_as(options.as)), worker_(start_hdf5(file_, as_)) {
        tensors_ = list_hdf5(*worker_, file_->path());
        limit_repetition();
        if (!looks_like_keras_names(tensors_)) return;
        const auto config = metadata().find("model_config");
        state_keras_contractions(tensors_, config == metadata().end() ? "" : config->second);
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        if (!info.note.empty()) fail(info.name, info.note);
        return open_hdf5_source(worker_, index, info);
    }
    // Read on request, by another child: damaged attributes are most likely to crash the library,
    // and a file that has them still has its tensors.
    const std::map<std::string, std::string>& metadata() const override {
        std::call_once(asked_, [this] {
            try {
                attributes_ = text_attributes(*start_hdf5(file_, as_));
            } catch (const base::error&) {
                attributes_.clear();
            }
        });
        return attributes_;
    }

  private:
    std::optional<tensor::dtype> as_;
    std::shared_ptr<const isolated_worker> worker_;
    mutable std::once_flag asked_;
    mutable std::map<std::string, std::string> attributes_;
};

}  // namespace

bool looks_like_hdf5(const file_probe& probe) {
    constexpr std::string_view mark = "\x89HDF\r\n\x1a\n";
    if (probe.head.starts_with(mark)) return true;
    if (is_remote(probe.file->path())) return false;  // each look costs, and it could not be read
    // A user block of a power of two may come before.
    for (std::uint64_t at = 512; at <= probe.file->size() / 2; at *= 2) {
        std::array<char, 8> found{};
        probe.file->read(at, std::as_writable_bytes(std::span(found)));
        if (std::string_view(found.data(), found.size()) == mark) return true;
    }
    return false;
}

std::unique_ptr<reader> open_hdf5(shared_file file, const open_options& options) {
    static_cast<void>(file->descriptor());  // refused here and not by the child
    return std::make_unique<hdf5_reader>(std::move(file), options);
}

}  // namespace mx::io

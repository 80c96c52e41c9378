// SPDX-License-Identifier: Apache-2.0
// One reader on arbitrary bytes: opens them in its format, without probing, and reads from every
// tensor. Only base::error may be thrown. MX_FUZZ_SAMPLES is a folder with files of all formats.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/engine/views.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/widen.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/read_tensor.hpp"
#include "tests/fuzz/reader_target.hpp"

namespace mx::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t tensors_read = 32;
constexpr std::uint64_t bytes_read = 4096;

// A folder that contains the samples of all formats, so that names of shards can be found.
class scratch {
  public:
    scratch() {
        std::string name = (fs::temp_directory_path() / "mx-fuzz.XXXXXX").string();
        require(::mkdtemp(name.data()) != nullptr, "a scratch directory");
        path_ = name;
        for (const auto& entry : fs::recursive_directory_iterator(MX_FUZZ_SAMPLES)) {
            if (!entry.is_regular_file()) continue;
            fs::copy_file(entry.path(), path_ / entry.path().filename(),
                          fs::copy_options::skip_existing);
        }
    }
    ~scratch() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;

    /// Stores the bytes in memory under a name in the folder.
    std::string write(std::string_view ending, const std::uint8_t* data, std::size_t size) {
        if (descriptor_ < 0) {
            descriptor_ = ::memfd_create("input", 0);
            require(descriptor_ >= 0, "a file in memory");
            input_ = path_ / fmt::format("input{}", ending);
            fs::create_symlink(fmt::format("/proc/self/fd/{}", descriptor_), input_);
        }
        require(::ftruncate(descriptor_, 0) == 0, "an empty file");
        require(::pwrite(descriptor_, data, size, 0) == static_cast<ssize_t>(size), "its bytes");
        return input_.string();
    }

  private:
    fs::path path_;
    fs::path input_;
    int descriptor_ = -1;
};

void read_some(const io::byte_source& source, const io::tensor_info& info, std::uint64_t at) {
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(std::min(bytes_read, info.bytes - std::min(at, info.bytes))));
    source.read(at, bytes);
    const int bits = tensor::row_of(info.type).bits;
    if (tensor::row_of(info.type).to_f32 == tensor::widening::none || at != 0) return;
    std::vector<float> values(bytes.size() * 8 / static_cast<std::size_t>(bits));
    io::widen(info.type, bytes, 0, values);
}

void read_ends(const io::reader& model, std::size_t index) {
    const io::tensor_info& info = model.tensors()[index];
    const auto elements = tensor::element_count(info.shape);
    require(elements && *elements == info.elements, "elements are those of the shape");
    const auto source = model.open(index);
    read_some(*source, info, 0);
    if (info.bytes > bytes_read) read_some(*source, info, info.bytes - bytes_read);
}

// The same tensors decoded, if arrays belong together.
void read_views(std::unique_ptr<io::reader> model) {
    std::vector<std::unique_ptr<io::reader>> files;
    files.push_back(std::move(model));
    engine::view_request request;
    for (const bool swizzled : {false, true}) {
        request.swizzled = swizzled;
        const auto view = engine::make_view(files, request);
        if (!view) return;
        for (std::size_t i = 0; i < std::min(view->tensors().size(), tensors_read); ++i) {
            try {
                read_ends(*view, i);
            } catch (const base::error&) {  // refused, which is an answer
            }
        }
    }
}

}  // namespace

bool belongs(const std::string& path) {
    const io::shared_file file = io::input_file::open(path);
    const std::string head = file->head(512);
    for (const io::reader_format& f : io::reader_formats) {
        if (f.recognises != nullptr && f.recognises({file, head})) {
            return f.name == format;
        }
    }
    return false;
}

void try_input(const std::uint8_t* data, std::size_t size) {
    static scratch place;
    for (const io::reader_format& f : io::reader_formats) {
        if (f.name != format) continue;
        io::open_options options;
        if (f.recognises == nullptr) {  // raw binary is what the user says
            options.shape = "3x5";
            options.dtype = "BF16";
        }
        try {
            auto model = f.open(io::input_file::open(place.write(f.ending, data, size)), options);
            check_occupied(*model);
            for (std::size_t i = 0; i < std::min(model->tensors().size(), tensors_read); ++i) {
                try {
                    read_ends(*model, i);
                } catch (const base::error&) {  // refused, which is an answer
                }
            }
            read_views(std::move(model));
        } catch (const base::error&) {  // likewise
        }
    }
}

}  // namespace mx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    mx::fuzz::try_input(data, size);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// What mx takes from the child process of the HDF5 library: lists of datasets that are nearly
// right, with up to two wrong fields. Only base::error may be thrown; a sound list must be read as
// it was written. The library itself would fall over most wrong files: that is why it has the
// child.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/files/hdf5_reader.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"
#include "tests/fuzz/author.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/reader_target.hpp"

namespace mx::fuzz {
namespace {

// An answer, in memory that this process and its child share.
struct answer {
    std::size_t size;
    char bytes[(1 << 20) - sizeof(std::size_t)];
};

answer& shared_answer() {
    static answer* const only = [] {
        void* at = ::mmap(nullptr, sizeof(answer), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        require(at != MAP_FAILED, "shared memory");
        return static_cast<answer*>(at);
    }();
    return *only;
}

// A child in place of the library's: it answers whatever the input chose.
const io::isolated_worker& child() {
    static const io::isolated_worker only(
        "the HDF5 library", "input.h5", {},
        [from = &shared_answer()]() -> io::isolated_worker::service {
            return [from](std::string_view, std::span<std::byte>) {
                return std::string(from->bytes, from->size);
            };
        });
    return only;
}

std::string encoded(author& by, const std::string& right) {
    const std::string text = by.text(right);
    return by.number_in<std::uint64_t>(text.size()) + text;
}

std::string encoded(author& by, const io::tensor_info& t) {
    std::string extents;
    for (const std::uint64_t e : t.shape) extents += by.part(by.number_in<std::uint64_t>(e));
    return encoded(by, t.name) + by.number_in<std::uint64_t>(static_cast<std::uint64_t>(t.type)) +
           encoded(by, t.note) + by.number_in<std::uint64_t>(t.bytes) +
           by.number_in<std::uint64_t>(t.stored_bytes) + encoded(by, t.tied_to) +
           by.number_in<std::uint64_t>(t.shape.size()) + extents;
}

io::tensor_info any_dataset(choices& from, std::string name) {
    constexpr tensor::dtype types[] = {tensor::dtype::f32, tensor::dtype::f16, tensor::dtype::i8,
                                       tensor::dtype::f64, tensor::dtype::boolean};
    io::tensor_info t;
    t.name = std::move(name);
    t.type = from.of(types);
    for (std::uint64_t axes = from.below(4); axes > 0; --axes) t.shape.push_back(from.extent());
    t.bytes = tensor::stored_bytes(t.type, *tensor::element_count(t.shape));
    t.stored_bytes = from.once_in(2) ? 0 : t.bytes;
    if (from.once_in(4)) t.tied_to = "w1";
    if (from.once_in(4)) t.note = "is in another file";
    return t;
}

}  // namespace

const std::string_view format = "hdf5_answers";

bool belongs(const std::string&) { return true; }

void try_input(const std::uint8_t* data, std::size_t size) {
    choices from(data, size);
    author by(from);
    std::vector<io::tensor_info> written;
    for (std::uint64_t left = 1 + from.below(4); left > 0; --left) {
        written.push_back(any_dataset(from, fmt::format("w{}", left)));
    }
    std::string list;
    for (const io::tensor_info& t : written) list += by.part(encoded(by, t));
    list = by.file(by.number_in<std::uint64_t>(written.size()) + list);
    answer& to = shared_answer();
    to.size = std::min(list.size(), sizeof to.bytes);
    std::copy_n(list.data(), to.size, to.bytes);
    std::vector<io::tensor_info> found;
    try {
        found = io::list_hdf5(child(), "input.h5");
    } catch (const base::error&) {  // refused, which is an answer
        require(!by.sound(), "a sound list is read");
        return;
    }
    for (const io::tensor_info& t : found) {
        require(!t.note.empty() || t.bytes == tensor::byte_count(t.type, t.elements),
                "bytes are those of the elements");
    }
    if (!by.sound()) return;
    const auto fields = [](const io::tensor_info& t) {
        return std::tie(t.name, t.type, t.note, t.bytes, t.stored_bytes, t.tied_to, t.shape);
    };
    require(std::ranges::equal(found, written, {}, fields, fields), "as it was written");
}

}  // namespace mx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    mx::fuzz::try_input(data, size);
    return 0;
}

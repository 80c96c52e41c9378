// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/memory_tensor.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::io {
namespace {

struct array_in_memory {
    const std::byte* data;
    tensor::shape extents;
    std::vector<std::int64_t> strides;  // empty: C order
    std::size_t width;                  // bytes of an element; 0 for less than one
};

class array_source final : public byte_source {
  public:
    explicit array_source(const array_in_memory& of) : of_(of) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        if (out.empty()) return;
        if (of_.strides.empty()) {
            std::memcpy(out.data(), of_.data + offset, out.size());
            return;
        }
        read_whole_elements(
            offset, out, of_.width,
            [this](std::uint64_t first, std::span<std::byte> bytes) { gather(first, bytes); });
    }

    const std::byte* in_memory() const override {
        const bool aligned =
            of_.width != 0 && reinterpret_cast<std::uintptr_t>(of_.data) % of_.width == 0;
        return of_.strides.empty() && aligned ? of_.data : nullptr;
    }

  private:
    void gather(std::uint64_t first, std::span<std::byte> out) const {
        switch (of_.width) {
            case 1:
                return gather_as<std::uint8_t>(first, out);
            case 2:
                return gather_as<std::uint16_t>(first, out);
            case 4:
                return gather_as<std::uint32_t>(first, out);
            case 8:
                return gather_as<std::uint64_t>(first, out);
            default:
                return gather_as<std::array<std::uint64_t, 2>>(first, out);
        }
    }

    // Run by run along the last axis; where whole runs are asked for, several of them together.
    template <class T>
    void gather_as(std::uint64_t first, std::span<std::byte> out) const {
        const std::size_t axes = of_.extents.size();
        const std::uint64_t row = of_.extents[axes - 1];
        std::vector<std::uint64_t> at(axes);
        std::int64_t from = 0;
        for (std::size_t k = axes; k-- > 0;) {
            at[k] = first % of_.extents[k];
            first /= of_.extents[k];
            from += static_cast<std::int64_t>(at[k]) * of_.strides[k];
        }
        constexpr auto width = static_cast<std::int64_t>(sizeof(T));
        while (true) {
            const std::int64_t step = of_.strides[axes - 1];
            const std::uint64_t rows =
                axes == 1 ? 0
                          : std::min<std::uint64_t>(out.size() / (row * sizeof(T)),
                                                    of_.extents[axes - 2] - at[axes - 2]);
            if (at[axes - 1] == 0 && rows > 1) {
                copy_rows<T>(of_.data + from * width, of_.strides[axes - 2], step, rows, row, out);
                // As if the last of them had just ended.
                at[axes - 2] += rows - 1;
                at[axes - 1] = row;
                from += static_cast<std::int64_t>(rows - 1) * of_.strides[axes - 2] +
                        static_cast<std::int64_t>(row) * step;
                out = out.subspan(static_cast<std::size_t>(rows * row) * sizeof(T));
            }
            for (; at[axes - 1] < row; ++at[axes - 1], from += step) {
                if (out.empty()) return;
                std::memcpy(out.data(), of_.data + from * width, sizeof(T));
                out = out.subspan(sizeof(T));
            }
            for (std::size_t k = axes - 1; at[k] == of_.extents[k]; --k) {
                if (k == 0) return;
                from += of_.strides[k - 1] - static_cast<std::int64_t>(at[k]) * of_.strides[k];
                at[k] = 0;
                ++at[k - 1];
            }
        }
    }

    // By squares that fit the cache, whatever the distances of rows and columns are.
    template <class T>
    static void copy_rows(const std::byte* from, std::int64_t down, std::int64_t right,
                          std::uint64_t rows, std::uint64_t cols, std::span<std::byte> out) {
        constexpr std::uint64_t side = 16;
        std::array<std::array<T, side>, side> square{};
        for (std::uint64_t r = 0; r < rows; r += side) {
            const std::uint64_t tall = std::min(side, rows - r);
            for (std::uint64_t c = 0; c < cols; c += side) {
                const std::uint64_t wide = std::min(side, cols - c);
                for (std::uint64_t j = 0; j < wide; ++j) {
                    const auto first = static_cast<std::int64_t>(r) * down +
                                       static_cast<std::int64_t>(c + j) * right;
                    const std::byte* at = from + first * static_cast<std::int64_t>(sizeof(T));
                    for (std::uint64_t i = 0; i < tall; ++i) {
                        std::memcpy(&square[i][j], at, sizeof(T));
                        at += down * static_cast<std::int64_t>(sizeof(T));
                    }
                }
                for (std::uint64_t i = 0; i < tall; ++i) {
                    std::memcpy(out.data() + ((r + i) * cols + c) * sizeof(T), square[i].data(),
                                wide * sizeof(T));
                }
            }
        }
    }

    array_in_memory of_;
};

class memory_reader final : public reader {
  public:
    memory_reader(array_in_memory of, tensor_info info)
        : of_(std::move(of)), info_{std::move(info)} {}

    const std::vector<tensor_info>& tensors() const override { return info_; }
    std::unique_ptr<byte_source> open(std::size_t) const override {
        return std::make_unique<array_source>(of_);
    }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override { return {}; }

    std::shared_ptr<const reader> renamed(std::string name) const {
        tensor_info info = info_.front();
        info.name = std::move(name);
        return std::make_shared<memory_reader>(of_, std::move(info));
    }

  private:
    array_in_memory of_;
    std::vector<tensor_info> info_;
    std::map<std::string, std::string> metadata_;
};

class tensors_together final : public reader {
  public:
    using place = std::pair<std::shared_ptr<const reader>, std::size_t>;

    explicit tensors_together(std::vector<place> of) : of_(std::move(of)) {
        for (const auto& [from, index] : of_) infos_.push_back(from->tensors()[index]);
    }
    const std::vector<tensor_info>& tensors() const override { return infos_; }
    std::unique_ptr<byte_source> open(std::size_t index) const override {
        return of_.at(index).first->open(of_[index].second);
    }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override { return {}; }

    tensor_info& first() { return infos_.front(); }
    void put_in(const std::string& folder) {
        for (tensor_info& t : infos_) {
            t.file = folder;
            t.sums_over = {};
        }
    }

  private:
    std::vector<place> of_;
    std::vector<tensor_info> infos_;
    std::map<std::string, std::string> metadata_;
};

bool is_c_order(const tensor::shape& extents, const std::vector<std::int64_t>& strides) {
    std::int64_t step = 1;
    for (std::size_t k = extents.size(); k-- > 0;) {
        if (extents[k] != 1 && strides[k] != step) return false;
        step *= static_cast<std::int64_t>(extents[k]);
    }
    return true;
}

[[noreturn]] void refuse(const std::string& why) { base::refuse("an array in memory: " + why); }

}  // namespace

contraction last_axis_of(const tensor::shape& extents) {
    const int rank = static_cast<int>(extents.size());
    if (rank == 0) return {};
    return {rank - 1, rank, "an array: its last axis"};
}

std::shared_ptr<const reader> memory_tensor(const void* data, tensor::dtype type,
                                            tensor::shape extents,
                                            std::vector<std::int64_t> strides, std::string name) {
    const auto elements = tensor::element_count(extents);
    const auto bytes = elements ? tensor::byte_count(type, *elements) : std::nullopt;
    if (!bytes) refuse("its extents " + tensor::to_string(extents) + " are too large");
    if (!strides.empty() && strides.size() != extents.size()) {
        refuse("it has " + std::to_string(extents.size()) + " axes and " +
               std::to_string(strides.size()) + " strides");
    }
    if (*elements == 0 || (!strides.empty() && is_c_order(extents, strides))) strides.clear();
    const int bits = tensor::row_of(type).bits;
    if (!strides.empty() && bits % 8 != 0) refuse("values of less than a byte have no strides");
    tensor_info info;
    info.name = std::move(name);
    info.type = type;
    info.shape = extents;
    info.elements = *elements;
    info.bytes = *bytes;
    info.file = "memory";
    info.sums_over = last_axis_of(extents);
    array_in_memory of{static_cast<const std::byte*>(data), std::move(extents), std::move(strides),
                       static_cast<std::size_t>(bits / 8)};
    return std::make_shared<memory_reader>(std::move(of), std::move(info));
}

std::shared_ptr<const reader> as_array(const reader& of, std::size_t index) {
    auto one = std::make_shared<tensors_together>(std::vector<tensors_together::place>{
        {std::shared_ptr<const reader>(std::shared_ptr<const reader>(), &of), index}});
    one->first().sums_over = last_axis_of(one->first().shape);
    return one;
}

std::unique_ptr<reader> together(
    std::vector<std::pair<std::shared_ptr<const reader>, std::size_t>> tensors) {
    return std::make_unique<tensors_together>(std::move(tensors));
}

std::unique_ptr<reader> as_file_in(
    const std::string& folder,
    std::vector<std::pair<std::shared_ptr<const reader>, std::size_t>> tensors) {
    auto all = std::make_unique<tensors_together>(std::move(tensors));
    all->put_in(folder);
    return all;
}

std::shared_ptr<const reader> renamed(std::shared_ptr<const reader> of, std::size_t index,
                                      std::string name) {
    if (const auto* memory = dynamic_cast<const memory_reader*>(of.get())) {
        return memory->renamed(std::move(name));
    }
    auto one = std::make_shared<tensors_together>(
        std::vector<tensors_together::place>{{std::move(of), index}});
    one->first().name = std::move(name);
    return one;
}

}  // namespace mx::io

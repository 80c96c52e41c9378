// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/hdf5_types.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "libmx/io/dtype_names.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

// Sign, exponent and mantissa side by side from the top, as IEEE has them.
struct float_layout {
    dtype type;
    std::size_t bytes;
    std::size_t exponent_bits;
    std::size_t mantissa_bits;
    std::size_t bias;
};

constexpr std::array float_layouts{
    float_layout{dtype::f16, 2, 5, 10, 15},    float_layout{dtype::bf16, 2, 8, 7, 127},
    float_layout{dtype::f32, 4, 8, 23, 127},   float_layout{dtype::f64, 8, 11, 52, 1023},
    float_layout{dtype::f8_e5m2, 1, 5, 2, 15}, float_layout{dtype::f8_e4m3, 1, 4, 3, 7},
};

hdf5_meaning no_number(std::string note) { return {dtype::other, std::move(note)}; }

// Whether all bits of the element belong to the number.
bool fills_its_bytes(hid_t type) {
    return H5Tget_precision(type) == 8 * H5Tget_size(type) && H5Tget_offset(type) == 0;
}

hdf5_meaning meaning_of_integer(hid_t type, std::optional<dtype> as) {
    const std::size_t bytes = H5Tget_size(type);
    if (!fills_its_bytes(type)) return no_number("integers with unused bits are not read");
    const bool negative = H5Tget_sign(type) == H5T_SGN_2;
    const auto found = tensor::find_dtype(fmt::format("{}{}", negative ? 'I' : 'U', 8 * bytes));
    if (!found) return no_number(fmt::format("integers of {} bytes are not read", bytes));
    return {read_as(*found, as), {}};
}

hdf5_meaning meaning_of_float(hid_t type) {
    std::size_t sign = 0, exponent_at = 0, exponent_bits = 0, mantissa_at = 0, mantissa_bits = 0;
    const std::size_t bytes = H5Tget_size(type);
    const H5T_order_t order = H5Tget_order(type);
    const bool plain = fills_its_bytes(type) && (order == H5T_ORDER_LE || order == H5T_ORDER_BE) &&
                       H5Tget_norm(type) == H5T_NORM_IMPLIED &&
                       H5Tget_fields(type, &sign, &exponent_at, &exponent_bits, &mantissa_at,
                                     &mantissa_bits) >= 0 &&
                       mantissa_at == 0 && exponent_at == mantissa_bits && sign == 8 * bytes - 1;
    for (const float_layout& layout : float_layouts) {
        if (plain && layout.bytes == bytes && layout.exponent_bits == exponent_bits &&
            layout.mantissa_bits == mantissa_bits && layout.bias == H5Tget_ebias(type)) {
            return {layout.type, {}};
        }
    }
    return no_number(
        fmt::format("floating-point numbers of {} bytes in this layout are not read", bytes));
}

// h5py stores numpy.bool as an enumeration of FALSE and TRUE on a byte.
hdf5_meaning meaning_of_enumeration(hid_t type) {
    std::int8_t no = -1;
    std::int8_t yes = -1;
    if (H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 &&
        H5Tenum_valueof(type, "FALSE", &no) >= 0 && H5Tenum_valueof(type, "TRUE", &yes) >= 0 &&
        no == 0 && yes == 1) {
        return {dtype::boolean, {}};
    }
    return no_number("enumerations are not numbers");
}

hdf5_id member(hid_t compound, unsigned index) {
    return {H5Tget_member_type(compound, index), H5Tclose};
}

// h5py stores complex numbers as a pair of floats.
hdf5_meaning meaning_of_compound(hid_t type) {
    const std::size_t bytes = H5Tget_size(type);
    const dtype part = bytes == 8 ? dtype::f32 : dtype::f64;
    if ((bytes == 8 || bytes == 16) && H5Tget_nmembers(type) == 2 &&
        H5Tget_member_class(type, 0) == H5T_FLOAT && H5Tget_member_class(type, 1) == H5T_FLOAT &&
        H5Tget_member_offset(type, 0) == 0 && H5Tget_member_offset(type, 1) == bytes / 2 &&
        meaning_of_float(member(type, 0).get()).type == part &&
        meaning_of_float(member(type, 1).get()).type == part) {
        return {bytes == 8 ? dtype::c64 : dtype::c128, {}};
    }
    return no_number("records are not numbers");
}

hdf5_meaning meaning_of_opaque(hid_t type, std::optional<dtype> as) {
    const std::size_t bits = 8 * H5Tget_size(type);
    if (as && static_cast<std::size_t>(tensor::row_of(*as).bits) == bits) return {*as, {}};
    return no_number(fmt::format("raw elements of {} bytes; give their dtype with --as{}", bits / 8,
                                 bits == 16 ? " bf16" : ""));
}

hdf5_id custom_float(const float_layout& layout) {
    hdf5_id type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    // Fields before size: a type cannot shrink below the fields it has.
    const std::size_t bits = 8 * layout.bytes;
    const bool made = H5Tset_fields(type.get(), bits - 1, layout.mantissa_bits,
                                    layout.exponent_bits, 0, layout.mantissa_bits) >= 0 &&
                      H5Tset_precision(type.get(), bits) >= 0 &&
                      H5Tset_size(type.get(), layout.bytes) >= 0 &&
                      H5Tset_ebias(type.get(), layout.bias) >= 0;
    return made ? std::move(type) : hdf5_id();
}

hdf5_id boolean() {
    hdf5_id type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
    std::int8_t value = 0;
    H5Tenum_insert(type.get(), "FALSE", &value);
    value = 1;
    H5Tenum_insert(type.get(), "TRUE", &value);
    return type;
}

hdf5_id complex(hid_t part) {
    const std::size_t bytes = H5Tget_size(part);
    hdf5_id type(H5Tcreate(H5T_COMPOUND, 2 * bytes), H5Tclose);
    H5Tinsert(type.get(), "r", 0, part);
    H5Tinsert(type.get(), "i", bytes, part);
    return type;
}

}  // namespace

hdf5_meaning meaning_of(hid_t stored, std::optional<dtype> as) {
    switch (H5Tget_class(stored)) {
        case H5T_INTEGER:
            return meaning_of_integer(stored, as);
        case H5T_FLOAT:
            return meaning_of_float(stored);
        case H5T_ENUM:
            return meaning_of_enumeration(stored);
        case H5T_COMPOUND:
            return meaning_of_compound(stored);
        case H5T_OPAQUE:
            return meaning_of_opaque(stored, as);
        case H5T_STRING:
            return no_number("text is not numbers");
        default:
            return no_number("this HDF5 datatype is not numbers");
    }
}

hdf5_id little_endian(hid_t stored) {
    if (H5Tget_class(stored) == H5T_COMPOUND) {
        // Members by their names in the file, which is how HDF5 matches them.
        hdf5_id type(H5Tcreate(H5T_COMPOUND, H5Tget_size(stored)), H5Tclose);
        for (unsigned i = 0; i < 2; ++i) {
            const hdf5_id part = little_endian(member(stored, i).get());
            char* const name = H5Tget_member_name(stored, i);
            H5Tinsert(type.get(), name, H5Tget_member_offset(stored, i), part.get());
            H5free_memory(name);
        }
        return type;
    }
    hdf5_id type(H5Tcopy(stored), H5Tclose);
    const H5T_class_t kind = H5Tget_class(stored);
    if (kind == H5T_INTEGER || kind == H5T_FLOAT) H5Tset_order(type.get(), H5T_ORDER_LE);
    return type;
}

hdf5_id stored_type(dtype type) {
    const std::pair<dtype, hid_t> standard[] = {
        {dtype::u8, H5T_STD_U8LE},
        {dtype::i8, H5T_STD_I8LE},
        {dtype::i16, H5T_STD_I16LE},
        {dtype::u16, H5T_STD_U16LE},
        {dtype::i32, H5T_STD_I32LE},
        {dtype::u32, H5T_STD_U32LE},
        {dtype::i64, H5T_STD_I64LE},
        {dtype::u64, H5T_STD_U64LE},
        {dtype::f32, H5T_IEEE_F32LE},
        {dtype::f64, H5T_IEEE_F64LE},
        // Their special codes are not IEEE's: bytes, which an attribute explains.
        {dtype::f8_e4m3, H5T_STD_U8LE},
        {dtype::f8_e8m0, H5T_STD_U8LE},
        {dtype::f8_e4m3fnuz, H5T_STD_U8LE},
        {dtype::f8_e5m2fnuz, H5T_STD_U8LE}};
    for (const auto& [row, id] : standard) {
        if (row == type) return {H5Tcopy(id), H5Tclose};
    }
    // HDF5 converts these by IEEE's rules, which hold for them.
    for (const float_layout& layout : float_layouts) {
        if (layout.type == type) return custom_float(layout);
    }
    if (type == dtype::boolean) return boolean();
    if (type == dtype::c64) return complex(H5T_IEEE_F32LE);
    if (type == dtype::c128) return complex(H5T_IEEE_F64LE);
    return {};
}

}  // namespace mx::io

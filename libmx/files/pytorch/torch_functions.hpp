// SPDX-License-Identifier: Apache-2.0
// THE LIST of functions in PyTorch checkpoints whose meaning mx knows (pytorch/pytorch:
// torch/_utils.py, torch/_tensor.py). None of them is called.
#pragma once

#include <array>
#include <string_view>

#include "libmx/files/pytorch/torch_dtypes.hpp"

namespace mx::io {

enum class torch_meaning {
    view,        ///< a tensor: storage, offset, extents, strides, ...; its type is the storage's
    typed_view,  ///< the same, with a dtype after the hooks
    first,       ///< the first argument is the value
    from_type,   ///< (function, class, arguments, state): the function's result
    unreadable,  ///< a tensor that cannot be read; `note` says why
    container,   ///< a container: only its contents count
    harmless,    ///< neither tensor nor container; no remark
};

struct torch_function {
    std::string_view module;
    std::string_view name;
    torch_meaning meaning;
    std::string_view note = {};
};

inline constexpr std::array torch_functions{
    torch_function{"torch._utils", "_rebuild_tensor", torch_meaning::view},
    torch_function{"torch._utils", "_rebuild_tensor_v2", torch_meaning::view},
    torch_function{"torch._utils", "_rebuild_tensor_v3", torch_meaning::typed_view},
    torch_function{"torch._utils", "_rebuild_parameter", torch_meaning::first},
    torch_function{"torch._utils", "_rebuild_parameter_with_state", torch_meaning::first},
    torch_function{"torch._tensor", "_rebuild_from_type", torch_meaning::from_type},
    torch_function{"torch._tensor", "_rebuild_from_type_v2", torch_meaning::from_type},
    torch_function{"torch._utils", "_rebuild_qtensor", torch_meaning::unreadable, torch_quantized},
    torch_function{"torch._utils", "_rebuild_sparse_tensor", torch_meaning::unreadable,
                   "a sparse tensor; store to_dense() of it"},
    torch_function{"torch._utils", "_rebuild_sparse_csr_tensor", torch_meaning::unreadable,
                   "a sparse tensor; store to_dense() of it"},
    torch_function{"torch._utils", "_rebuild_nested_tensor", torch_meaning::unreadable,
                   "a nested tensor; store its parts"},
    torch_function{"torch._utils", "_rebuild_meta_tensor_no_storage", torch_meaning::unreadable,
                   "a tensor of the meta device: it has no values"},
    torch_function{"torch._utils", "_rebuild_wrapper_subclass", torch_meaning::unreadable,
                   "a tensor subclass without values of its own"},
    torch_function{"torch._utils", "_rebuild_device_tensor_from_numpy", torch_meaning::unreadable,
                   "a tensor stored as a NumPy array inside the pickle; move it to the CPU first"},
    torch_function{"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", torch_meaning::first},
    torch_function{"torch._utils", "_rebuild_xla_tensor", torch_meaning::unreadable,
                   "a tensor of an XLA device; move it to the CPU before saving"},
    torch_function{"collections", "OrderedDict", torch_meaning::container},
    torch_function{"collections", "defaultdict", torch_meaning::container},
    torch_function{"collections", "Counter", torch_meaning::container},
    torch_function{"collections", "deque", torch_meaning::container},
    torch_function{"builtins", "dict", torch_meaning::container},
    torch_function{"builtins", "list", torch_meaning::container},
    torch_function{"builtins", "set", torch_meaning::harmless},
    torch_function{"builtins", "frozenset", torch_meaning::harmless},
    torch_function{"builtins", "bytearray", torch_meaning::harmless},
    torch_function{"builtins", "complex", torch_meaning::harmless},
    torch_function{"__builtin__", "set", torch_meaning::harmless},
    torch_function{"_codecs", "encode", torch_meaning::harmless},
    torch_function{"torch", "Size", torch_meaning::harmless},
    torch_function{"torch", "device", torch_meaning::harmless},
    torch_function{"torch.serialization", "_get_layout", torch_meaning::harmless},
};

}  // namespace mx::io

#include "memory.h"

#include <algorithm>

#include "loads.h"

namespace stator {

namespace {

struct ApartCheck : RegisterList {
    using RegisterList::RegisterList;
    std::vector<uint32_t> itemsizes;
    size_t written = 0;
    bool apart = true;
    bool known = false;
    std::vector<Extent> extents;   // of the tensors of this call
    std::vector<uint32_t> order;   // of their addresses in the last call: mostly it is the same again
};

bool read_extents(ApartCheck& check, PyObject* const* registers) {
    for (size_t i = 0; i < check.registers.size(); i++) {
        if (!tensor_extent(registers[check.registers[i]], check.itemsizes[i], &check.extents[i])) return false;
    }
    return true;
}

// In the order of the last call, does each begin where the one before has ended?
bool in_order_and_apart(const ApartCheck& check) {
    uint64_t reach = 0;
    for (uint32_t which : check.order) {
        const Extent& extent = check.extents[which];
        if (extent.begin < reach) return false;
        reach = extent.end;
    }
    return true;
}

bool in_written_storage(const ApartCheck& check, uint32_t which) {
    for (size_t i = 0; i < check.written; i++) {
        if (check.extents[i].storage == check.extents[which].storage) return true;
    }
    return false;
}

// Along the addresses: stretches that lie upon each other, one after the other, must not lie in a written storage.
bool all_apart(const ApartCheck& check) {
    uint64_t reach = 0;
    uint32_t last = 0;
    bool alone = true, harmful = false;  // the stretch that reaches up to here, and what lies in it
    for (uint32_t which : check.order) {
        const Extent& extent = check.extents[which];
        if (extent.begin == extent.end) continue;
        if (extent.begin >= reach) {
            alone = true;
        } else {
            if (alone) harmful = in_written_storage(check, last);
            alone = false;
            if (harmful || in_written_storage(check, which)) return false;
        }
        reach = std::max(reach, extent.end);
        last = which;
    }
    return true;
}

bool parse_rule(PyObject* rule, ApartCheck& check) {
    Ref written = Ref::steal(PyObject_GetAttrString(rule, "written"));
    Ref apart = Ref::steal(PyObject_GetAttrString(rule, "apart"));
    Ref sizes = Ref::steal(PyObject_GetAttrString(rule, "itemsizes"));
    if (!written || !apart || !sizes || !PyTuple_Check(sizes.get())) return false;
    check.written = PyLong_AsSize_t(written.get());
    check.apart = apart.get() == Py_True;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes.get()); i++) {
        check.itemsizes.push_back(static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(sizes.get(), i))));
    }
    size_t count = check.registers.size();
    return !PyErr_Occurred() && check.itemsizes.size() == count && check.written <= count;
}

}  // namespace

std::shared_ptr<OpExtra> make_apart_check(PyObject* registers, PyObject* rule) {
    auto check = std::make_shared<ApartCheck>(registers);
    for (uint32_t i = 0; i < check->registers.size(); i++) check->order.push_back(i);
    check->extents.resize(check->registers.size());
    check->known = parse_rule(rule, *check);
    if (!check->known) forget_exception();
    return check;
}

Verdict apart_verdict(const Op& op, PyObject* const* registers) {
    auto& check = *static_cast<ApartCheck*>(op.extra.get());
    if (!check.known || !read_extents(check, registers)) return Verdict::kUnknown;
    if (in_order_and_apart(check)) return check.apart ? Verdict::kYes : Verdict::kNo;
    auto before = [&check](uint32_t a, uint32_t b) { return check.extents[a].begin < check.extents[b].begin; };
    std::sort(check.order.begin(), check.order.end(), before);
    return all_apart(check) == check.apart ? Verdict::kYes : Verdict::kNo;
}

}  // namespace stator

// The entries of one code object in one region, in the order they are tried, and what of their programs they share.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "entry.h"

namespace stator {

struct Link {
    Entry* entry;             // owned by the chain
    size_t shared = 0;        // how many first operations are those of the entry tried before
    size_t registers = 0;     // how many registers these fill
};

class ChainRef;

class Chain {
  public:
    Chain() = default;
    ~Chain();
    Chain(const Chain&) = delete;
    Chain& operator=(const Chain&) = delete;

    // A chain with the entry before all of `old`'s (null: none).
    static ChainRef prepend(Entry* entry, const Chain* old);

    const std::vector<Link>& links() const { return links_; }

  private:
    friend class ChainRef;
    void append(Entry* entry, size_t shared);
    std::vector<Link> links_;
    mutable size_t users_ = 0;
};

// Keeps a chain. Who does so holds the GIL: the count need not be atomic, and each call of a compiled function counts.
class ChainRef {
  public:
    ChainRef() = default;
    ChainRef(std::nullptr_t) {}
    explicit ChainRef(const Chain* chain) : chain_(chain) {
        if (chain_) chain_->users_++;
    }
    ChainRef(const ChainRef& other) : ChainRef(other.chain_) {}
    ChainRef(ChainRef&& other) noexcept : chain_(std::exchange(other.chain_, nullptr)) {}
    ChainRef& operator=(ChainRef other) noexcept {
        std::swap(chain_, other.chain_);
        return *this;
    }
    ~ChainRef() {
        if (chain_ && --chain_->users_ == 0) delete chain_;
    }

    const Chain* get() const { return chain_; }
    const Chain* operator->() const { return chain_; }
    const Chain& operator*() const { return *chain_; }
    explicit operator bool() const { return chain_ != nullptr; }
    bool operator==(const ChainRef& other) const { return chain_ == other.chain_; }

  private:
    const Chain* chain_ = nullptr;
};

// How many first operations of the two programs are the same.
size_t common_prefix(const Program* a, const Program* b);

}  // namespace stator

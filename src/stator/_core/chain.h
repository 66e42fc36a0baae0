// The entries of a bucket in the order they are tried, and what of their programs they share.
#pragma once
#include <memory>
#include <vector>

#include "entry.h"

namespace stator {

struct Link {
    Entry* entry;             // owned by the chain
    size_t shared = 0;        // how many first operations are those of the entry tried before
    size_t registers = 0;     // how many registers these fill
};

class Chain {
  public:
    Chain() = default;
    ~Chain();
    Chain(const Chain&) = delete;
    Chain& operator=(const Chain&) = delete;

    // A chain with the entry before all of `old`'s (null: none).
    static std::shared_ptr<const Chain> prepend(Entry* entry, const Chain* old);

    const std::vector<Link>& links() const { return links_; }

  private:
    void append(Entry* entry, size_t shared);
    std::vector<Link> links_;
};

// How many first operations of the two programs are the same.
size_t common_prefix(const Program* a, const Program* b);

}  // namespace stator

// What every adapter answers until sessions and transactions exist: the same words, so that callers
// and tests meet one refusal.
#pragma once

#include <angelia/base/result.h>

namespace angelia::store {

/// CommandNotSupported.
inline Error sessions_refused() {
    return {ErrorCode::CommandNotSupported,
            "sessions are not available yet: call the store's verbs without one"};
}
inline Error transactions_refused() {
    return {ErrorCode::CommandNotSupported,
            "transactions are not available yet: nothing was run; use single verbs, bulk_write or "
            "claim"};
}

}  // namespace angelia::store

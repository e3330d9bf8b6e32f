package forge

import "context"

// Exchange is how the processes that call a forge as one identity tell each other its limits. own
// is this process's knowledge, others what the other processes last gave, also those that have
// ended. It is called every few seconds while calls are made, and may fail.
type Exchange func(ctx context.Context, identity string, own []byte) (others [][]byte, err error)

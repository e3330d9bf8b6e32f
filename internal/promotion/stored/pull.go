package stored

import (
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// Pull is a pull request as it was last read (a store.Pull's data).
type Pull struct {
	PR         forge.PullRequest `json:"pr"`
	NotifiedAt time.Time         `json:"notifiedAt"` // when the forge last told of it, by our clock
	// HeadSince is since when its head is known to be there, by our clock or the forge's,
	// whichever is later: it came before. Zero: nobody wrote that down.
	HeadSince time.Time `json:"headSince,omitzero"`
	// Read says that the pull request was read by itself, or made by us, since the store has it,
	// and not only listed. Not every list tells its place in the forge's merge queue.
	Read bool `json:"read,omitempty"`
}

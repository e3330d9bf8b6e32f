package stored

import (
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

// RevertReason is why a revert was opened.
type RevertReason struct {
	Evidence []promotion.Evidence `json:"evidence"`
	By       string               `json:"by,omitempty"`     // who requested it; empty: health did
	Reason   string               `json:"reason,omitempty"` // in their words
}

// RevertReasons are kept so that the page of a revert can be written again.
var RevertReasons = record.Declare[record.Pull, RevertReason](record.Declaration{
	Name: "revert-reason", Owner: "controller/act", Lifetime: record.UntilDropped,
	Doc: "Why the revert was opened: what was degraded, or who requested it. Without it the page stays as it is.",
})

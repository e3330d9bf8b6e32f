package act

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
)

const (
	// commentInterval is the least time between two edits of a comment that neither ask something
	// of a person nor end a state. People who watch the page see it move, and each edit counts
	// against the forge's rate limit.
	commentInterval = 30 * time.Second
	// maxUrgentNotices bounds the edits within one interval that are made at once.
	maxUrgentNotices = 8
)

// commentPace is facts.CommentPace, which says nothing of when a comment may be edited. At most
// maxUrgentNotices notices are kept.
type commentPace facts.CommentPace

// nextEdit is when a comment may be edited: not after now where it may be now. The notice is
// a digest of what the edit asks of a person or of the state that it ends; "": neither. A
// notice goes out at once, but each of them once an interval, so that two that take turns
// don't make a comment flap. A clock that went back makes nobody wait.
func (c *commentPace) nextEdit(now time.Time, notice string) time.Time {
	allowed := c.At.Add(commentInterval)
	if c.At.IsZero() || c.At.After(now) || !allowed.After(now) {
		return now
	}
	recent := c.recentNotices(now)
	repeated := slices.ContainsFunc(recent, func(n facts.PaceNotice) bool { return n.Digest == notice })
	if notice != "" && !repeated && len(recent) < maxUrgentNotices {
		return now
	}
	return allowed
}

// edited is the pace after an edit.
func (c *commentPace) edited(now time.Time, notice string) commentPace {
	out := commentPace{At: now, Notices: c.recentNotices(now)}
	if notice != "" {
		out.Notices = slices.DeleteFunc(out.Notices, func(n facts.PaceNotice) bool { return n.Digest == notice })
		out.Notices = append(out.Notices, facts.PaceNotice{Digest: notice, At: now})
		out.Notices = out.Notices[max(0, len(out.Notices)-maxUrgentNotices):]
	}
	return out
}

// recentNotices are those of the last interval.
func (c *commentPace) recentNotices(now time.Time) []facts.PaceNotice {
	return slices.DeleteFunc(slices.Clone(c.Notices), func(n facts.PaceNotice) bool {
		return n.At.After(now) || !n.At.Add(commentInterval).After(now)
	})
}

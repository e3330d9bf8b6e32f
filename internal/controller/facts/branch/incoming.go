package branch

import (
	"fmt"
	"regexp"

	"github.com/liftlock/liftlock/internal/wording"
)

// incomingPattern is the mark of a pull request that brings new versions into a source environment. It only restrains: what a
// closed one of ours names stays out.
var incomingPattern = regexp.MustCompile(`<!-- liftlock:incoming release=([0-9a-f]{12}) -->`)

// MarkIncoming is the mark of a pull request that brings a release in.
func MarkIncoming(release string) string {
	return fmt.Sprintf("<!-- liftlock:incoming release=%s -->", wording.Short(release))
}

// IncomingRelease is the short release that a body's mark names; empty: it has none.
func IncomingRelease(body string) string {
	if m := incomingPattern.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return ""
}

package prtext

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// writeUnchecked says which targets have resources that no verification sees, because Argo CD
// has no health check for them.
func writeUnchecked(p *page, in Input) {
	if in.Revert {
		return
	}
	rows := listTargetRows(in, func(t *promotion.Target) string {
		if u := &t.Verdict.Unchecked; u.Total > 0 {
			return describeUnchecked(t.Name, u)
		}
		return ""
	})
	if len(rows) > 0 {
		p.writeParagraph("Argo CD has no health check for some resources, so they count as healthy as soon as they are applied:")
		p.writeFolded("", rows)
	}
}

func describeUnchecked(target string, u *promotion.Unchecked) string {
	return fmt.Sprintf("%s: %s (%s).", codeSpan(target, maxName), wording.Count(u.Total, "resource"), escapeText(strings.Join(u.Kinds, ", "), maxName))
}

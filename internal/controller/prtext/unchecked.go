package prtext

import (
	"fmt"
	"slices"
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
		effect := "so they count as healthy as soon as they are applied"
		if requiresHealthChecks(in) {
			effect = "so these targets can't be verified (`verify.ignoreMissingHealth: false`)"
		}
		p.writeParagraph("Argo CD has no health check for some resources, %s:", effect)
		p.writeFolded("", rows)
	}
	unknown := listTargetRows(in, func(t *promotion.Target) string {
		if t.Verdict.UncheckedUnknown {
			return codeSpan(t.Name, maxName)
		}
		return ""
	})
	if len(unknown) > 0 {
		p.writeParagraph("Which resources of these targets have no health check isn't known, because their Argo CD keeps health outside " +
			"the Application; such a resource counts as healthy as soon as it is applied:")
		p.writeFolded("", unknown)
	}
}

// requiresHealthChecks says that the environment verifies nothing that has no health check.
func requiresHealthChecks(in Input) bool {
	return slices.ContainsFunc(in.Members, func(m Member) bool {
		e := m.envIn(in.Environment)
		return e != nil && !e.Spec.Verify.IgnoreMissingHealth
	})
}

func describeUnchecked(target string, u *promotion.Unchecked) string {
	return fmt.Sprintf("%s: %s (%s).", codeSpan(target, maxName), wording.Count(u.Total, "resource"),
		escapeText(strings.Join(u.Kinds, ", "), maxName))
}

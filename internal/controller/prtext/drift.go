package prtext

import (
	"github.com/liftlock/liftlock/internal/promotion"
)

// writeDrift says which targets were changed in the cluster, and whether this promotion's
// sync undoes that. What Argo CD heals by itself is gone before anybody reads of it.
func writeDrift(p *page, in Input) {
	if in.Revert {
		return
	}
	rows := listTargetRows(in, func(t *promotion.Target) string {
		if d := t.Verdict.Drift; d != nil && !d.SelfHeal {
			return describeDrift(t.Name, d)
		}
		return ""
	})
	if len(rows) > 0 {
		p.writeParagraph("Changed in the cluster, so that Git doesn't say what runs there:")
		p.writeFolded("", rows)
	}
}

func describeDrift(target string, d *promotion.Drift) string {
	s := codeSpan(target, maxName) + " " + escapeText(d.Describe(), maxReason) + ", since " + formatTime(d.Since)
	switch {
	case !d.IsOverwritten():
	case d.Total == 1:
		s += "; this promotion's sync will overwrite it"
	default:
		s += "; this promotion's sync will overwrite them"
	}
	return s + "."
}

// listTargetRows has a row for each of the members' targets in the environment of which
// describe says something.
func listTargetRows(in Input, describe func(*promotion.Target) string) []string {
	var rows []string
	for i := range in.Members {
		e := in.Members[i].envIn(in.Environment)
		if e == nil {
			continue
		}
		for k := range e.Targets {
			if text := describe(&e.Targets[k]); text != "" {
				rows = append(rows, "- "+text)
			}
		}
	}
	return rows
}

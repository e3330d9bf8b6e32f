package emulator

import (
	"regexp"
	"slices"
	"strings"
)

// quickAction is a line of a text that GitLab acts on and cuts out.
type quickAction struct{ name, argument string }

var quickActionLine = regexp.MustCompile(`^/([a-z_]+)(?:[ \t]+(.*?))?[ \t]*$`)

// quickActions are those of GitLab's that this world knows, with what each does. A line that
// begins with another word stays in the text (user/project/quick_actions).
var quickActions = map[string]func(f *Forge, p *pull, by *account, argument string) error{
	"approve": func(f *Forge, p *pull, by *account, _ string) error {
		if !mayApprove(p, by) {
			return nil
		}
		_, err := f.addReview(p, by, "APPROVE", "", "")
		return err
	},
	"close":  quickState("closed"),
	"reopen": quickState("open"),
	"draft": func(f *Forge, p *pull, by *account, _ string) error {
		if p.draft {
			return nil
		}
		return f.editPull(p, by, pullEdit{Title: pointerTo("Draft: " + p.title)})
	},
	"ready": func(f *Forge, p *pull, by *account, _ string) error {
		return f.editPull(p, by, pullEdit{Title: pointerTo(strings.TrimSpace(draftTitle.ReplaceAllString(p.title, "")))})
	},
	"title": func(f *Forge, p *pull, by *account, argument string) error {
		return f.editPull(p, by, pullEdit{Title: &argument})
	},
	"label": func(f *Forge, p *pull, by *account, argument string) error {
		return f.setLabels(p, by, append(slices.Clone(p.labels), labelNames(argument)...))
	},
	"unlabel": func(f *Forge, p *pull, by *account, argument string) error {
		drop := labelNames(argument)
		return f.setLabels(p, by, slices.DeleteFunc(slices.Clone(p.labels), func(name string) bool { return len(drop) == 0 || slices.Contains(drop, name) }))
	},
	"merge": func(f *Forge, p *pull, by *account, _ string) error {
		return f.acceptPull(p, by, acceptRequest{squash: p.gitlab.squash, removeBranch: p.gitlab.removeBranch, whenPipelineSucceeds: true})
	},
}

func quickState(state string) func(f *Forge, p *pull, by *account, argument string) error {
	return func(f *Forge, p *pull, by *account, _ string) error {
		if p.merged {
			return nil
		}
		return f.editPull(p, by, pullEdit{State: &state})
	}
}

// labelNames reads ~one ~"two words".
func labelNames(s string) []string {
	var names []string
	for part := range strings.SplitSeq(s, "~") {
		if part = strings.Trim(strings.TrimSpace(part), `"`); part != "" {
			names = append(names, part)
		}
	}
	return names
}

// cutQuickActions takes the quick actions out of a text. Code and quotations have none.
func cutQuickActions(text string) (rest string, found []quickAction) {
	var kept []string
	fenced := false
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		}
		m := quickActionLine.FindStringSubmatch(strings.TrimSuffix(l, "\r"))
		if fenced || m == nil || quickActions[m[1]] == nil {
			kept = append(kept, l)
			continue
		}
		found = append(found, quickAction{name: m[1], argument: m[2]})
	}
	if len(found) == 0 {
		return text, nil
	}
	return strings.TrimSpace(strings.Join(kept, "\n")), found
}

// runQuickActions does what the lines say, as far as the account may: what it may not, GitLab
// only says beside its answer.
func (f *Forge) runQuickActions(p *pull, by *account, found []quickAction) error {
	for _, a := range found {
		if by != p.author && p.repo.permissionOf(by) < Write {
			continue
		}
		err := quickActions[a.name](f, p, by, a.argument)
		if _, refused := err.(*apiError); err != nil && !refused {
			return err
		}
	}
	return nil
}

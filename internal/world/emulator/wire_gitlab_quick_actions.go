package emulator

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// quickAction is a line of a text that GitLab acts on and cuts out.
type quickAction struct{ name, argument string }

// quickActions are those of GitLab's that do something in this world.
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
		return f.setLabels(p, by, slices.DeleteFunc(slices.Clone(p.labels),
			func(name string) bool { return len(drop) == 0 || slices.Contains(drop, name) }))
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

// otherQuickActions are GitLab's others, the Premium edition's too. GitLab cuts them out of a merge
// request's texts although it does nothing with them. That holds for those for issues alone, as all
// of them are looked for everywhere (user/project/quick_actions). A line with another word stays.
const otherQuickActions = "add_child|add_contacts|add_email|assign|assign_reviewer|award|blocked_by|blocks|board_move|cc|checkin_reminder|child_epic|" +
	"clear_health_status|clear_weight|clone|confidential|convert_to_ticket|copy_metadata|create_merge_request|done|due|duplicate|epic|estimate|estimate_time|" +
	"health_status|iteration|labels|link|lock|milestone|move|page|parent_epic|promote|promote_to|promote_to_incident|publish|react|reassign|reassign_reviewer|" +
	"rebase|relabel|relate|remove_child|remove_child_epic|remove_contacts|remove_due_date|remove_email|remove_epic|remove_estimate|remove_iteration|" +
	"remove_label|remove_milestone|remove_parent|remove_parent_epic|remove_reviewer|remove_time_estimate|remove_time_spent|remove_zoom|request_changes|" +
	"request_review|reviewer|set_parent|severity|shrug|spend|spend_time|status|submit_review|subscribe|tableflip|target_branch|timeline|todo|type|unapprove|" +
	"unassign|unassign_reviewer|unlink|unlock|unsubscribe|weight|zoom"

// quickActionText finds code, HTML and quick actions in a paragraph: only the last have a name
// (lib/gitlab/quick_actions/extractor.rb).
var quickActionText = regexp.MustCompile("(?ims)`.+?`|^<[^>]+?>\n.+?\n</[^>]+?>$|^/(" + strings.Join(slices.Sorted(maps.Keys(quickActions)),
	"|") + "|" + otherQuickActions + ")(?: ([^\n]*))?(?:\\s*\n|$)")

// cutQuickActions takes the quick actions out of a text, and the white space behind it. They are in
// paragraphs that aren't within something else: quotations, lists and blocks of code have none.
func cutQuickActions(body string) (rest string, found []quickAction) {
	source := []byte(strings.ReplaceAll(body, "\r", ""))
	var b strings.Builder
	end := 0
	document := goldmark.DefaultParser().Parse(text.NewReader(source))
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		lines := n.Lines()
		if n.Kind() != ast.KindParagraph || lines.Len() == 0 {
			continue
		}
		start := bytes.LastIndexByte(source[:lines.At(0).Start], '\n') + 1
		b.Write(source[end:start])
		if end = lines.At(lines.Len() - 1).Stop; end < len(source) && source[end] == '\n' {
			end++
		}
		b.WriteString(quickActionText.ReplaceAllStringFunc(string(source[start:end]), func(part string) string {
			m := quickActionText.FindStringSubmatch(part)
			if m == nil || m[1] == "" {
				return part
			}
			found = append(found, quickAction{name: strings.ToLower(m[1]), argument: strings.TrimSpace(m[2])})
			return ""
		}))
	}
	b.Write(source[end:])
	return strings.TrimRight(b.String(), " \t\n\v\f"), found
}

// runQuickActions does what the lines say, as far as the account may: what it may not, GitLab
// only says beside its answer.
func (f *Forge) runQuickActions(p *pull, by *account, found []quickAction) error {
	for _, a := range found {
		if by != p.author && p.repo.permissionOf(by) < Write {
			continue
		}
		act := quickActions[a.name]
		if act == nil {
			continue
		}
		err := act(f, p, by, a.argument)
		if _, refused := err.(*apiError); err != nil && !refused {
			return err
		}
	}
	return nil
}

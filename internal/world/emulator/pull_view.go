package emulator

import (
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
)

// pullView is a pull request as its page shows it.
type pullView struct {
	*PullRequest
	Repo, Sign, TimeFormat, StateWord, ShortHead string

	BodyHTML  template.HTML
	Timeline  []timelineItem // reviews and comments, oldest first
	Checks    []checkView
	Commits   []commitView // oldest first
	Reviewers []reviewerView
	DiffHTML  template.HTML
}

// badge is a sign with the class that colours it.
type badge struct{ Class, Icon string }

type timelineItem struct {
	badge
	User      string
	At        time.Time
	Review    bool
	What      string        // of a review
	HTML      template.HTML // what was written; empty: nothing
	Reactions []string
}

type checkView struct {
	badge
	Status
}

type commitView struct{ Subject, Rest, Author, Short string }

type reviewerView struct {
	badge
	Name, What string
}

var (
	waitingBadge = badge{"wait", "●"}
	passedBadge  = badge{"good", "✓"}
	failedBadge  = badge{"bad", "✗"}
	neutralBadge = badge{"soft", "○"}
)

// reviewWords says of a review's state what its author did.
var reviewWords = map[string]struct {
	badge
	what string
}{
	"APPROVED":          {passedBadge, "approved these changes"},
	"CHANGES_REQUESTED": {failedBadge, "requested changes"},
	"COMMENTED":         {neutralBadge, "reviewed"},
	"DISMISSED":         {neutralBadge, "reviewed; the review was dismissed"},
}

var checkBadges = map[string]badge{
	"success": passedBadge, "failure": failedBadge, "error": failedBadge, "failed": failedBadge, "canceled": failedBadge,
	"skipped": neutralBadge,
}

// reactionSigns are GitHub's and GitLab's names of reactions.
var reactionSigns = map[string]string{
	"+1": "👍", "-1": "👎", "eyes": "👀", "rocket": "🚀", "confused": "😕", "heart": "❤️", "hooray": "🎉", "laugh": "😄", "thumbsup": "👍",
	"thumbsdown": "👎", "tada": "🎉",
}

// viewPull makes what the page shows. With an error it is what could be read.
func (f *Forge) viewPull(repo string, p *PullRequest) (*pullView, error) {
	v := &pullView{PullRequest: p, Repo: repo, Sign: f.face.pullSign(), TimeFormat: "2006-01-02 15:04:05 MST", StateWord: "closed",
		ShortHead: p.Head[:min(len(p.Head), 12)]}
	switch {
	case p.Merged:
		v.StateWord = "merged"
	case p.Open:
		v.StateWord = "open"
	}
	writer := newMarkdown(v.Sign, func(number string) string {
		if f.face == GitLab {
			return "/" + repo + "/-/merge_requests/" + number
		}
		return "/" + repo + "/pull/" + number
	})
	var errs []error
	render := func(text string) template.HTML {
		out, err := writer.render(text)
		errs = append(errs, err)
		return out
	}
	v.BodyHTML = render(p.Body)
	for _, r := range p.Reviews {
		said := reviewWords[r.State]
		v.Timeline = append(v.Timeline, timelineItem{badge: said.badge, User: r.User, At: r.At, Review: true, What: said.what,
			HTML: render(r.Body)})
	}
	for _, c := range p.Comments {
		item := timelineItem{User: c.User, At: c.Created, HTML: render(c.Body)}
		for _, r := range c.Reactions {
			login, content, _ := strings.Cut(r, " ")
			if sign := reactionSigns[content]; sign != "" {
				content = sign
			}
			item.Reactions = append(item.Reactions, content+" "+login)
		}
		v.Timeline = append(v.Timeline, item)
	}
	slices.SortStableFunc(v.Timeline, func(a, b timelineItem) int { return a.At.Compare(b.At) })
	for _, s := range p.Statuses {
		sign, known := checkBadges[s.State]
		if !known {
			sign = waitingBadge
		}
		v.Checks = append(v.Checks, checkView{sign, s})
	}
	v.Reviewers = viewReviewers(p)
	diff, commits, err := f.readChanges(repo, p.Number)
	v.DiffHTML = colourDiff(diff)
	for i := range commits {
		subject, rest, _ := strings.Cut(commits[i].Message, "\n")
		v.Commits = append(v.Commits, commitView{subject, strings.TrimSpace(rest), commits[i].Author.Name, commits[i].SHA[:12]})
	}
	return v, errors.Join(append(errs, err)...)
}

// viewReviewers are those who have reviewed, with what they said last, and those who were
// requested to.
func viewReviewers(p *PullRequest) []reviewerView {
	var out []reviewerView
	for _, r := range p.Reviews {
		said := reviewWords[r.State]
		now := reviewerView{said.badge, r.User, said.what}
		if i := slices.IndexFunc(out, func(o reviewerView) bool { return o.Name == r.User }); i >= 0 {
			out[i] = now
			continue
		}
		out = append(out, now)
	}
	for _, name := range p.Requested {
		if !slices.ContainsFunc(out, func(o reviewerView) bool { return o.Name == name }) {
			out = append(out, reviewerView{waitingBadge, name, "was requested"})
		}
	}
	return out
}

// readChanges is what a pull request changes since it left its base, as a difference and as
// commits, oldest first.
func (f *Forge) readChanges(repo string, number int) (diff string, commits []commit, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return "", nil, err
	}
	p := r.pulls[number]
	if p == nil {
		return "", nil, fmt.Errorf("%s#%d: %w", repo, number, notFound())
	}
	if commits, err = r.git.readLog("--reverse", "--end-of-options", p.baseSHA+".."+p.head); err != nil {
		return "", nil, err
	}
	diff, err = r.git.runGit("diff", "--end-of-options", p.baseSHA+"..."+p.head)
	return diff, commits, err
}

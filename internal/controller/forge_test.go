package controller

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// userForge is a forge as its people use it: the emulated one, or the one in memory, which
// starts no programs and on which most tests run.
type userForge interface {
	AddLabel(repo string, number int, login, name string) error
	Approve(repo string, number int, login string) error
	CloneURL(repo string) string
	ClosePull(repo string, number int, login string) error
	Comment(repo string, number int, login, body string) (int64, error)
	CommitAs(repo, login, branch, message string, files map[string]string, remove ...string) (string, error)
	File(repo, rev, path string) (content string, ok bool, err error)
	Grant(repo, login string, p emulator.Permission) error
	Head(repo, branch string) (string, error)
	MergePull(repo string, number int, login, method string) (string, error)
	OpenPull(repo, login, branch, base, title, body string) (int, error)
	Pulls(repo string) ([]emulator.PullRequest, error)
	RemoveLabel(repo string, number int, login, name string) error
	ReopenPull(repo string, number int, login string) error
	RemoveReviewRequest(repo string, number int, login, reviewer string) error
	RequestChanges(repo string, number int, login, body string) error
	SetBranch(repo, login, branch, commit string) error
	SetStatus(repo, login, commit string, s emulator.Status) error
	SetTeam(name, parent string, members ...string) error
}

// memoryForge has one repository.
type memoryForge struct {
	t      testing.TB
	forge  *memoryforge.Forge
	remote *git.MemoryRemote
	repo   forge.Repo
	now    func() time.Time
}

// permissionsOf are the forge's own for the emulator's.
var permissionsOf = map[emulator.Permission]forge.Permission{emulator.NoPermission: forge.PermissionNone, emulator.Read: forge.PermissionRead, emulator.Write: forge.PermissionWrite, emulator.Admin: forge.PermissionAdmin}

// newMemoryForge makes the forge, whose driver's calls are told of before they are made.
func newMemoryForge(t *testing.T, now func() time.Time, access map[string]emulator.Permission, beforeCall func(op string) error) *memoryForge {
	t.Helper()
	m := &memoryForge{t: t, remote: git.NewMemoryRemote(), repo: forge.Repo{Owner: "acme", Name: "fleet"}, now: now}
	m.forge = memoryforge.New(memoryforge.Options{Now: now, Bot: bot, SlowMergeable: true, Public: true, BeforeCall: func(login, op string) error {
		if login != bot {
			return nil
		}
		return beforeCall(op)
	}})
	m.forge.AddUser("acme", 2, false)
	id := int64(2)
	for login := range access {
		id++
		m.forge.AddUser(login, id, false)
	}
	return m
}

// addRepo puts the repository there.
func (m *memoryForge) addRepo(files map[string]string, access map[string]emulator.Permission) error {
	sha, err := m.write("linus", "Overlays", "", files)
	if err != nil {
		return err
	}
	m.remote.SetRef("refs/heads/main", sha)
	m.forge.AddRepo(m.repo, m.remote, "main")
	for login, p := range access {
		if err := m.forge.SetPermission(m.repo, login, permissionsOf[p]); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryForge) write(login, message, parent string, files map[string]string, remove ...string) (string, error) {
	who := m.forge.Ident(login)
	spec := git.CommitSpec{Base: parent, Message: message, When: m.now(), Author: &who, Committer: &who}
	if parent != "" {
		spec.Parents = []string{parent}
	}
	for name, text := range files {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Content: []byte(text)})
	}
	for _, name := range remove {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Delete: true})
	}
	return m.remote.Write(m.t.Context(), spec)
}

func (m *memoryForge) CommitAs(_, login, branch, message string, files map[string]string, remove ...string) (string, error) {
	tip, ok := m.remote.Head(branch)
	if !ok {
		tip, _ = m.remote.Head("main")
	}
	sha, err := m.write(login, message, tip, files, remove...)
	if err != nil {
		return "", err
	}
	return sha, m.forge.Push(m.repo, login, branch, sha, false)
}

func (m *memoryForge) SetBranch(_, login, branch, commit string) error {
	return m.forge.Push(m.repo, login, branch, commit, true)
}

func (m *memoryForge) Head(_, branch string) (string, error) {
	sha, _ := m.remote.Head(branch)
	return sha, nil
}

func (m *memoryForge) File(_, rev, path string) (content string, ok bool, err error) {
	if sha, ok := m.remote.Head(rev); ok {
		rev = sha
	}
	text, err := m.remote.Tree(rev).ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, git.ErrUnknownCommit) {
		return "", false, nil
	}
	return string(text), err == nil, err
}

func (m *memoryForge) CloneURL(string) string {
	url, err := m.forge.As(bot).CloneURL(m.t.Context(), m.repo)
	if err != nil {
		m.t.Fatal(err)
	}
	return url
}

func (m *memoryForge) Grant(_, login string, p emulator.Permission) error {
	return m.forge.SetPermission(m.repo, login, permissionsOf[p])
}

func (m *memoryForge) SetTeam(name, _ string, members ...string) error {
	organisation, team, _ := strings.Cut(name, "/")
	m.forge.SetTeam(forge.Team{Organisation: organisation, Name: team}, members...)
	return nil
}

func (m *memoryForge) SetStatus(_, login, commit string, s emulator.Status) error {
	return m.forge.As(login).SetStatus(m.t.Context(), m.repo, commit, forge.Status{Context: s.Context, State: forge.StatusState(s.State), Description: s.Description, TargetURL: s.TargetURL})
}

func (m *memoryForge) OpenPull(_, login, branch, base, title, body string) (int, error) {
	return m.forge.OpenPull(m.repo, login, branch, base, title, body)
}

func (m *memoryForge) ClosePull(_ string, number int, login string) error {
	return m.forge.Close(m.repo, number, login)
}

func (m *memoryForge) ReopenPull(_ string, number int, login string) error {
	return m.forge.Reopen(m.repo, number, login)
}

func (m *memoryForge) MergePull(_ string, number int, login, method string) (string, error) {
	return m.forge.MergeByHand(m.repo, number, login, method)
}

func (m *memoryForge) Approve(_ string, number int, login string) error {
	return m.forge.Review(m.repo, number, login, memoryforge.Approve, "")
}

func (m *memoryForge) RequestChanges(_ string, number int, login, _ string) error {
	return m.forge.Review(m.repo, number, login, memoryforge.RequestChanges, "")
}

func (m *memoryForge) RemoveReviewRequest(_ string, number int, login, reviewer string) error {
	return m.forge.RemoveReviewRequest(m.repo, number, login, reviewer)
}

func (m *memoryForge) Comment(_ string, number int, login, body string) (int64, error) {
	return m.forge.Comment(m.repo, number, login, body)
}

func (m *memoryForge) AddLabel(_ string, number int, login, name string) error {
	return m.setLabels(number, login, func(now []string) []string { return append(now, name) })
}

func (m *memoryForge) RemoveLabel(_ string, number int, login, name string) error {
	return m.setLabels(number, login, func(now []string) []string {
		return slices.DeleteFunc(now, func(l string) bool { return l == name })
	})
}

func (m *memoryForge) setLabels(number int, login string, change func(now []string) []string) error {
	pulls, err := m.Pulls("")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(pulls, func(p emulator.PullRequest) bool { return p.Number == number })
	return m.forge.SetLabels(m.repo, number, login, change(slices.Clone(pulls[i].Labels))...)
}

// Pulls lists all, oldest first, and starts nothing that the forge does when one is read.
func (m *memoryForge) Pulls(string) ([]emulator.PullRequest, error) {
	ctx, as := m.t.Context(), m.forge.As("acme")
	listed, err := as.PullRequests(ctx, m.repo, time.Time{})
	if err != nil {
		return nil, err
	}
	var out []emulator.PullRequest
	for i := range listed {
		p := &listed[i]
		if p.State == forge.Merged { // the list doesn't say by whom
			if p, err = as.PullRequest(ctx, m.repo, p.Number); err != nil {
				return nil, err
			}
		}
		shown := emulator.PullRequest{Number: p.Number, Title: p.Title, Body: p.Body, Author: p.Author, Branch: p.Branch, Base: p.Base, Head: p.Head, Open: p.State == forge.Open, Merged: p.State == forge.Merged,
			MergedBy: p.MergedBy, MergeCommit: p.MergeCommit, Labels: p.Labels, Requested: m.forge.RequestedReviewers(m.repo, p.Number),
			Created: p.CreatedAt, Updated: p.UpdatedAt, ClosedAt: p.ClosedAt, MergedAt: p.MergedAt, URL: p.URL}
		comments, err := as.Comments(ctx, m.repo, p.Number, time.Time{})
		if err != nil {
			return nil, err
		}
		for _, c := range comments {
			shown.Comments = append(shown.Comments, emulator.Comment{ID: c.ID, User: c.User, Body: c.Body, Reactions: m.forge.Reactions(m.repo, c.ID)})
		}
		statuses, err := as.Statuses(ctx, m.repo, p.Head)
		if err != nil {
			return nil, err
		}
		for _, s := range statuses {
			shown.Statuses = append(shown.Statuses, emulator.Status{Context: s.Context, State: string(s.State), Description: s.Description, TargetURL: s.TargetURL, Creator: s.Creator})
		}
		out = append(out, shown)
	}
	slices.SortFunc(out, func(a, b emulator.PullRequest) int { return a.Number - b.Number })
	return out, nil
}

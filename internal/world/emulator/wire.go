package emulator

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The shapes of GitHub's REST API and webhooks, as far as anybody reads them.
// Fields that GitHub sends as null are pointers or any without omitempty: that
// a field is there and null is a case that clients must survive.

type wireUser struct {
	Login   string `json:"login"`
	ID      int64  `json:"id"`
	NodeID  string `json:"node_id"`
	Avatar  string `json:"avatar_url"`
	URL     string `json:"url"`
	HTMLURL string `json:"html_url"`
	Type    string `json:"type"`
	Admin   bool   `json:"site_admin"`
}

type wireRepo struct {
	ID            int64     `json:"id"`
	NodeID        string    `json:"node_id"`
	Name          string    `json:"name"`
	FullName      string    `json:"full_name"`
	Private       bool      `json:"private"`
	Owner         *wireUser `json:"owner"`
	HTMLURL       string    `json:"html_url"`
	Description   *string   `json:"description"`
	Fork          bool      `json:"fork"`
	URL           string    `json:"url"`
	CloneURL      string    `json:"clone_url"`
	GitURL        string    `json:"git_url"`
	CreatedAt     any       `json:"created_at"` // a number in push events, a string elsewhere
	PushedAt      any       `json:"pushed_at"`
	UpdatedAt     time.Time `json:"updated_at"`
	DefaultBranch string    `json:"default_branch"`
	Visibility    string    `json:"visibility"`
	Archived      bool      `json:"archived"`
	*repoMerging
	Permissions *wirePermissions `json:"permissions,omitempty"`
}

// repoMerging says how a repository merges.
type repoMerging struct {
	AllowMerge   bool `json:"allow_merge_commit"`
	AllowSquash  bool `json:"allow_squash_merge"`
	AllowRebase  bool `json:"allow_rebase_merge"`
	DeleteMerged bool `json:"delete_branch_on_merge"`
}

type wirePermissions struct {
	Admin    bool `json:"admin"`
	Maintain bool `json:"maintain"`
	Push     bool `json:"push"`
	Triage   bool `json:"triage"`
	Pull     bool `json:"pull"`
}

type wireLabel struct {
	ID      int64  `json:"id"`
	NodeID  string `json:"node_id"`
	URL     string `json:"url"`
	Name    string `json:"name"`
	Color   string `json:"color"`
	Default bool   `json:"default"`
}

type wireBranch struct {
	Label string    `json:"label"`
	Ref   string    `json:"ref"`
	SHA   string    `json:"sha"`
	User  *wireUser `json:"user"`
	Repo  *wireRepo `json:"repo"`
}

type wirePull struct {
	ID             int64          `json:"id"`
	NodeID         string         `json:"node_id"`
	Number         int            `json:"number"`
	URL            string         `json:"url"`
	HTMLURL        string         `json:"html_url"`
	IssueURL       string         `json:"issue_url"`
	State          string         `json:"state"`
	Locked         bool           `json:"locked"`
	Title          string         `json:"title"`
	Body           *string        `json:"body"`
	User           *wireUser      `json:"user"`
	CreatedAt      time.Time      `json:"created_at"`
	UpdatedAt      time.Time      `json:"updated_at"`
	ClosedAt       *time.Time     `json:"closed_at"`
	MergedAt       *time.Time     `json:"merged_at"`
	MergeCommitSHA *string        `json:"merge_commit_sha"`
	Assignees      []*wireUser    `json:"assignees"`
	Labels         []wireLabel    `json:"labels"`
	Draft          bool           `json:"draft"`
	Head           wireBranch     `json:"head"`
	Base           wireBranch     `json:"base"`
	Association    string         `json:"author_association"`
	AutoMerge      *wireAutoMerge `json:"auto_merge"`
	Reviewers      []*wireUser    `json:"requested_reviewers"`
	Teams          []wireTeam     `json:"requested_teams"`

	// Only where one pull request is shown, not in lists.
	*wirePullDetail
}

type wirePullDetail struct {
	Merged         bool      `json:"merged"`
	Mergeable      *bool     `json:"mergeable"`
	Rebaseable     *bool     `json:"rebaseable"`
	MergeableState string    `json:"mergeable_state"`
	MergedBy       *wireUser `json:"merged_by"`
	Comments       int       `json:"comments"`
	Commits        int       `json:"commits"`
}

type wireTeam struct {
	ID     int64  `json:"id"`
	NodeID string `json:"node_id"`
	Name   string `json:"name"`
	Slug   string `json:"slug"`
}

type wireReview struct {
	ID          int64     `json:"id"`
	NodeID      string    `json:"node_id"`
	User        *wireUser `json:"user"`
	Body        string    `json:"body"`
	State       string    `json:"state"`
	HTMLURL     string    `json:"html_url"`
	SubmittedAt time.Time `json:"submitted_at"`
	CommitID    string    `json:"commit_id"`
	Association string    `json:"author_association"`
}

type wireComment struct {
	ID          int64             `json:"id"`
	NodeID      string            `json:"node_id"`
	URL         string            `json:"url"`
	HTMLURL     string            `json:"html_url"`
	IssueURL    string            `json:"issue_url"`
	User        *wireUser         `json:"user"`
	Body        string            `json:"body"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	Association string            `json:"author_association"`
	Reactions   wireReactionCount `json:"reactions"`
}

type wireReactionCount struct {
	Total int `json:"total_count"`
}

type wireReaction struct {
	ID      int64     `json:"id"`
	NodeID  string    `json:"node_id"`
	User    *wireUser `json:"user"`
	Content string    `json:"content"`
	At      time.Time `json:"created_at"`
}

type wireStatus struct {
	ID          int64     `json:"id"`
	NodeID      string    `json:"node_id"`
	URL         string    `json:"url"`
	State       string    `json:"state"`
	Description *string   `json:"description"`
	TargetURL   *string   `json:"target_url"`
	Context     string    `json:"context"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	Creator     *wireUser `json:"creator,omitempty"` // not in the combined status
}

func nodeID(kind string, id int64) string { return kind + "_" + strconv.FormatInt(id, 10) }

func (f *Forge) wireUser(a *account) *wireUser {
	if a == nil {
		return nil
	}
	return &wireUser{
		Login: a.login, ID: a.id, NodeID: nodeID("U", a.id), Type: a.kind,
		URL: f.url + "/users/" + a.login, HTMLURL: f.url + "/" + a.login,
	}
}

// wireRepo shows a repository to an account; nil shows no permissions.
func (f *Forge) wireRepo(r *repository, to *account) *wireRepo {
	w := &wireRepo{
		ID: r.id, NodeID: nodeID("R", r.id), Name: r.name, FullName: r.fullName(), Private: true,
		Owner: f.wireUser(r.owner), HTMLURL: f.url + "/" + r.fullName(), Fork: r.parent != nil,
		URL: f.repoURL(r), CloneURL: f.url + "/" + r.fullName() + ".git",
		GitURL:    "git" + strings.TrimPrefix(f.url, "http") + "/" + r.fullName() + ".git",
		CreatedAt: r.created, PushedAt: r.pushed, UpdatedAt: r.pushed,
		DefaultBranch: r.branch, Visibility: "private", Archived: r.archived, repoMerging: &repoMerging{DeleteMerged: r.deleteMerged},
	}
	for _, m := range r.methods {
		w.AllowMerge = w.AllowMerge || m == "merge"
		w.AllowSquash = w.AllowSquash || m == "squash"
		w.AllowRebase = w.AllowRebase || m == "rebase"
	}
	if to != nil {
		p := r.permissionOf(to)
		w.Permissions = &wirePermissions{Admin: p >= Admin, Maintain: p >= Admin, Push: p >= Write, Triage: p >= Write, Pull: p >= Read}
	}
	return w
}

// wireMinimalRepo is a repository where GitHub shows it beside something else: without how it
// merges.
func (f *Forge) wireMinimalRepo(r *repository) *wireRepo {
	w := f.wireRepo(r, nil)
	w.repoMerging = nil
	return w
}

func (f *Forge) repoURL(r *repository) string { return f.url + "/repos/" + r.fullName() }

func (f *Forge) wireLabel(r *repository, name string) wireLabel {
	l := f.ensureLabel(r, name)
	return wireLabel{ID: l.ID, NodeID: nodeID("LA", l.ID), URL: f.repoURL(r) + "/labels/" + name, Name: l.Name, Color: l.Color}
}

// wirePull is a pull request as lists show it.
func (f *Forge) wirePull(p *pull) *wirePull {
	state := "closed"
	if p.open {
		state = "open"
	}
	w := &wirePull{
		ID: p.id, NodeID: nodeID("PR", p.id), Number: p.number, URL: f.pullURL(p), HTMLURL: f.pullPage(p),
		IssueURL: f.issueURL(p), State: state, Title: p.title, Body: orNull(p.body), User: f.wireUser(p.author),
		CreatedAt: p.created, UpdatedAt: p.updated, ClosedAt: timeOrNull(p.closed), MergedAt: timeOrNull(p.mergedAt),
		MergeCommitSHA: orNull(p.mergeSHA), AutoMerge: f.wireAutoMerge(p), Assignees: []*wireUser{}, Labels: []wireLabel{}, Draft: p.draft,
		Head:        f.wireBranch(p.headRepo, p.branch, p.head),
		Base:        f.wireBranch(p.repo, p.base, p.baseSHA),
		Association: authorAssociation(p.repo, p.author),
		Reviewers:   []*wireUser{}, Teams: []wireTeam{},
	}
	for _, a := range p.reviewers {
		w.Reviewers = append(w.Reviewers, f.wireUser(a))
	}
	for _, t := range p.teams {
		w.Teams = append(w.Teams, wireTeamOf(t))
	}
	for _, l := range p.labels {
		w.Labels = append(w.Labels, f.wireLabel(p.repo, l))
	}
	return w
}

// wirePullWithDetail is a pull request by itself. Asking for it starts the
// computation of its mergeability.
func (f *Forge) wirePullWithDetail(p *pull) (*wirePull, error) {
	mergeable, state, err := f.computeMergeability(p)
	if err != nil {
		return nil, err
	}
	w := f.wirePull(p)
	w.wirePullDetail = &wirePullDetail{
		Merged: p.merged, Mergeable: mergeable, Rebaseable: mergeable, MergeableState: state,
		MergedBy: f.wireUser(p.mergedBy), Comments: len(p.comments), Commits: len(p.commits),
	}
	return w, nil
}

func (f *Forge) wireBranch(r *repository, branch, sha string) wireBranch {
	return wireBranch{Label: r.owner.login + ":" + branch, Ref: branch, SHA: sha, User: f.wireUser(r.owner), Repo: f.wireRepo(r, nil)}
}

func (f *Forge) pullURL(p *pull) string {
	return fmt.Sprintf("%s/pulls/%d", f.repoURL(p.repo), p.number)
}
func (f *Forge) issueURL(p *pull) string {
	return fmt.Sprintf("%s/issues/%d", f.repoURL(p.repo), p.number)
}
func (f *Forge) pullPage(p *pull) string {
	if f.face == GitLab {
		return fmt.Sprintf("%s/%s/-/merge_requests/%d", f.url, p.repo.fullName(), p.number)
	}
	return fmt.Sprintf("%s/%s/pull/%d", f.url, p.repo.fullName(), p.number)
}

func (f *Forge) wireReview(p *pull, v *review) wireReview {
	return wireReview{
		ID: v.id, NodeID: nodeID("PRR", v.id), User: f.wireUser(v.user), Body: v.body, State: v.state,
		HTMLURL:     fmt.Sprintf("%s#pullrequestreview-%d", f.pullPage(p), v.id),
		SubmittedAt: v.at, CommitID: v.commit, Association: authorAssociation(p.repo, v.user),
	}
}

func (f *Forge) wireComment(c *comment) wireComment {
	return wireComment{
		ID: c.id, NodeID: nodeID("IC", c.id), URL: fmt.Sprintf("%s/issues/comments/%d", f.repoURL(c.pull.repo), c.id),
		HTMLURL: fmt.Sprintf("%s#issuecomment-%d", f.pullPage(c.pull), c.id), IssueURL: f.issueURL(c.pull),
		User: f.wireUser(c.user), Body: c.body, CreatedAt: c.created, UpdatedAt: c.updated,
		Association: authorAssociation(c.pull.repo, c.user), Reactions: wireReactionCount{len(c.reactions)},
	}
}

func (f *Forge) wireReaction(r *reaction) wireReaction {
	return wireReaction{ID: r.id, NodeID: nodeID("REA", r.id), User: f.wireUser(r.user), Content: r.content, At: r.at}
}

func (f *Forge) wireStatus(r *repository, sha string, s *status) wireStatus {
	return wireStatus{
		ID: s.id, NodeID: nodeID("SC", s.id), URL: f.repoURL(r) + "/statuses/" + sha, State: s.state,
		Description: orNull(s.description), TargetURL: orNull(s.target), Context: s.context,
		CreatedAt: s.at, UpdatedAt: s.at, Creator: f.wireUser(s.creator),
	}
}

func authorAssociation(r *repository, a *account) string {
	switch p := r.permissionOf(a); {
	case a.id == r.owner.id:
		return "OWNER"
	case p >= Read:
		return "COLLABORATOR"
	default:
		return "NONE"
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

package webhooks

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// GitHub is the forge type of GitHub and GitHub Enterprise Server.
const GitHub = "github"

// github follows "Validating webhook deliveries" and "Webhook events and
// payloads" of GitHub's documentation. The signature covers the body as it was
// sent, also where the hook is configured to send forms.
var github = dialect{
	name:      GitHub,
	delivery:  headerValue("X-GitHub-Delivery"),
	eventName: func(h http.Header) string { return h.Get("X-GitHub-Event") },
	authenticate: signedBody(func(h http.Header) string {
		if hex, ok := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256="); ok {
			return hex
		}
		return ""
	}),
	forms: true,
	parse: parseGitHub,
}

// githubPayload is the union of the fields that are read of GitHub's payloads.
type githubPayload struct {
	Action     string     `json:"action"`
	Repository repository `json:"repository"`
	Sender     account    `json:"sender"`

	// push
	Ref     string `json:"ref"`
	Before  string `json:"before"`
	After   string `json:"after"`
	Deleted bool   `json:"deleted"`

	// pull_request, pull_request_review
	Number      int                `json:"number"`
	PullRequest pullRequestPayload `json:"pull_request"`

	// issue_comment: an issue is a pull request when it has a pull_request
	Issue struct {
		Number      int             `json:"number"`
		PullRequest json.RawMessage `json:"pull_request"`
	} `json:"issue"`

	// status
	SHA      string `json:"sha"`
	State    string `json:"state"`
	Context  string `json:"context"`
	Branches []struct {
		Name string `json:"name"`
	} `json:"branches"`

	// check_run (whose suite names the branch), check_suite
	CheckRun struct {
		Name         string               `json:"name"`
		HeadSHA      string               `json:"head_sha"`
		PullRequests []pullRequestPayload `json:"pull_requests"`
		CheckSuite   checkSuite           `json:"check_suite"`
	} `json:"check_run"`
	CheckSuite checkSuite `json:"check_suite"`

	// merge_group
	MergeGroup struct {
		HeadRef string `json:"head_ref"`
		HeadSHA string `json:"head_sha"`
		BaseSHA string `json:"base_sha"`
	} `json:"merge_group"`

	// repository: what it was before it was renamed or transferred
	Changes struct {
		Repository struct {
			Name formerText `json:"name"`
		} `json:"repository"`
		Owner struct {
			From struct {
				User         account `json:"user"`
				Organization account `json:"organization"`
			} `json:"from"`
		} `json:"owner"`
	} `json:"changes"`

	// package, registry_package
	Package         githubPackage `json:"package"`
	RegistryPackage githubPackage `json:"registry_package"`

	// installation, installation_repositories; installation_target has the account beside it
	Installation struct {
		ID      int64   `json:"id"`
		Account account `json:"account"`
	} `json:"installation"`
	Account account `json:"account"`
}

var githubFields = fieldsOf(reflect.TypeFor[githubPayload]())

// githubPackage is one of GitHub's packages. Of images, and of nothing else, the version's address has a registry.
type githubPackage struct {
	Type    string `json:"package_type"`
	Version struct {
		Address string `json:"package_url"`
	} `json:"package_version"`
}

// image is the repository of an image, with its registry; empty where the package is none.
func (g *githubPackage) image() string {
	name, _, _ := strings.Cut(g.Version.Address, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	if !strings.EqualFold(g.Type, "container") || !strings.Contains(name, "/") {
		return ""
	}
	return name
}

type formerText struct {
	From string `json:"from"`
}

type checkSuite struct {
	HeadBranch   string               `json:"head_branch"`
	HeadSHA      string               `json:"head_sha"`
	PullRequests []pullRequestPayload `json:"pull_requests"`
}

func parseGitHub(name string, body []byte) (*Event, error) {
	if !slices.Contains([]string{"branch_protection_rule", "repository_ruleset", "push", "pull_request", "pull_request_review",
		"issue_comment", "status", "check_run", "check_suite", "installation", "installation_repositories", "installation_target",
		"merge_group", "repository", "package", "registry_package"}, name) {
		return parseEnvelope(name, body)
	}
	var p githubPayload
	if err := decodeObject(body, githubFields, &p); err != nil {
		return nil, err
	}
	e := &Event{Kind: Other, Action: p.Action, Repo: p.Repository.FullName, RepoID: p.Repository.ID, Sender: p.Sender.Login}
	switch name {
	case "installation", "installation_repositories", "installation_target":
		// They are about an owner; one that names a repository means it as a part of that.
		e.Kind, e.Repo, e.RepoID = Installation, "", 0
		e.InstallationID, e.Owner = p.Installation.ID, cmp.Or(p.Installation.Account.Login, p.Account.Login)
	case "repository":
		e.Kind, e.Former = Repository, p.formerName()
	case "package", "registry_package":
		e.addImage(cmp.Or(p.Package.image(), p.RegistryPackage.image()))
	case "merge_group":
		// A group is a branch of GitHub's own; one that is gone needs nothing.
		if p.Action == "checks_requested" {
			e.setPush(p.MergeGroup.HeadRef, p.MergeGroup.BaseSHA, p.MergeGroup.HeadSHA, false)
		}
	case "branch_protection_rule", "repository_ruleset":
		e.Kind = Rules
	case "push":
		e.setPush(p.Ref, p.Before, p.After, p.Deleted)
	case "pull_request", "pull_request_review":
		e.setPullRequest(p.Number, p.PullRequest)
		if name == "pull_request_review" {
			e.Kind = Review
		}
	case "issue_comment":
		// A comment on a plain issue concerns nobody here.
		if r := string(p.Issue.PullRequest); r != "" && r != "null" {
			e.Kind, e.Number = Comment, p.Issue.Number
		}
	case "status":
		e.Kind, e.Commit, e.Action = Status, p.SHA, p.State
		e.setContext(p.Context)
		if len(p.Branches) == 1 {
			e.HeadBranch = p.Branches[0].Name
		}
	case "check_run":
		e.setContext(p.CheckRun.Name)
		e.setCheckRun(p.CheckRun.HeadSHA, p.CheckRun.CheckSuite.HeadBranch, p.CheckRun.PullRequests)
	case "check_suite":
		e.setCheckRun(p.CheckSuite.HeadSHA, p.CheckSuite.HeadBranch, p.CheckSuite.PullRequests)
	}
	return e, nil
}

// formerName is what a repository that was renamed or transferred was called; empty where it
// wasn't, or that isn't said.
func (g *githubPayload) formerName() string {
	owner, name, ok := strings.Cut(g.Repository.FullName, "/")
	from := g.Changes.Owner.From
	formerOwner, formerName := cmp.Or(from.Organization.Login, from.User.Login, owner), cmp.Or(g.Changes.Repository.Name.From, name)
	if !ok || formerOwner == owner && formerName == name {
		return ""
	}
	return formerOwner + "/" + formerName
}

// setCheckRun fills in a check run or suite. Its pull requests are those of this
// repository only; with more than one, the commit is the key.
func (e *Event) setCheckRun(commit, branch string, pulls []pullRequestPayload) {
	e.Kind, e.Commit, e.HeadBranch = Status, commit, branch
	if len(pulls) == 1 {
		e.Number = pulls[0].Number
	}
}

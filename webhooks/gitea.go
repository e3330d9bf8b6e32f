package webhooks

import (
	"cmp"
	"net/http"
	"reflect"
)

// Gitea is the forge type of Gitea and Forgejo.
const Gitea = "gitea"

// gitea follows Gitea 1.23 (services/webhook/deliver.go, notifier.go). Its X-Gitea-Event is coarse
// and its X-Gitea-Event-Type fine. A comment on a pull request is "issue_comment" in one and
// "pull_request_comment" in the other, while "pull_request_comment" in the coarse one is a review.
// A form-encoded body is signed before it is encoded, so its signature can't be checked without
// interpreting unverified bytes: forms are refused.
var gitea = dialect{
	name:         Gitea,
	delivery:     headerValue("X-Gitea-Delivery"),
	eventName:    func(h http.Header) string { return cmp.Or(h.Get("X-Gitea-Event-Type"), h.Get("X-Gitea-Event")) },
	authenticate: signedBody(func(h http.Header) string { return h.Get("X-Gitea-Signature") }),
	parse:        parseGitea,
}

// giteaPayload is the union of the fields that are read of Gitea's payloads.
type giteaPayload struct {
	Action     string     `json:"action"`
	Repository repository `json:"repository"`
	Sender     account    `json:"sender"`

	// push, create, delete: ref is full in the first and short in the others
	Ref     string `json:"ref"`
	RefType string `json:"ref_type"`
	Before  string `json:"before"`
	After   string `json:"after"`

	// pull requests and their reviews
	Number      int                `json:"number"`
	PullRequest pullRequestPayload `json:"pull_request"`
	Review      struct {
		Type string `json:"type"`
	} `json:"review"`

	// comments
	Issue struct {
		Number int `json:"number"`
	} `json:"issue"`
	IsPull bool `json:"is_pull"`

	// status, and create's commit
	SHA     string `json:"sha"`
	State   string `json:"state"`
	Context string `json:"context"`
}

var giteaFields = fieldsOf(reflect.TypeFor[giteaPayload]())

func parseGitea(name string, body []byte) (*Event, error) {
	switch name {
	case "push", "create", "delete", "status", "issue_comment",
		"pull_request", "pull_request_assign", "pull_request_label", "pull_request_milestone",
		"pull_request_sync", "pull_request_review_request", "pull_request_comment",
		"pull_request_review_approved", "pull_request_review_rejected", "pull_request_review_comment",
		"pull_request_approved", "pull_request_rejected":
	default:
		return parseEnvelope(name, body)
	}
	var p giteaPayload
	if err := decodeObject(body, giteaFields, &p); err != nil {
		return nil, err
	}
	e := &Event{Kind: Other, Action: p.Action, Repo: p.Repository.FullName, RepoID: p.Repository.ID, Sender: p.Sender.Login}
	switch name {
	case "push":
		e.setPush(p.Ref, p.Before, p.After, false)
	case "create":
		e.setPush(giteaRef(p), "", p.SHA, false)
	case "delete":
		// Gitea sends no push for a deletion.
		e.setPush(giteaRef(p), "", "", true)
	case "status":
		e.Kind, e.Commit, e.Action = Status, p.SHA, p.State
		e.setContext(p.Context)
	case "issue_comment", "pull_request_comment":
		switch {
		case p.Review.Type != "":
			e.giteaPull(p, Review)
		case p.IsPull:
			e.giteaPull(p, Comment)
		}
	case "pull_request_review_approved", "pull_request_review_rejected", "pull_request_review_comment",
		"pull_request_approved", "pull_request_rejected":
		e.giteaPull(p, Review)
	default:
		e.giteaPull(p, PullRequest)
	}
	return e, nil
}

// giteaRef is the full name of the ref that a create or delete is about.
func giteaRef(p giteaPayload) string {
	if p.RefType == "branch" {
		return "refs/heads/" + p.Ref
	}
	return "refs/tags/" + p.Ref
}

// giteaPull fills in a pull request. Its head's ref becomes refs/pull/N/head
// once the branch is gone; the label stays the branch's name.
func (e *Event) giteaPull(p giteaPayload, kind Kind) {
	if p.PullRequest.Head.Label != "" {
		p.PullRequest.Head.Ref = p.PullRequest.Head.Label
	}
	e.setPullRequest(p.Number, p.PullRequest)
	e.Kind, e.Number = kind, cmp.Or(e.Number, p.Issue.Number)
}

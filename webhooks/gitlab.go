package webhooks

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// GitLab is the forge type of GitLab, gitlab.com's and self-managed.
const GitLab = "gitlab"

// gitlab follows "Webhooks" and "Webhook events" of GitLab's documentation. A hook with a
// secret token sends the token itself; one with a signing token (GitLab 19.0) signs by
// Standard Webhooks. GitLab switches a hook off whose deliveries are refused again and
// again, so an authentic one is acknowledged although it can't be read.
var gitlab = dialect{
	name:         GitLab,
	delivery:     gitlabDelivery,
	eventName:    func(h http.Header) string { return h.Get("X-Gitlab-Event") },
	authenticate: authenticateGitLab,
	checkSecret:  checkGitLabSecret,
	acknowledge:  true,
	parse:        parseGitLab,
}

// gitlabDelivery is the identity that GitLab keeps over repetitions of a delivery. Before 17.4
// there is none, and the event's UUID is shared by all deliveries of one event, so the body stands
// for it.
func gitlabDelivery(h http.Header, body []byte) string {
	if id := cmp.Or(h.Get("Idempotency-Key"), h.Get("Webhook-Id")); id != "" {
		return id
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q ", h.Get("X-Gitlab-Webhook-UUID"), h.Get("X-Gitlab-Event-UUID"))
	sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil))
}

const (
	// signingTokenPrefix begins GitLab's signing tokens; what follows is the key in Base64.
	signingTokenPrefix = "whsec_"

	// signatureAge is how far a signature's time may be from ours, so that a recorded delivery
	// isn't good for ever (Standard Webhooks leaves the number open).
	signatureAge = 5 * time.Minute

	// maxSignatures bounds how many signatures of one delivery are tried: one for each key
	// while keys are changed.
	maxSignatures = 8
)

// signingKey is the key of a signing token; false when the secret is none.
func signingKey(secret []byte) ([]byte, bool) {
	text, ok := strings.CutPrefix(string(secret), signingTokenPrefix)
	if !ok {
		return nil, false
	}
	key, err := base64.StdEncoding.DecodeString(text)
	return key, err == nil && len(key) > 0
}

func checkGitLabSecret(secret []byte) error {
	if _, ok := signingKey(secret); !ok && strings.HasPrefix(string(secret), signingTokenPrefix) {
		return fmt.Errorf("begins with %s as a signing token does, and what follows is not Base64", signingTokenPrefix)
	}
	return nil
}

// authenticateGitLab takes a delivery with one of the secrets as its token, or signed with
// one that is a signing token.
func authenticateGitLab(h http.Header, secrets [][]byte, now time.Time) (verifyBody, bool) {
	if token := h.Get("X-Gitlab-Token"); token != "" && isSecret(secrets, token) {
		return func([]byte) bool { return true }, true
	}
	id, at := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || id == "" || age > signatureAge || age < -signatureAge {
		return nil, false
	}
	sums := decodeStandardSignatures(h.Get("Webhook-Signature"))
	return func(body []byte) bool {
		matches := 0
		for _, secret := range secrets {
			key, ok := signingKey(secret)
			if !ok {
				continue
			}
			mac := hmac.New(sha256.New, key)
			fmt.Fprintf(mac, "%s.%s.", id, at)
			mac.Write(body)
			want := mac.Sum(nil)
			for _, sum := range sums {
				matches |= subtle.ConstantTimeCompare(want, sum)
			}
		}
		return matches == 1
	}, len(sums) > 0
}

// isSecret says whether a token is one of the secrets. How long it takes says nothing of
// them, their lengths included. A signing token is never sent, so it is none.
func isSecret(secrets [][]byte, token string) bool {
	sum, matches := sha256.Sum256([]byte(token)), 0
	for _, secret := range secrets {
		want := sha256.Sum256(secret)
		if _, signs := signingKey(secret); !signs {
			matches |= subtle.ConstantTimeCompare(want[:], sum[:])
		}
	}
	return matches == 1
}

// decodeStandardSignatures reads the signatures of version 1 in a header of Standard
// Webhooks: "v1,BASE64", several separated by spaces.
func decodeStandardSignatures(header string) (sums [][]byte) {
	for i, s := range strings.SplitN(header, " ", maxSignatures+1) {
		text, ok := strings.CutPrefix(s, "v1,")
		if sum, err := base64.StdEncoding.DecodeString(text); ok && i < maxSignatures && err == nil && len(sum) == sha256.Size {
			sums = append(sums, sum)
		}
	}
	return sums
}

// gitlabPayload is the union of the fields that are read of GitLab's payloads.
type gitlabPayload struct {
	Project      gitlabProject `json:"project"`
	User         gitlabUser    `json:"user"`
	UserUsername string        `json:"user_username"` // of a push

	// push, tag_push
	Ref    string `json:"ref"`
	Before string `json:"before"`
	After  string `json:"after"`

	Attributes   gitlabObject `json:"object_attributes"` // what the event is about
	MergeRequest gitlabObject `json:"merge_request"`     // a note's or a pipeline's

	// a pipeline's jobs, and the statuses that others set on its commit
	Builds []struct {
		Name string `json:"name"`
	} `json:"builds"`
}

type (
	gitlabProject struct {
		ID   int64  `json:"id"`
		Path string `json:"path_with_namespace"`
	}
	gitlabUser struct {
		Username string `json:"username"`
	}
	// gitlabObject is a merge request, a note or a pipeline.
	gitlabObject struct {
		Action string `json:"action"`

		// a merge request
		IID             int    `json:"iid"`
		SourceBranch    string `json:"source_branch"`
		SourceProjectID int64  `json:"source_project_id"`
		TargetProjectID int64  `json:"target_project_id"`
		LastCommit      struct {
			ID string `json:"id"`
		} `json:"last_commit"`

		NoteableType string `json:"noteable_type"` // what a note is about

		// a pipeline
		Ref    string `json:"ref"`
		Tag    bool   `json:"tag"`
		SHA    string `json:"sha"`
		Status string `json:"status"`
	}
)

// gitlabKind is what says which payload it is: the header has one name for several, and a
// system hook's has always the same.
type gitlabKind struct {
	Kind  string `json:"object_kind"`
	Event string `json:"event_name"` // where there is no kind
}

var gitlabFields, gitlabKindFields = fieldsOf(reflect.TypeFor[gitlabPayload]()), fieldsOf(reflect.TypeFor[gitlabKind]())

func parseGitLab(_ string, body []byte) (*Event, error) {
	var k gitlabKind
	if err := decodeObject(body, gitlabKindFields, &k); err != nil {
		return nil, err
	}
	kind := cmp.Or(k.Kind, k.Event)
	switch kind {
	case "push", "tag_push", "merge_request", "note", "pipeline":
	default:
		return parseGitLabEnvelope(body)
	}
	var p gitlabPayload
	if err := decodeObject(body, gitlabFields, &p); err != nil {
		return nil, err
	}
	e := &Event{Kind: Other, Action: p.Attributes.Action, Repo: p.Project.Path, RepoID: p.Project.ID,
		Sender: cmp.Or(p.User.Username, p.UserUsername)}
	switch kind {
	case "push", "tag_push":
		e.setPush(p.Ref, p.Before, p.After, false)
	case "merge_request":
		e.setMergeRequest(PullRequest, p.Attributes)
		switch p.Attributes.Action {
		case "approval", "approved", "unapproval", "unapproved":
			e.Kind = Review
		}
	case "note":
		if p.Attributes.NoteableType == "MergeRequest" {
			e.setMergeRequest(Comment, p.MergeRequest)
		}
	case "pipeline":
		e.setMergeRequest(Status, p.MergeRequest)
		e.Commit, e.Action = p.Attributes.SHA, p.Attributes.Status
		if len(p.Builds) == 1 {
			e.setContext(p.Builds[0].Name)
		}
		if e.HeadBranch == "" && !p.Attributes.Tag {
			e.HeadBranch = p.Attributes.Ref
		}
	}
	return e, nil
}

// setMergeRequest fills in a merge request; where there is none nothing.
func (e *Event) setMergeRequest(kind Kind, m gitlabObject) {
	e.Kind, e.Number, e.HeadBranch, e.Commit = kind, m.IID, m.SourceBranch, m.LastCommit.ID
	e.Fork = m.SourceProjectID != m.TargetProjectID
}

// parseGitLabEnvelope reads the common part of payloads, for events that are otherwise unknown. One
// may use these words for something else, and parts that don't fit are left out.
func parseGitLabEnvelope(body []byte) (*Event, error) {
	var p struct {
		Project json.RawMessage `json:"project"`
		User    json.RawMessage `json:"user"`
	}
	if err := decodeObject(body, gitlabEnvelopeFields, &p); err != nil {
		return nil, err
	}
	var project gitlabProject
	var user gitlabUser
	e := &Event{Kind: Other}
	if json.Unmarshal(p.Project, &project) == nil {
		e.Repo, e.RepoID = project.Path, project.ID
	}
	if json.Unmarshal(p.User, &user) == nil {
		e.Sender = user.Username
	}
	return e, nil
}

var gitlabEnvelopeFields = fieldsOf(reflect.TypeFor[struct {
	Project gitlabProject `json:"project"`
	User    gitlabUser    `json:"user"`
}]())

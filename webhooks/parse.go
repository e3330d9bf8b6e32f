package webhooks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// payloadParser is what differs between forges once the bytes are known.
type payloadParser func(name string, body []byte) (*Event, error)

// Parse reads an authentic payload. name is the forge's own name of the event,
// as its header says it; an unknown name gives an event of kind Other. The body
// must be a JSON object: anything else, and values of the wrong type, are an
// error, which names the field but not its value. Safe for concurrent use.
func Parse(forgeType, delivery, name string, body []byte) (*Event, error) {
	d, err := dialectOf(forgeType)
	if err != nil {
		return nil, err
	}
	return d.parseEvent(delivery, name, body)
}

func (d dialect) parseEvent(delivery, name string, body []byte) (*Event, error) {
	if err := cmp.Or(checkText("event name", name), checkText("delivery id", delivery)); err != nil {
		return nil, err
	}
	e, err := d.parse(name, body)
	if err != nil {
		return nil, err
	}
	e.Forge, e.Delivery, e.Name = d.name, delivery, name
	if err := e.checkFields(); err != nil {
		return nil, err
	}
	return e, nil
}

// decodeObject reads the fields of a JSON object into v, whose they are. The errors of
// encoding/json can quote the body; these don't.
func decodeObject(body []byte, fields *fieldSet, v any) error {
	body, err := pruneObject(body, fields)
	if err != nil {
		return err
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(body, v); {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return fmt.Errorf("the payload's %q has the wrong type", wrong.Field)
	default:
		return errors.New("the payload is not JSON")
	}
}

// branchOf gives the branch of a full ref name; nothing for a tag.
func branchOf(ref string) string {
	if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
		return branch
	}
	return ""
}

// isZero says whether a commit id is the one that stands for "none".
func isZero(commit string) bool {
	return commit != "" && strings.Trim(commit, "0") == ""
}

// The parts that the payloads of the known forges share. Everything is a plain
// value: what is missing or null is empty, and nothing can be dereferenced.
type (
	account struct {
		Login string `json:"login"`
	}
	repository struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	}
	pullHead struct {
		Label string     `json:"label"`
		Ref   string     `json:"ref"`
		SHA   string     `json:"sha"`
		Repo  repository `json:"repo"`
	}
	pullRequestPayload struct {
		Number int      `json:"number"`
		Head   pullHead `json:"head"`
	}
)

// setPush fills in a branch's or tag's move.
func (e *Event) setPush(ref, before, after string, deleted bool) {
	e.Kind, e.Branch, e.Before, e.After = Push, branchOf(ref), before, after
	e.Deleted = deleted || isZero(after)
}

// setPullRequest fills in a pull request. A head without a repository is a fork that has
// been deleted.
func (e *Event) setPullRequest(number int, p pullRequestPayload) {
	e.Kind, e.Number, e.HeadBranch, e.Commit = PullRequest, cmp.Or(number, p.Number), p.Head.Ref, p.Head.SHA
	e.Fork = p.Head.SHA != "" && !strings.EqualFold(p.Head.Repo.FullName, e.Repo)
}

// envelopeFields are what is read of events that nothing more is known about.
var envelopeFields = fieldsOf(reflect.TypeFor[struct {
	Action     string     `json:"action"`
	Repository repository `json:"repository"`
	Sender     account    `json:"sender"`
}]())

// parseEnvelope reads only what every payload has, of events that nothing more
// is known about.
func parseEnvelope(name string, body []byte) (*Event, error) {
	var p struct {
		Action     json.RawMessage `json:"action"`
		Repository json.RawMessage `json:"repository"`
		Sender     json.RawMessage `json:"sender"`
	}
	if err := decodeObject(body, envelopeFields, &p); err != nil {
		return nil, err
	}
	// An unknown event may use these words for something else: what doesn't fit is left out.
	e := &Event{Kind: Other}
	var r repository
	var s account
	if json.Unmarshal(p.Action, &e.Action) != nil {
		e.Action = ""
	}
	if json.Unmarshal(p.Repository, &r) == nil {
		e.Repo, e.RepoID = r.FullName, r.ID
	}
	if json.Unmarshal(p.Sender, &s) == nil {
		e.Sender = s.Login
	}
	if name == "ping" {
		e.Kind = Ping
	}
	return e, nil
}

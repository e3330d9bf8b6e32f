package webhooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Registry is the type of container registries, whichever: what they send tells them apart.
const Registry = "registry"

// maxImages bounds the repositories of one delivery; what is beyond that is found by polling.
const maxImages = 100

// containerRegistry follows what registries send when something was pushed: distribution and GitLab's own registry
// ("Work with notifications"), Harbor in both of its formats ("Configure Webhook Notifications"), Quay ("Repository
// Notifications") and Docker Hub ("Webhooks").
//
// None of them signs. Those that send headers send the secret as Authorization. Docker Hub and Quay send none, so there
// the secret is a parameter of the address.
var containerRegistry = dialect{
	name:           Registry,
	delivery:       hashOfBody,
	eventName:      func(http.Header) string { return "push" },
	authenticate:   authenticateToken,
	tokenParameter: "token",
	contentTypes: []string{"application/vnd.docker.distribution.events.v2+json", "application/vnd.docker.distribution.events.v1+json",
		"application/cloudevents+json"},
	parse: parseRegistry,
}

// hashOfBody stands for the identity that registries don't send. It tells no deliveries apart: two pushes of one tag may
// look the same.
func hashOfBody(_ http.Header, body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

// authenticateToken takes a delivery that has one of the secrets as its Authorization: by itself, as Bearer, or as the
// password of Basic.
func authenticateToken(h http.Header, secrets [][]byte, _ time.Time) (verifyBody, bool) {
	value := h.Get("Authorization")
	if _, password, is := (&http.Request{Header: h}).BasicAuth(); is {
		value = password
	} else if token, is := strings.CutPrefix(value, "Bearer "); is {
		value = token
	}
	return func([]byte) bool { return true }, value != "" && isSecret(secrets, value)
}

// registryPayload is the union of the fields that are read of registries' payloads.
type registryPayload struct {
	// distribution
	Events []struct {
		Action string `json:"action"`
		Target struct {
			Repository string `json:"repository"`
		} `json:"target"`
	} `json:"events"`

	// Harbor: type is PUSH_ARTIFACT, or harbor.artifact.pushed with data in the place of event_data
	Type      string      `json:"type"`
	EventData harborEvent `json:"event_data"`
	Data      harborEvent `json:"data"`

	// Quay: repository is text, beside docker_url; Docker Hub: it is an object, beside push_data
	Repository json.RawMessage `json:"repository"`
	DockerURL  string          `json:"docker_url"`
	PushData   struct {
		Tag string `json:"tag"`
	} `json:"push_data"`
}

type harborEvent struct {
	Repository struct {
		FullName string `json:"repo_full_name"`
	} `json:"repository"`
}

var registryFields = fieldsOf(reflect.TypeFor[registryPayload]())

// parseRegistry reads which repositories of a registry something was pushed to, without the registry's own name.
func parseRegistry(_ string, body []byte) (*Event, error) {
	var p registryPayload
	if err := decodeObject(body, registryFields, &p); err != nil {
		return nil, err
	}
	e := &Event{Kind: Other}
	for i := range p.Events {
		if p.Events[i].Action == "push" {
			e.addImage(p.Events[i].Target.Repository)
		}
	}
	if strings.Contains(strings.ToLower(p.Type), "push") {
		e.addImage(p.EventData.Repository.FullName)
		e.addImage(p.Data.Repository.FullName)
	}
	var name string
	var hub struct {
		Name string `json:"repo_name"`
	}
	switch {
	case p.DockerURL != "" && json.Unmarshal(p.Repository, &name) == nil:
		e.addImage(name)
	case p.PushData.Tag != "" && json.Unmarshal(p.Repository, &hub) == nil:
		e.addImage(hub.Name)
	}
	return e, nil
}

// imagePath is what repositories of images may be called (distribution's reference: grammar), with a registry's name or
// without.
var imagePath = regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]{0,254}$`)

// addImage adds a repository to which something was pushed. What can't be one says nothing.
func (e *Event) addImage(path string) {
	path = strings.ToLower(path)
	if len(e.Images) < maxImages && imagePath.MatchString(path) && !slices.Contains(e.Images, path) {
		e.Kind, e.Images = ImagePush, append(e.Images, path)
	}
}

package onboard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/liftlock/liftlock/internal/appset"
)

// Command is the argument that makes our program read a [Request] from its standard input and write
// a [Proposal] to its standard output.
const Command = "propose"

// Request says what a pipeline file is to be proposed for. It goes to a process of its own as JSON.
type Request struct {
	Repository string            `json:"repository"` // "forge:owner/name"
	GitDir     string            `json:"gitDir"`     // with its objects; only read
	Branch     string            `json:"branch"`     // the tracked one
	Commit     string            `json:"commit"`     // where it is
	Heads      map[string]string `json:"heads"`      // of the branches, without Liftlock's own
	URLs       []string          `json:"urls"`       // by which manifests may name it

	// These are what is known of the Argo CD of targets that name none.
	Clusters []appset.Cluster `json:"clusters"` // nil: not known
	Globbing string           `json:"globbing,omitempty"`
	Version  appset.Version   `json:"version"`
	Sets     []appset.LiveSet `json:"sets,omitempty"` // that run, for where the repository has none
}

// Key tells requests apart whose proposals may differ. Other branches' heads count only when the
// tracked branch moves, and of running sets only that they are there: their status changes always.
func (r *Request) Key() (string, error) {
	same := *r
	same.GitDir, same.Heads, same.Sets = "", nil, make([]appset.LiveSet, len(r.Sets))
	for i, s := range r.Sets {
		same.Sets[i] = appset.LiveSet{ArgoCD: s.ArgoCD, Namespace: s.Namespace, Name: s.Name}
	}
	text, err := json.Marshal(&same)
	if err != nil {
		return "", fmt.Errorf("write down what is proposed for: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Proposal is a pipeline file as liftlock init proposes it, with what a reader is to know.
type Proposal struct {
	// Nothing is why there is nothing to propose; the rest is empty then.
	Nothing string `json:"nothing,omitempty"`

	File string        `json:"file"` // from the repository's root
	Text string        `json:"text"`
	Open *OpenQuestion `json:"open,omitempty"` // nil: nothing is open, and the file can be used

	Components   []string   `json:"components,omitempty"`
	Environments []string   `json:"environments,omitempty"`
	Steps        [][]string `json:"steps,omitempty"` // the environments in their order; none: not known
	OrderWhy     string     `json:"orderWhy,omitempty"`
	Carry        []string   `json:"carry,omitempty"` // what a promotion moves, as the file has it

	Promotions []Promotion `json:"promotions,omitempty"` // that would open now
	Waiting    []Waiting   `json:"waiting,omitempty"`    // what else the plan says
	PlanErr    string      `json:"planErr,omitempty"`    // why there is no plan
	Notes      []string    `json:"notes,omitempty"`
}

// OpenQuestion is what a person has to say before the file can be used.
type OpenQuestion struct {
	Question string   `json:"question"`
	Options  []string `json:"options,omitempty"` // the answers to choose from
	Seen     []string `json:"seen,omitempty"`    // the candidates that were seen
	Other    string   `json:"other,omitempty"`   // what to do where none of them is it
}

// Promotion is a pull request that would open now.
type Promotion struct {
	Component   string   `json:"component"`
	Environment string   `json:"environment"`
	From        string   `json:"from"`
	To          string   `json:"to"`
	Files       []string `json:"files"`
}

// Waiting is an environment of a component into which nothing would open now.
type Waiting struct {
	Component   string `json:"component"`
	Environment string `json:"environment"`
	Why         string `json:"why"`
}

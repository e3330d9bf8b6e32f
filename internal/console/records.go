package console

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// The records of other rooms that the console reads from the store, as far as
// it needs them. They are theirs to write; a record that can't be read is shown
// as absent, never guessed.

// unitRecord is a unit as it was last judged (a store.Unit's data).
type unitRecord struct {
	Unit     promotion.Unit `json:"unit"`
	At       time.Time      `json:"at"`
	Tip      string         `json:"tip"`
	Broken   string         `json:"broken"`
	Decision struct {
		Next time.Time            `json:"next"`
		Envs []promotion.EnvState `json:"envs"`
	} `json:"decision"`
	Environments []environmentRecord `json:"environments"`
	Holds        []promotion.Hold    `json:"holds"`
}

// environmentRecord is where one of a unit's environments is in the pipeline.
type environmentRecord struct {
	Name    string                  `json:"name"`
	After   []string                `json:"after"`
	Branch  string                  `json:"branch"`
	Targets map[string]targetRecord `json:"targets"`
}

// targetRecord says which Application a target is.
type targetRecord struct {
	ID             string            `json:"id"` // argocd/namespace/name
	Cluster        string            `json:"cluster"`
	ApplicationSet string            `json:"applicationSet"`
	Labels         map[string]string `json:"labels"` // the Application's
}

// environment is where an environment is; zero where that isn't known.
func (v *unitRecord) environment(name string) (e environmentRecord) {
	if i := slices.IndexFunc(v.Environments, func(e environmentRecord) bool { return e.Name == name }); i >= 0 {
		return v.Environments[i]
	}
	return e
}

// pullRecord is a pull request in the store (a store.Pull's data).
type pullRecord struct {
	PR struct {
		URL   string
		Title string
		Head  string
	} `json:"pr"`
}

// observationRecord is what a verification remembers of one target (a
// store.Observation's data).
type observationRecord struct {
	Commit   string
	Timeline []struct {
		At    time.Time
		State string
		Note  string
	}
}

// arrivalRecord is what arrived in an environment (a store.Arrival's data).
type arrivalRecord struct {
	Content struct {
		Fields []carriedField `json:"fields"`
	} `json:"content"`
	By   string `json:"by"`
	Who  string `json:"who"`
	Pull int    `json:"pull"`
}

// carriedField is one carried field.
type carriedField struct {
	Kind  string `json:"kind"`
	File  string `json:"file"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// unitKey is the unit's key in the store.
func unitKey(u promotion.Unit) string { return u.Repo + "|" + u.Pipeline + "|" + u.Component }

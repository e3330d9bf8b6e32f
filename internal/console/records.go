package console

import (
	"fmt"
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

// evidenceRecord is why a revert was opened; it is kept as a state.
type evidenceRecord struct {
	Evidence []promotion.Evidence `json:"records"`
	By       string               `json:"by"`
	Reason   string               `json:"reason"`
}

func evidenceKey(repo string, pull int) string { return fmt.Sprintf("evidence|%s|%d", repo, pull) }

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

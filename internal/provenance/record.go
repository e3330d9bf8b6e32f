package provenance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What statements are of.
const (
	// StatementType is the type of in-toto's statements.
	StatementType = "https://in-toto.io/Statement/v1"
	// PromotionPredicate is the type of our own predicate, [Record]. A field that is added keeps the version; one that
	// changes what it says takes the next.
	PromotionPredicate = "https://liftlock.dev/promotion/v1"
	// SummaryPredicate is that of SLSA's verification summaries (slsa.dev: Verification Summary Attestation).
	SummaryPredicate = "https://slsa.dev/verification_summary/v1"
)

// Kind is what happened to a release in an environment.
type Kind string

// The kinds.
const (
	// Verified: every target took the commit and was healthy for long enough.
	Verified Kind = "verified"
	// Reverted: a revert landed and the release that it restored is verified. Record.Release is the restored one.
	Reverted Kind = "reverted"
	// Quarantined: the release degraded, and goes no further from here.
	Quarantined Kind = "quarantined"
)

// Statement is one of in-toto's, version 1.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// Subject is what a statement is about: an image by its repository and "sha256", or a repository of Git's and "gitCommit".
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Record is the predicate of our own. What isn't known is left out.
type Record struct {
	Verifier    string `json:"verifier"` // the installation's address
	Kind        Kind   `json:"kind"`
	Repository  string `json:"repository"` // on the forge, owner/name
	Pipeline    string `json:"pipeline"`
	Component   string `json:"component"`
	Environment string `json:"environment"`
	// After are the environments before this one, as the pipeline file has them; none: it is a source environment.
	After   []string `json:"after,omitempty"`
	Release Release  `json:"release"`
	// Reverted is the release that was taken out, of the kind [Reverted].
	Reverted     *Release     `json:"reverted,omitempty"`
	Commit       string       `json:"commit"` // of Git, as which it landed
	MergedAt     time.Time    `json:"mergedAt,omitzero"`
	PipelineFile PipelineFile `json:"pipelineFile"`
	PullRequest  *PullRequest `json:"pullRequest,omitempty"`
	Gates        []Gate       `json:"gates,omitempty"` // as they answered before the merge
	Targets      []Target     `json:"targets,omitempty"`
	MoreTargets  int          `json:"moreTargets,omitempty"` // how many are left out
	// Previous are the statements of the environments before this one about the same release.
	Previous []Previous `json:"previous,omitempty"`
	// Since is when it happened: the verification, or the degradation.
	Since    time.Time `json:"since"`
	IssuedAt time.Time `json:"issuedAt"`
	// Rebuilt says that the statement was made again after the record was lost.
	Rebuilt bool `json:"rebuilt,omitempty"`
}

// Release is what moved.
type Release struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"` // for people
}

// PipelineFile is the file whose rules counted.
type PipelineFile struct {
	Path   string `json:"path,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // of its bytes, in hex
	Commit string `json:"commit,omitempty"` // at which it was read
}

// PullRequest is the one by which the release came.
type PullRequest struct {
	Number     int      `json:"number"`
	URL        string   `json:"url,omitempty"`
	MadeBy     []Person `json:"madeBy,omitempty"`
	ApprovedBy []Person `json:"approvedBy,omitempty"`
	MergedBy   *Person  `json:"mergedBy,omitempty"`
}

// Person is an account of the forge.
type Person struct {
	Login string `json:"login"`
	// Account is the forge's number of it, which stays where a login changes hands; 0: not known.
	Account int64 `json:"account,omitempty"`
}

// Gate is what a gate answered.
type Gate struct {
	Name    string    `json:"name"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Target is an Application in which the release was seen.
type Target struct {
	Name    string    `json:"name"`
	Cluster string    `json:"cluster,omitempty"`
	State   string    `json:"state,omitempty"`
	Since   time.Time `json:"since,omitzero"` // since when it is so
	Images  []Image   `json:"images,omitempty"`
}

// Image is one that ran, as the cluster reports it.
type Image struct {
	Image  string `json:"image"`
	Digest string `json:"digest,omitempty"` // sha256:…
	Pods   int    `json:"pods,omitempty"`
}

// Previous is the statement of an environment before.
type Previous struct {
	Environment string `json:"environment"`
	// Digest is the sha256 of the statement's bytes, as the envelope's payload has them, in hex; empty: there was none.
	Digest string `json:"digest,omitempty"`
}

// summary is SLSA's predicate.
type summary struct {
	Verifier           summaryVerifier `json:"verifier"`
	TimeVerified       time.Time       `json:"timeVerified"`
	ResourceURI        string          `json:"resourceUri"`
	Policy             summaryInput    `json:"policy"`
	InputAttestations  []summaryInput  `json:"inputAttestations,omitempty"`
	VerificationResult string          `json:"verificationResult"`
	VerifiedLevels     []string        `json:"verifiedLevels"`
	SLSAVersion        string          `json:"slsaVersion"`
}

type summaryVerifier struct {
	ID string `json:"id"`
}

type summaryInput struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

// The results of a summary.
const (
	resultPassed = "PASSED"
	resultFailed = "FAILED"
)

// Statement is the record as a statement with our own predicate, as JSON. Times are in UTC, to the second. The error says
// which field is missing.
func (r *Record) Statement() ([]byte, error) {
	norm := r.normalize()
	if err := norm.check(); err != nil {
		return nil, err
	}
	return norm.statement(PromotionPredicate, norm)
}

// Summary is the record as a statement with SLSA's predicate, as JSON. A release in quarantine has FAILED.
func (r *Record) Summary() ([]byte, error) {
	norm := r.normalize()
	if err := norm.check(); err != nil {
		return nil, err
	}
	out := summary{
		Verifier: summaryVerifier{ID: norm.Verifier}, TimeVerified: norm.Since, ResourceURI: norm.resource(),
		Policy: summaryInput{URI: "git+" + norm.PipelineFile.Path}, VerificationResult: resultPassed,
		VerifiedLevels: []string{norm.level()}, SLSAVersion: "1.0",
	}
	out.Policy.URI = fmt.Sprintf("git+%s@%s#%s", norm.Repository, norm.PipelineFile.Commit, norm.PipelineFile.Path)
	if norm.PipelineFile.SHA256 != "" {
		out.Policy.Digest = map[string]string{"sha256": norm.PipelineFile.SHA256}
	}
	for _, before := range norm.Previous {
		if before.Digest != "" {
			out.InputAttestations = append(out.InputAttestations, summaryInput{
				URI: norm.addressOf(before.Environment), Digest: map[string]string{"sha256": before.Digest},
			})
		}
	}
	if norm.Kind == Quarantined {
		out.VerificationResult, out.VerifiedLevels = resultFailed, []string{resultFailed}
	}
	return norm.statement(SummaryPredicate, out)
}

// level is the word of a summary for what was verified: names that begin with SLSA_ are SLSA's own.
func (r *Record) level() string {
	return "LIFTLOCK_VERIFIED_IN_" + strings.ToUpper(strings.ReplaceAll(r.Environment, "-", "_"))
}

// addressOf is the address of what is recorded of an environment.
func (r *Record) addressOf(environment string) string {
	return strings.TrimSuffix(r.Verifier, "/") + "/record/" + r.Pipeline + "/" + r.Component + "/" + environment
}

func (r *Record) resource() string { return r.addressOf(r.Environment) }

// statement puts a predicate over the record's subjects.
func (r *Record) statement(kind string, predicate any) ([]byte, error) {
	raw, err := json.Marshal(predicate)
	if err != nil {
		return nil, fmt.Errorf("write the predicate of a statement: %w", err)
	}
	out, err := json.Marshal(Statement{Type: StatementType, Subject: r.subjects(), PredicateType: kind, Predicate: raw})
	if err != nil {
		return nil, fmt.Errorf("write a statement: %w", err)
	}
	if len(out) > maxPayload {
		return nil, fmt.Errorf("the statement has %d bytes, more than %d", len(out), maxPayload)
	}
	return out, nil
}

// subjects are the commit and each image that ran by digest, once, by name.
func (r *Record) subjects() []Subject {
	var out []Subject
	for _, t := range r.Targets {
		for _, image := range t.Images {
			digest, isSHA := strings.CutPrefix(image.Digest, "sha256:")
			if !isSHA {
				continue
			}
			s := Subject{Name: ImageRepository(image.Image), Digest: map[string]string{"sha256": digest}}
			if !slices.ContainsFunc(out, func(o Subject) bool { return o.Name == s.Name && o.Digest["sha256"] == digest }) {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b Subject) int {
		return strings.Compare(a.Name+"\x00"+a.Digest["sha256"], b.Name+"\x00"+b.Digest["sha256"])
	})
	return append(out, Subject{Name: r.Repository, Digest: map[string]string{"gitCommit": r.Commit}})
}

// ImageRepository is an image's name without tag and digest.
func ImageRepository(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name
}

// normalize is a copy whose times are as they are written, so that the same record has the same bytes on every machine.
func (r *Record) normalize() *Record {
	out := *r
	out.Since, out.IssuedAt, out.MergedAt = toSecond(r.Since), toSecond(r.IssuedAt), toSecond(r.MergedAt)
	out.Gates, out.Targets = slices.Clone(r.Gates), slices.Clone(r.Targets)
	for i := range out.Gates {
		out.Gates[i].At = toSecond(out.Gates[i].At)
	}
	for i := range out.Targets {
		out.Targets[i].Since = toSecond(out.Targets[i].Since)
	}
	return &out
}

func toSecond(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}

// check says what a record lacks, without which a statement says nothing.
func (r *Record) check() error {
	for _, field := range []struct{ name, value string }{
		{"verifier", r.Verifier}, {"repository", r.Repository}, {"pipeline", r.Pipeline}, {"component", r.Component},
		{"environment", r.Environment}, {"release.id", r.Release.ID}, {"commit", r.Commit},
	} {
		if field.value == "" {
			return fmt.Errorf("a statement has no %s", field.name)
		}
	}
	switch {
	case r.Since.IsZero() || r.IssuedAt.IsZero():
		return fmt.Errorf("a statement has no time")
	case r.Kind != Verified && r.Kind != Reverted && r.Kind != Quarantined:
		return fmt.Errorf("a statement has the kind %q, and not %s, %s or %s", bounded(string(r.Kind)), Verified, Reverted, Quarantined)
	case r.IssuedAt.Add(maxSkew).Before(r.Since):
		return fmt.Errorf("a statement was issued at %s, before what it states, at %s", shownTime(r.IssuedAt), shownTime(r.Since))
	}
	return nil
}

// maxSkew is by how much the clocks of two replicas, which made two statements of a chain, may differ.
const maxSkew = time.Minute

func shownTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

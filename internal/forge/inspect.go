package forge

import (
	"context"
	"time"
)

// Inspector reads how credentials, a repository and its webhook are set up, for people who set
// Liftlock up. Liftlock's own work doesn't depend on it. It changes nothing. The drivers are
// inspectors besides being forges.
type Inspector interface {
	// InspectCredentials reads what the forge says of the credentials themselves.
	InspectCredentials(ctx context.Context) (*Credentials, error)
	// InspectRepository reads a repository's settings. ErrNotFound where it isn't there or
	// can't be seen.
	InspectRepository(ctx context.Context, r Repo) (*RepositorySettings, error)
	// InspectHooks reads the webhooks that deliver to h.URL; none: there is none. Where there
	// is one for all repositories it is that one, wherever it delivers to. ErrForbidden or
	// ErrNotFound where the credentials may not see webhooks.
	InspectHooks(ctx context.Context, r Repo, h Hook) ([]HookSettings, error)
	// InspectTeam lists the logins in a team, with those in teams below it where the forge nests
	// them; complete false: there are more. ErrNotFound where the team isn't there or can't be seen.
	InspectTeam(ctx context.Context, t Team) (logins []string, complete bool, err error)
	// InspectGuard reads who may push to a branch, which needn't be there. ErrForbidden or
	// ErrNotFound where the credentials don't see that.
	InspectGuard(ctx context.Context, r Repo, branch string) (BranchGuard, error)
}

// BranchGuard is whether not everybody who may write to a repository may push to a branch.
type BranchGuard struct {
	Guarded  bool // others can neither make the branch nor move it
	Excluded bool // the credentials are among those who may not, as far as that is seen
}

// Credentials are what a forge says of credentials.
type Credentials struct {
	Missing    []MissingGrant // of what nothing works without, as far as the forge shows it
	Expires    time.Time      // zero: they don't, or the forge doesn't say
	ServerTime time.Time      // the forge's clock, in whole seconds; zero: it doesn't say
	Limit      CallLimit
}

// MissingGrant is a scope or a permission that credentials lack.
type MissingGrant struct {
	Name    string // as the forge calls it
	Without string // what fails without it
}

// CallLimit is how many calls a forge allows; the zero value: none, or it doesn't say.
type CallLimit struct {
	Calls int           // in every window
	Left  int           // in this one
	Every time.Duration // how long a window is
}

// RepositorySettings are how a repository is set up.
type RepositorySettings struct {
	Name          string         // owner/name, as the forge calls it now
	DefaultBranch string         // empty: it has no branch yet
	Archived      bool           // nothing can be written
	NoPulls       bool           // pull requests are switched off
	Methods       []string       // of merging that its settings allow: of merge, squash and rebase
	Permission    Permission     // of the credentials
	Missing       []MissingGrant // of what the credentials need in this repository
}

// HookSettings are how a webhook is set up, and how it fares.
type HookSettings struct {
	URL           string // where it delivers to
	Active        bool
	Paused        string   // the forge's word for sending it nothing after failures; empty: it sends
	MissingEvents []string // of those that are needed
	LateEvents    []string // that are missing, and without which only the forge's rules are noticed late
	WrongFormat   string   // what about its deliveries can't be read or leaves some out; empty: nothing
	Insecure      bool     // the certificate that it delivers to isn't checked
	OtherSecret   bool     // it was made with another secret than the one given; false also where that isn't known
	// LastStatus is what the newest delivery was answered: an HTTP status; 0: there was none, or
	// no answer to it, or the forge doesn't say. LastAnswer is that for people, empty where there
	// was no delivery.
	LastStatus int
	LastAnswer string
}

// IsFailing says that the newest delivery wasn't accepted.
func (h *HookSettings) IsFailing() bool { return h.LastAnswer != "" && h.LastStatus/100 != 2 }

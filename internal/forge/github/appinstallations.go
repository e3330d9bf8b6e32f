package github

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// installation is one of the App's, in an organisation or at a person's.
type installation struct {
	id          int64
	owner       string
	page        string
	suspended   bool
	permissions map[string]string // granted: read, write or admin by name
}

// InstallationChanged says that an owner has installed, suspended or removed the App, was renamed,
// or has given it other repositories. The installation is read again before its next use. It
// returns which of our repositories that concerns. For any other owner's installation nothing is
// forgotten and none returned: anybody can install a public App. id is 0, and owner empty, where it
// isn't known.
func (ap *App) InstallationChanged(id int64, owner string) []forge.Repo {
	ap.mu.Lock()
	defer ap.mu.Unlock()
	is := func(i *installation, name string) bool {
		return strings.EqualFold(name, owner) || i != nil && (i.id == id || strings.EqualFold(i.owner, owner))
	}
	var repos []forge.Repo
	for _, r := range ap.app.Repositories {
		if is(ap.installations[strings.ToLower(r.Owner)], r.Owner) {
			repos = append(repos, r)
		}
	}
	used := len(repos) > 0
	for _, t := range ap.sources {
		// Others are only read, as for their teams.
		if t.installation == id || strings.EqualFold(t.owner, owner) {
			t.drop("")
			used = true
		}
	}
	if used {
		ap.readAt = time.Time{}
	}
	return repos
}

// expireInstallations has the list read again before it is next used.
func (ap *App) expireInstallations() {
	ap.mu.Lock()
	defer ap.mu.Unlock()
	ap.readAt = time.Time{}
}

// InstallationProblem is why an installation, or a repository's part of it, rests or can't do
// all that it should.
type InstallationProblem struct {
	Where string // the owner, or the repository
	Err   error
}

// Problems are those of the repositories' owners, as far as they are known without a call. The App
// isn't installed or is suspended, isn't given a repository, or lacks a permission.
func (ap *App) Problems() []InstallationProblem {
	ap.mu.Lock()
	defer ap.mu.Unlock()
	if len(ap.installations) == 0 && ap.readAt.IsZero() {
		return nil // nobody has looked
	}
	var out []InstallationProblem
	seen := map[string]bool{}
	for _, r := range ap.app.Repositories {
		key := strings.ToLower(r.Owner)
		if seen[key] {
			continue
		}
		seen[key] = true
		i := ap.installations[key]
		switch err := ap.checkInstallation(i, r.Owner); {
		case err != nil:
			out = append(out, InstallationProblem{r.Owner, errors.New(err.Message + ": " + err.Hint)})
		case len(i.missing()) > 0:
			out = append(out, InstallationProblem{r.Owner, fmt.Errorf("the App's installation lacks the permissions %s: accept them on %s",
				strings.Join(i.missing(), ", "), i.page)})
		}
	}
	for _, t := range ap.sources {
		i := ap.installations[strings.ToLower(t.owner)]
		if ap.checkInstallation(i, t.owner) != nil || t.installation != i.id {
			continue // all of it rests, or it was installed anew since
		}
		if wrong := t.refusal(); wrong != nil && t.repo != "" {
			out = append(out, InstallationProblem{t.owner + "/" + t.repo, errors.New(wrong.Message + ": " + wrong.Hint)})
		}
	}
	slices.SortFunc(out, func(a, b InstallationProblem) int { return strings.Compare(a.Where, b.Where) })
	return out
}

// missing are the permissions that nothing works without and that weren't granted.
func (i *installation) missing() (names []string) {
	for _, q := range Permissions() {
		if !q.Optional && !grants(i.permissions[q.Name], q.Level) {
			names = append(names, q.Name+": "+q.Level)
		}
	}
	return names
}

// grants says whether a granted level includes another one.
func grants(granted, level string) bool {
	levels := []string{"", "read", "write", "admin"}
	return slices.Index(levels, granted) >= slices.Index(levels, level)
}

// checkInstallation says why an owner's installation can't be used; nil: it can. Callers hold
// mu.
func (ap *App) checkInstallation(i *installation, owner string) *forge.Error {
	e := &forge.Error{Op: "work as the App in " + owner, Kind: forge.ErrNotInstalled, RetryAfter: ap.options.Now().Add(restInterval)}
	switch {
	case ap.app.InstallationID == 0 && len(ap.app.Owners) > 0 &&
		!slices.ContainsFunc(ap.app.Owners, func(o string) bool { return strings.EqualFold(o, owner) }):
		e.Message, e.Hint = owner+" isn't among auth.app.installations", "add it there in the server's file"
	case i == nil:
		e.Message, e.Hint = "the App isn't installed in "+owner, "install it there: "+cmp.Or(ap.about.page, "on the App's page")
	case i.suspended:
		e.Message, e.Hint = "the App's installation in "+owner+" is suspended", "an owner can end that on "+i.page
	default:
		return nil
	}
	return e
}

// findInstallation is an owner's installation; ErrNotInstalled where it can't be used. With a
// repository's name, one is also found whose owner has another name by now.
func (ap *App) findInstallation(ctx context.Context, owner, repo string) (*installation, error) {
	i, wrong := ap.knownInstallation(owner)
	if i != nil && wrong == nil {
		return i, nil
	}
	unlock, err := ap.locks.Lock(ctx, installationsKey)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if i, wrong = ap.knownInstallation(owner); i == nil && wrong == nil { // nobody else has read it meanwhile
		if err := ap.readInstallations(ctx); err != nil {
			if i := ap.usableInstallation(owner); i != nil && forge.IsRetryable(err) {
				return i, nil // what can't be read now is most likely as it was
			}
			return nil, err
		}
		if err := ap.findRenamed(ctx, owner, repo); err != nil {
			return nil, err
		}
		i, wrong = ap.knownInstallation(owner)
	}
	if wrong != nil {
		return nil, wrong
	}
	return i, nil
}

// usableInstallation is an owner's as it was when it was last read, if it could be used then.
func (ap *App) usableInstallation(owner string) *installation {
	ap.mu.Lock()
	defer ap.mu.Unlock()
	i := ap.installations[strings.ToLower(owner)]
	if ap.checkInstallation(i, owner) != nil {
		return nil
	}
	return i
}

// knownInstallation is what is known of an owner's: both nil where it is to be read (again).
func (ap *App) knownInstallation(owner string) (*installation, error) {
	ap.mu.Lock()
	defer ap.mu.Unlock()
	i := ap.installations[strings.ToLower(owner)]
	wrong := ap.checkInstallation(i, owner)
	age := ap.options.Now().Sub(ap.readAt)
	if ap.readAt.IsZero() || wrong != nil && age >= restInterval || age >= installationsAge {
		return nil, nil
	}
	if wrong != nil {
		wrong.RetryAfter = ap.readAt.Add(restInterval)
		return nil, wrong
	}
	return i, nil
}

// readInstallations reads where the App is installed.
func (ap *App) readInstallations(ctx context.Context) error {
	found := map[string]*installation{}
	add := func(in *gh.Installation) {
		found[strings.ToLower(in.GetAccount().GetLogin())] = toInstallation(in)
	}
	if err := ap.readAbout(ctx); err != nil {
		return err
	}
	if id := ap.app.InstallationID; id != 0 {
		in, _, err := ap.own.Apps.GetInstallation(ctx, id)
		switch {
		case err == nil:
			add(in)
		case rest.StatusOf(err) != http.StatusNotFound:
			return ap.wrapAppError("read the App's installation "+strconv.FormatInt(id, 10), err)
		}
	} else if err := forEach("list the App's installations", bounds, func(page gh.ListOptions) ([]*gh.Installation, *gh.Response, error) {
		return ap.own.Apps.ListInstallations(ctx, &page)
	}, func(in *gh.Installation) bool {
		add(in)
		return false
	}); err != nil {
		return ap.wrapAppError("list the App's installations", err)
	}
	ap.mu.Lock()
	defer ap.mu.Unlock()
	for owner, was := range ap.installations {
		// An installation found under a former name stays found.
		if now := found[strings.ToLower(was.owner)]; found[owner] == nil && now != nil && now.id == was.id {
			found[owner] = now
		}
	}
	ap.installations, ap.readAt = found, ap.options.Now()
	return nil
}

func toInstallation(in *gh.Installation) *installation {
	i := &installation{id: in.GetID(), owner: in.GetAccount().GetLogin(), page: in.GetHTMLURL(), suspended: !in.GetSuspendedAt().IsZero(),
		permissions: map[string]string{}}
	if text, err := json.Marshal(in.Permissions); err == nil {
		// Only those that the SDK knows; all that are needed are among them.
		if err := json.Unmarshal(text, &i.permissions); err != nil {
			i.permissions = map[string]string{}
		}
	}
	return i
}

// findRenamed looks for the installation of an owner that isn't in the list by a repository's
// address, which GitHub follows to where it is now.
func (ap *App) findRenamed(ctx context.Context, owner, repo string) error {
	ap.mu.Lock()
	known := ap.installations[strings.ToLower(owner)] != nil
	ap.mu.Unlock()
	if known || repo == "" || ap.app.InstallationID != 0 {
		return nil
	}
	in, _, err := ap.own.Apps.FindRepositoryInstallation(ctx, rest.Segment(owner), rest.Segment(repo))
	switch {
	case rest.StatusOf(err) == http.StatusNotFound:
		return nil
	case err != nil:
		return ap.wrapAppError("find the App's installation for "+owner+"/"+repo, err)
	}
	ap.mu.Lock()
	defer ap.mu.Unlock()
	ap.installations[strings.ToLower(owner)] = toInstallation(in)
	return nil
}

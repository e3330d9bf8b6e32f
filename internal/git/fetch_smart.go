package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/git/smarthttp"
	"github.com/liftlock/liftlock/internal/proc"
)

const (
	// maxSmartWants bounds the branches of which one smart fetch brings commits: more than that
	// move at once only in a first fetch and after a long rest.
	maxSmartWants = 64
	// maxSmartHaves bounds what the remote is told that the mirror has.
	maxSmartHaves = 256
	// haveAncestors is how many commits before a branch that moved are named besides: one that
	// was pushed over is often built on one of them.
	haveAncestors = 16
	// maxAncestorsOf is of how many that moved.
	maxAncestorsOf = 4
	// unusableFor is how long git's programs do everything after they managed with what wasn't
	// understood: it may have been a proxy's page.
	unusableFor = time.Hour
)

// stalledFor is mirrorConfig's http.lowSpeedTime.
const stalledFor = 2 * time.Minute

// strictCheck is what mirrorConfig has git fetch check.
var strictCheck = "--strict=" + strings.Join(strings.Fields(strings.ReplaceAll(toleratedFaults, " = ", "=")), ",")

// smartRemote speaks the protocol with the remote where that saves requests and programs; zero:
// git's programs do everything.
type smartRemote struct {
	client *smarthttp.Client
	// unusableUntil is when git's programs last managed with what it didn't understand, and
	// unusableFor; nil: they never did.
	unusableUntil atomic.Pointer[time.Time]
	// proven says that it was understood once: until then every failure may be its own.
	proven atomic.Bool
	notes  map[string]string // the mirror's notes, as Fetch keeps them; nil: to be read
}

// isUsable says that the protocol is spoken with the remote now.
func (s *smartRemote) isUsable(now time.Time) bool {
	until := s.unusableUntil.Load()
	return s.client != nil && (until == nil || !now.Before(*until))
}

// openSmart readies it where the remote is reached by HTTP as git's programs would reach it.
func (p *mirrorPrograms) openSmart() error {
	if p.remote.origin == "" || os.Getenv("ALL_PROXY")+os.Getenv("all_proxy") != "" { // which net/http doesn't heed
		return nil
	}
	client, err := smarthttp.New(smarthttp.Options{URL: p.remote.url, CAFile: p.opts.CAFile, Stalled: stalledFor})
	if err != nil {
		return fmt.Errorf("read the authorities of %s: %w", p.remote.url, err)
	}
	p.smart.client = client
	return nil
}

// errLeaveToPrograms: what was begun is git's programs' to do, which know more ways to do it, and
// more words for why it can't be done.
var errLeaveToPrograms = errors.New("left to git's programs")

// trySmart makes a call of the protocol with the credentials, and with others where those were
// refused. Its error is one of this package, or errLeaveToPrograms.
func (p *mirrorPrograms) trySmart(ctx context.Context, op string, call func(ctx context.Context, who smarthttp.Credentials) error) error {
	if !p.smart.isUsable(p.opts.Now()) || p.damaged.Load() {
		return errLeaveToPrograms
	}
	password, err := p.trySmartOnce(ctx, op, call)
	if password != "" && errors.Is(err, ErrAuth) && p.opts.Refused != nil && p.opts.Refused(password) {
		_, err = p.trySmartOnce(ctx, op, call)
	}
	return err
}

func (p *mirrorPrograms) trySmartOnce(ctx context.Context, op string, call func(ctx context.Context, who smarthttp.Credentials) error) (password string, err error) {
	var who smarthttp.Credentials
	if who.User, who.Password, err = p.credentials(ctx); err != nil {
		return "", &Error{Op: op, Kind: ErrAuth, Err: fmt.Errorf("get the credentials: %w", err)}
	}
	limited, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	err = smartError(ctx, op, call(limited, who), func(text string) string { return redactCredentials(text, who) })
	if err == nil {
		p.smart.proven.Store(true)
	} else if !p.smart.proven.Load() && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", errLeaveToPrograms, err)
	}
	return who.Password, err
}

// redactCredentials takes out what a host may repeat of a request.
func redactCredentials(text string, who smarthttp.Credentials) string {
	return proc.Redact(text, []string{who.Password, basicCredentials(who.User, who.Password)})
}

// smartError tells a failure's kind, as remoteError does by the programs' words.
func smartError(ctx context.Context, op string, err error, redact func(string) string) error {
	var status *smarthttp.StatusError
	var refused *smarthttp.RefusedError
	var local *proc.Error
	if err == nil {
		return nil
	}
	if text := err.Error(); redact(text) != text {
		err = errors.New(redact(text)) // its kind isn't known any more, but for that it is the remote's
	}
	e := &Error{Op: op, Kind: ErrRemote, Err: err}
	switch {
	case ctx.Err() != nil:
		e.Kind = nil
	case errors.Is(err, context.DeadlineExceeded):
		e.Hint = tooLongHint
	case errors.As(err, &status):
		return statusError(e, status.Status)
	case errors.Is(err, smarthttp.ErrNotSpoken), errors.Is(err, smarthttp.ErrTooLarge), errors.As(err, &refused), errors.As(err, &local), errors.Is(err, errLeaveToPrograms):
		return fmt.Errorf("%w: %w", errLeaveToPrograms, err)
	}
	return e
}

// statusError tells the kind of an answer's status.
func statusError(e *Error, status int) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		e.Kind, e.Hint = ErrAuth, authHint
	case status == http.StatusNotFound:
		e.Kind, e.Hint = ErrNoRepository, noRepositoryHint
	case status >= 300 && status < 400:
		e.Hint = redirectHint
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		return fmt.Errorf("%w: %w", errLeaveToPrograms, e.Err) // it may want to be asked otherwise
	}
	return e
}

// fetchSmart does as runFetch with two requests at most, and gives the branches that there are
// then.
func (p *mirrorPrograms) fetchSmart(ctx context.Context, before, expected map[string]string) (heads map[string]string, err error) {
	if len(before) == 0 {
		return nil, errLeaveToPrograms // the first fetch, which may be large
	}
	op := "fetch " + p.remote.url
	expecting, stop := context.WithCancel(ctx)
	defer stop()
	var besides sync.WaitGroup
	besides.Go(func() { p.bringExpected(expecting, op, before, expected) })
	defer func() {
		if err == nil {
			return
		}
		if rerr := p.removeLeftovers(); rerr != nil { // of what was killed, or couldn't use what came
			err = fmt.Errorf("%w; then removing what it left: %w", err, rerr)
		}
	}()
	var remote map[string]string
	err = p.trySmart(ctx, op, func(ctx context.Context, who smarthttp.Credentials) (err error) {
		remote, err = p.smart.client.Refs(ctx, who, headsPrefix, hydratorNotes)
		return err
	})
	if err != nil {
		stop()
	}
	besides.Wait()
	if err != nil {
		return nil, err
	}
	heads = map[string]string{}
	notes := map[string]string{}
	for ref, sha := range remote {
		if branch, ok := strings.CutPrefix(ref, headsPrefix); ok {
			heads[branch] = sha
		} else {
			notes[ref] = sha
		}
	}
	if len(heads) == 0 {
		return nil, errLeaveToPrograms // it can't be meant, and the programs' way to tell is the one
	}
	if p.smart.notes == nil {
		if p.smart.notes, err = p.listRefs(ctx, notesPrefix); err != nil {
			return nil, fmt.Errorf("%w: %w", errLeaveToPrograms, err)
		}
	}
	changes := slices.Concat(refChanges(headsPrefix, before, heads), refChanges("", p.smart.notes, notes))
	if len(changes) == 0 {
		return heads, nil
	}
	if err := p.follow(ctx, op, before, changes); err != nil {
		return nil, err
	}
	p.smart.notes = notes
	return heads, nil
}

// follow brings what some refs are to be moved to, and moves them.
func (p *mirrorPrograms) follow(ctx context.Context, op string, before map[string]string, changes []refChange) error {
	var commits, moved []string
	for _, c := range changes {
		commits, moved = append(commits, c.to), append(moved, c.from)
	}
	wants, err := p.listMissing(commits)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errLeaveToPrograms, err)
	case len(wants) > maxSmartWants:
		return errLeaveToPrograms
	case len(wants) > 0:
		if err := p.trySmart(ctx, op, p.bringing(wants, p.listHaves(before, moved))); err != nil {
			return err
		}
	}
	if err := p.checkConnected(ctx, commits); err != nil {
		return fmt.Errorf("%w: %w", errLeaveToPrograms, err)
	}
	if err := p.moveRefs(ctx, changes); err != nil {
		return fmt.Errorf("%w: %w", errLeaveToPrograms, err)
	}
	return nil
}

// refChange is a ref that is to move; empty: it isn't there.
type refChange struct{ ref, from, to string }

// refChanges are what leads from some refs to others.
func refChanges(prefix string, from, to map[string]string) (changes []refChange) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[name]; !stays {
			changes = append(changes, refChange{ref: prefix + name, from: from[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if from[name] != to[name] {
			changes = append(changes, refChange{prefix + name, from[name], to[name]})
		}
	}
	return changes
}

// bringExpected fetches what branches are expected to be at. Nothing comes of it where that isn't
// so, or the remote doesn't give it: what is really missing is fetched afterwards.
func (p *mirrorPrograms) bringExpected(ctx context.Context, op string, before, expected map[string]string) {
	if !p.smart.isUsable(p.opts.Now()) || p.damaged.Load() {
		return
	}
	var commits, moved []string
	for branch, sha := range expected {
		commits, moved = append(commits, sha), append(moved, before[branch])
	}
	wants, err := p.listMissing(commits)
	if err == nil && len(wants) > 0 {
		_, err = p.trySmartOnce(ctx, op, p.bringing(wants, p.listHaves(before, moved)))
	}
	if err != nil {
		p.log.Debug("a commit that was expected didn't come", zap.Error(err))
	}
}

// listMissing are those of some commits that the mirror doesn't have, each once; empty ones count
// for nothing.
func (p *mirrorPrograms) listMissing(commits []string) (missing []string, err error) {
	for _, sha := range commits {
		if sha == "" || slices.Contains(missing, sha) {
			continue
		}
		switch _, err := p.findObject(sha); {
		case errors.Is(err, errMissing):
			missing = append(missing, sha)
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// bringing has commits sent, and stores them.
func (p *mirrorPrograms) bringing(wants, haves []string) func(context.Context, smarthttp.Credentials) error {
	return func(ctx context.Context, who smarthttp.Credentials) error {
		return p.smart.client.Pack(ctx, who, wants, haves, func(pack io.Reader) error { return p.unpack(ctx, pack) })
	}
}

// listHaves names what the mirror has: what moved with what was before it, and other branches.
func (p *mirrorPrograms) listHaves(heads map[string]string, moved []string) []string {
	seen := map[string]bool{}
	var haves []string
	add := func(sha string) {
		if !seen[sha] && len(haves) < maxSmartHaves {
			seen[sha] = true
			haves = append(haves, sha)
		}
	}
	isCommit := func(sha string) bool { // and no tag's object, or a blob
		_, err := p.readCommit(sha)
		return sha != "" && err == nil
	}
	for _, sha := range moved {
		if isCommit(sha) {
			add(sha)
		}
	}
	for _, sha := range moved[:min(len(moved), maxAncestorsOf)] {
		for i := 0; isCommit(sha) && i < haveAncestors; i++ {
			add(sha)
			c, err := p.readCommit(sha)
			if err != nil || len(c.Parents) == 0 {
				break
			}
			sha = c.Parents[0]
		}
	}
	for _, branch := range slices.Sorted(maps.Keys(heads)) {
		add(heads[branch])
	}
	return haves
}

// unpack stores a pack as git fetch does, after the checks that the mirror is configured to have
// (transfer.fsckObjects).
func (p *mirrorPrograms) unpack(ctx context.Context, pack io.Reader) error {
	c := p.gitCommand("index-pack", "--stdin", "--fix-thin", strictCheck)
	c.MaxStdout = 0 // piped
	git, err := proc.Start(ctx, c)
	if err != nil {
		return err
	}
	received := &readError{r: bufio.NewReaderSize(pack, 64<<10)}
	_, err = io.Copy(git.Stdin, received)
	if received.err != nil { // before the program's words about what it then misses
		git.End()
		return received.err
	}
	if werr := git.Wait(); werr != nil {
		return werr
	}
	return err
}

// readError keeps why reading ended.
type readError struct {
	r   io.Reader
	err error
}

func (e *readError) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	if err != nil && err != io.EOF {
		e.err = err
	}
	return n, err
}

// checkConnected says whether all is there that commits are made of, as git fetch does before it
// moves a ref: that a commit is there doesn't say it, after a crash for example.
func (p *mirrorPrograms) checkConnected(ctx context.Context, commits []string) error {
	c := p.gitCommand("rev-list", "--objects", "--stdin", "--not", "--all", "--quiet")
	var wanted bytes.Buffer
	for _, sha := range commits {
		if sha != "" {
			wanted.WriteString(sha + "\n")
		}
	}
	c.Stdin = wanted.Bytes()
	_, err := p.runGit(ctx, c)
	return err
}

// moveRefs moves all refs or none.
func (p *mirrorPrograms) moveRefs(ctx context.Context, changes []refChange) error {
	var script bytes.Buffer
	for _, c := range changes {
		switch {
		case c.to == "":
			fmt.Fprintf(&script, "delete %s %s\n", c.ref, c.from)
		case c.from == "":
			fmt.Fprintf(&script, "create %s %s\n", c.ref, c.to)
		default:
			fmt.Fprintf(&script, "update %s %s %s\n", c.ref, c.to, c.from)
		}
	}
	c := p.gitCommand("update-ref", "--stdin")
	c.Stdin = script.Bytes()
	_, err := p.runGit(ctx, c)
	return err
}

// listHeadsSmart is listRemoteHeads with one request.
func (p *mirrorPrograms) listHeadsSmart(ctx context.Context, op string, branches []string) (map[string]string, error) {
	prefixes := make([]string, len(branches))
	for i, branch := range branches {
		prefixes[i] = headsPrefix + branch
	}
	heads := map[string]string{}
	err := p.trySmart(ctx, op, func(ctx context.Context, who smarthttp.Credentials) error {
		refs, err := p.smart.client.Refs(ctx, who, prefixes...)
		for _, branch := range branches {
			if sha, ok := refs[headsPrefix+branch]; ok {
				heads[branch] = sha
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return heads, nil
}

// closePrograms ends what runs, and what is open to the remote.
func (p *mirrorPrograms) closePrograms() {
	p.programs.closePrograms()
	if p.smart.client != nil {
		p.smart.client.Close()
	}
}

// leftToPrograms notes, where git's programs have done what the protocol's own client couldn't,
// that they are to do it from now on.
func (p *mirrorPrograms) leftToPrograms(why error) {
	var refused *smarthttp.RefusedError
	if errors.Is(why, smarthttp.ErrNotSpoken) || errors.Is(why, smarthttp.ErrTooLarge) || errors.As(why, &refused) {
		until := p.opts.Now().Add(unusableFor)
		p.smart.unusableUntil.Store(&until)
		p.log.Info("the remote doesn't speak version 2 of Git's protocol as expected; for an hour git's programs talk to it, with more requests", zap.Error(why))
	}
}

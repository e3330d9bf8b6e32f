package git

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/git/smarthttp"
	"github.com/liftlock/liftlock/internal/proc"
)

const (
	// stalledFor is mirrorConfig's http.lowSpeedTime.
	stalledFor = 2 * time.Minute
	// unusableFor is how long git's programs do everything after they managed with what wasn't
	// understood: it may have been a proxy's page.
	unusableFor = time.Hour
)

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
func (mp *mirrorPrograms) openSmart() error {
	if mp.remote.origin == "" || os.Getenv("ALL_PROXY")+os.Getenv("all_proxy") != "" { // which net/http doesn't heed
		return nil
	}
	client, err := smarthttp.New(smarthttp.Options{URL: mp.remote.url, CAFile: mp.opts.CAFile, Stalled: stalledFor})
	if err != nil {
		return fmt.Errorf("read the authorities of %s: %w", mp.remote.url, err)
	}
	mp.smart.client = client
	return nil
}

// errLeaveToPrograms: what was begun is git's programs' to do, which know more ways to do it, and
// more words for why it can't be done.
var errLeaveToPrograms = errors.New("left to git's programs")

// trySmart makes a call of the protocol with the credentials, and with others where those were
// refused. Its error is one of this package, or errLeaveToPrograms.
func (mp *mirrorPrograms) trySmart(ctx context.Context, op string, call func(ctx context.Context, who smarthttp.Credentials) error) error {
	if !mp.smart.isUsable(mp.opts.Now()) || mp.damaged.Load() {
		return errLeaveToPrograms
	}
	password, err := mp.trySmartOnce(ctx, op, call)
	if password != "" && errors.Is(err, ErrAuth) && mp.opts.Refused != nil && mp.opts.Refused(password) {
		_, err = mp.trySmartOnce(ctx, op, call)
	}
	return err
}

func (mp *mirrorPrograms) trySmartOnce(ctx context.Context, op string,
	call func(ctx context.Context, who smarthttp.Credentials) error) (password string, err error) {
	var who smarthttp.Credentials
	if who.User, who.Password, err = mp.credentials(ctx); err != nil {
		return "", &Error{Op: op, Kind: ErrAuth, Err: fmt.Errorf("get the credentials: %w", err)}
	}
	limited, cancel := context.WithTimeout(ctx, mp.opts.Timeout)
	defer cancel()
	err = smartError(ctx, op, call(limited, who), func(text string) string { return redactCredentials(text, who) })
	if err == nil {
		mp.smart.proven.Store(true)
	} else if !mp.smart.proven.Load() && ctx.Err() == nil {
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
	case errors.Is(err, smarthttp.ErrNotSpoken), errors.Is(err, smarthttp.ErrTooLarge), errors.As(err, &refused), errors.As(err, &local),
		errors.Is(err, errLeaveToPrograms):
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

// listHeadsSmart is listRemoteHeads with one request.
func (mp *mirrorPrograms) listHeadsSmart(ctx context.Context, op string, branches []string) (map[string]string, error) {
	prefixes := make([]string, len(branches))
	for i, branch := range branches {
		prefixes[i] = headsPrefix + branch
	}
	heads := map[string]string{}
	err := mp.trySmart(ctx, op, func(ctx context.Context, who smarthttp.Credentials) error {
		refs, err := mp.smart.client.Refs(ctx, who, prefixes...)
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
func (mp *mirrorPrograms) closePrograms() {
	mp.programs.closePrograms()
	if mp.smart.client != nil {
		mp.smart.client.Close()
	}
}

// leftToPrograms notes, where git's programs have done what the protocol's own client couldn't,
// that they are to do it from now on.
func (mp *mirrorPrograms) leftToPrograms(why error) {
	var refused *smarthttp.RefusedError
	if errors.Is(why, smarthttp.ErrNotSpoken) || errors.Is(why, smarthttp.ErrTooLarge) || errors.As(why, &refused) {
		until := mp.opts.Now().Add(unusableFor)
		mp.smart.unusableUntil.Store(&until)
		mp.log.Info("the remote doesn't speak version 2 of Git's protocol as expected; for an hour git's programs talk to it, with more "+
			"requests", zap.Error(why))
	}
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/server/config"
)

const (
	// tokenWarning is how long before its end a token is worth a warning: time enough for
	// somebody who is on holiday.
	tokenWarning = 14 * 24 * time.Hour
	// maxClockOff is how far the clocks may be apart: GitHub takes an App's signature for no
	// longer than this, and windows and soaks are judged by ours.
	maxClockOff = time.Minute
	// sweepShare is the share of a limit, in percent, from which on sweeps aren't made any more
	// so that what is urgent still can be.
	sweepShare = 70
)

// checkCredentials checks what a forge says of the credentials for it; usable false: no call of
// its repositories would succeed.
func (d *doctor) checkCredentials(ctx context.Context, c *config.Forge, f Forge) (found findings, usable bool) {
	where := "forge " + c.Name
	ctx, cancel := d.limit(ctx)
	defer cancel()
	cred, err := f.InspectCredentials(ctx)
	var me forge.User
	if err == nil {
		me, err = f.Me(ctx)
	}
	if errors.Is(err, forge.ErrNotInstalled) {
		return found, true // which one, and why, is said of its repositories
	}
	if err != nil {
		found.addUnreadable(err, where)
		return found, false
	}
	for _, m := range cred.Missing {
		found.add("grant-missing", where, fmt.Sprintf("the token lacks the scope %s: %s", m.Name, m.Without),
			"give the token that scope, or make another one with it")
	}
	now := d.Now()
	if end := cred.Expires; !end.IsZero() {
		switch left := end.Sub(now); {
		case left <= 0:
			found.add("token-ended", where, "the token ended on "+end.UTC().Format(time.DateOnly),
				"make a new one and put it where forges[].auth has it")
		case left < tokenWarning:
			found.add("token-ends", where, fmt.Sprintf("the token ends in %d days, on %s", int(left.Hours()/24),
				end.UTC().Format(time.DateOnly)), "make a new one, put it where forges[].auth has it, and restart the server")
		}
	}
	if at := cred.ServerTime; !at.IsZero() {
		if off := now.Sub(at); off > maxClockOff || off < -maxClockOff {
			found.add("clock-off", where, fmt.Sprintf("this machine's clock is %s the forge's", describeOffset(off)),
				"have both machines follow a time server: windows, soaks, holds and an App's signatures go by these clocks")
		}
	}
	d.checkCalls(&found, where, c, cred.Limit)
	found.addOK(0, CodeCredentials, where, "works as "+me.Login+describeLimit(cred.Limit))
	return found, true
}

// checkCalls checks the limit of calls: what is left of it, and what is needed whatever happens.
func (d *doctor) checkCalls(found *findings, where string, c *config.Forge, l forge.CallLimit) {
	if l.Calls <= 0 || l.Every <= 0 {
		return
	}
	if l.Left*100 < (100-sweepShare)*l.Calls {
		found.add("calls-low", where, fmt.Sprintf("%d of %d calls in %s are left: sweeps and webhooks' upkeep rest until the forge "+
			"counts anew", l.Left, l.Calls, formatWindow(l.Every)),
			"find out what else uses this account's calls, and give Liftlock an account of its own")
	}
	repos := 0
	for i := range d.Config.Repositories {
		if d.Config.Repositories[i].Forge == c.Name {
			repos++
		}
	}
	// A sweep lists a repository's pull requests at least.
	if least := repos * int(l.Every/max(d.Config.SweepInterval, time.Second)); least*100 > sweepShare*l.Calls {
		found.add("calls-forecast", where, fmt.Sprintf("the sweeps of %d repositories take at least %d of %d calls in %s", repos, least,
			l.Calls, formatWindow(l.Every)), "make sweepInterval longer: events find the same sooner")
	}
}

// formatWindow is for people: an hour, a minute.
func formatWindow(d time.Duration) string {
	switch d {
	case time.Hour:
		return "an hour"
	case time.Minute:
		return "a minute"
	}
	return d.String()
}

func describeLimit(l forge.CallLimit) string {
	if l.Calls <= 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %d calls in %s are left", l.Left, l.Calls, formatWindow(l.Every))
}

func describeOffset(off time.Duration) string {
	if off < 0 {
		return (-off).Round(time.Second).String() + " behind"
	}
	return off.Round(time.Second).String() + " ahead of"
}

// addUnreadable adds why a forge can't be read at all.
func (f *findings) addUnreadable(err error, where string) {
	switch {
	case errors.Is(err, forge.ErrUnauthorized):
		f.add("credentials-refused", where, err.Error(), "correct forges[].auth in the server's file")
	case errors.Is(err, forge.ErrForbidden):
		f.add("grant-missing", where, err.Error(), "give the token what is named, or use another one")
	default:
		f.add("forge-unreachable", where, err.Error(), "check forges[].url, forges[].caFile and the network; nothing else is known of it "+
			"and its repositories until it answers")
	}
}

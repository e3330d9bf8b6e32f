package console

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/login"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// The verbs of sessions in the audit trail, beside those of commands and merges.
const (
	auditLogin  = "login"
	auditLogout = "logout" // also where somebody else ends the session
)

// unknownActor is who a refused login is of in the audit trail where nobody was identified.
const unknownActor = "unknown (console)"

// actorOf is who a user of the console is in the audit trail, in pull requests and where a hold
// is kept. It is no login of a forge: these have no parentheses.
func actorOf(name string) string { return name + " (console)" }

// sessionAudit is an entry of the audit trail about a user's session. The subject says which user
// of that name it is, as holds do. The address that a login came from is in the log and on the
// account page only: everybody who reads has the trail.
func (se *server) sessionAudit(verb, actor, about, subject, outcome, source string) store.Audit {
	a := store.Audit{At: se.opts.Now(), Actor: actor, Via: promotion.ViaConsole, Verb: verb, Subject: about, Outcome: outcome,
		Source: source}
	if subject != "" {
		a.Subject += ", user " + se.digestUser(subject)
	}
	return a
}

// loginSource makes a login come into the audit trail once, however often its answer is sent.
func loginSource(attempt string) string { return "login " + attempt }

// auditRefusedLogin puts on record that a login was refused. who is nil where no user was
// identified. Anybody can send such an answer, so these are on record as often as rate allows, and
// all of them are in the log.
func (se *server) auditRefusedLogin(ctx context.Context, r *http.Request, a *login.Attempt, who *login.Identity, why string) {
	entry := se.sessionAudit(auditLogin, unknownActor, "the console", "", "refused: "+why, "")
	if who != nil {
		entry = se.sessionAudit(auditLogin, actorOf(who.Name), "the console", who.Subject, "refused: "+why, loginSource(a.Digest()))
	} else if !se.refusedLogins.Allow(se.opts.Client(r)) {
		return
	}
	// Nobody is let in by this, so where it can't be written the page still says why.
	if err := se.opts.Store.AddAudit(context.WithoutCancel(ctx), entry); err != nil {
		se.opts.Log.Error("a refused login to the console isn't in the audit trail", zap.String("name", entry.Actor),
			zap.String("reason", why), zap.Error(err))
	}
}

// endAuditedSession ends a session, once, and puts on record by whom.
func (se *server) endAuditedSession(ctx context.Context, by *user, ended store.BrowserSession) error {
	about := "the console"
	if ended.Subject != by.Subject {
		about = "the session of " + ended.Name
	}
	return se.opts.Store.Tx(ctx, "endSession", func(tx *store.Tx) error {
		if is, err := tx.EndBrowserSession(ctx, ended.ID); err != nil || !is {
			return err // a session that is over already is no error
		}
		return tx.AddAudit(ctx, se.sessionAudit(auditLogout, by.By(), about, ended.Subject, carriedOut, ""))
	})
}

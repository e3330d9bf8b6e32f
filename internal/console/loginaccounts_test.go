package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

// A command says which account on the repository's forge its author has, where the identity
// provider knows; the pages say so too.
func TestCommandsNameAccounts(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.seed()
	w.unit("lab:acme/other", "other", "job", "", env("dev", promotion.Verified, "1", 0, 1))
	w.idp.With(func(p *logintest.Provider) { p.Change = func(m map[string]any) { m["nickname"] = "ada-l" } })
	ada := w.loggedIn(t, "ada", "sre")
	if _, body := ada.open("/account"); !strings.Contains(body, "On hub you are <code>ada-l</code>.") {
		t.Errorf("the account's page doesn't say which account it is:\n%s", body)
	}
	// An approvals gate takes an approver: whether the account is one is found out when it is said.
	const promote = "/act/pipelines/shop/promote?component=web&environment=qa"
	if _, body := ada.open("/act/promotions/2/revert"); !strings.Contains(body, "<b>ada-l</b> on the forge") || strings.Contains(body, "disabled") {
		t.Errorf("before a revert where there are approvals:\n%s", body)
	}
	for path, want := range map[string]string{promote: "ada-l", "/act/pipelines/other/hold": ""} {
		n := len(w.commands)
		if status, body := ada.send(path, path, url.Values{"key": {"K" + path}}, nil); status != 200 || len(w.commands) != n+1 || w.commands[n].Account != want {
			t.Errorf("%s: %d, %+v, want the account %q\n%s", path, status, w.commands[n:], want, body)
		}
	}
	// An account that the server's file doesn't name any more isn't used.
	w.options.Login.Accounts = nil
	n := len(w.commands)
	ada.send(promote, promote, url.Values{"key": {"later"}}, nil)
	if len(w.commands) != n+1 || w.commands[n].Account != "" {
		t.Errorf("without oidc.accounts it is given as %+v", w.commands[n:])
	}
	// Without the claim there is no account, and an approvals gate stands in the way at once.
	w.idp.With(func(p *logintest.Provider) { p.Change = nil })
	w.options.Login.Accounts = map[string]string{"hub": "nickname"}
	eve := w.loggedIn(t, "eve", "sre")
	if _, body := eve.open("/act/promotions/2/revert"); !strings.Contains(body, "disabled") || !strings.Contains(body, "approvals gate") || strings.Contains(body, "on the forge") {
		t.Errorf("without an account:\n%s", body)
	}
}

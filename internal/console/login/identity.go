package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/oauth2"

	"github.com/liftlock/liftlock/internal/wording"
)

const (
	maxName    = 100 // characters of a name
	maxGroups  = 2000
	maxSubject = 255 // OpenID Connect Core 1.0, "ID Token": at most 255 ASCII characters
)

// Identity is who logged in.
type Identity struct {
	Subject  string // for good, at this provider
	Name     string // one line, never empty
	Groups   []string
	Accounts map[string]string // logins by forge, of those whose claim there is
}

// AuthResponse is what the provider sends a browser back with.
type AuthResponse struct {
	Code, State string
	Issuer      string // by whom, as RFC 9207 has it; empty: it doesn't say
	Error       string // why there is no code, as OAuth names it
	Description string
}

// CheckAnswer says what is wrong with an answer to an attempt as far as that is known without
// asking the provider, as a *RefusedError.
func (p *Provider) CheckAnswer(a *Attempt, got AuthResponse) error {
	switch {
	case !a.Matches(got.State):
		return newRefusal("the answer is not to the login that this browser began. Log in again")
	case got.Issuer != "" && got.Issuer != p.opts.Issuer:
		return newRefusal("the answer is of another identity provider than %s. Log in again", p.opts.Issuer)
	case got.Error != "":
		return newRefusal("%s did not log you in: %s", p.opts.Issuer, oneLine(got.Error+" "+got.Description, 200))
	case got.Code == "":
		return newRefusal("the answer has no code. Log in again")
	}
	return nil
}

// Identify redeems the answer to an attempt. Its errors: *RefusedError, or ErrUnreachable.
func (p *Provider) Identify(ctx context.Context, a *Attempt, got AuthResponse) (*Identity, error) {
	if err := p.CheckAnswer(a, got); err != nil {
		return nil, err
	}
	m, err := p.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	ctx = p.with(ctx)
	token, err := p.oauth(m).Exchange(ctx, got.Code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, p.explainExchange(err)
	}
	p.noteTrial(nil)
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, newRefusal("%s gave no ID token: is the scope openid allowed for the client %s?", p.opts.Issuer, p.opts.ClientID)
	}
	id, err := p.verify(ctx, m, raw)
	if err != nil {
		return nil, err
	}
	claims := map[string]json.RawMessage{}
	if err := id.Claims(&claims); err != nil {
		return nil, newRefusal("the ID token can't be read: %s", oneLine(err.Error(), maxErrorText))
	}
	switch party, ok := textClaim(claims, "azp"); {
	case id.Nonce != a.Nonce:
		return nil, newRefusal("the ID token was made for another login (its nonce is not this one's). Log in again")
	case ok && party != p.opts.ClientID:
		return nil, newRefusal("the ID token was made for another client than %s", p.opts.ClientID)
	case id.Subject == "" || len(id.Subject) > maxSubject:
		return nil, newRefusal("the ID token names no subject that can be kept")
	}
	if p.lacksClaim(claims) {
		if err := p.addUserInfo(ctx, m, token, id.Subject, claims); err != nil {
			return nil, err
		}
	}
	groups, err := listGroups(claims, p.opts.GroupsClaim)
	if err != nil {
		return nil, err
	}
	name := p.nameOf(id.Subject, claims)
	if name == "" {
		return nil, newRefusal("the ID token gives nothing that you could be called by")
	}
	accounts, err := p.listAccounts(claims)
	if err != nil {
		return nil, err
	}
	return &Identity{Subject: id.Subject, Name: name, Groups: groups, Accounts: accounts}, nil
}

// lacksClaim says that a claim which is looked for isn't there, and may be at the userinfo endpoint.
func (p *Provider) lacksClaim(claims map[string]json.RawMessage) bool {
	if _, ok := claims[p.opts.GroupsClaim]; !ok {
		return true
	}
	for _, claim := range p.opts.AccountClaims {
		if _, ok := claims[claim]; !ok {
			return true
		}
	}
	return false
}

// maxAccount bounds a login on a forge, in bytes: GitLab's are at most 255 characters.
const maxAccount = 255

// listAccounts reads the logins on the forges. A login that isn't one is refused: if it were
// ignored, the user would count as without an account.
func (p *Provider) listAccounts(claims map[string]json.RawMessage) (map[string]string, error) {
	var out map[string]string
	for forge, claim := range p.opts.AccountClaims {
		raw, ok := claims[claim]
		if !ok || string(raw) == "null" || string(raw) == `""` {
			continue
		}
		text, ok := textClaim(claims, claim)
		if !ok || len(text) > maxAccount ||
			strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			return nil, newRefusal("the claim %s is no login on the forge %s: %.80s", claim, forge, raw)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[forge] = text
	}
	return out, nil
}

// explainExchange says why a code wasn't redeemed.
func (p *Provider) explainExchange(err error) error {
	var answered *oauth2.RetrieveError
	if !errors.As(err, &answered) || answered.Response.StatusCode >= 500 {
		return p.noteUnreachable("redeem the code at "+p.opts.Issuer, err)
	}
	switch answered.ErrorCode {
	case "invalid_grant":
		return newRefusal("%s doesn't take the code: it was used before, is too old, or belongs to another login. Log in again",
			p.opts.Issuer)
	case "invalid_client", "unauthorized_client":
		return newRefusal("%s doesn't know this server: oidc.clientID or oidc.clientSecret in the server's file is wrong (%s)",
			p.opts.Issuer, oneLine(answered.ErrorCode+" "+answered.ErrorDescription, 200))
	}
	return newRefusal("%s doesn't redeem the code: %s", p.opts.Issuer,
		oneLine(fmt.Sprintf("%d %s %s", answered.Response.StatusCode, answered.ErrorCode, answered.ErrorDescription), 200))
}

// addUserInfo adds what the userinfo endpoint says to claims that the ID token hasn't:
// some providers name groups only there.
func (p *Provider) addUserInfo(ctx context.Context, m *metadata, token *oauth2.Token, subject string,
	claims map[string]json.RawMessage) error {
	if m.provider.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := m.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return p.noteUnreachable("the ID token lacks a claim that the server's file names, and "+p.opts.Issuer+
			" can't be asked for it", err)
	}
	if info.Subject != subject { // OpenID Connect Core 1.0, "Successful UserInfo Response"
		return newRefusal("%s speaks of somebody else at its userinfo endpoint", p.opts.Issuer)
	}
	more := map[string]json.RawMessage{}
	if err := info.Claims(&more); err != nil {
		return newRefusal("what %s says at its userinfo endpoint can't be read: %s", p.opts.Issuer, oneLine(err.Error(), maxErrorText))
	}
	for name, value := range more {
		if _, ok := claims[name]; !ok {
			claims[name] = value
		}
	}
	return nil
}

// listGroups reads the groups, a list of texts or one text; no claim is no group.
func listGroups(claims map[string]json.RawMessage, name string) ([]string, error) {
	raw, ok := claims[name]
	if !ok || string(raw) == "null" {
		return nil, nil
	}
	var groups []string
	if one, ok := textClaim(claims, name); ok {
		groups = []string{one}
	} else if err := json.Unmarshal(raw, &groups); err != nil {
		return nil, newRefusal("the claim %s is no list of groups: %.80s", name, raw)
	}
	if len(groups) > maxGroups {
		return nil, newRefusal("the claim %s has %d groups; at most %d are taken: let the provider send only those that matter here", name,
			len(groups), maxGroups)
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// nameOf is what somebody is called.
func (p *Provider) nameOf(subject string, claims map[string]json.RawMessage) string {
	names := []string{p.opts.NameClaim}
	if p.opts.NameClaim == "" {
		names = []string{"preferred_username"}
		if verified := string(claims["email_verified"]); verified == "true" {
			names = append(names, "email")
		}
	}
	for _, name := range names {
		if text, ok := textClaim(claims, name); ok && oneLine(text, maxName) != "" {
			return oneLine(text, maxName)
		}
	}
	return oneLine(subject, maxName)
}

func textClaim(claims map[string]json.RawMessage, name string) (string, bool) {
	var text string
	if raw, ok := claims[name]; !ok || json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, text != ""
}

// oneLine is a text from outside on one line of visible characters, cut.
func oneLine(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return wording.ClipRunes(strings.Join(strings.Fields(text), " "), n)
}
